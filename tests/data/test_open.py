import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from dsel.data import open_pool


def test_open_pool__takes_names_from_a_frame_or_the_caller():
    frame = pd.DataFrame(np.zeros((2, 2)), columns=["len", "width"])

    assert open_pool(frame).columns == ("len", "width")
    assert open_pool(np.zeros((2, 2)), columns=["a", "b"]).columns == ("a", "b")
    assert open_pool(np.zeros((2, 2))).columns is None
    array = xr.DataArray(np.zeros((2, 2)), dims=("i", "j"), coords={"j": ["a", "b"]})
    assert open_pool(array).columns == ("a", "b")


@pytest.mark.parametrize("dtypes", [{"a": bool}, {"a": int, "b": bool}, {"a": "Int64"}])
def test_open_pool__takes_a_frame_of_several_types(dtypes):
    frame = pd.DataFrame({"a": [0, 1], "b": [0.0, 1.0], "c": [0.5, 2]}).astype(dtypes)
    assert open_pool(frame).dtype == np.float64


def test_open_pool__takes_packed_numbers_that_xarray_opened(tmp_path, rng):
    values = xr.Dataset({"v": (("row", "column"), rng.normal(size=(20, 3)))})
    packed = {"dtype": "int16", "scale_factor": 1e-3, "_FillValue": -32768}
    values.to_zarr(tmp_path / "z", encoding={"v": packed}, consolidated=False)

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
