"""Results for every row of a pool, whole or damaged."""

import numpy as np
import pytest
import zarr

from dsel.data import open_pool
from dsel.results import rows as pool_rows
from dsel.results.rows import read_rows, write_rows

FIELDS = {"sum": ((), "float64", np.nan)}


def _sum(X, rows):
    return {"sum": X.sum(axis=1)}


def _read(place):
    parts = list(read_rows(place, "sum"))
    assert [start for start, _ in parts] == [0, 100, 200, 300]
    return np.concatenate([values for _, values in parts])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(pool_rows, "SPAN_ROWS", 50)
    monkeypatch.setattr(pool_rows, "CHUNK_ROWS", 100)


@pytest.fixture
def rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(330, 2))
    return zarr.create_array(tmp_path / "pool.zarr", data=X, chunks=(50, 2))


@pytest.fixture
def place(rows, tmp_path):
    write_rows(
        open_pool(rows), tmp_path / "sums", _sum, FIELDS, block_rows=9, attributes={}
    )
    return tmp_path / "sums"


def test_read_rows__gives_what_was_written(place, rows):
    np.testing.assert_array_equal(_read(place), rows[:].sum(axis=1))


def test_read_rows__of_a_pool_without_whole_chunks_of_rows(rows, tmp_path):
    pool = open_pool(rows).excluding(np.arange(90, 220))
    write_rows(pool, tmp_path / "sums", _sum, FIELDS, block_rows=9, attributes={})
    found = _read(tmp_path / "sums")
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), np.arange(90, 220))


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_read_rows__names_a_chunk_that_is_damaged(place, harm):
    chunk = place / "sum" / "c" / "1"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content) if harm == "changed" else chunk.unlink()
    with pytest.raises(ValueError, match=r"sum, rows 100 to 199.*delete it and write"):
        _read(place)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("nothing", FileNotFoundError, "nothing holds no results for rows"),
        ("pool.zarr", FileNotFoundError, "pool.zarr holds no results for rows"),
        ("", ValueError, "`path` must name a place"),
        ("https://host/sums?sig=1", ValueError, "`path` must not hold a query"),
    ],
)
def test_read_rows__says_what_is_no_such_place(
    rows, tmp_path, monkeypatch, path, error, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        _read(path)


def test_read_rows__says_that_writing_was_cut_short(rows, tmp_path):
    def fails(X, rows):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_rows(
            open_pool(rows), tmp_path / "s", fails, FIELDS, block_rows=9, attributes={}
        )
    with pytest.raises(ValueError, match=r"s was not written to the end; delete it"):
        _read(tmp_path / "s")


def test_read_rows__names_a_field_that_is_missing(place):
    with pytest.raises(ValueError, match="`name` must be one of 'sum', got 'other'"):
        list(read_rows(place, "other"))


def test_write_rows__refuses_a_place_that_others_have(rows, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    arguments = {"block_rows": 9, "attributes": {}}
    for place, message in [
        (tmp_path / "mine", "must be an empty place .*notes.txt is there"),
        (tmp_path / "pool.zarr" / "sums", "lies in the pool"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_rows(open_pool(rows), place, _sum, FIELDS, **arguments)
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_write_rows__takes_an_empty_folder_once(rows, tmp_path):
    (tmp_path / "empty").mkdir()
    arguments = (open_pool(rows), tmp_path / "empty", _sum, FIELDS)
    write_rows(*arguments, block_rows=9, attributes={})
    with pytest.raises(FileExistsError, match="choose another one"):
        write_rows(*arguments, block_rows=9, attributes={})
