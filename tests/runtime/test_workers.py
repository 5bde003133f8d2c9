"""What a run does about workers that are paused, lost or too small."""

from operator import add
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from dask import config
from distributed import Client
from distributed.core import Status

from dsel.cluster import connect
from dsel.data import open_pool
from dsel.errors import ClusterLostError
from dsel.runtime import workers
from dsel.runtime.workers import MIB, Workers
from tests.clusters import running_cluster, wait_until
from tests.estimators import plan_of_sleepers


def worker(status="running", executing=0, held=300, managed=0, limit=500):
    """What a scheduler says of a worker of two threads."""
    return {
        "status": status,
        "nthreads": 2,
        "memory_limit": limit * MIB,
        "metrics": {
            "memory": held * MIB,
            "managed_bytes": managed * MIB,
            "task_counts": {"executing": executing, "ready": 1},
        },
    }


PAUSED = worker("paused")
TEN = plan_of_sleepers(np.linspace(0.3, 0.4, 10), criterion="cv_error")


class Cluster:
    """A client whose workers are as they are told to be, and a clock."""

    status, futures = "running", {"mine": None}

    def __init__(self, monkeypatch, is_started=True, **found):
        self.found, self.retired, self.now = found, [], 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(workers, "time", clock)
        self.workers = Workers(self)
        if is_started:
            workers.STARTED.add(self)

    def scheduler_info(self, n_workers):
        assert n_workers == -1
        return {"workers": self.found}

    def retire_workers(self, addresses, *, close_workers):
        assert close_workers
        self.retired += addresses
        for address in addresses:
            del self.found[address]

    def processing(self, addresses):
        return dict.fromkeys(addresses, ("mine", "another's"))

    def threads_after(self, seconds):
        """Look every five seconds for so long; return the threads at the end."""
        for _ in range(seconds // 5):
            self.now += 5.0
            self.workers.update()
        return self.workers.n_threads


def test_workers__that_run_give_threads_and_what_is_left_beside_unmanaged_bytes(
    monkeypatch,
):
    cluster = Cluster(monkeypatch, a=worker(), b=PAUSED, c=worker(held=400, managed=50))
    assert cluster.threads_after(5) == 4
    assert cluster.workers.task_memory == (500 - 350) * MIB // 2


@pytest.mark.parametrize(
    ("b", "seconds", "retired"),
    [
        (PAUSED, 15, []),
        (PAUSED, 25, ["b"]),
        (worker("paused", executing=1), 500, []),  # it may end what it runs
    ],
)
def test_workers__one_paused_without_a_task_is_sent_away(
    monkeypatch, b, seconds, retired
):
    cluster = Cluster(monkeypatch, a=worker(), b=b)
    assert cluster.threads_after(seconds) == 2
    assert cluster.retired == retired


def test_workers__one_that_comes_back_is_not_sent_away(monkeypatch):
    cluster = Cluster(monkeypatch, a=worker(), b=PAUSED)
    for status in ("running", "paused", "running", "paused"):
        cluster.threads_after(15)
        cluster.found["b"] = worker(status)
    assert cluster.retired == []


def test_workers__of_others_are_left_alone_until_they_keep_tasks_for_too_long(
    monkeypatch, caplog
):
    cluster = Cluster(monkeypatch, is_started=False, a=worker(), b=PAUSED)
    assert cluster.threads_after(590) == 2
    assert cluster.retired == []
    (message,) = caplog.messages
    assert "with tasks that no other worker takes: b. dsel did not start" in message
    with pytest.raises(ClusterLostError, match=r"60\d s and keep tasks of this run: b"):
        cluster.threads_after(15)


def test_workers__none_but_paused_ones_end_the_run(monkeypatch):
    cluster = Cluster(monkeypatch, a=PAUSED, b=PAUSED)
    cluster.threads_after(15)
    expected = r"all 2 workers are paused .* of 500 MiB .* it holds 300.*`out=`"
    with pytest.raises(ClusterLostError, match=expected):
        cluster.threads_after(10)


def test_workers__staying_away_ends_the_run_and_a_sleep_does_not(monkeypatch):
    monkeypatch.setattr(workers, "NO_WORKERS_SECONDS", 30.0)
    cluster = Cluster(monkeypatch)
    cluster.now = 100_000.0
    assert cluster.workers.update().n_threads == 1
    assert cluster.threads_after(20) == 1
    with pytest.raises(ClusterLostError, match=r"no workers for 30 s.*same command"):
        cluster.threads_after(5)


def test_workers__who_waits_for_some_is_told_once(monkeypatch, caplog):
    cluster = Cluster(monkeypatch)
    cluster.threads_after(5)
    assert caplog.messages == []
    cluster.threads_after(200)
    expected = "no workers that take tasks; waiting for some, for 600 s at most"
    assert [message.endswith(expected) for message in caplog.messages] == [True]
    cluster.found["a"] = worker()
    cluster.threads_after(5)
    del cluster.found["a"]
    cluster.threads_after(200)
    assert len(caplog.messages) == 2


def test_check_limits__refuses_a_worker_that_would_die_of_its_imports(monkeypatch):
    found = {"a": worker(limit=0), "b": worker(limit=320), "c": worker(limit=500)}
    Cluster(monkeypatch, **found).workers.check_limits()
    cluster = Cluster(monkeypatch, **found, d=worker(limit=250))
    with pytest.raises(MemoryError, match="may use 250 MiB, and its imports alone"):
        cluster.workers.check_limits()


@pytest.mark.cluster
@pytest.mark.parametrize(("patience", "status"), [(5, "closed"), (600, "connecting")])
def test_workers__of_a_scheduler_that_is_gone_are_no_more(tmp_path, patience, status):
    with (
        running_cluster(tmp_path, workers=0) as cluster,
        Client(cluster.address, timeout=patience, set_as_default=False) as client,
    ):
        assert Workers(client).fetch_workers() == {}
        cluster.kill("scheduler")
        wait_until(lambda: client.status == status, 60, "the client")
        with pytest.raises(ClusterLostError, match="the scheduler is gone; run"):
            Workers(client).fetch_workers()


def give_status(status, dask_worker):
    """Do what Dask does to a worker short of memory, or with memory again."""
    dask_worker.status = status


@pytest.fixture
def two_workers(monkeypatch):
    monkeypatch.setattr(workers, "PAUSED_SECONDS", 3.0)
    with (
        config.set({"distributed.worker.memory.pause": False}),
        connect(workers=2) as client,
    ):
        yield client


@pytest.mark.cluster
def test_run__tasks_of_a_worker_paused_for_good_go_to_the_other(two_workers):
    first = min(two_workers.nthreads())

    def pause_first(progress):
        if progress.fits_done and first in two_workers.nthreads():
            two_workers.run(give_status, Status.paused, workers=[first])

    found = TEN.run(two_workers, on_progress=pause_first)
    assert (found.results["status"] == 0).all()
    assert len(two_workers.nthreads()) == 1


@pytest.mark.cluster
def test_run__with_all_workers_paused_for_good_ends_and_goes_on(two_workers, tmp_path):
    def pause_all(progress):
        if progress.fits_done:
            two_workers.run(give_status, Status.paused)

    with pytest.raises(ClusterLostError, match=r"all 2 workers are paused .*`out=`"):
        TEN.run(two_workers, out=tmp_path / "run", on_progress=pause_all)
    two_workers.run(give_status, Status.running)
    again = TEN.run(two_workers, out=tmp_path / "run")
    assert (again.results["status"] == 0).all()


@pytest.mark.cluster
def test_run_and_reduce__ask_about_workers_once(rng, monkeypatch):
    monkeypatch.setattr(workers, "POLL_SECONDS", 1e9)
    pool = open_pool(rng.normal(size=(100, 2)))
    with connect(workers=1) as client:
        asked = Mock(side_effect=client.scheduler_info)
        monkeypatch.setattr(client, "scheduler_info", asked)
        seconds = np.linspace(0.0, 0.001, 30)
        plan_of_sleepers(seconds, criterion="cv_error").run(client)
        assert asked.call_count <= 2
        for name in ("run", "run_on_scheduler"):
            monkeypatch.setattr(client, name, Mock(side_effect=getattr(client, name)))
        for _ in range(5):
            assert pool.reduce(lambda _, rows: len(rows), add, client=client) == 100
        counts = [each.call_count for each in (client.run, client.run_on_scheduler)]
        assert asked.call_count + sum(counts) <= 3
