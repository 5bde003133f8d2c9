import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dsel.data import open_pool, read_table
from dsel.data.identity import row_hashes
from dsel.data.labeled import labeled_rows
from dsel.data.overlap import find_shared_rows, resolve_shared_rows


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

    left_out = resolve_shared_rows(pool, labeled, "exclude").twins()

    assert pool.excluding(left_out).n_rows == 3
    assert sorted([1.0, 2.0, 1.0, 1.0, 3.0, 2.0][row] for row in left_out) == [1, 1, 2]


def test_resolve_shared_rows__excludes_as_many_from_each_part_of_equal_rows(rng):
    pool = open_pool(rng.integers(0, 2, size=(2000, 1)).astype(float))
    labeled = labeled_of(rng.integers(0, 2, size=(400, 1)).astype(float))

    left_out = resolve_shared_rows(pool, labeled, "exclude").twins()

    assert len(left_out) == 400
    assert 50 < np.sum(left_out < 500) < 150


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_find_shared_rows__finds_near_copies(make, rows, rng):
    rows[np.abs(rows) < 0.3] = 0.0
    twice = np.vstack([rng.normal(size=(300, 3)), rows[:100] * (1 + 1e-9)])

    found = find_shared_rows(open_pool(make(twice)), labeled_of(make(rows[:200]))).near

    assert 90 <= found.n_copied <= 100
    assert all(row == 300 + number for number, row in found.copied.items())


@pytest.mark.parametrize("n_columns", [1, 2, 3, 20])
@pytest.mark.parametrize("law", ["normal", "lognormal", "integers", "few", "saturated"])
def test_find_shared_rows__takes_no_rows_for_copies_that_chance_brings_near(
    law, n_columns, rng
):
    X = rng.normal(size=(60_000, n_columns))
    made = {
        "normal": X,
        "lognormal": np.exp(3 * X),
        "integers": np.rint(10_000 * X),
        "few": np.rint(X),
        "saturated": 1 / (1 + np.exp(-15 * X)),
    }[law]

    found = find_shared_rows(open_pool(made[1_000:]), labeled_of(made[:1_000])).near

    assert found.n_copied == 0


@pytest.mark.parametrize("levels", [2, 10, 300, 30_000])
def test_find_shared_rows__tells_records_that_recur_from_others_that_look_alike(
    levels, rng
):
    X = rng.integers(0, levels, size=(10_000, 2)).astype(float)
    labeled = labeled_of(X[:500])

    alike = find_shared_rows(open_pool(X[500:]), labeled, with_chance=True)
    same = find_shared_rows(open_pool(X), labeled, with_chance=True)

    assert alike.p_value > 0.001
    assert same.n_labeled == 500
    assert (same.p_value <= 0.001) == (levels >= 300)  # else nothing can tell


def test_resolve_shared_rows__refuses_other_policies(rows):
    with pytest.raises(ValueError, match="`duplicates` must be one of 'refuse'"):
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
