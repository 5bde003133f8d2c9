"""Whatever holds the pool, the counts are those of an array."""

from functools import cache

import dask
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
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.search import open_outcome, predict_pool, read_rows
from tests.contract.runs import (
    LEARNERS,
    TREES,
    answers_of,
    counts_of,
    digits,
    run_search,
)
from tests.tables import write

pytestmark = pytest.mark.contract

X, Y, POOL = digits(200)
POOL = POOL[:600]
NAMES = [f"pixel {number}" for number in range(64)]
FRAME, POOL_FRAME = (pd.DataFrame(rows, columns=NAMES) for rows in (X, POOL))


def written(kind):
    """Return a function that writes a pool in some format."""
    return lambda pool, folder: write(
        kind, folder / "pool", pd.DataFrame(pool, columns=NAMES)
    )


def zarr_path(pool, folder):
    zarr.create_array(folder / "pool.zarr", data=pool, chunks=(130, 64))
    return str(folder / "pool.zarr")


def chunked(pool, seed):
    cuts = np.random.default_rng(seed).choice(np.arange(1, 600), 7, replace=False)
    sizes = tuple(np.diff([0, *np.sort(cuts), 600]).tolist())
    return da.from_array(pool, (sizes, (64,)))


ARRAYS = {
    "Fortran order": lambda pool, _: np.asfortranarray(pool),
    "float32": lambda pool, _: pool.astype(np.float32),
    "integers": lambda pool, _: pool.astype(np.int16),
    "Dask array": lambda pool, _: da.from_array(pool, chunks=((1, 400, 199), (64,))),
    "other chunks": lambda pool, _: chunked(pool, 0),
    "still others": lambda pool, _: chunked(pool, 1),
    "xarray": lambda pool, _: xr.DataArray(pool, dims=("row", "pixel")),
    "CSR": lambda pool, _: sparse.csr_array(pool),
    "npy": written("npy"),
    "zarr": zarr_path,
    "zarr array": lambda pool, folder: zarr.open_array(zarr_path(pool, folder)),
    "write_pool": written("zarr"),
    "open_pool": lambda pool, f: dsel.open_pool(written("npy")(pool, f)),
}
FRAMES = {
    "pandas": lambda pool, _: pd.DataFrame(pool, columns=NAMES),
    "polars": lambda pool, _: pl.DataFrame(pool, schema=NAMES),
    "Arrow": lambda pool, _: pa.table(dict(zip(NAMES, pool.T, strict=True))),
    "Dask frame": lambda pool, _: dd.from_pandas(
        pd.DataFrame(pool, columns=NAMES), npartitions=4
    ),
    "Parquet": written("folder"),
}
POOLS = ARRAYS | FRAMES


def counted(learner, X, pool, **where):
    return counts_of(run_search(*LEARNERS[learner], X, Y, pool, cv=3, **where))


@cache
def expected(learner):
    return counted(learner, X, POOL)


@pytest.mark.parametrize("learner", ["SVC", "tree"])
@pytest.mark.parametrize("kind", POOLS)
def test_pool__of_any_kind_gives_the_same_counts(kind, learner, tmp_path):
    labeled = FRAME if kind in FRAMES else X
    found = counted(learner, labeled, POOLS[kind](POOL, tmp_path))
    assert found == expected(learner)


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["zarr", "Dask array", "CSR", "Parquet", "pandas"])
def test_pool__worker_processes_read_the_same_rows(kind, processes, tmp_path):
    labeled, pool = FRAME if kind in FRAMES else X, POOLS[kind](POOL, tmp_path)
    assert counted("SVC", labeled, pool, client=processes) == expected("SVC")


@pytest.mark.parametrize("kind", ["CSR", "polars"])
def test_pool__labeled_rows_may_be_of_its_kind(kind):
    rows = (POOLS[kind](each, None) for each in (X, POOL))
    assert counted("tree", *rows) == expected("tree")


