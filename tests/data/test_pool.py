"""Every kind of pool keeps the same promises."""

from operator import add

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
import zarr
from dask import delayed
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dsel.data import open_pool
from dsel.data.pool import read_blocks
from dsel.data.row_random import FITTING_STREAM, row_random
from tests.executors import faulty_threads

N_ROWS, N_COLUMNS = 97, 3


@pytest.fixture(scope="module", name="X")
def fixture_X():  # noqa: N802
    dense = np.random.default_rng(5).normal(size=(N_ROWS, N_COLUMNS))
    return np.where(np.abs(dense) < 0.6, 0.0, dense).astype(np.float32)


def of_npy(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


def of_dask(X, _):
    return da.from_array(X, chunks=(20, *X.shape[1:]))


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


def of_npz(X, folder):
    sparse.save_npz(folder / "X.npz", sparse.csr_matrix(X))
    return folder / "X.npz"


CSR = {"meta": sparse.csr_matrix((0, 0), dtype=np.float32)}


KINDS = {
    "array": lambda X, _: X,
    "memmap": lambda X, folder: np.load(of_npy(X, folder), mmap_mode="r"),
    "npy path": of_npy,
    "frame": lambda X, _: pd.DataFrame(X, columns=list("abc")),
    "csr": lambda X, _: sparse.csr_matrix(X),
    "npz of csr": of_npz,
    "dask": lambda X, _: da.from_array(X, chunks=((10, 0, 40, 47), 2)),
    "dask of unknown lengths": lambda X, _: of_dask(X, _)[of_dask(X[:, 0] < 9, _)],
    "dask of csr": lambda X, _: of_dask(X, _).map_blocks(sparse.csr_matrix, **CSR),
    "zarr path": of_zarr,
    "zarr array": lambda X, folder: zarr.open_array(of_zarr(X, folder), mode="r"),
    "zarr shards": lambda X, folder: of_zarr(X, folder, shards=(30, 4)),
    "zarr member": of_group,
    "zarr url": lambda X, folder: f"file://{of_zarr(X, folder)}",
    "data array": of_names,
    "data array of dask": lambda X, _: of_names(X, _).chunk(row=30),
}


def read_all(pool, slice_rows=20, block_rows=7):
    blocks = [
        block
        for pool_slice in pool.slices(slice_rows)
        for block in read_blocks(pool.sources(pool_slice), block_rows)
    ]
    for b in blocks:
        assert 0 < len(b.row_numbers) <= block_rows
        assert sparse.issparse(b.X) or b.X.flags.c_contiguous
    X = [b.X.toarray() if sparse.issparse(b.X) else b.X for b in blocks]
    return np.concatenate([b.row_numbers for b in blocks]), np.concatenate(X)


@pytest.mark.parametrize("kind", KINDS)
def test_read_blocks__gives_once_in_order_what_filters_leave(kind, X, tmp_path):
    pool = open_pool(KINDS[kind](X, tmp_path))
    share = row_random(3, FITTING_STREAM, 0, N_ROWS) / 2.0**64
    left = np.flatnonzero((share >= 0.25) & (share < 0.75))
    left = np.setdiff1d(left, [4, 50, 96])
    filtered = pool.excluding([96, 4]).subset(0.25, 0.75, seed=3).excluding([50])
    for some, expected in ((pool, np.arange(N_ROWS)), (filtered, left)):
        rows, values = read_all(some)
        assert rows.tolist() == expected.tolist()
        assert (values == X[expected]).all()
        assert values.dtype == some.dtype == np.float32
        assert (some.n_rows, some.n_columns) == (len(expected), N_COLUMNS)
        assert sum(pool_slice.n_rows for pool_slice in some.slices(20)) == len(expected)
    assert len({pool.token, filtered.token, pool.subset(0, 0.5, seed=1).token}) == 3


def test_read_blocks__names_row_and_column_of_a_bad_value(X, tmp_path):
    bad = X.copy()
    bad[61, 2] = np.inf
    for name, kind in KINDS.items():
        (tmp_path / name).mkdir()
        pool = open_pool(kind(bad, tmp_path / name))
        with pytest.raises(ValueError, match=r"row 61, column (2|'c') is inf"):
            read_all(pool, slice_rows=50)


def test_read_blocks__lets_missing_values_pass_if_allowed(X):
    bad = X.copy()
    bad[61, 2] = np.nan
    pool, count = open_pool(bad), lambda X, rows: len(rows)
    assert pool.reduce(count, add, allow_nan=True) == N_ROWS
    assert pool.excluding([61]).reduce(count, add) == N_ROWS - 1
    with pytest.raises(ValueError, match="row 61, column 2 is NaN"):
        pool.reduce(count, add)


def test_read_blocks__is_not_misled_by_a_sum_that_overflows():
    pool = open_pool(np.full((3, 2), np.finfo(np.float32).max, dtype=np.float32))
    assert read_all(pool)[1].shape == (3, 2)


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    slice_rows=st.integers(1, 100),
    block_rows=st.integers(1, 100),
    limits=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_read_blocks__are_the_same_rows_for_any_chunking(
    lengths, slice_rows, block_rows, limits
):
    n_rows = sum(lengths)
    X = np.arange(n_rows * 2.0).reshape(n_rows, 2)
    pool = open_pool(da.from_array(X, chunks=(tuple(lengths), 2)))
    plain = open_pool(X).subset(*limits, seed=9).excluding([0])
    filtered = pool.subset(*limits, seed=9).excluding([0])
    if plain.n_rows:
        rows, values = read_all(filtered, slice_rows, block_rows)
        assert (values == X[rows]).all()
        assert (rows == read_all(plain)[0]).all()
    assert filtered.n_rows == plain.n_rows


def test_slices__are_whole_chunks_that_have_rows():
    chunks = ((5, 5, 80, *[10] * 6), 2)
    pool = open_pool(da.zeros((150, 2), chunks=chunks)).excluding(np.arange(95, 130))
    slices = [(0, 10, 10), (10, 90, 80), (90, 100, 5), (130, 150, 20)]
    assert list(pool.slices(20)) == slices


def test_reduce__combines_in_row_order():
    pool = open_pool(da.zeros((1000, 1000), chunks=(10, 1000))).excluding([5])
    rows = pool.reduce(lambda X, rows: rows.tolist(), add)
    assert rows == [row for row in range(1000) if row != 5]


def test_reduce__names_tasks_by_the_pass_and_their_first_row():
    keys = []
    client = faulty_threads(lambda task: keys.append(task.key))
    pool = open_pool(da.zeros((300, 2), chunks=(100, 2)))
    slices = pool.slices(100)
    pool.reduce(lambda X, _: len(X), add, client=client, name="moments", slices=slices)
    assert keys == ["moments-rows=0", "moments-rows=100", "moments-rows=200"]


@pytest.mark.parametrize("kind", [of_npy, of_zarr, lambda X, _: X.copy()])
def test_token__changes_with_one_value(kind, X, tmp_path):
    changed = X.copy()
    changed[3, 0] = 17
    source = kind(X, tmp_path)
    token = open_pool(source).token
    assert token == open_pool(source).token
    if kind is of_zarr:
        zarr.open_array(source, mode="r+")[3, 0] = 17
    else:
        source = kind(changed, tmp_path)
    assert open_pool(source).token != token


def test_fingerprint__depends_on_rows_and_not_on_chunks():
    X = np.arange(400.0).reshape(-1, 4)

    def fingerprint(X, lengths):
        return open_pool(da.from_array(X, chunks=(lengths, (4,)))).fingerprint()

    first = fingerprint(X, (30, 70))
    assert first == fingerprint(X, (100,)) == fingerprint(X, (1,) * 100)
    others = X[::-1], X + (X == 7), X.astype(np.float32)
    assert first not in [fingerprint(other, (30, 70)) for other in others]


# Names of columns


def test_open_pool__takes_names_from_a_frame_or_the_caller(X):
    assert open_pool(pd.DataFrame(X, columns=list("abc"))).columns == ("a", "b", "c")
    assert open_pool(of_names(X, None)).columns == ("a", "b", "c")
    assert open_pool(X).columns is None
    for source in (X, pd.DataFrame(X), of_names(X, None)):
        assert open_pool(source, columns=list("xyz")).columns == ("x", "y", "z")


@pytest.mark.parametrize("of", [of_names, KINDS["frame"]])
def test_open_pool__takes_the_columns_that_are_named(of, X):
    pool = open_pool(of(X, None), columns=["c", "a"])
    assert (pool.as_array().compute() == X[:, [2, 0]]).all()


def test_open_pool__finds_the_columns_of_partitions_by_name():
    parts = [pd.DataFrame([[1.0, 2.0]], columns=list("ab"))]
    parts.append(parts[0][["b", "a"]])
    frame = dd.from_map(lambda n: parts[n], [0, 1], meta=parts[0].iloc[:0])
    assert open_pool(frame).as_array().compute().tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    "dtypes",
    [
        {"a": bool}, {"a": int, "b": bool}, {"a": "Int64"},
        {"a": pd.ArrowDtype(pa.decimal128(20, 1))},
    ],
)  # fmt: skip
def test_open_pool__takes_a_frame_of_several_types(dtypes):
    frame = pd.DataFrame({"a": [0, 1], "b": [0.0, 1.0], "c": [0.5, 2]}).astype(dtypes)
    assert open_pool(frame).dtype == np.float64


