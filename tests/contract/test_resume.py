"""A run that was killed goes on from its `out` and ends in the same cube."""

import os
import signal
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed import Client
from sklearn.svm import SVC

import dsel
from tests.clusters import environment, running_cluster, wait_until
from tests.contract.runs import (
    DIGITS_GRID,
    K_NEAREST,
    ROOT,
    choice_from,
    choice_of,
    counts_of,
    digits,
    job,
    results_of,
    run_search,
)

pytestmark = pytest.mark.contract


def n_files(place):
    return sum(len(files) for _, _, files in os.walk(place))


def lines(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def start(kind, log, out):
    code = "import sys; from tests.contract.runs import job; job(*sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, kind, log, out],
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )


def kill_when(process, condition):
    """Kill a process once something is true; return whether it was still running."""
    wait_until(lambda: process.poll() is not None or condition(), what="the moment")
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def more_than(count, place, n):
    """Return whether there are n more now than when this was called."""
    before = count(place)
    return lambda: count(place) > before + n


@pytest.mark.parametrize("kind", ["SVC", "tree"])
def test_run__killed_again_and_again_ends_in_the_same_counts(kind, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    # Trees: before anything is kept, then in the middle of the fits.
    count, place, n = (n_files, out, (2,)) if kind == "SVC" else (lines, log, (0, 20))
    killed = [
        kill_when(start(kind, log, out), more_than(count, place, more)) for more in n
    ]
    assert killed[0]
    resumed, whole = job(kind, log, out), job(kind, tmp_path / "other")
    assert counts_of(resumed) == counts_of(whole)
    assert dsel.open_results(out)["status"].equals(results_of(resumed)["status"])


def test_run__what_was_finished_is_not_fitted_again(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    first = job("tree", log, out)
    n = lines(log)
    again = job("tree", log, out)
    assert counts_of(again) == counts_of(first)
    assert choice_of(again) == choice_of(first)
    assert lines(log) == n


@pytest.mark.parametrize("certificate", ["cv_bound", "best_fold", "holdout"])
def test_run__with_out_is_the_run_without(certificate, tmp_path):
    rows = (*K_NEAREST, *digits(200))
    options = {"certificate": certificate, "cv": 3}
    kept = run_search(*rows, out=tmp_path / "out", **options)
    assert counts_of(kept) == counts_of(run_search(*rows, **options))
    again = run_search(*rows, out=tmp_path / "out", **options)
    assert choice_of(again) == choice_of(kept)
    assert choice_from(dsel.open_results(tmp_path / "out")) == choice_of(kept)


def test_run__out_may_be_a_url():
    rows = (SVC(), DIGITS_GRID, *digits(200))
    kept = run_search(*rows, cv=3, out="memory://contract/run")
    again = run_search(*rows, cv=3, out="memory://contract/run")
    assert counts_of(again) == counts_of(kept)
    opened = dsel.open_results("memory://contract/run")
    assert choice_from(opened) == choice_of(kept)


@pytest.mark.cluster
def test_run__a_worker_that_is_killed_changes_no_count(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    with (
        running_cluster(tmp_path) as cluster,
        Client(cluster.address, set_as_default=False) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        running = thread.submit(job, "tree", log, out, client)
        wait_until(lambda: lines(log) > 5 or running.done(), what="some fits")
        cluster.kill("worker-0")
        cluster.start_worker("worker-2")
        counts = counts_of(running.result(timeout=120))
    assert counts == counts_of(job("tree", tmp_path / "other"))


@pytest.mark.parametrize("body", [b'{"said": {}, "datasets": {}, "models": {}}', b"[]"])
def test_run__refuses_an_outcome_that_it_did_not_write(body, tmp_path):
    """One whose checksum is right: a torn one is refused beside."""
    rows = digits(100)
    run_search(*K_NEAREST, *rows, cv=2, out=tmp_path)
    (tmp_path / "outcome.json").write_bytes(b"%08x\n" % zlib.crc32(body) + body)
    with pytest.raises(ValueError, match=r"outcome.* not what dsel wrote there; bring"):
        run_search(*K_NEAREST, *rows, cv=2, out=tmp_path)
