from operator import add

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dsel.data import open_pool
from dsel.data.duplicate_rows import duplicate_finder
from dsel.data.identity import row_hashes
from dsel.data.labeled import labeled_rows, match_pool


def counted(pool, X, **options):
    labeled = labeled_rows(X, np.arange(X.shape[0]) % 2, **options)
    pool = match_pool(open_pool(pool), labeled)
    allow_nan = options.get("allow_nan", False)
    find = duplicate_finder(pool, labeled)
    return pool.reduce(lambda X, _: int(find(X).sum()), add, allow_nan=allow_nan)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(500, 3))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_duplicates__are_compared_in_the_type_of_the_pool(make, dtype, rows):
    if make is sparse.csr_matrix and dtype is np.float16:
        pytest.skip("scipy has no sparse matrices of this type")
    few = rows[[400, 7, 30]]
    assert counted(make(rows.astype(dtype)), few) == 3
    assert dtype == np.float16 or counted(rows, few.astype(dtype)) == 3


def test_duplicates__tells_wide_rows_apart_that_differ_in_few_columns(rng):
    wide = np.zeros((200, 40))
    wide[:, 33] = rng.integers(0, 20, size=200)
    labeled = wide[:2] + [[0.0], [100.0]]
    assert counted(wide, labeled) == (wide[:, 33] == wide[0, 33]).sum()


def test_duplicates__takes_sparse_and_dense_rows_in_any_pair(rows):
    rows[np.abs(rows) < 0.7] = 0
    n_equal = len(rows) - (rows.any(axis=1)).sum() + 4
    labeled = np.vstack([rows[(rows != 0).all(axis=1)][:4], [[0, 0, 0]]])
    for make in (np.asarray, sparse.csr_matrix):
        for other in (np.asarray, sparse.csr_matrix):
            assert counted(make(rows), other(labeled)) == n_equal


@given(
    values=st.lists(st.tuples(*[st.integers(0, 2)] * 2), min_size=4, max_size=40),
    n_labeled=st.integers(2, 10),
    chunk=st.integers(1, 40),
)
def test_duplicates__equals_the_comparison_of_all_pairs(values, n_labeled, chunk):
    table = np.array(values, dtype=float)
    labeled, pool = table[:n_labeled], table[min(n_labeled, len(table)) // 2 :]
    equal = (pool[:, None] == labeled[None]).all(axis=2)
    found = counted(da.from_array(pool, chunks=(chunk, 2)), labeled)
    assert found == equal.any(axis=1).sum()


def test_duplicates__counts_both_zeros_and_missing_values_as_equal():
    labeled = np.array([[0.0, np.nan], [1.0, 1.0]])
    pool = np.array([[2.0, 1.0], [-0.0, -np.nan]])
    assert counted(pool, labeled, allow_nan=True) == 1


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, pa.table])
@pytest.mark.parametrize("types", [("f8", "f4"), ("f4", "f8")])
def test_duplicates__compares_frames_by_value(library, types):
    at = pd.date_range("2020", periods=2)
    frame = pd.DataFrame({"a": [0.1, 2.0], "t": ["x", "y"], "day": at.date})
    labeled, pool = (
        frame.astype({"a": of}).assign(at=at.as_unit(unit))
        for of, unit in zip(types, ("us", "ns"), strict=True)
    )
    pool = pool.iloc[[0, 0, 1]].assign(t=pd.Categorical(list("xyy")))
    assert counted(pool, library(labeled), as_frame=True) == 2


@pytest.mark.parametrize(("name", "n_equal"), [("dna", 82), ("letter", 458)])
def test_duplicates__finds_what_the_benchmark_sets_have(data_dir, name, n_equal):
    with np.load(data_dir / f"{name}.npz") as arrays:
        X, split = arrays["X"], arrays["split"]
    assert counted(X[split == 1], X[split == 0]) == n_equal


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_row_hashes__tell_small_whole_numbers_apart(dtype):
    grid = np.stack(np.meshgrid(*[np.arange(16)] * 4), axis=-1).reshape(-1, 4)
    hashes = row_hashes(grid.astype(dtype))
    assert len(np.unique(hashes)) == 16**4
    assert (row_hashes(sparse.csr_matrix(grid.astype(dtype))) == hashes).all()
