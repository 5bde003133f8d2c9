"""A cube comes back from zarr as it was."""

import json
import resource
import shutil
import uuid
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from dsel.data import open_pool
from dsel.data.write import write_pool
from dsel.results import evidence, open_results, save_results
from dsel.results.journal import open_journal
from dsel.results.ledger import assumptions_of
from dsel.stores import VERSION_ATTRIBUTE


@pytest.fixture(params=["directory", "url"])
def place(request, tmp_path):
    if request.param == "directory":
        return tmp_path / "run"
    return f"memory://{uuid.uuid4().hex}/run"


def test_save_results__round_trip_is_exact(cube, place):
    save_results(cube, place)
    opened = open_results(place).load()
    assert opened.identical(cube)
    assert {k: v.dtype for k, v in opened.variables.items()} == {
        k: v.dtype for k, v in cube.variables.items()
    }


def test_save_results__replaces_what_is_there(cube, bare_cube, place):
    save_results(bare_cube, place)
    before = open_results(place)
    save_results(cube, place)
    assert open_results(place).load().identical(cube)
    assert before.load().identical(bare_cube)


def test_save_results__can_save_over_itself(cube, place):
    save_results(cube, place)
    for _ in range(3):
        save_results(open_results(place), place)
    assert open_results(place).load().identical(cube)


def test_save_results__keeps_two_generations_of_few_files(cube, tmp_path):
    for _ in range(4):
        save_results(cube, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "cube-3",
        "cube-4",
        "zarr.json",
    ]
    chunks = [p for p in tmp_path.glob("cube-4/*/c*/**/*") if p.is_file()]
    assert len(chunks) <= len(cube.variables)


def test_open_results__is_lazy(cube, tmp_path):
    save_results(cube, tmp_path)
    opened = open_results(tmp_path)
    assert not opened.fold_errors.variable._in_memory


def test_open_results__refuses_a_newer_store(cube, tmp_path):
    save_results(cube, tmp_path)
    zarr.open_group(tmp_path, mode="a").attrs[VERSION_ATTRIBUTE] = 99
    with pytest.raises(ValueError, match=r"newer dsel \(schema 99, this one reads 2"):
        open_results(tmp_path)
    with pytest.raises(ValueError, match="newer dsel"):
        save_results(cube, tmp_path)


def test_open_results__refuses_the_store_of_an_older_dsel(cube, tmp_path):
    save_results(cube, tmp_path)
    zarr.open_group(tmp_path, mode="a").attrs[VERSION_ATTRIBUTE] = 1
    for ask in (open_results, lambda place: save_results(cube, place)):
        with pytest.raises(ValueError, match=r"older dsel \(schema 1, .*another place"):
            ask(tmp_path)


def test_save_results__writes_counts_as_integers(cube, tmp_path):
    assert np.isnan(cube.disagreements).all()
    save_results(cube, tmp_path)
    stored = zarr.open_group(tmp_path / "cube-1", mode="r")
    for name in ("fold_errors", "disagreements", "n_labeled"):
        assert stored[name].dtype == np.int64
        assert stored[name].attrs["_FillValue"] == -1
    assert (stored["disagreements"][...] == -1).all()
    with pytest.raises(ValueError, match=r"fold_errors = .*; a count is a whole"):
        save_results(cube.assign(fold_errors=cube.fold_errors / 3 + 0.1), tmp_path)


def test_cube__goes_through_netcdf(cube, tmp_path):
    cube.to_netcdf(tmp_path / "cube.nc", engine="scipy")
    found = xr.load_dataset(tmp_path / "cube.nc", engine="scipy")
    for name, values in evidence(cube).items():
        np.testing.assert_array_equal(evidence(found)[name], values)
    assert assumptions_of(found) == assumptions_of(cube)


def test_open_results__says_where_nothing_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no results store at"):
        open_results(tmp_path / "nothing")
    zarr.create_group(tmp_path / "other")
    with pytest.raises(ValueError, match="holds no dsel results"):
        open_results(tmp_path / "other")


