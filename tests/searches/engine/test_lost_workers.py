"""Workers that die with what was sent to them, and clusters that go while one waits."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

from dsel.cluster import Address, Local, connect
from dsel.errors import ClusterLostError
from dsel.runtime import workers
from dsel.searches import execute, plan_search, read_rows
from dsel.searches.co_validation.row_disagreement import write_row_disagreement
from tests.clusters import running_cluster, wait_until
from tests.estimators import KillsWhenSent, WaitsForFile

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


def make_plan(rng, **options):
    X = rng.normal(size=(80, 20))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    pool = rng.normal(size=(60_000, 20))  # sent to workers, a megabyte a span
    settings = {"cv": 3, "random_state": 0, "prune": False, "duplicates": "keep"}
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}
    return plan_search(
        SVC(), grid, X, y, pool, **{"criterion": "cv_bound"} | settings | options
    )


def kill_a_holder(client):
    """Kill a worker that holds rows which were sent to it; return whether one did."""
    for address, keys in client.has_what().items():
        if any("ndarray" in str(key) for key in keys):
            os.kill(client.run(os.getpid, workers=[address])[address], 9)
            return True
    return False


def test_run__sends_rows_again_that_died_with_a_worker(rng):
    plan, n_killed = make_plan(rng), 0

    def kill(progress):
        nonlocal n_killed
        if n_killed < 2 and progress.spans_done > n_killed:
            n_killed += kill_a_holder(client)

    with connect(Local(workers=2)) as client:
        found = plan.run(client, on_progress=kill)
    assert n_killed == 2
    names = ["disagreements", "pool_rows", "status"]
    xr.testing.assert_equal(found[names], plan.run(n_jobs=2)[names])


def test_write_rows__sends_rows_again_that_died_with_a_worker(rng, tmp_path):
    X = rng.normal(size=(80, 20))
    y = (X[:, 0] > 0).astype(int)
    pool = rng.normal(size=(150_000, 20))
    with connect(Local(workers=2)) as client, ThreadPoolExecutor(1) as thread:
        learner = WaitsForFile(str(tmp_path / "killed"))  # its rows are sent till then
        write = partial(write_row_disagreement, learner, X, y, pool, n_models=4)
        writing = thread.submit(write, tmp_path / "cluster.zarr", client=client)
        wait_until(lambda: kill_a_holder(client) or writing.done(), what="rows sent")
        (tmp_path / "killed").touch()
        writing.result()
    write(tmp_path / "threads.zarr")
    parts = [rows_of(tmp_path / name) for name in ("cluster.zarr", "threads.zarr")]
    np.testing.assert_array_equal(*parts)


def rows_of(path):
    return np.concatenate([part for _, part in read_rows(path, "disagreement")])


@pytest.mark.parametrize(
    ("victim", "message"),
    [("scheduler", "scheduler is gone"), ("worker-0", "no workers")],
)
def test_execute__ends_where_the_cluster_goes_before_the_model_is_here(
    victim, message, rng, tmp_path, monkeypatch
):
    monkeypatch.setattr(workers, "NO_WORKERS_SECONDS", 3.0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    grid = {"reverse": [False, True]}
    with running_cluster(tmp_path, workers=1) as running:
        killer = KillsWhenSent([running.processes[victim].pid])
        plan = plan_search(killer, grid, X, y, criterion="cv_error", random_state=0)
        with connect(Address(running.address), timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            with pytest.raises(ClusterLostError, match=message):
                execute(plan, client, with_model=True)