def declared_as(like, rows):
    """Return a Dask collection of these rows that declares the types of others."""
    if isinstance(rows, pd.DataFrame):
        return dd.from_map(lambda _: rows, [0], meta=like.iloc[:0])
    block = delayed(lambda: rows)()
    return da.from_delayed(block, rows.shape, dtype=like.dtype, meta=like[:0])


WHOLE = np.array([[1, 2], [3, 4]])
FRACTIONS = np.array([[1.0, 2.0], [3.0, 4.5]])


@pytest.mark.parametrize(
    ("like", "rows", "value"),
    [
        (WHOLE, FRACTIONS, "4.5"),
        (WHOLE, np.where(FRACTIONS == 4.5, np.nan, 1.0), "nan"),
        (WHOLE.astype(np.uint8), WHOLE + [[0, 0], [0, 300]], "304"),
        (sparse.csr_matrix(WHOLE), sparse.csr_matrix(FRACTIONS), "4.5"),
        (pd.DataFrame(WHOLE), pd.DataFrame(FRACTIONS), "4.5"),
        (pd.DataFrame(WHOLE), pd.DataFrame(FRACTIONS).replace(4.5, np.nan), "nan"),
    ],
)
def test_open_pool__refuses_a_chunk_whose_values_the_declared_type_does_not_hold(
    like, rows, value
):
    with pytest.raises(ValueError, match=f"type u?int.*, but row 1 has {value};"):
        open_pool(declared_as(like, rows)).as_array().compute(scheduler="sync")