def test_open_results__says_what_opens_a_cube_that_xarray_wrote(cube, tmp_path):
    cube.to_zarr(tmp_path / "cube", zarr_format=3, consolidated=False)
    with pytest.raises(FileNotFoundError, match=r"open it by xarray\.open_zarr"):
        open_results(tmp_path / "cube")


def test_open_results__says_that_a_run_has_not_ended(tmp_path):
    open_journal(tmp_path, {"seed": 0}).close()
    with pytest.raises(FileNotFoundError, match="holds a run that has not ended"):
        open_results(tmp_path)


def test_open_results__refuses_other_kinds_of_places():
    with pytest.raises(TypeError, match="a path, a URL or a zarr store, got 7"):
        open_results(7)
    with pytest.raises(ValueError, match=r"`out` must name a place, got ''"):
        open_results("")


@pytest.mark.parametrize("n_bytes", [0, 400, 600, 2000])
def test_save_results__without_room_keeps_the_cube_that_was_there(
    bare_cube, cube, tmp_path, n_bytes
):
    cube.attrs["note"] = "x" * 3000  # the only file that is longer than 2000 bytes
    save_results(bare_cube, tmp_path)
    no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, no_limit[1]))
    try:
        with pytest.raises(OSError, match=r"File too large\. Make room or choose"):
            save_results(cube, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
    assert open_results(tmp_path).load().identical(bare_cube)
    save_results(cube, tmp_path)
    assert open_results(tmp_path).load().identical(cube)


def chunks_of(place):
    """Return the chunks of all variables: all files but the heads."""
    files = (path for path in place.glob("cube-1/*/**/*") if path.is_file())
    return sorted(path for path in files if path.name != "zarr.json")


def test_open_results__names_any_chunk_that_is_missing(cube, tmp_path):
    save_results(cube, tmp_path)
    for chunk in chunks_of(tmp_path):
        content, key = chunk.read_bytes(), chunk.relative_to(tmp_path)
        chunk.unlink()
        with pytest.raises(
            ValueError, match=rf"is damaged.*the chunk {key} is missing.*run the same"
        ):
            open_results(tmp_path).load()
        chunk.write_bytes(content)
    assert open_results(tmp_path).load().identical(cube)


def test_open_results__names_any_chunk_with_a_wrong_bit(cube, tmp_path, rng):
    save_results(cube, tmp_path)
    for chunk in chunks_of(tmp_path):
        content = bytearray(chunk.read_bytes())
        place, bit = rng.integers(len(content)), int(2 ** rng.integers(8))
        content[place] ^= bit
        chunk.write_bytes(content)
        key = chunk.relative_to(tmp_path)
        with pytest.raises(
            ValueError, match=rf"is damaged.*the chunk {key} has another checksum.*same"
        ):
            open_results(tmp_path).load()
        content[place] ^= bit
        chunk.write_bytes(content)
    assert len(chunks_of(tmp_path)) == len(cube.variables)


def test_save_results__leaves_no_chunk_out(cube, tmp_path):
    assert (cube.score_seconds.isnull()).all()
    save_results(cube, tmp_path)
    variables = {chunk.relative_to(tmp_path).parts[1] for chunk in chunks_of(tmp_path)}
    assert variables == set(map(str, cube.variables))


def test_open_results__names_a_variable_that_is_missing(cube, tmp_path):
    save_results(cube, tmp_path)
    shutil.rmtree(tmp_path / "cube-1" / "disagreements")
    with pytest.raises(ValueError, match=r"is damaged.*cube-1 lacks disagreements"):
        open_results(tmp_path)


def _raise_alarm(text):
    raise AssertionError(f"unpickled: {text}")


class Bomb:
    def __reduce__(self):
        return _raise_alarm, ("a bomb",)


def test_open_results__unpickles_nothing(cube, tmp_path):
    from numcodecs import Pickle

    save_results(cube, tmp_path)
    place = tmp_path / "cube-1" / "message"
    shape = cube.message.shape
    shutil.rmtree(place)
    chunk = Pickle().encode(np.array([[Bomb()] * shape[1]] * shape[0], dtype=object))
    place.mkdir()
    (place / ".zarray").write_text(
        json.dumps(
            {
                "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|O",
                "compressor": None, "fill_value": "", "order": "C",
                "filters": [{"id": "pickle", "protocol": 5}],
            }
        )
    )  # fmt: skip
    (place / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["C", "kernel"]}))
    (place / "0.0").write_bytes(chunk)
    with pytest.raises(
        ValueError, match=r"is damaged.*cube-1 lacks message.*run the same"
    ):
        open_results(tmp_path)


