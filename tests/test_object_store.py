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


@pytest.fixture(scope="module")
def pool(rows, storage_options):
    place = f"{BUCKET}/pool.zarr"
    return dsel.write_pool(
        rows, place, chunk_rows=3_000, storage_options=storage_options
    )


def count(X, rows):
    return np.array([len(rows), int(rows.sum()), int((X > 0).sum())])


def test_pool__at_a_url_is_that_of_a_path(rows, pool, tmp_path, storage_options):
    place, where = tmp_path / "pool.zarr", {"storage_options": storage_options}
    assert (pool.reduce(count, np.add) == count(rows, np.arange(len(rows)))).all()
    again = dsel.open_pool(f"{BUCKET}/pool.zarr", **where)
    assert again.token == pool.token
    # Options are for one of the two places.
    copy = dsel.write_pool(f"{BUCKET}/pool.zarr", place, **where)
    assert copy.n_rows == len(rows)
    assert dsel.open_pool(place, **where).token == copy.token
    shown = repr(pool) + repr(pool.graph) + repr(pool.array.dask) + pool.token
    assert SECRET not in shown


def test_write_pool__interrupted_leaves_nothing_at_a_url(rows, storage_options):
    def stop(done, total):
        raise KeyboardInterrupt

    place, where = f"{BUCKET}/c.zarr", {"storage_options": storage_options}
    with pytest.raises(KeyboardInterrupt):
        dsel.write_pool(rows, place, chunk_rows=1000, on_progress=stop, **where)
    with pytest.raises(ValueError, match="is no pool"):
        dsel.open_pool(place, **where)
    assert dsel.write_pool(rows, place, **where).n_rows == len(rows)


def _plan(table, pool):
    model = LogisticRegression()
    options = {"certificate": "cv_bound", "cv": 3, "random_state": 0, "prune": False}
    return dsel.plan_search(model, GRID, *table, pool, **options)


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_run__gives_the_counts_of_memory_and_goes_on(
    table, rows, pool, storage_options
):
    where = {"out": f"{BUCKET}/run", "storage_options": storage_options}
    expected = counts_of(_plan(table, rows).run().results)
    with connect(workers=2) as client:
        found = counts_of(_plan(table, pool).run(client, **where).results)
        again = counts_of(_plan(table, pool).run(client, **where).results)
    assert found == expected
    assert again == expected
    kept = dsel.open_results(where["out"], storage_options=storage_options)
    assert counts_of(kept) == expected
    assert SECRET not in str(kept.attrs)


def test_search__keeps_results_and_model_in_the_store(table, pool, storage_options):
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(), GRID, cv=3, random_state=0
    )
    where = {"out": f"{BUCKET}/search", "storage_options": storage_options}
    first = search.fit(*table, pool, **where).best_estimator_
    again = search.fit(*table, pool, **where).best_estimator_
    assert (first.coef_ == again.coef_).all()


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_select__reads_and_writes_urls(
    table, pool, storage_options, tmp_path, monkeypatch
):
    source = tmp_path / "table.npz"
    np.savez(source, X=table[0], y=table[1])
    place = f"{BUCKET}/selected"
    words = ["select", str(source), "--pool", f"{BUCKET}/pool.zarr", "--out", place]
    words += ["--model", "logistic", "--workers", "1", "--cv", "3"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", storage_options["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", storage_options["endpoint_url"])
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output
    kept = dsel.open_results(place, storage_options=storage_options)
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
