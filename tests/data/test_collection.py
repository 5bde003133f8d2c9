"""A task computes the blocks of a slice one by one; a pass is the same anywhere."""

import gc
import os
import pickle
import tracemalloc
import uuid
from functools import partial
from operator import add, or_

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse

from dsel.data import open_pool
from dsel.data import pool as pool_module
from dsel.data.cache import process_cache
from dsel.data.frames import Frame, frame_of
from dsel.data.pool import read_blocks
from dsel.data.row_random import FITTING_STREAM, row_random
from dsel.runtime.clients import resolve_client
from dsel.runtime.local_executor import LocalExecutor
from tests.clusters import wait_until


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with Client(
        processes=False, n_workers=2, threads_per_worker=1, set_as_default=False,
        dashboard_address="127.0.0.1:0",
    ) as client:  # fmt: skip
        yield client


CALLS = []  # of this module, which workers in this process import and do not copy


@pytest.fixture
def calls():
    CALLS.clear()
    return CALLS


def make_block(block_info=None):
    number = block_info[None]["chunk-location"][0]
    CALLS.append(number)
    return np.full((10, 3), float(number))


def noted():
    """Return a Dask array of six blocks that notes when one is computed."""
    name = f"noted-{uuid.uuid4().hex}"  # another test's may still be on the cluster
    how = {"chunks": ((10,) * 6, 3), "dtype": float, "meta": np.empty((0, 0))}
    return da.map_blocks(make_block, name=name, **how)


def test_read_blocks__computes_a_block_when_it_is_asked_for_and_has_rows(calls):
    pool = open_pool(noted()).excluding(np.arange(10, 40))
    blocks = read_blocks(pool.sources(pool.slices(60)[0]), 10)
    assert calls == []
    assert [(block.row_numbers[0], calls.copy()) for block in blocks] == [
        (0, [0]), (40, [0, 4]), (50, [0, 4, 5]),
    ]  # fmt: skip


def make_megabytes(block_info=None):
    return np.ones((2**17, 8))


@pytest.mark.parametrize("block_rows", [2**12, 2**17])
def test_reduce__has_one_block_of_a_slice_in_memory(block_rows, monkeypatch):
    chunks = ((2**17,) * 7, 8)
    rows = da.map_blocks(make_megabytes, chunks=chunks, dtype=float, meta=np.empty(0))
    monkeypatch.setattr(pool_module, "BLOCK_NBYTES", 64 * block_rows)
    pool = open_pool(rows)
    in_one_thread = partial(LocalExecutor, n_threads=1)
    pool.reduce(total, add, client=in_one_thread)  # imports what it needs
    tracemalloc.start()
    assert pool.reduce(total, add, client=in_one_thread) == 7 * 2**20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.7 * 2**23


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("where", ["client", "threads"])
def test_reduce__takes_a_persisted_array_as_it_is(client, calls, derived, where):
    array = client.persist(noted())
    client.gather(client.compute(array.sum()))
    assert len(calls) == 6
    pool = open_pool(array + 1 if derived else array)
    runs = client if where == "client" else partial(LocalExecutor)
    assert pool.reduce(total, add, client=runs) == 450 + 180 * derived
    assert len(calls) == 6


def total(X, rows):
    return float(X.sum())


@pytest.mark.parametrize("as_kind", [np.asarray, sparse.csr_matrix, da.from_array])
def test_reduce__sends_rows_in_memory_to_a_cluster_once(client, as_kind):
    X = np.arange(4e5).reshape(-1, 4)
    pool = open_pool(as_kind(X))
    slices = pool.slices(10**6)
    futures = pool.sources(slices[0], client)[1:]
    assert futures
    again = pool.excluding([3]).sources(slices[0], client)[1:]
    assert [each.key for each in again] == [each.key for each in futures]
    small = len(pickle.dumps(open_pool(as_kind(X))))
    assert pool.reduce(total, add, client=client) == X.sum()
    assert len(pickle.dumps(pool)) < small + 1000  # futures stay where they are
    if as_kind is np.asarray:
        X[:] += 1
        assert open_pool(X).reduce(total, add, client=client) == X.sum()
    keys = {each.key for each in futures}
    del futures, again, pool
    gc.collect()
    # Dask releases futures in a thread of its own.
    wait_until(lambda: not keys & set(client.futures), what="the rows' release")


def test_sources__of_a_slice_are_small_however_many_blocks_there_are(tmp_path):
    def zarr_of(name, **layout):
        return zarr.create_array(tmp_path / name, dtype="f4", **layout)

    large = {"shape": (10**9, 50), "chunks": (10**5, 50)}
    for source in (zarr_of("p", **large), da.zeros(**large)):
        pool = open_pool(source)
        slices = pool.slices(3 * 10**5)
        assert len(slices) == 3334
        assert len(pickle.dumps(pool.sources(slices[7]))) < 5000
    # Many small chunks are read together.
    small = zarr_of("small", shape=(10**8, 2), chunks=(1000, 2))
    lengths = np.diff(open_pool(small).boundaries)
    assert len(lengths) < 2**14
    assert lengths[0] % 1000 == 0
    assert lengths[0] * 8 <= 2**23


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(size=(300_000, 60))


def moments(X, rows):
    return np.array([len(rows), rows.sum(), np.sign(X).sum(), (X**2).sum()])


@pytest.mark.parametrize("keep", [False, True])
def test_reduce__is_the_same_on_a_cluster_as_on_threads(client, rows, keep):
    drawn = da.random.default_rng(3).normal(size=(300_000, 60), chunks=(70_000, 60))
    for source in (rows, drawn):
        pool = open_pool(source).subset(0, 0.9, seed=1)
        on_cluster = pool.reduce(moments, add, client=client, keep=keep)
        threads = pool.reduce(moments, add, client=partial(LocalExecutor), keep=keep)
        assert (on_cluster == threads).all()
        left = np.flatnonzero(row_random(1, FITTING_STREAM, 0, 300_000) / 2.0**64 < 0.9)
        X = np.asarray(source)[left]
        assert on_cluster == pytest.approx(moments(X, left), rel=1e-12)


def test_reduce__inside_a_task_runs_in_that_task(client, rows):
    pool = open_pool(rows[:1000])

    def inner():
        return resolve_client() is None, pool.reduce(moments, add)[0]

    assert client.submit(inner).result() == (True, 1000)


def test_reduce__keeps_blocks_for_the_next_pass(tmp_path, rows):
    np.save(tmp_path / "X.npy", rows[:2000])
    pool = open_pool(tmp_path / "X.npy")
    before = process_cache().held
    first = pool.reduce(moments, add, keep=True)
    assert process_cache().held == before + 2000 * (60 + 1) * 8
    schema = frame_of(pd.DataFrame(rows[:1]).add_prefix("c")).schema
    frames = pool.with_schema(schema)
    assert frames.reduce(lambda X, _: {type(X)}, or_, keep=True) == {Frame}
    before = os.stat(tmp_path / "X.npy")
    np.save(tmp_path / "X.npy", np.zeros_like(rows[:2000]))
    os.utime(tmp_path / "X.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (pool.reduce(moments, add, keep=True) == first).all()
