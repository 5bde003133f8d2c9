"""Pools and results in an S3-compatible object store."""

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.cli import main
from dsel.cluster import connect
from tests.job import counts_of
from tests.object_store import BUCKET, SECRET

GRID = {"C": [0.01, 1.0]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    return X, (X[:, 0] + rng.normal(size=200) > 0).astype(int)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).normal(size=(20_000, 4)).astype(np.float32)


@pytest.fixture
def where(storage_options):
    return {"storage_options": storage_options}


@pytest.fixture(scope="module")
def pool(rows, storage_options):
    options = {"chunk_rows": 3_000, "storage_options": storage_options}
    return dsel.write_pool(rows, f"{BUCKET}/pool.zarr", **options)


def count(X, rows):
    return np.array([len(rows), int(rows.sum()), int((X > 0).sum())])


def test_pool__at_a_url_is_that_of_a_path(rows, pool, tmp_path, where):
    place = tmp_path / "pool.zarr"
    assert (pool.reduce(count, np.add) == count(rows, np.arange(len(rows)))).all()
    assert dsel.open_pool(f"{BUCKET}/pool.zarr", **where).token == pool.token
    # Options are for one of the two places.
    copy = dsel.write_pool(f"{BUCKET}/pool.zarr", place, **where)
    assert copy.n_rows == len(rows)
    assert dsel.open_pool(place, **where).token == copy.token
    shown = (
        repr(pool) + repr(pool.blocks.graph) + repr(pool.as_array().dask) + pool.token
    )
    assert SECRET not in shown


def test_write_pool__interrupted_leaves_nothing_at_a_url(rows, where):
    def stop(done, total):
        raise KeyboardInterrupt

    place = f"{BUCKET}/c.zarr"
    with pytest.raises(KeyboardInterrupt):
        dsel.write_pool(rows, place, chunk_rows=1000, on_progress=stop, **where)
    with pytest.raises(ValueError, match="is no pool"):
        dsel.open_pool(place, **where)
    assert dsel.write_pool(rows, place, **where).n_rows == len(rows)


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_run__gives_the_counts_of_memory_and_goes_on(table, rows, pool, where):
    def counts(rows, *client, **where):
        options = {"certificate": "cv_bound", "cv": 3, "random_state": 0}
        plan = dsel.plan_search(
            LogisticRegression(), GRID, *table, rows, prune=False, **options
        )
        return counts_of(plan.run(*client, **where).results)

    expected, out = counts(rows), f"{BUCKET}/run"
    with connect(workers=2) as client:
        for _ in range(2):
            assert counts(pool, client, out=out, **where) == expected
    kept = dsel.open_results(out, **where)
    assert counts_of(kept) == expected
    assert SECRET not in str(kept.attrs)


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_select__reads_and_writes_urls(table, pool, where, tmp_path, monkeypatch):
    source, place = tmp_path / "table.npz", f"{BUCKET}/selected"
    np.savez(source, X=table[0], y=table[1])
    words = ["select", str(source), "--pool", f"{BUCKET}/pool.zarr", "--out", place]
    words += ["--model", "logistic", "--workers", "1", "--cv", "3"]
    options = where["storage_options"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", options["endpoint_url"])
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output
    kept = dsel.open_results(place, **where)
    assert kept.n_labeled == 200
    assert str(dsel.select(kept).certificate.headline()) in done.output


@pytest.fixture
def nobody(monkeypatch):
    """Where an object store is expected nobody listens."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()  # of tests with a server of their own


@pytest.mark.parametrize(
    "words",
    [
        ["select", "table.npz", "--pool", "s3://away/pool.zarr"],
        ["pool", "build", "table.npz", "s3://away/pool.zarr"],
        ["report", "s3://away/run"],
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_commands__say_in_a_line_that_a_store_is_away(
    table, nobody, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    np.savez("table.npz", X=table[0], y=table[1])
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    line = done.output.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    assert "http://127.0.0.1:9" in line
    assert SECRET not in done.output
