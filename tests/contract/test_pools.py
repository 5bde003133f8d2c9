"""Whatever holds the pool, the counts are those of an array."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
import zarr
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from tests.contract.runs import (
    DIGITS_GRID,
    K_NEAREST,
    ONE_FOLD,
    TREES,
    choice_of,
    counts_of,
    digits,
    fit_facade,
    model_of,
    predict_pool,
    read_rows,
    run_search,
)

pytestmark = pytest.mark.contract

NAMES = [f"pixel {number}" for number in range(64)]


def npy(pool, folder):
    np.save(folder / "pool.npy", pool)
    return folder / "pool.npy"


def zarr_path(pool, folder):
    zarr.create_array(folder / "pool.zarr", data=pool, chunks=(130, 64))
    return str(folder / "pool.zarr")


def parquet(pool, folder):
    """Write a folder of three files, of row groups of 100 rows."""
    (folder / "pool").mkdir()
    for number, part in enumerate(np.array_split(pool, 3)):
        frame = pd.DataFrame(part, columns=NAMES)
        frame.to_parquet(folder / "pool" / f"{number}.parquet", row_group_size=100)
    return folder / "pool"


def as_written(pool, folder):
    return dsel.write_pool(pool, folder / "written.zarr", chunk_rows=77)


ARRAYS = {
    "Fortran order": lambda pool, _: np.asfortranarray(pool),
    "float32": lambda pool, _: pool.astype(np.float32),
    "integers": lambda pool, _: pool.astype(np.int16),
    "Dask array": lambda pool, _: da.from_array(pool, chunks=((1, 400, 199), (64,))),
    "xarray": lambda pool, _: xr.DataArray(pool, dims=("row", "pixel")),
    "CSR": lambda pool, _: sparse.csr_array(pool),
    "npy": npy,
    "zarr": zarr_path,
    "zarr array": lambda pool, folder: zarr.open_array(zarr_path(pool, folder)),
    "write_pool": as_written,
    "open_pool": lambda pool, folder: dsel.open_pool(npy(pool, folder)),
}
FRAMES = {
    "pandas": lambda pool, _: pd.DataFrame(pool, columns=NAMES),
    "polars": lambda pool, _: pl.DataFrame(pool, schema=NAMES),
    "Arrow": lambda pool, _: pa.table(dict(zip(NAMES, pool.T, strict=True))),
    "Dask frame": lambda pool, _: dd.from_pandas(
        pd.DataFrame(pool, columns=NAMES), npartitions=4
    ),
    "Parquet": parquet,
}
LEARNERS = {"SVC": (SVC(), DIGITS_GRID), "tree": TREES}


def rows():
    X, y, pool = digits(200)
    return X, y, pool[:600]


@pytest.fixture(scope="module")
def expected():
    return {
        name: counts_of(run_search(*learner, *rows(), cv=3))
        for name, learner in LEARNERS.items()
    }


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", ARRAYS)
def test_pool__arrays_of_any_kind_give_the_same_counts(
    kind, learner, expected, tmp_path
):
    X, y, pool = rows()
    run = run_search(*LEARNERS[learner], X, y, ARRAYS[kind](pool, tmp_path), cv=3)
    assert counts_of(run) == expected[learner]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", FRAMES)
def test_pool__frames_of_any_kind_give_the_same_counts(
    kind, learner, expected, tmp_path
):
    X, y, pool = rows()
    X = pd.DataFrame(X, columns=NAMES)
    run = run_search(*LEARNERS[learner], X, y, FRAMES[kind](pool, tmp_path), cv=3)
    assert counts_of(run) == expected[learner]


def test_pool__labeled_rows_may_be_sparse_too(expected):
    X, y, pool = rows()
    sparse_rows = sparse.csr_array(X), y, sparse.csr_array(pool)
    run = run_search(*LEARNERS["tree"], *sparse_rows, cv=3)
    assert counts_of(run) == expected["tree"]


def test_pool__labeled_rows_may_be_a_frame_of_polars(expected):
    X, y, pool = rows()
    frames = (pl.DataFrame(each, schema=NAMES) for each in (X, pool))
    X, pool = frames
    assert (
        counts_of(run_search(*LEARNERS["tree"], X, y, pool, cv=3)) == expected["tree"]
    )


def test_pool__columns_in_another_order_are_found_by_name(expected):
    X, y, pool = rows()
    X = pd.DataFrame(X, columns=NAMES)
    pool = pd.DataFrame(pool, columns=NAMES)[NAMES[::-1]].assign(label=1)
    plan = dsel.plan_search(*LEARNERS["tree"], X, y, pool, cv=3, random_state=0)
    assert "`pool` are found by their names; left out: label" in repr(plan)
    assert (
        counts_of(run_search(*LEARNERS["tree"], X, y, pool, cv=3)) == expected["tree"]
    )


@pytest.mark.parametrize("seed", range(3))
def test_pool__no_count_depends_on_the_chunks(seed, expected):
    X, y, pool = rows()
    cuts = np.random.default_rng(seed).choice(np.arange(1, 600), 7, replace=False)
    sizes = tuple(np.diff([0, *np.sort(cuts), 600]).tolist())
    run = run_search(*LEARNERS["SVC"], X, y, da.from_array(pool, (sizes, (64,))), cv=3)
    assert counts_of(run) == expected["SVC"]


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["zarr", "Dask array", "CSR", "Parquet", "pandas"])
def test_pool__worker_processes_read_the_same_rows(kind, expected, processes, tmp_path):
    X, y, pool = rows()
    if kind in FRAMES:
        X = pd.DataFrame(X, columns=NAMES)
    pool = (ARRAYS | FRAMES)[kind](pool, tmp_path)
    run = run_search(*LEARNERS["SVC"], X, y, pool, cv=3, client=processes)
    assert counts_of(run) == expected["SVC"]


# Columns of text


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"size": rng.normal(size=n), "colour": rng.choice(["red", "green", "blue"], n)}
    )
    return frame, np.where(
        frame["size"] + (frame["colour"] == "red") > 0.5, "yes", "no"
    )


def encoded_tree():
    encoder = (OneHotEncoder(handle_unknown="ignore"), ["colour"])
    columns = make_column_transformer(encoder, remainder="passthrough")
    tree = DecisionTreeClassifier(random_state=0)
    return make_pipeline(columns, tree), {"decisiontreeclassifier__max_depth": [1, 3]}


def text_parquet(frame, folder):
    frame.to_parquet(folder / "pool.parquet", row_group_size=50)
    return folder / "pool.parquet"


TEXT_POOLS = {
    "Parquet": text_parquet,
    "Dask frame": lambda frame, _: dd.from_pandas(frame, npartitions=3),
    "polars": lambda frame, _: pl.from_pandas(frame),
}


@pytest.mark.parametrize("kind", TEXT_POOLS)
def test_pool__columns_of_text_reach_the_pipeline(kind, tmp_path):
    (X, y), (pool, _) = table(200, 0), table(300, 1)
    expected = run_search(*encoded_tree(), X, y, pool, cv=3)
    found = run_search(*encoded_tree(), X, y, TEXT_POOLS[kind](pool, tmp_path), cv=3)
    assert counts_of(found) == counts_of(expected)


# What else takes a pool


def test_open_pool__knows_rows_and_columns(tmp_path):
    _, _, pool = rows()
    opened = dsel.open_pool(parquet(pool, tmp_path))
    assert (opened.n_rows, opened.n_columns) == (600, 64)
    assert list(opened.columns) == NAMES
    assert dsel.open_pool(pool).n_rows == 600


def test_write_pool__a_table_of_text_becomes_a_pool(tmp_path):
    _, _, pool = rows()
    frame = pd.DataFrame(pool, columns=NAMES).assign(label="unknown")
    frame.to_csv(tmp_path / "table.csv", index=False)
    written = dsel.write_pool(
        tmp_path / "table.csv", tmp_path / "pool.zarr", target="label"
    )
    assert (written.n_rows, written.n_columns) == (600, 64)
    stored = zarr.open_array(tmp_path / "pool.zarr", mode="r")
    assert (stored[:] == pool).all()


@pytest.mark.parametrize("kind", ["Dask array", "zarr", "CSR"])
def test_predict_pool__writes_what_the_model_answers(kind, tmp_path):
    X, y, pool = rows()
    run = run_search(*TREES, X, y, cv=3, certificate="nested")
    model = model_of(run, ONE_FOLD)
    predict_pool(model, ARRAYS[kind](pool, tmp_path), tmp_path / "answers.zarr")
    parts = list(read_rows(tmp_path / "answers.zarr", "label"))
    codes = np.concatenate([codes for _, codes in parts])
    assert (model.classes_[codes] == model.predict(pool)).all()


def test_predict_pool__takes_a_fitted_search(tmp_path):
    X, y, pool = rows()
    search = fit_facade(*K_NEAREST, X, y, pool, cv=3, random_state=0)
    predict_pool(search, pool, tmp_path / "answers.zarr")
    codes = np.concatenate(
        [c for _, c in read_rows(tmp_path / "answers.zarr", "label")]
    )
    assert (search.classes_[codes] == search.predict(pool)).all()
    lazy = search.predict(da.from_array(pool, chunks=(100, 64)))
    assert (lazy.compute() == search.predict(pool)).all()


def test_pool__the_certificate_says_that_no_row_equals_a_labeled_one():
    run = run_search(*TREES, *rows(), cv=3)
    (first, *_) = choice_of(run).certificate.assumptions
    assert first.name == "A1"
    assert "no pool row equals a labeled row" in first.reason
