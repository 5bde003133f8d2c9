"""Every kind of pool keeps the same promises."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dsel.data import open_pool
from dsel.data.pool import read_blocks
from dsel.data.row_random import PART_STREAM, row_random

N_ROWS, N_COLUMNS = 97, 3


@pytest.fixture(scope="module", name="X")
def fixture_X():  # noqa: N802
    dense = np.random.default_rng(5).normal(size=(N_ROWS, N_COLUMNS))
    return np.where(np.abs(dense) < 0.6, 0.0, dense).astype(np.float32)


def as_array(X, folder):
    return X


def as_memmap(X, folder):
    np.save(folder / "X.npy", np.concatenate([X[:5], X]))
    return np.load(folder / "X.npy", mmap_mode="r")[5:]


def as_npy_path(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def as_frame(X, folder):
    return pd.DataFrame(X, columns=list("abc"))


def as_csr(X, folder):
    return sparse.csr_matrix(X)


def as_dask(X, folder):
    return da.from_array(X, chunks=((10, 0, 40, 47), 2))


def as_dask_unknown(X, folder):
    array = da.from_array(X, chunks=(20, 3))
    return array[da.from_array(np.ones(N_ROWS, dtype=bool), chunks=20)]


def as_dask_csr(X, folder):
    return da.from_array(X, chunks=(20, 3)).map_blocks(
        sparse.csr_matrix, meta=sparse.csr_matrix((0, 0), dtype=X.dtype)
    )


def as_zarr_path(X, folder, **layout):
    array = zarr.create_array(
        folder / "pool.zarr", shape=X.shape, dtype=X.dtype, chunks=(15, 2), **layout
    )
    array[:] = X
    return folder / "pool.zarr"


def as_zarr_array(X, folder):
    return zarr.open_array(as_zarr_path(X, folder), mode="r")


def as_zarr_shards(X, folder):
    return as_zarr_path(X, folder, shards=(30, 4))


def as_zarr_member(X, folder):
    group = zarr.create_group(folder / "group.zarr")
    group.create_array("features", data=X, chunks=(15, 3))
    group.create_array("ids", data=np.arange(len(X)))
    return folder / "group.zarr"


def as_zarr_url(X, folder):
    return f"file://{as_zarr_path(X, folder)}"


def as_data_array(X, folder):
    return xr.DataArray(X, dims=("row", "name"), coords={"name": list("abc")})


def as_dask_data_array(X, folder):
    return as_data_array(X, folder).chunk(row=30)


KINDS = [
    as_array,
    as_memmap,
    as_npy_path,
    as_frame,
    as_csr,
    as_dask,
    as_dask_unknown,
    as_dask_csr,
    as_zarr_path,
    as_zarr_array,
    as_zarr_shards,
    as_zarr_member,
    as_zarr_url,
    as_data_array,
    as_dask_data_array,
]


@pytest.fixture(params=KINDS, ids=[kind.__name__ for kind in KINDS])
def pool(request, X, tmp_path):
    return open_pool(request.param(X, tmp_path))


def read_all(pool, span_rows=20, block_rows=7):
    blocks = [
        block
        for span in pool.spans(span_rows)
        for block in read_blocks(pool.sources(span), block_rows)
    ]
    for b in blocks:
        assert 0 < len(b.rows) <= block_rows
        assert sparse.issparse(b.X) or b.X.flags.c_contiguous
    X = [b.X.toarray() if sparse.issparse(b.X) else b.X for b in blocks]
    return np.concatenate([b.rows for b in blocks]), np.concatenate(X)


def total(X, rows):
    return np.asarray(X.sum(axis=0), dtype=np.float64).ravel() + [len(rows), 0, 0]


def test_open_pool__knows_shape_and_type(pool):
    assert (pool.n_rows, pool.n_columns) == (N_ROWS, N_COLUMNS)
    assert pool.dtype == np.float32
    assert pool.boundaries[0] == 0
    assert pool.boundaries[-1] == N_ROWS
    assert (np.diff(pool.boundaries) > 0).all()


def test_spans__follow_the_chunks(pool):
    spans = pool.spans(20)

    assert [span.start for span in spans[1:]] == [span.stop for span in spans[:-1]]
    assert {span.start for span in spans} <= set(pool.boundaries.tolist())
    assert sum(span.n_rows for span in spans) == N_ROWS


def test_token__is_the_same_when_opened_again(pool):
    assert pool.token == open_pool(pool).token
    assert pool.token != pool.excluding([3]).token
    assert pool.part(0, 0.5, seed=1).token != pool.part(0, 0.5, seed=2).token


def test_excluding_and_part__leave_the_other_rows(pool, X):
    share = row_random(3, PART_STREAM, 0, N_ROWS) / 2.0**64
    expected = np.flatnonzero((share >= 0.25) & (share < 0.75))
    expected = np.setdiff1d(expected, [4, 50, 96])

    filtered = pool.excluding([96, 4]).part(0.25, 0.75, seed=3).excluding([50])
    rows, values = read_all(filtered)

    assert rows.tolist() == expected.tolist()
    assert (values == X[expected]).all()
    assert filtered.n_rows == len(expected)
    assert sum(span.n_rows for span in filtered.spans(20)) == len(expected)


def test_read_blocks__names_row_and_column_of_a_bad_value(X, tmp_path):
    bad = X.copy()
    bad[61, 2] = np.inf
    for kind in KINDS:
        folder = tmp_path / kind.__name__
        folder.mkdir()
        pool = open_pool(kind(bad, folder))
        with pytest.raises(ValueError, match=r"row 61, column 2.* is inf"):
            read_all(pool, span_rows=50)


def test_read_blocks__lets_missing_values_pass_if_allowed(X):
    bad = X.copy()
    bad[61, 2] = np.nan
    pool = open_pool(bad)

    assert pool.reduce(lambda X, rows: len(rows), max, allow_nan=True) == N_ROWS
    assert pool.excluding([61]).reduce(lambda X, rows: len(rows), max) == N_ROWS - 1
    with pytest.raises(ValueError, match="row 61, column 2 is nan"):
        pool.reduce(lambda X, rows: len(rows), max)


def test_read_blocks__is_not_misled_by_a_sum_that_overflows():
    pool = open_pool(np.full((3, 2), np.finfo(np.float32).max, dtype=np.float32))

    assert read_all(pool)[1].shape == (3, 2)


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    span_rows=st.integers(1, 100),
    block_rows=st.integers(1, 100),
    limits=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_read_blocks__are_the_same_rows_for_any_chunking(
    lengths, span_rows, block_rows, limits
):
    n_rows = sum(lengths)
    X = np.arange(n_rows * 2.0).reshape(n_rows, 2)
    pool = open_pool(da.from_array(X, chunks=(tuple(lengths), 2)))
    plain = open_pool(X).part(*limits, seed=9).excluding([0])

    filtered = pool.part(*limits, seed=9).excluding([0])
    if plain.n_rows:
        rows, values = read_all(filtered, span_rows, block_rows)
        assert (values == X[rows]).all()
        assert (rows == read_all(plain)[0]).all()
    assert filtered.n_rows == plain.n_rows


def test_spans__takes_a_chunk_that_is_too_long_whole():
    pool = open_pool(da.zeros((100, 2), chunks=((5, 5, 80, 5, 5), 2)))

    spans = [(span.start, span.stop) for span in pool.spans(10)]

    assert spans == [(0, 10), (10, 90), (90, 100)]


def test_reduce__combines_in_row_order():
    pool = open_pool(da.zeros((1000, 1000), chunks=(10, 1000))).excluding([5])

    rows = pool.reduce(lambda X, rows: rows, lambda a, b: np.concatenate([a, b]))

    assert rows.tolist() == [row for row in range(1000) if row != 5]


def test_token__of_a_zarr_pool_changes_with_its_chunks(X, tmp_path):
    path = as_zarr_path(X, tmp_path)
    before = open_pool(path).token
    zarr.open_array(path, mode="r+")[3, 0] = 17

    assert open_pool(path).token != before


def test_token__of_an_array_changes_with_one_value(X):
    changed = X.copy()
    changed[96, 1] += 1

    assert open_pool(X).token == open_pool(X.copy()).token
    assert open_pool(X).token != open_pool(changed).token


def test_read_blocks__gives_every_row_once_in_order(pool, X):
    rows, values = read_all(pool)

    assert (rows == np.arange(N_ROWS)).all()
    assert (values == X).all()
    assert values.dtype == np.float32
