import errno
import os
from itertools import groupby
from operator import add, itemgetter

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr

from dsel.data import open_pool
from dsel.data.frames import native
from dsel.data.like import convert_pool
from dsel.data.schema import ColumnSchema, TableSchema
from dsel.data.text_columns.kinds import Kind
from dsel.data.write import write_pool


@pytest.fixture(name="X")
def fixture_X(rng):  # noqa: N802
    X = rng.normal(size=(1003, 4))
    return np.where(np.abs(X) < 0.5, 0.0, X)


def content(pool):
    return np.concatenate(pool.reduce(lambda X, rows: [X], add, allow_nan=True))


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcd")).assign(label="x")


KINDS = {
    "csv": lambda X, path: as_frame(X).to_csv(path),  # with its index
    "parquet": lambda X, path: as_frame(X).to_parquet(path, row_group_size=77),
    "npz": lambda X, path: np.savez_compressed(path, X=X, label=np.zeros(len(X))),
    "zarr": lambda X, path: zarr.create_array(path, data=X, chunks=(400, 4)),
    "dask": lambda X, _: da.from_array(X, chunks=((3, 500, 500), 2)),
}


def source_of(kind, X, folder):
    """Return a source of some kind, and the name of what is no feature there."""
    path = folder / f"source.{kind}"
    source = KINDS[kind](X, path)
    target = "label" if kind in ("csv", "parquet", "npz") else None
    return source if kind == "dask" else path, target


@pytest.mark.parametrize("kind", KINDS)
def test_write_pool__holds_the_rows_of_its_source(kind, X, tmp_path):
    source, target = source_of(kind, X, tmp_path)
    how = {"target": target, "chunk_rows": 100}
    pool = write_pool(source, tmp_path / "p.zarr", **how)
    assert write_pool(source, tmp_path / "p.zarr", **how).token == pool.token
    assert (pool.n_rows, pool.n_columns) == X.shape
    assert content(pool) == pytest.approx(X, abs=0, rel=1e-15)
    assert pool.boundaries.tolist() == [*range(0, 1003, 100), 1003]


