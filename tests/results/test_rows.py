"""Results for every row of a pool, whole or damaged."""

import errno
from unittest.mock import Mock, patch

import numpy as np
import pytest
import xarray as xr
import zarr

from dsel.data import open_pool
from dsel.results import rows as pool_rows
from dsel.results.rows import read_rows, write_rows


def write(pool, place, task=lambda X, rows: {"sum": X.sum(axis=1)}):
    fields = {"sum": ((), "float64", np.nan)}
    write_rows(pool, place, task, fields, block_rows=9, attributes={})


def read(place):
    parts = list(read_rows(place, "sum"))
    assert [start for start, _ in parts] == [0, 100, 200, 300]
    return np.concatenate([values for _, values in parts])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(pool_rows, "SLICE_ROWS", 50)
    monkeypatch.setattr(pool_rows, "CHUNK_ROWS", 100)


@pytest.fixture
def rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(330, 2))
    return zarr.create_array(tmp_path / "pool.zarr", data=X, chunks=(50, 2))


@pytest.fixture
def place(rows, tmp_path):
    (tmp_path / "sums").mkdir()  # an empty folder will do
    write(open_pool(rows), tmp_path / "sums")
    return tmp_path / "sums"


def test_read_rows__gives_what_was_written(place, rows, tmp_path):
    np.testing.assert_array_equal(read(place), rows[:].sum(axis=1))
    write(open_pool(rows).excluding(np.arange(90, 220)), tmp_path / "part")
    left_out = np.flatnonzero(np.isnan(read(tmp_path / "part")))
    np.testing.assert_array_equal(left_out, np.arange(90, 220))


@pytest.mark.filterwarnings("error")
def test_write_rows__xarray_opens_what_was_written(place, rows):
    opened = xr.open_zarr(place)
    assert opened["sum"].dims == ("pool_row",)
    np.testing.assert_array_equal(opened["sum"], rows[:].sum(axis=1))
    assert opened["sum"].chunksizes["pool_row"][0] == 100


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_read_rows__names_a_chunk_that_is_damaged(place, harm):
    chunk = place / "sum" / "c" / "1"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content) if harm == "changed" else chunk.unlink()
    with pytest.raises(ValueError, match=r"sum, rows 100 to 199.*delete it and write"):
        read(place)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("nothing", FileNotFoundError, "nothing holds no results for rows"),
        ("pool.zarr", FileNotFoundError, "pool.zarr holds no results for rows"),
        ("", ValueError, "`path` must name a place"),
        ("https://host/sums?sig=1", ValueError, "`path` must not hold a query"),
        ("cut", ValueError, "cut was not written to the end; delete it"),
    ],
)
def test_read_rows__says_what_is_no_such_place(
    rows, tmp_path, monkeypatch, path, error, message
):
    monkeypatch.chdir(tmp_path)
    write(open_pool(rows), "cut")
    zarr.open_group("cut").attrs["complete"] = False  # as where its writer was killed
    with pytest.raises(error, match=message):
        read(path)


def test_rows__are_refused_in_one_line(place, rows, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for error, words, at in [
        (ValueError, "must be an empty place .*notes.txt is there", tmp_path / "mine"),
        (ValueError, "is inside the pool", tmp_path / "pool.zarr" / "sums"),
        (FileExistsError, "choose another one", place),
    ]:
        with pytest.raises(error, match=words):
            write(open_pool(rows), at)
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    full = Mock(side_effect=OSError(errno.EROFS, "Read-only file system"))
    with (
        patch.object(zarr.Array, "oindex", property(full)),
        pytest.raises(OSError, match=r"cannot write to `path` .*new: Read-only"),
    ):
        write(open_pool(rows), tmp_path / "new")
    with pytest.raises(ValueError, match="`name` must be one of 'sum', got 'other'"):
        list(read_rows(place, "other"))