def test_pool__with_the_column_of_the_labels_is_noted():
    target = pd.Series(Y, name="label")
    pool = POOL_FRAME.assign(label=1)
    words = "column 'label' of `pool` has the name of `y`, and is left out"
    for y, is_said in ((target, True), (target.rename("other"), False), (Y, False)):
        found = dsel.plan_search(*TREES, FRAME, y, pool).facts.caveats
        assert any(words in str(caveat) for caveat in found) == is_said


def test_pool__columns_in_another_order_are_found_by_name():
    pool = POOL_FRAME[NAMES[::-1]].assign(label=1)
    plan = dsel.plan_search(*TREES, FRAME, Y, pool)
    assert (
        "not used: column 'label' of the pool, which is not in the labeled table"
        in repr(plan)
    )
    assert counted("tree", FRAME, pool) == expected("tree")


def coloured(n, seed):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    return pd.DataFrame({"size": rng.normal(size=n), "colour": colour})


@pytest.mark.parametrize("kind", ["Parquet", "Dask frame", "polars"])
def test_pool__columns_of_text_reach_the_pipeline(kind, tmp_path):
    X, pool = coloured(200, 0), coloured(300, 1)
    y = np.where(X["size"] + (X["colour"] == "red") > 0.5, "yes", "no")
    encoder = (OneHotEncoder(handle_unknown="ignore"), ["colour"])
    columns = make_column_transformer(encoder, remainder="passthrough")
    learner = make_pipeline(columns, TREES[0])
    grid = {"decisiontreeclassifier__max_depth": [1, 3]}
    held = {
        "Parquet": lambda: write("folder", tmp_path / "pool", pool),
        "Dask frame": lambda: dd.from_pandas(pool, npartitions=3),
        "polars": lambda: pl.from_pandas(pool),
    }[kind]()
    one, other = (run_search(learner, grid, X, y, each, cv=3) for each in (pool, held))
    assert counts_of(one) == counts_of(other)


# What else takes a pool


@pytest.mark.parametrize("kind", ["Dask array", "zarr", "CSR"])
def test_predict_pool__writes_what_a_model_or_a_search_answers(kind, tmp_path):
    search = dsel.SemiSupervisedSearchCV(*TREES, cv=3, random_state=0).fit(X, Y)
    pool = ARRAYS[kind](POOL, tmp_path)
    models = (search, search.best_estimator_, search.outcome_)
    for name, model in zip("abc", models, strict=True):
        predict_pool(model, pool, tmp_path / name)
        answers = search.classes_[answers_of(tmp_path / name)]
        assert (answers == model.predict(POOL)).all()


def refuse_to_compute(*args, **options):
    raise AssertionError("it computes")


@pytest.mark.parametrize("n_known", [600, None])
def test_predict__is_lazy_for_dask_arrays(n_known):
    search = dsel.SemiSupervisedSearchCV(*TREES, cv=3, random_state=0).fit(X, Y)
    lazy = da.from_array(POOL, chunks=(100, 64))
    lazy = lazy if n_known else lazy[lazy[:, 0] >= 0]
    for predict in (search.predict, search.outcome_.predict):
        with dask.config.set(scheduler=refuse_to_compute):
            predictions = predict(lazy)
        assert predictions.numblocks == (6,)
        assert (predictions.compute() == predict(POOL)).all()


def test_predict__is_lazy_for_dask_frames_with_texts():
    encoder = make_column_transformer((OneHotEncoder(), ["site"]))
    model = make_pipeline(encoder, DecisionTreeClassifier())
    rows = pd.DataFrame({"site": ["a", "b"] * 60})
    search = dsel.SemiSupervisedSearchCV(None, [model], cv=3, random_state=0)
    search.fit(rows, rows["site"] == "a")
    lazy = dd.from_pandas(rows, npartitions=3)
    for predict in (search.predict, search.outcome_.predict, search.predict_proba):
        predictions = predict(lazy)
        assert predictions.numblocks[0] == 3
        assert (predictions.compute() == predict(rows)).all()