def test_open_results__says_that_a_pool_holds_no_results(tmp_path):
    zarr.create_array(tmp_path / "pool.zarr", data=np.eye(2))
    with pytest.raises(ValueError, match="is a zarr array, such as a pool, and holds"):
        open_results(tmp_path / "pool.zarr")


def test_save_results__writes_nothing_into_a_pool(cube, tmp_path):
    before = write_pool(np.ones((9, 2)), tmp_path / "pool.zarr").token
    with pytest.raises(ValueError, match=r"run lies in the pool .*choose another"):
        save_results(cube, tmp_path / "pool.zarr" / "runs" / "run")
    assert open_pool(tmp_path / "pool.zarr").token == before


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["cube-1/mine.csv", "download.partial", "notes.txt"])
def test_save_results__touches_nothing_of_others(cube, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = content(tmp_path)
    with pytest.raises(ValueError, match=r"`out` .*empty place .*choose another"):
        save_results(cube, tmp_path)
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["cube-1/mine.csv", "cube-2/mine.csv", "a.partial"])
def test_save_results__removes_nothing_that_others_put_there(cube, tmp_path, name):
    save_results(cube, tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    for _ in range(5):
        save_results(cube, tmp_path)
        assert open_results(tmp_path).load().identical(cube)
    assert (tmp_path / name).read_text() == "mine"
    assert len(list(tmp_path.glob("cube-*"))) == 2 + name.startswith("cube")


@pytest.mark.parametrize("part", ["cube-1", "model/mine", "journal/x"])
def test_save_results__writes_nothing_into_other_results(cube, tmp_path, part):
    save_results(cube, tmp_path)
    with pytest.raises(ValueError, match=r"lies in the results .*choose another"):
        save_results(cube, tmp_path / part)
    save_results(cube, tmp_path / "models")


def test_open_results__says_that_a_part_of_results_is_none(cube, tmp_path):
    save_results(cube, tmp_path)
    with pytest.raises(FileNotFoundError, match="cube-1 is a part of results"):
        open_results(tmp_path / "cube-1")


def test_save_results__takes_no_url_that_lost_a_slash(cube, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"lost a slash.*write 's3://bucket/run'"):
        save_results(cube, Path("s3://bucket/run"))
    assert list(tmp_path.iterdir()) == []
    save_results(cube, "./s3:/bucket/run")


@pytest.mark.parametrize("protocol", ["file", "local"])
def test_save_results__takes_urls_of_local_places(cube, tmp_path, protocol):
    save_results(cube, f"{protocol}://{tmp_path}/with space/ü")
    opened = open_results(tmp_path / "with space" / "ü")
    assert opened.load().identical(cube.load())


def test_save_results__writes_over_nothing_that_is_not_its_own(cube, tmp_path):
    zarr.create_group(tmp_path / "other", attributes={"dsel_pool": "csr"})
    with pytest.raises(ValueError, match="holds no dsel results; choose another place"):
        save_results(cube, tmp_path / "other")
    save_results(cube, tmp_path / "run")
    (tmp_path / "run" / "zarr.json").unlink()
    with pytest.raises(ValueError, match=r"zarr\.json is missing beside cube-1"):
        save_results(cube, tmp_path / "run")
