import psutil
import pytest
from distributed import Client

from dsel.errors import ClusterLostError
from dsel.searches import executors
from dsel.searches.executors import ClusterExecutor, LocalExecutor
from dsel.searches.tasks import BLOCK_NBYTES, BLOCK_ROWS, _block_rows


@pytest.mark.parametrize("limit", [0, 2**20, 2**30, 2**40])
def test_block_rows__shrink_with_memory_but_never_below_the_fewest(limit):
    rows = _block_rows(10_000, limit)
    fewest, most = BLOCK_ROWS
    assert fewest <= rows <= most
    assert rows == fewest or rows * 10_000 <= min(BLOCK_NBYTES, limit // 4)


def test_local_executor__divides_free_memory_by_threads():
    executor = LocalExecutor(None, 4)
    try:
        assert 0 < executor.slot_memory <= psutil.virtual_memory().total // 4
    finally:
        executor.close()


@pytest.fixture
def client():
    with Client(
        n_workers=2,
        threads_per_worker=2,
        memory_limit="1 GiB",
        processes=False,
        dashboard_address="127.0.0.1:0",
        set_as_default=False,
    ) as client:
        yield client


@pytest.mark.cluster
def test_cluster_executor__knows_slots_and_the_memory_of_one(client):
    executor = ClusterExecutor(None, client, "test")
    assert executor.n_slots == 4
    assert executor.slot_memory == 2**29
    executor.close()


@pytest.mark.cluster
def test_cluster_executor__ends_when_workers_stay_away(client, monkeypatch):
    executor = ClusterExecutor(None, client, "test")
    monkeypatch.setattr(executors, "NO_WORKERS_SECONDS", 0.0)
    monkeypatch.setattr(executors, "COUNT_SECONDS", 0.0)
    client.retire_workers([*client.nthreads()])
    with pytest.raises(ClusterLostError, match=r"no workers for 0 s.*same command"):
        assert executor.n_slots
