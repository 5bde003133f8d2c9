import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from dsel.data import open_pool
from dsel.data.labeled import labeled_rows, matching_pool


def test_open_pool__takes_names_from_a_frame_or_the_caller():
    frame = pd.DataFrame(np.zeros((2, 2)), columns=["len", "width"])

    assert open_pool(frame).columns == ("len", "width")
    assert open_pool(np.zeros((2, 2)), columns=["a", "b"]).columns == ("a", "b")
    assert open_pool(np.zeros((2, 2))).columns is None


def test_open_pool__takes_names_from_a_coordinate():
    array = xr.DataArray(np.zeros((2, 2)), dims=("i", "j"), coords={"j": ["a", "b"]})

    assert open_pool(array).columns == ("a", "b")


def test_open_pool__refuses_as_many_names_as_it_likes():
    with pytest.raises(ValueError, match="each of the 2 columns, got 3 names"):
        open_pool(np.zeros((2, 2)), columns=["a", "b", "c"])


def test_open_pool__refuses_a_path_without_anything(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        open_pool(tmp_path / "pool.zarr")


def test_open_pool__refuses_a_url_without_anything():
    with pytest.raises(ValueError, match="'memory://nowhere' is no pool"):
        open_pool("memory://nowhere")


def test_open_pool__refuses_what_is_no_pool(tmp_path):
    (tmp_path / "notes.txt").write_text("no numbers")
    for location in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ValueError, match="is no pool"):
            open_pool(location)


def test_open_pool__refuses_a_group_with_several_tables(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("a", data=np.ones((2, 2)))
    group.create_array("b", data=np.zeros((2, 2)))

    with pytest.raises(ValueError, match="found a, b; name one as"):
        open_pool(tmp_path / "g.zarr")
    assert open_pool(tmp_path / "g.zarr" / "a").n_rows == 2


def test_open_pool__refuses_a_pool_that_was_not_finished(tmp_path):
    zarr.create_array(
        tmp_path / "p.zarr", data=np.zeros((2, 2)), attributes={"complete": False}
    )

    with pytest.raises(ValueError, match="was not written to the end"):
        open_pool(tmp_path / "p.zarr")


@pytest.mark.parametrize(
    "source", [np.array([["a"]]), np.array([[None]]), da.zeros((2, 2), dtype=complex)]
)
def test_open_pool__refuses_values_that_are_no_numbers(source):
    with pytest.raises(TypeError, match="`pool` must be numeric"):
        open_pool(source)


def test_open_pool__takes_text_which_an_array_of_labeled_rows_cannot_match():
    pool = open_pool(pd.DataFrame({"len": [1.0], "colour": ["red"]}))
    labeled = labeled_rows([[0.0, 1.0], [1.0, 0.0]], [0, 1])

    assert (pool.n_rows, pool.columns) == (1, ("len", "colour"))
    with pytest.raises(TypeError, match="column 'colour' holds text"):
        matching_pool(pool, labeled)


def test_open_pool__refuses_other_shapes_and_kinds():
    with pytest.raises(ValueError, match=r"two-dimensional.*got shape \(3,\)"):
        open_pool(np.zeros(3))
    with pytest.raises(TypeError, match="got int"):
        open_pool(3)


def test_open_pool__never_unpickles(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[{}]]), allow_pickle=True)

    with pytest.raises(ValueError, match="is no pool"):
        open_pool(tmp_path / "x.npy")


def test_open_pool__takes_a_dask_frame():
    dataframe = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(np.arange(10.0).reshape(5, 2), columns=["a", "b"])

    pool = open_pool(dataframe.from_pandas(frame, npartitions=2))

    assert (pool.n_rows, pool.columns) == (5, ("a", "b"))


