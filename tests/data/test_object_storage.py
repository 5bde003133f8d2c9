"""Pools in S3-compatible storage, on a server of our own on loopback."""

import numpy as np
import pytest

from dsel.data import open_pool, write_pool
from tests.object_store import SECRET


@pytest.fixture(name="X")
def fixture_X(rng):  # noqa: N802
    return rng.normal(size=(5000, 8))


def count(X, rows):
    return np.array([len(rows), int(rows.sum()), int((X > 0).sum())])


def test_open_pool__reads_from_object_storage(storage_options, X):
    pool = write_pool(
        X, "s3://dsel/a.zarr", chunk_rows=600, storage_options=storage_options
    )

    assert (pool.reduce(count, np.add) == open_pool(X).reduce(count, np.add)).all()
    again = open_pool("s3://dsel/a.zarr", storage_options=storage_options)
    assert again.token == pool.token


def test_open_pool__shows_no_secret(storage_options, X):
    pool = write_pool(X[:10], "s3://dsel/b.zarr", storage_options=storage_options)

    assert (
        SECRET
        not in repr(pool) + repr(pool.collection) + repr(pool.array.dask) + pool.token
    )


def test_write_pool__interrupted_leaves_nothing_in_object_storage(storage_options, X):
    def stop(done, total):
        raise KeyboardInterrupt

    arguments = {"chunk_rows": 300, "storage_options": storage_options}
    with pytest.raises(KeyboardInterrupt):
        write_pool(X, "s3://dsel/c.zarr", on_progress=stop, **arguments)
    with pytest.raises(ValueError, match="is no pool"):
        open_pool("s3://dsel/c.zarr", storage_options=storage_options)
    pool = write_pool(X, "s3://dsel/c.zarr", **arguments)

    assert (pool.reduce(count, np.add) == open_pool(X).reduce(count, np.add)).all()


def test_open_pool__says_that_nothing_is_there(storage_options):
    with pytest.raises(ValueError, match="is no pool"):
        open_pool("s3://dsel/none.zarr", storage_options=storage_options)


@pytest.mark.cluster
def test_reduce__reads_object_storage_in_other_processes(storage_options, X, processes):
    pool = write_pool(
        X, "s3://dsel/d.zarr", chunk_rows=600, storage_options=storage_options
    )
    counts = pool.reduce(count, np.add, client=processes)
    assert (counts == open_pool(X).reduce(count, np.add)).all()
