"""The same plan on threads, on worker processes, and on a scheduler by address."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from cloudpickle import dumps
from distributed import Client, get_task_stream
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import dsel
from dsel.searches import execute, plan_search
from tests.clusters import running_cluster
from tests.estimators import Sleeper

pytestmark = pytest.mark.cluster
TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order], y[order]


@pytest.fixture(scope="module")
def client(processes):
    warm_up(processes)
    return processes


def make_plan(digits, pool, estimator=None, grid=None, **options):
    X, y = digits
    settings = {"cv": 5, "delta": 0.1, "random_state": 1} | options
    grid = grid or {"C": [0.1, 1.0, 10.0], "gamma": [1e-4, 1e-3]}
    return plan_search(
        estimator or SVC(),
        grid,
        X[:300],
        y[:300],
        pool,
        duplicates="keep",
        **{"criterion": "cv_bound"} | settings,
    )


def warm_up(client):
    """Import and compile on every worker, so that none is late for the tasks."""
    X, y = load_digits(return_X_y=True)
    plan = make_plan((X, y), X[400:500], cv=2, grid={"C": [1.0], "gamma": [1e-3]})
    client.run(lambda: execute(plan, n_jobs=1) and None)


def counts(results):
    return results.drop_vars(TIMES)


def workers_of(stream, kind):
    """Return the workers that ran tasks of a kind, by the scheduler's own record."""
    return {task["worker"] for task in stream if task["key"].startswith(kind)}


def test_run__fits_and_spans_run_on_more_than_one_worker(digits, client, tmp_path):
    X = np.tile(digits[0][300:], (12, 1)).astype(np.float32)
    pool = dsel.write_pool(X, tmp_path / "pool.zarr", chunk_rows=8192)
    plan = make_plan(digits, pool, prune=False)
    with get_task_stream(client) as stream:
        on_cluster = execute(plan, client).results
    assert len(workers_of(stream.data, "fit-")) == 2
    assert len(workers_of(stream.data, "span-")) == 2
    on_threads = execute(plan, n_jobs=3).results
    xr.testing.assert_equal(counts(on_cluster), counts(on_threads))


def logistic_plan(digits, pool):
    model, grid = LogisticRegression(max_iter=5000), {"C": [0.01, 0.1]}
    return make_plan(digits, pool, model, grid, cv=3, prune=False)


@pytest.fixture(scope="module")
def counts_in_memory(digits):
    return counts(execute(logistic_plan(digits, digits[0][400:])).results)


@pytest.mark.parametrize("chunk_rows", [500, 1397])
@pytest.mark.parametrize("kind", ["array", "zarr", "dask"])
def test_run__counts_do_not_depend_on_where_the_pool_is(
    digits, client, counts_in_memory, tmp_path, kind, chunk_rows
):
    X = digits[0][400:]
    pool = {
        "array": lambda: X,
        "zarr": lambda: dsel.write_pool(X, tmp_path / "p.zarr", chunk_rows=chunk_rows),
        "dask": lambda: da.from_array(X, chunks=(chunk_rows, -1)),
    }[kind]()
    found = execute(logistic_plan(digits, pool), client).results
    xr.testing.assert_equal(counts(found), counts_in_memory)


def test_run__pruned_searches_end_alike_on_processes_and_threads(digits, client):
    plan = make_plan(digits, digits[0][400:])
    xr.testing.assert_equal(
        counts(execute(plan, client).results), counts(execute(plan, n_jobs=1).results)
    )


def test_run__a_separate_scheduler_is_reached_by_address(digits, tmp_path):
    with (
        running_cluster(tmp_path) as cluster,
        Client(cluster.address) as client,
        get_task_stream(client) as stream,
    ):
        client.wait_for_workers(2, timeout=120)
        warm_up(client)
        plan = make_plan(digits, digits[0][400:], prune=False)
        results = plan.run(client)
    assert len(workers_of(stream.data, "fit-")) == 2
    assert dsel.select(results).certificate.certified


def test_search__finds_the_current_client(digits, client):
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(max_iter=5000), {"C": [0.01, 0.1]}, cv=3, random_state=0
    )
    with client.as_current(), get_task_stream(client) as stream:
        search.fit(digits[0][:200], digits[1][:200])
    assert workers_of(stream.data, "fit-")
    assert search.best_params_["C"] in (0.01, 0.1)


def test_run__a_nan_deep_in_the_pool_is_named_by_row_and_column(digits, client):
    X = digits[0][400:].copy()
    X[1234, 5] = np.nan
    with pytest.raises(ValueError, match=r"1234.*5"):
        execute(make_plan(digits, da.from_array(X, chunks=(300, -1))), client)


def test_run__sends_a_task_the_labels_of_its_own_rows(client, rng, monkeypatch):
    X, pool = (
        rng.normal(size=(160, 2)),
        rng.normal(size=(400_000, 2)).astype(np.float32),
    )
    y, labels = (X[:, 0] > 0).astype(int), (pool[:, 0] > 0).astype(int)
    plan = plan_search(
        Sleeper(),
        {"seconds": [0.0]},
        X,
        y,
        pool,
        pool_labels=labels,
        random_state=0,
        criterion="cv_bound",
    )
    sent, submit = [], client.submit

    def measured(function, *arguments, **ways):
        if ways["key"].startswith("span-"):
            sent.append(len(dumps(arguments)))
        return submit(function, *arguments, **ways)

    monkeypatch.setattr(client, "submit", measured)
    found = plan.run(client)
    assert max(sent) < labels.astype(np.int32).nbytes / 2
    xr.testing.assert_equal(counts(found), counts(plan.run(n_jobs=2)))