@pytest.mark.parametrize("text", [{}, {"t": "u"}], ids=["numbers", "text"])
@pytest.mark.parametrize("names", [["b", "a"], ["a", "c"]])
def test_open_pool__refuses_a_dask_frame_with_other_columns_in_a_part(text, names):
    dataframe = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(np.arange(10.0).reshape(5, 2), columns=["a", "b"])

    def part(number):
        changed = frame.set_axis(names, axis=1) if number else frame
        return changed.assign(**text)

    rows = dataframe.from_map(part, [0, 1], meta=part(0).iloc[:0])
    with pytest.raises(ValueError, match=f"a, b.* in every partition.*{names[0]}, "):
        matching_pool(open_pool(rows), labeled_rows(part(0)[["a", "b"]], range(5)))


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_matching_pool__refuses_a_column_without_values_for_rows_of_numbers(
    tmp_path, kind
):
    pytest.importorskip("pyarrow")
    pool = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]})
    if kind == "parquet":
        pool.to_parquet(tmp_path / "pool.parquet")
        pool = tmp_path / "pool.parquet"
    filled, empty = np.ones((2, 2)), np.array([[1.0, np.nan], [2.0, np.nan]])

    with pytest.raises(ValueError, match="nothing but missing values in column 'b'"):
        matching_pool(open_pool(pool), labeled_rows(filled, [0, 1]))
    assert matching_pool(open_pool(pool), labeled_rows(empty, [0, 1], allow_nan=True))


@pytest.mark.parametrize("url", ["nothing://bucket/pool", "simplecache::no://pool"])
def test_open_pool__refuses_protocols_that_nobody_knows(url):
    with pytest.raises(ValueError, match="`pool` must be a path or a URL"):
        open_pool(url)


@pytest.mark.parametrize("dtypes", [{"a": bool}, {"a": int, "b": bool}, {"a": "Int64"}])
def test_open_pool__takes_a_frame_of_several_types(dtypes):
    frame = pd.DataFrame({"a": [0, 1], "b": [0.0, 1.0], "c": [0.5, 2]}).astype(dtypes)
    assert open_pool(frame).dtype == np.float64


@pytest.mark.parametrize("spoilt", [b"\n(", b"\n\x06"])
def test_open_pool__says_that_the_header_of_a_file_is_spoilt(spoilt, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.zeros((3, 2)))
    whole = path.read_bytes()
    at = whole.index(b"}")
    path.write_bytes(whole[:at] + spoilt + whole[at + 2 :])
    with pytest.raises(ValueError, match=r"is no pool: .* Save a numeric array"):
        open_pool(path)


def test_open_pool__refuses_packed_numbers(tmp_path, rng):
    values = xr.Dataset({"v": (("row", "column"), rng.normal(size=(20, 3)))})
    packed = {"dtype": "int16", "scale_factor": 1e-3, "_FillValue": -32768}
    values.to_zarr(tmp_path / "z", encoding={"v": packed}, consolidated=False)

    with pytest.raises(ValueError, match="holds packed numbers"):
        open_pool(tmp_path / "z")

    opened = xr.open_zarr(tmp_path / "z", consolidated=False).v
    (X,) = open_pool(opened).reduce(lambda X, rows: [X], lambda a, b: a + b)
    np.testing.assert_allclose(X, values.v, atol=1e-3)


@pytest.mark.parametrize("ending", ["svmlight", "npz"])
def test_open_pool__takes_files_of_sparse_rows(ending, tmp_path, rng):
    X = sparse.csr_matrix(rng.integers(0, 2, size=(30, 4)).astype(float))
    path = str(tmp_path / f"rows.{ending}")
    if ending == "npz":
        sparse.save_npz(path, X)
    else:
        dump_svmlight_file(X, np.zeros(30), path, zero_based=False)

    pool = open_pool(path)

    assert pool.is_sparse
    assert (pool.array.compute() != X).nnz == 0


def test_open_pool__of_a_sparse_pool_of_an_earlier_version_says_so(tmp_path):
    zarr.create_group(tmp_path / "p.zarr", attributes={"dsel_pool": "csr"})

    with pytest.raises(ValueError, match=r"sparse rows as dsel 0\.1 wrote them"):
        open_pool(tmp_path / "p.zarr")
