import os
from operator import add

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr

from dsel.data import open_pool
from dsel.data.write import write_pool


@pytest.fixture(name="X")
def fixture_X(rng):  # noqa: N802
    X = rng.normal(size=(1003, 4))
    return np.where(np.abs(X) < 0.5, 0.0, X)


def content(pool):
    return np.concatenate(pool.reduce(lambda X, rows: [X], add, allow_nan=True))


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcd")).assign(label="x")


def as_csv(X, folder):
    as_frame(X).to_csv(folder / "t.csv")  # with its index
    return folder / "t.csv"


def as_parquet(X, folder):
    as_frame(X).to_parquet(folder / "t.parquet", row_group_size=77)
    return folder / "t.parquet"


def as_npz(X, folder):
    np.savez_compressed(folder / "t.npz", X=X, label=np.zeros(len(X)))
    return folder / "t.npz"


def as_dask(X, folder):
    return da.from_array(X, chunks=(90, 2))


def as_uneven_dask(X, folder):
    return da.from_array(X, chunks=((3, 500, 500), 4))


def as_long_chunks(X, folder):
    zarr.create_array(folder / "long.zarr", data=X, chunks=(400, 4))
    return folder / "long.zarr"


KINDS = [as_csv, as_parquet, as_npz, as_dask, as_uneven_dask]


@pytest.mark.parametrize("kind", [*KINDS, as_long_chunks])
def test_write_pool__holds_the_rows_of_its_source(kind, X, tmp_path):
    target = "label" if kind in (as_csv, as_parquet) else None
    source, how = kind(X, tmp_path), {"target": target, "chunk_rows": 100}
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
    source = open_pool(X).part(0.2, 0.9, seed=1).excluding([0, 7, 500])
    pool = write_pool(source, tmp_path / "p.zarr", chunk_rows=100)
    assert pool.n_rows == source.n_rows
    assert (content(pool) == content(source)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failing", [0, 2])
def test_write_pool__interrupted_leaves_nothing_and_starts_anew(
    kind, failing, X, tmp_path
):
    source = kind(X, tmp_path)
    target, seen = "label" if kind in (as_csv, as_parquet) else None, []
    arguments = {"chunk_rows": 20, "target": target}

    def stop(done, total):
        seen.append(done)
        if len(seen) == failing + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pool(source, tmp_path / "p.zarr", on_progress=stop, **arguments)
    assert not (tmp_path / "p.zarr").exists()
    seen.clear()
    pool = write_pool(
        source, tmp_path / "p.zarr", on_progress=lambda *a: seen.append(a), **arguments
    )

    assert content(pool) == pytest.approx(X, abs=0, rel=1e-15)
    assert seen[-1] in [(len(X), None), (len(X), len(X))]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


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
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"age": [1, None, 3], "city": ["Ulm", None, "Bonn"]})
    frame.assign(label="x").to_csv(tmp_path / "t.csv", index=False)
    pool = write_pool(tmp_path / "t.csv", tmp_path / "t.parquet", target="label")
    (found,) = pool.reduce(lambda X, rows: [X.native], add, allow_nan=True)
    pd.testing.assert_frame_equal(found, frame)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.parquet"]


def test_write_pool__is_at_home_where_it_began(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    X = np.arange(30.0).reshape(10, 3)
    pool = write_pool(
        X,
        "pool.zarr",
        chunk_rows=2,
        on_progress=lambda *_: os.chdir(tmp_path / "elsewhere"),
    )
    np.testing.assert_array_equal(content(pool), X)
    assert os.listdir(tmp_path / "elsewhere") == []
