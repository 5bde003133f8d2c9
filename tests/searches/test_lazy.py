"""Answers for Dask arrays are lazy, those for pools are written, by every estimator."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.least_squares import (
    KernelLeastSquaresClassifier,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.searches import (
    predict_pool,
    read_rows,
)

GRID = {"C": [0.1, 10.0]}
CLASSIFIERS = {
    "search": dsel.SemiSupervisedSearchCV(
        LogisticRegression(max_iter=5000), GRID, cv=3
    ),
    "votes": dsel.SemiSupervisedSearchCV(
        SVC(), GRID, certificate="nested_vote", duplicates="keep", random_state=0
    ),
    "nonconformity": NonconformityClassifier(SVC(), GRID, random_state=0),
    "least squares": KernelLeastSquaresClassifier(),
    "lda": SemiSupervisedLDA(),
}
REGRESSORS = {
    "search": LeastSquaresSearch([1.0, 3.0], [0.1, 1.0]),
    "streamed": StreamedLeastSquaresSearch([1.0, 3.0], [0.1, 1.0], n_centers=9),
}


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], np.array(["one", "two", "three"])[y[order]]


def never(*args, **kwargs):
    raise AssertionError("something was computed")


def lazy_answers(model, method, X):
    with dask.config.set(scheduler=never):
        lazy = getattr(model, method)(da.from_array(X, chunks=(17, 3)))
    direct = getattr(model, method)(X)
    assert (lazy.shape, lazy.dtype) == (direct.shape, direct.dtype)
    assert lazy.numblocks[0] > 1
    if direct.dtype.kind == "U":
        np.testing.assert_array_equal(lazy, direct)
    else:
        np.testing.assert_allclose(lazy, direct)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predict__of_a_dask_array_is_lazy_and_the_same(rows, name, tmp_path):
    X, y = rows
    pool = [X[100:]] if name in ("votes", "lda") else []
    model = CLASSIFIERS[name].fit(X[:100], y[:100], *pool)
    lazy_answers(model, "predict", X)
    for method in ("predict_proba", "decision_function", "critical_epsilon"):
        if hasattr(model, method):
            lazy_answers(model, method, X)

    predict_pool(model, da.from_array(X, chunks=(40, 4)), tmp_path / "answers.zarr")
    [(start, codes)] = read_rows(tmp_path / "answers.zarr", "label")
    assert start == 0
    np.testing.assert_array_equal(model.classes_[codes], model.predict(X))


@pytest.mark.parametrize("name", REGRESSORS)
def test_predict__of_numbers_is_lazy_and_the_same(rows, name, tmp_path):
    X = rows[0]
    for targets in (X[:, 3], X[:, 2:]):
        model = REGRESSORS[name].fit(X[:, :2], targets)
        lazy_answers(model, "predict", X[:, :2])
        place = tmp_path / f"answers-{targets.ndim}.zarr"
        pool = dsel.open_pool(X[:, :2]).excluding([3])
        predict_pool(model, pool, place)
        [(_, values)] = read_rows(place, "value")
        assert np.isnan(values[3]).all()
        kept = np.arange(len(X)) != 3
        np.testing.assert_allclose(values[kept], model.predict(X[kept, :2]))


def test_predict_pool__gives_frames_to_models_of_frames(tmp_path):
    frame = load_iris(as_frame=True)
    table, y = frame.data.assign(kind="a"), frame.target
    model = LogisticRegression(max_iter=5000).fit(table.iloc[:, :4], y)
    predict_pool(model, table.iloc[:, :4], tmp_path / "answers.zarr")
    [(_, codes)] = read_rows(tmp_path / "answers.zarr", "label")
    np.testing.assert_array_equal(codes, model.predict(table.iloc[:, :4]))
    predict_pool(model, table.iloc[:, ::-1], tmp_path / "others.zarr")
    [(_, found)] = read_rows(tmp_path / "others.zarr", "label")
    np.testing.assert_array_equal(codes, found)


def test_predict_pool__gives_pandas_to_plain_models_of_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"since": pd.date_range("2020", periods=60), "a": 1.0})
    table.loc[::7, "a"] = np.nan
    table.to_parquet(tmp_path / "pool.parquet")
    days = FunctionTransformer(lambda X: X.apply(lambda column: column.dt.day_of_week))
    columns = make_column_transformer((days, ["since"]), (SimpleImputer(), ["a"]))
    weekend = table.since.dt.day_of_week > 4
    model = make_pipeline(columns, DecisionTreeClassifier()).fit(table, weekend)
    predict_pool(model, tmp_path / "pool.parquet", tmp_path / "answers.zarr")
    [(_, codes)] = read_rows(tmp_path / "answers.zarr", "label")
    np.testing.assert_array_equal(model.classes_[codes], weekend)


def test_predict__names_what_is_not_lazy(rows):
    X, y = rows
    model = CLASSIFIERS["search"].fit(X, y)
    unknown = da.from_array(X, chunks=(50, 4))
    with pytest.raises(ValueError, match=r"blocks of known lengths.*predict_pool"):
        model.predict(unknown[unknown[:, 0] > 5])
    with pytest.raises(TypeError, match=r"got a pool; `dsel.searches.predict_pool\("):
        model.predict(dsel.open_pool(X))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", ["search", "composite"])
def test_predict_pool__finds_columns_in_another_order(kind, rng, tmp_path):
    table = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    y = (table.a > table.b).astype(int)
    model = {
        "search": dsel.SemiSupervisedSearchCV(SVC(), {"C": [1.0]}, cv=3),
        "composite": NonconformityClassifier(SVC(), {"C": [1.0]}, random_state=0),
    }[kind].fit(table, y)
    turned = table[["b", "a"]]
    dsel.write_pool(turned, tmp_path / "pool.zarr")
    for number, pool in enumerate((turned, tmp_path / "pool.zarr")):
        place = tmp_path / f"answers-{number}"
        predict_pool(model, pool, place)
        [(_, codes)] = read_rows(place, "label")
        np.testing.assert_array_equal(model.classes_[codes], model.predict(table))


def test_predict_pool__takes_missing_values_that_a_pipeline_fills(rows, tmp_path):
    X, y = rows
    X = np.where(np.arange(len(X))[:, np.newaxis] % 5 == 0, np.nan, X)
    pipeline = make_pipeline(SimpleImputer(), SVC())
    search = dsel.SemiSupervisedSearchCV(None, [pipeline], cv=3, random_state=0)
    for number, model in enumerate([pipeline.fit(X, y), search.fit(X, y)]):
        predict_pool(model, X, tmp_path / str(number))
        [(_, codes)] = read_rows(tmp_path / str(number), "label")
        np.testing.assert_array_equal(model.classes_[codes], model.predict(X))


@pytest.mark.parametrize("name", ["search", "nonconformity"])
def test_predict__of_chunks_that_a_filter_left_empty(rows, name):
    X, y = rows
    model = clone(CLASSIFIERS[name]).fit(X, y)
    lazy = model.predict(da.from_array(X, chunks=((50, 0, len(X) - 50), X.shape[1])))
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))
