"""A pool of which a chunk was lost is never read as zeros."""

import numpy as np
import pytest
import zarr

from dsel.data import open_pool, write_pool
from dsel.errors import PoolChangedError


@pytest.fixture(name="X")
def fixture_X(rng):  # noqa: N802
    return rng.normal(size=(100, 4))


@pytest.fixture
def lost(X, tmp_path):
    """Return a pool, and what is to be deleted for its rows 60 to 79 to be lost."""
    path = tmp_path / "pool.zarr"
    return write_pool(X, path, chunk_rows=20), path / "c" / "3" / "0"


def total(X, rows):
    return X.sum()


def flipped(b):
    return b[:-9] + bytes([b[-9] ^ 4]) + b[-8:]


@pytest.mark.parametrize("damage", [lambda b: b[:-7], lambda b: b"", flipped])
def test_reduce__names_a_chunk_that_is_cut(lost, damage):
    _, chunk = lost
    chunk.write_bytes(damage(chunk.read_bytes()))
    pool = open_pool(chunk.parents[2])
    with pytest.raises(ValueError, match=r"damaged: rows 60 .*the pool again"):
        pool.reduce(total, np.add)


def test_pool__names_a_chunk_that_is_lost(lost, tmp_path):
    pool, chunk = lost
    chunk.unlink()
    with pytest.raises(PoolChangedError, match=r"its file 'c/3/0' is gone"):
        pool.reduce(total, np.add)
    opened = open_pool(zarr.open_array(tmp_path / "pool.zarr", mode="r"))
    with pytest.raises(ValueError, match=r"rows 60 to 79.*c/3/0 is missing"):
        opened.reduce(total, np.add)
    with pytest.raises(ValueError, match=r"nothing is stored for rows 60 to 79\. Wri"):
        open_pool(tmp_path / "pool.zarr")


@pytest.mark.parametrize("layout", [{}, {"shards": (40, 4)}, {"zarr_format": 2}])
def test_open_pool__of_others_refuses_rows_that_were_never_written(X, tmp_path, layout):
    path = tmp_path / "pool.zarr"
    options = {"shape": X.shape, "chunks": (20, 2), "dtype": X.dtype}
    array = zarr.create_array(path, **options, **layout)
    array[:80] = X[:80]
    with pytest.raises(ValueError, match=r"rows 80 to 99\. .* pass the open array"):
        open_pool(path)
    assert open_pool(zarr.open_array(path, mode="r")).n_rows == 100
    array[90, 3] = 1.0  # chunks of some columns may be left out
    assert open_pool(path).reduce(total, np.add) == pytest.approx(X[:80].sum() + 1.0)