@pytest.mark.parametrize("value", [1 / 3, 1e300, 2.0**24 + 1])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_open_pool__refuses_a_chunk_whose_values_the_declared_type_would_round(
    kind, value
):
    rows = np.array([[1.0, 2.0], [np.nan, value]])
    like = kind(np.ones((2, 2), np.float32))
    pool = open_pool(declared_as(like, kind(rows)))
    with pytest.raises(ValueError, match=r"float32, but row 1 has (0\.3|1e.300|16)"):
        pool.as_array().compute(scheduler="sync")
    exact = np.array([[1.0, 2.0], [np.nan, 0.5]])
    pool = open_pool(declared_as(like, kind(exact)))
    read = pool.as_array().compute(scheduler="sync")
    read = read.toarray() if sparse.issparse(read) else read
    np.testing.assert_array_equal(read, exact)


def test_open_pool__takes_a_chunk_of_another_type_whose_values_are_the_same():
    rows = open_pool(declared_as(WHOLE, WHOLE.astype(float))).as_array().compute()
    assert rows.dtype == WHOLE.dtype
    assert (rows == WHOLE).all()


def test_open_pool__takes_packed_numbers_that_xarray_opened(tmp_path, rng):
    values = xr.Dataset({"v": (("row", "column"), rng.normal(size=(20, 3)))})
    packed = {"dtype": "int16", "scale_factor": 1e-3, "_FillValue": -32768}
    values.to_zarr(tmp_path / "z", encoding={"v": packed}, consolidated=False)
    opened = xr.open_zarr(tmp_path / "z", consolidated=False).v
    np.testing.assert_allclose(
        open_pool(opened).as_array().compute(), values.v, atol=1e-3
    )
