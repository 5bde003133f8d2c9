import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dsel.data import open_pool, read_table
from dsel.data.labeled import labeled_rows
from dsel.data.shared import find_shared_rows, resolve_shared_rows, row_hashes


def labeled_of(X):
    return labeled_rows(X, np.arange(X.shape[0]) % 2)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(500, 3))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_find_shared_rows__finds_them_in_the_type_of_the_pool(make, dtype, rows):
    if make is sparse.csr_matrix and dtype is np.float16:
        pytest.skip("scipy has no sparse matrices of this type")
    pool = open_pool(make(rows.astype(dtype)))

    shared = find_shared_rows(pool, labeled_of(rows[[400, 7, 30]]))

    assert shared.pool_rows.tolist() == [7, 30, 400]
    assert shared.n_labeled == 3


def test_find_shared_rows__finds_wide_rows_that_differ_in_few_columns(rng):
    wide = np.zeros((200, 40))
    wide[:, 33] = rng.integers(0, 20, size=200)
    labeled = wide[:2] + [[0.0], [100.0]]

    shared = find_shared_rows(open_pool(wide), labeled_of(labeled))

    assert (
        shared.pool_rows.tolist() == np.flatnonzero(wide[:, 33] == wide[0, 33]).tolist()
    )


def test_find_shared_rows__takes_a_sparse_pool_and_dense_labeled_rows(rows):
    rows[np.abs(rows) < 0.7] = 0
    pool = open_pool(sparse.csr_matrix(rows))
    full = np.flatnonzero((rows != 0).all(axis=1))[:4]

    shared = find_shared_rows(pool, labeled_of(sparse.csr_matrix(rows[full])))

    assert set(full) <= set(shared.pool_rows)


@given(
    values=st.lists(st.tuples(*[st.integers(0, 2)] * 2), min_size=4, max_size=40),
    n_labeled=st.integers(2, 10),
    chunk=st.integers(1, 40),
)
def test_find_shared_rows__equals_the_comparison_of_all_pairs(values, n_labeled, chunk):
    table = np.array(values, dtype=float)
    labeled, pool_rows = table[:n_labeled], table[n_labeled // 2 :]
    equal = (pool_rows[:, None] == labeled[None]).all(axis=2)

    pool = open_pool(da.from_array(pool_rows, chunks=(chunk, 2)))
    shared = find_shared_rows(pool, labeled_of(labeled))

    assert shared.pool_rows.tolist() == np.flatnonzero(equal.any(axis=1)).tolist()
    assert shared.n_labeled == equal.any(axis=0).sum()


def test_find_shared_rows__counts_both_zeros_and_missing_values_as_equal():
    labeled = labeled_rows([[0.0, np.nan], [1.0, 1.0]], [0, 1], allow_nan=True)
    pool = open_pool(np.array([[2.0, 1.0], [-0.0, -np.nan]]))

    shared = find_shared_rows(pool, labeled, allow_nan=True)

    assert shared.pool_rows.tolist() == [1]


def test_resolve_shared_rows__refuses_with_count_and_way_out(rows):
    pool = open_pool(np.vstack([rows, rows[:2]]))

    with pytest.raises(
        ValueError, match=r'2 of 4 labeled rows equal one of 4 pool rows.*"exclude"'
    ):
        resolve_shared_rows(
            pool, labeled_of(np.vstack([rows[:2], rows[:2] + 1])), "refuse"
        )


def test_resolve_shared_rows__excludes_one_pool_row_for_each():
    pool = open_pool(np.array([[1.0], [2.0], [1.0], [1.0], [3.0], [2.0]]))
    labeled = labeled_of(np.array([[1.0], [1.0], [2.0], [9.0]]))

    resolved = resolve_shared_rows(pool, labeled, "exclude")

    left = resolved.reduce(lambda X, rows: rows.tolist(), lambda a, b: a + b)
    assert left == [3, 4, 5]


def test_resolve_shared_rows__keeps_without_a_pass(rows):
    def never(block):
        raise AssertionError("the pool was read")

    pool = open_pool(da.from_array(rows, chunks=(10, 3)).map_blocks(never, dtype=float))

    assert resolve_shared_rows(pool, labeled_of(rows[:4]), "keep") is pool


def test_resolve_shared_rows__leaves_a_pool_without_shared_rows_alone(rows):
    pool = open_pool(rows)

    assert resolve_shared_rows(pool, labeled_of(rows[:4] + 1), "refuse") is pool
    assert resolve_shared_rows(pool, labeled_of(rows[:4] + 1), "exclude") is pool


def test_resolve_shared_rows__refuses_other_policies(rows):
    with pytest.raises(ValueError, match="`shared_rows` must be one of 'refuse'"):
        resolve_shared_rows(open_pool(rows), labeled_of(rows[:4]), "drop")


@pytest.mark.parametrize(("name", "n_shared"), [("dna", 82), ("letter", 458)])
def test_find_shared_rows__finds_what_the_benchmark_sets_have(data_dir, name, n_shared):
    table = read_table(data_dir / f"{name}.npz")
    labeled = labeled_rows(table.X[table.split == 0], table.y[table.split == 0])

    shared = find_shared_rows(open_pool(table.X[table.split == 1]), labeled)

    assert len(shared.pool_rows) == n_shared


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_row_hashes__tell_small_whole_numbers_apart(dtype):
    grid = np.stack(np.meshgrid(*[np.arange(16)] * 4), axis=-1).reshape(-1, 4)

    hashes = row_hashes(grid.astype(dtype))

    assert len(np.unique(hashes)) == 16**4
    assert (row_hashes(sparse.csr_matrix(grid.astype(dtype))) == hashes).all()
