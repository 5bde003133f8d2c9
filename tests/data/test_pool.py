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


def of_file(X, folder):
    np.save(folder / "X.npy", np.concatenate([X[:5], X]))
    return np.load(folder / "X.npy", mmap_mode="r")[5:]


def of_npy(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def of_unknown_lengths(X, _):
    array = da.from_array(X, chunks=(20, 3))
    return array[da.from_array(np.ones(N_ROWS, dtype=bool), chunks=20)]


def of_csr_blocks(X, _):
    meta = sparse.csr_matrix((0, 0), dtype=X.dtype)
    return da.from_array(X, chunks=(20, 3)).map_blocks(sparse.csr_matrix, meta=meta)


def of_zarr(X, folder, **layout):
    path = folder / "pool.zarr"
    options = {"shape": X.shape, "dtype": X.dtype, "chunks": (15, 2)}
    zarr.create_array(path, **options, **layout)[:] = X
    return path


def of_group(X, folder):
    group = zarr.create_group(folder / "group.zarr")
    group.create_array("features", data=X, chunks=(15, 3))
    group.create_array("ids", data=np.arange(len(X)))
    return folder / "group.zarr"


def of_names(X, _):
    return xr.DataArray(X, dims=("row", "name"), coords={"name": list("abc")})


KINDS = {
    "array": lambda X, _: X,
    "memmap": of_file,
    "npy path": of_npy,
    "frame": lambda X, _: pd.DataFrame(X, columns=list("abc")),
    "csr": lambda X, _: sparse.csr_matrix(X),
    "dask": lambda X, _: da.from_array(X, chunks=((10, 0, 40, 47), 2)),
    "dask of unknown lengths": of_unknown_lengths,
    "dask of csr": of_csr_blocks,
    "zarr path": of_zarr,
    "zarr array": lambda X, folder: zarr.open_array(of_zarr(X, folder), mode="r"),
    "zarr shards": lambda X, folder: of_zarr(X, folder, shards=(30, 4)),
    "zarr member": of_group,
    "zarr url": lambda X, folder: f"file://{of_zarr(X, folder)}",
    "data array": of_names,
    "data array of dask": lambda X, _: of_names(X, _).chunk(row=30),
}


@pytest.fixture(params=KINDS)
def pool(request, X, tmp_path):
    return open_pool(KINDS[request.param](X, tmp_path))


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


def test_token__is_the_same_when_opened_again(pool):
    assert pool.token == open_pool(pool).token
    assert pool.token != pool.excluding([3]).token
    assert pool.reopened().token == pool.token
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
    for name, kind in KINDS.items():
        (tmp_path / name).mkdir()
        pool = open_pool(kind(bad, tmp_path / name))
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


def test_spans__are_whole_chunks_that_have_rows():
    chunks = ((5, 5, 80, *[10] * 6), 2)
    pool = open_pool(da.zeros((150, 2), chunks=chunks)).excluding(np.arange(95, 130))

    spans = [(span.start, span.stop, span.n_rows) for span in pool.spans(20)]

    assert spans == [(0, 10, 10), (10, 90, 80), (90, 100, 5), (130, 150, 20)]


def test_reduce__combines_in_row_order():
    pool = open_pool(da.zeros((1000, 1000), chunks=(10, 1000))).excluding([5])

    rows = pool.reduce(lambda X, rows: rows, lambda a, b: np.concatenate([a, b]))

    assert rows.tolist() == [row for row in range(1000) if row != 5]


def test_read_blocks__gives_every_row_once_in_order(pool, X):
    rows, values = read_all(pool)

    assert (rows == np.arange(N_ROWS)).all()
    assert (values == X).all()
    assert values.dtype == pool.dtype == np.float32
    assert (pool.n_rows, pool.n_columns) == (N_ROWS, N_COLUMNS)
    assert sum(span.n_rows for span in pool.spans(20)) == N_ROWS


@pytest.mark.parametrize("kind", [of_npy, of_zarr, lambda X, _: X.copy()])
def test_token__changes_with_one_value(kind, X, tmp_path):
    changed = X.copy()
    changed[3, 0] = 17
    before = open_pool(kind(X, tmp_path))
    told = before.token
    if kind is of_zarr:
        zarr.open_array(tmp_path / "pool.zarr", mode="r+")[3, 0] = 17
        assert open_pool(tmp_path / "pool.zarr").token != told
    else:
        assert open_pool(kind(changed, tmp_path)).token != told
    if kind in (of_npy, of_zarr):
        with pytest.raises(ValueError, match="was written anew since it was opened"):
            before.reopened()
