"""The files of a zarr group are what xarray, through zarr, would write and reads."""

import json

import numpy as np
import pytest
import xarray as xr
import zarr
from numpy.dtypes import StringDType
from zarr.codecs import Crc32cCodec

from dsel.results.zarr_group import group_files
from dsel.stores import WholeStore


@pytest.fixture
def dataset(rng):
    return xr.Dataset(
        {
            "counts": (("a", "b"), rng.integers(0, 9, (300, 20))),
            "flags": ("a", np.arange(300).astype(np.int8)),
            "rates": (("a", "b"), rng.normal(size=(300, 20)).astype(np.float32)),
            "swapped": ("b", np.arange(20).astype(">f8")),
            "is_done": ("b", np.arange(20) % 2 == 0),
            "words": (("b", "c"), np.full((20, 2), "é", StringDType())),
            "total": ((), np.float64("nan"), {"share": np.float32(0.5)}),
            "name": ((), np.array("digits", StringDType())),
            "zeros": ("b", np.zeros(20)),
            "none": ("nobody", np.empty(0)),
            "unnamed": ("nobody", np.empty(0, StringDType())),
        },
        coords={"a": np.arange(300), "label": ("b", np.arange(20) / 3)},
        attrs={"title": "something", "levels": [1, 2]},
    )


@pytest.fixture
def folder(dataset, tmp_path):
    for name, content in group_files(dataset, {"counts": -1}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_group_files__are_read_by_xarray_as_they_were(dataset, folder):
    store = WholeStore(zarr.storage.LocalStore(folder, read_only=True))
    found = xr.open_zarr(store, consolidated=False, chunks=None).load()
    xr.testing.assert_identical(found, dataset)
    types = {n: v.dtype for n, v in dataset.variables.items()}
    types["swapped"] = np.dtype(float)
    assert {n: v.dtype for n, v in found.variables.items()} == types


def test_group_files__say_what_zarr_says_of_the_same_arrays(dataset, folder, tmp_path):
    """Bytes included; but for arrays without any, where zarr says something else."""
    ours = zarr.open_group(folder, mode="r")
    theirs = zarr.create_group(tmp_path / "theirs")
    dataset["swapped"] = dataset["swapped"].astype(float)
    for name, variable in dataset.drop_dims("nobody").variables.items():
        values = variable.values
        array = theirs.create_array(
            name,
            data=values,
            chunks=values.shape,
            fill_value=-1 if name == "counts" else None,
            compressors=[*ours[name].compressors[:-1], Crc32cCodec()],
            chunk_key_encoding={"name": "default", "separator": "."},
            dimension_names=variable.dims,
            config={"write_empty_chunks": True},
        )
        assert ours[name].metadata.codecs == array.metadata.codecs
        assert ours[name].metadata.data_type == array.metadata.data_type
        assert ours[name].metadata.chunk_grid == array.metadata.chunk_grid
        assert ours[name].fill_value == array.fill_value
        assert (ours[name].metadata.dimension_names or ()) == variable.dims
        key = array.metadata.encode_chunk_key((0,) * values.ndim)
        expected = (tmp_path / "theirs" / name / key).read_bytes()
        assert (folder / name / key).read_bytes() == expected


def test_group_files__are_strict_json(folder):
    def refuse(constant):
        raise AssertionError(constant)

    for head in folder.rglob("zarr.json"):
        json.loads(head.read_text(), parse_constant=refuse)


def test_group_files__large_arrays_are_compressed(dataset):
    chunk = group_files(dataset, {})["counts/c.0.0"]
    assert len(chunk) < dataset["counts"].nbytes / 4


def test_group_files__a_wrong_bit_is_noticed(folder):
    path = folder / "zeros" / "c.0"
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_group(folder, mode="r")["zeros"][...]


def test_group_files__refuses_other_types():
    dataset = xr.Dataset({"times": ("a", np.array(["2026-01-01"], "M8[ns]"))})
    with pytest.raises(TypeError, match=r"`results\['times'\]` must hold numbers"):
        group_files(dataset, {})