def test_write_pool__keeps_names_and_is_read_by_dask(X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    path, options = tmp_path / "p.zarr", {"dtype": "float32"}
    pool = write_pool(
        frame.assign(y=1), path, target="y", chunk_rows=np.int64(300), **options
    )
    assert pool.columns == ("a", "b", "c", "d")
    assert pool.dtype == np.float32
    assert (da.from_zarr(tmp_path / "p.zarr").compute() == X.astype("f4")).all()


def test_write_pool__leaves_out_what_is_filtered(X, tmp_path):
    source = open_pool(X).subset(0.2, 0.9, seed=1).excluding([0, 7, 500])
    pool = write_pool(source, tmp_path / "p.zarr", chunk_rows=100)
    assert pool.n_rows == source.n_rows
    assert (content(pool) == content(source)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("failing", "error", "words"),
    [(1, KeyboardInterrupt(), None), (3, KeyboardInterrupt(), None),
     (1, OSError(errno.ENOSPC, "No space left on device"),
      r"`path` .*p.zarr: No space left.*same command")],
)  # fmt: skip
def test_write_pool__that_is_stopped_leaves_nothing(
    kind, failing, error, words, X, tmp_path
):
    source, target = source_of(kind, X, tmp_path)
    how, seen = {"chunk_rows": 20, "target": target}, []

    def stop(*told):
        seen.append(told)
        if len(seen) == failing:
            raise error

    with pytest.raises(type(error), match=words):
        write_pool(source, tmp_path / "p.zarr", on_progress=stop, **how)
    assert not (tmp_path / "p.zarr").exists()
    pool = write_pool(source, tmp_path / "p.zarr", on_progress=stop, **how)
    assert content(pool) == pytest.approx(X, abs=0, rel=1e-15)
    assert seen[-1] in [(len(X), None), (len(X), len(X))]
    # Of a text table the first of two passes does not know how many rows there are.
    phases = [[*group] for _, group in groupby(seen[failing:], itemgetter(1))]
    assert [phase[0][1] for phase in phases] in [[None], [len(X)], [None, len(X)]]
    assert all(phase == sorted(phase) for phase in phases)


def test_write_pool__replaces_what_a_killed_process_began(X, tmp_path):
    write_pool(X, tmp_path / "p.zarr", chunk_rows=100)
    (tmp_path / "p.zarr" / "c" / "3" / "0").unlink()
    zarr.open(tmp_path / "p.zarr").attrs["complete"] = False
    pool = write_pool(X, tmp_path / "p.zarr", chunk_rows=100)
    assert (content(pool) == X).all()


def test_write_pool__takes_a_smaller_type_that_holds_every_value(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,255\n0,7\n")
    pool = write_pool(tmp_path / "t.csv", tmp_path / "pool", dtype="uint8")
    assert pool.dtype == np.uint8
    assert zarr.open(tmp_path / "pool")[:].tolist() == [[1, 255], [0, 7]]


@pytest.mark.parametrize("protocol", ["file", "local"])
def test_write_pool__takes_urls_of_local_places(tmp_path, protocol):
    place = f"{protocol}://{tmp_path}/with space/pool.zarr"
    pool = write_pool(np.ones((5, 2)), place)
    assert pool.token == open_pool(tmp_path / "with space" / "pool.zarr").token


def test_write_pool__writes_text_as_parquet(tmp_path):
    frame = pd.DataFrame({"age": [1, None, 3], "city": ["Ulm", None, "Bonn"]})
    frame.assign(label="x").to_csv(tmp_path / "t.csv", index=False)
    pool = write_pool(tmp_path / "t.csv", tmp_path / "new" / "pool.pq", target="label")
    (found,) = pool.reduce(lambda X, rows: [X.native], add, allow_nan=True)
    pd.testing.assert_frame_equal(found, frame)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["pool.pq"]


def test_write_pool__is_at_home_where_it_began(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, away = np.arange(30.0).reshape(10, 3), lambda *_: os.chdir(tmp_path.parent)
    pool = write_pool(X, "pool.zarr", chunk_rows=2, on_progress=away)
    np.testing.assert_array_equal(content(pool), X)


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["1", "2.5", "", "-3"], "float64"),
        (["1.0", "2.5", "-0.0"], "float64"),
        (["1", "1.0", "2.5"], "str"),  # one number, two texts
        (["1", "2", "", "30"], "float64"),
        (["1", "2", "30"], "int64"),
        (["1e-05", "2.5", "3"], "float64"),
        (["0.00001", "2.5"], "str"),
        (["1e-7", "0.5"], "str"),
        (["1e-07", "1e+16", "3"], "float64"),
        (["12345678901.5", "0.1"], "float64"),
        (["2.50", "3"], "str"),
        (["-0", "1"], "str"),
        (["007", "1"], "str"),
    ],
)
def test_write_pool__numbers_come_back_as_they_were_written(tmp_path, texts, dtype):
    path = tmp_path / "pool.parquet"
    lines = [f"{text},x\n" for text in texts]
    (tmp_path / "pool.csv").write_text("".join(["code,other\n", *lines]))
    pool = write_pool(tmp_path / "pool.csv", path)
    rows = pool.reduce(lambda X, rows: native(X), lambda *both: None, allow_nan=True)
    # Texts have another type in pandas 3.
    assert str(rows["code"].dtype).replace("object", "str") == dtype
    names = ("code", "other")
    schema = TableSchema(tuple(ColumnSchema(name, Kind.TEXT) for name in names))
    back = convert_pool(pool, schema, str(path))
    rows = back.reduce(lambda X, rows: native(X), lambda *both: None, allow_nan=True)
    assert rows["code"].fillna("").tolist() == texts
