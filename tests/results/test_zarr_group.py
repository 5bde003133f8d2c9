import numpy as np
import pytest
import xarray as xr
import zarr

from dsel.results.zarr_group import group_files


@pytest.fixture
def dataset(rng):
    return xr.Dataset(
        {
            "counts": (("a", "b"), rng.integers(0, 9, (300, 20))),
            "flags": ("a", np.arange(300).astype(np.int8)),
            "rates": (("a", "b"), rng.normal(size=(300, 20)).astype(np.float32)),
            "is_done": ("b", np.arange(20) % 2 == 0),
            "words": (("b", "c"), np.full((20, 2), "é", np.dtypes.StringDType())),
            "total": ((), np.float64("nan")),
            "none": ("nobody", np.empty(0)),
            "unnamed": ("nobody", np.empty(0, np.dtypes.StringDType())),
        },
        coords={"a": np.arange(300), "label": ("b", np.arange(20) / 3)},
        attrs={"title": "something", "levels": [1, 2]},
    )


def write(files, folder):
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def test_group_files__are_read_by_xarray_as_they_were(dataset, tmp_path):
    write(group_files(dataset, {"counts": -1}), tmp_path)
    found = xr.open_zarr(tmp_path, consolidated=False, chunks=None).load()
    xr.testing.assert_identical(found, dataset)
    assert {n: v.dtype for n, v in found.items()} == {
        n: v.dtype for n, v in dataset.items()
    }


def test_group_files__are_read_by_zarr_as_they_were(dataset, tmp_path):
    write(group_files(dataset, {"counts": -1}), tmp_path)
    group = zarr.open_group(tmp_path, mode="r")
    for name, variable in dataset.variables.items():
        np.testing.assert_array_equal(group[name][...], variable.values)
    assert group["counts"].fill_value == -1
    assert np.isnan(group["rates"].fill_value)


def test_group_files__large_arrays_are_compressed(dataset):
    chunk = group_files(dataset, {})["counts/c.0.0"]
    assert len(chunk) < dataset["counts"].nbytes / 4


def test_group_files__refuses_other_types():
    dataset = xr.Dataset({"times": ("a", np.array(["2026-01-01"], "M8[ns]"))})
    with pytest.raises(TypeError, match=r"`results\['times'\]` must hold numbers"):
        group_files(dataset, {})
