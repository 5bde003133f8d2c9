"""A pass gives the same value wherever it runs."""

import os

import dask.array as da
import numpy as np
import pytest

from dsel.data import open_pool
from dsel.data.cache import process_cache
from dsel.data.row_random import PART_STREAM, row_random
from dsel.runtime.clients import resolve_client
from dsel.runtime.local import LocalExecutor


@pytest.fixture(scope="module")
def threads_client():
    from distributed import Client

    with Client(
        processes=False,
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
    ) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(size=(300_000, 60))


def moments(X, rows):
    return np.array([len(rows), rows.sum(), np.sign(X).sum(), (X**2).sum()])


@pytest.mark.parametrize("keep", [False, True])
def test_reduce__is_the_same_on_a_cluster_as_on_threads(threads_client, rows, keep):
    drawn = da.random.default_rng(3).normal(size=(300_000, 60), chunks=(70_000, 60))
    for source in (rows, drawn):
        pool = open_pool(source).part(0, 0.9, seed=1)

        on_cluster = pool.reduce(moments, np.add, client=threads_client, keep=keep)

        threads = pool.reduce(moments, np.add, client=LocalExecutor, keep=keep)
        assert (on_cluster == threads).all()
        left = np.flatnonzero(row_random(1, PART_STREAM, 0, 300_000) / 2.0**64 < 0.9)
        X = np.asarray(source)[left]
        assert on_cluster == pytest.approx(moments(X, left), rel=1e-12)


def test_reduce__inside_a_task_runs_in_that_task(threads_client, rows):
    pool = open_pool(rows[:1000])

    def inner():
        return resolve_client() is None, pool.reduce(moments, np.add)[0]

    assert threads_client.submit(inner).result() == (True, 1000)


def test_reduce__keeps_blocks_for_the_next_pass(tmp_path, rows):
    np.save(tmp_path / "X.npy", rows[:2000])
    pool = open_pool(tmp_path / "X.npy")
    before = process_cache().held
    first = pool.reduce(moments, np.add, keep=True)
    assert process_cache().held == before + 2000 * (60 + 1) * 8
    os.remove(tmp_path / "X.npy")

    assert (pool.reduce(moments, np.add, keep=True) == first).all()


@pytest.mark.cluster
def test_reduce__uses_more_than_one_process(tmp_path, rows, processes):
    np.save(tmp_path / "X.npy", rows)
    pool = open_pool(tmp_path / "X.npy")
    pids = pool.reduce(process_number, set.union, client=processes)
    value = pool.reduce(moments, np.add, client=processes, keep=True)
    assert os.getpid() not in pids
    assert len(pids) == 2
    assert (value == pool.reduce(moments, np.add)).all()


def process_number(X, rows):
    return {os.getpid()}