def test_predict_interval__is_lazy_for_dask_arrays():
    search = dsel.SemiSupervisedSearchCV(Ridge(), {"alpha": [1.0]}, random_state=0)
    search.fit(X, Y.astype(float))
    lazy = da.from_array(POOL, chunks=(100, 64))
    for predict in (search.predict_interval, search.outcome_.predict_interval):
        assert predict(lazy).numblocks == (6, 1)
        assert (predict(lazy).compute() == predict(POOL)).all()


NAMES_OF_COLUMNS = {
    "texts": list("abc"),
    "numbers": [7, 3, 5],
    "positions": [0, 1, 2],
    "times": list(pd.date_range("2020-01-01", periods=3)),
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
}
PREDICTING = {
    "predict": lambda search, rows, folder: search.predict(rows),
    "predict_proba": lambda search, rows, folder: search.predict_proba(rows),
    "score": lambda search, rows, folder: search.score(rows, np.arange(len(rows)) % 2),
    "outcome": lambda search, rows, folder: search.outcome_.predict(rows),
    "store": lambda search, rows, folder: open_outcome(folder / "run").predict(rows),
    "predict_table": lambda search, rows, folder: pd.read_csv(
        search.outcome_.predict_table(rows, out=folder / f"{id(rows)}.csv").path
    )["label"],
    "predict_pool": lambda search, rows, folder: [
        codes.tolist()
        for _, codes in read_rows(
            predict_pool(search, rows, folder / f"{id(rows)}.zarr"), "label"
        )
    ],
    "predict_pool of an outcome": lambda search, rows, folder: [
        codes.tolist()
        for _, codes in read_rows(
            predict_pool(search.outcome_, rows, folder / f"o{id(rows)}.zarr"), "label"
        )
    ],
    "monitor": lambda search, rows, folder: repr(
        search.outcome_.monitor(rows, y=np.arange(len(rows)) % 2)
    ),
    "compare_models": lambda search, rows, folder: repr(
        dsel.compare_models(search, AllOfOneClass().fit(rows), rows, random_state=0)
    ),
    "certify": lambda search, rows, folder: repr(
        dsel.certify(search, rows, np.arange(len(rows)) % 2, cv="prefit")
    ),
}
REFUSES = {
    **dict.fromkeys(("predict", "predict_proba", "score"), "names should match"),
    # One of the models was fitted without names of columns.
    "compare_models": "bring the columns of `pool` into that order",
}


class AllOfOneClass(ClassifierMixin, BaseEstimator):
    """A model that predicts the class 1 for every row."""

    def fit(self, X, y=None):
        self.classes_, self.n_features_in_ = np.arange(2), X.shape[1]
        return self

    def predict(self, X):
        return np.ones(len(X), int)


@pytest.mark.parametrize("names", NAMES_OF_COLUMNS)
def test_search__columns_of_any_names_are_never_mistaken_for_each_other(
    names, tmp_path
):
    rng, columns = np.random.default_rng(0), NAMES_OF_COLUMNS[names]
    X, rows = (
        pd.DataFrame(rng.normal(size=(n, 3)) * [1, 10, 100], columns=columns)
        for n in (120, 90)
    )
    y = (X.iloc[:, 0] > 0).astype(int)
    search = dsel.SemiSupervisedSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]},
        cv=3, random_state=0, n_jobs=1,
    )  # fmt: skip
    search.fit(X, y, pool=rows, out=tmp_path / "run")
    other = rows.iloc[:, [2, 0, 1]]
    for way, predict in PREDICTING.items():
        expected = predict(search, rows, tmp_path)
        if way in REFUSES:
            with pytest.raises(ValueError, match=REFUSES[way]):
                predict(search, other, tmp_path)
        else:
            found = predict(search, other, tmp_path)
            np.testing.assert_array_equal(found, expected, err_msg=way)
