"""Active learning from pools, with estimates on the way."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from dsel import open_pool, select, write_pool
from dsel.searches.co_validation.active_learning import (
    learn_actively,
    sample_uncertain,
    sure_margins,
)
from dsel.searches.co_validation.covalidate import covalidate
from tests.tables import in_two_entries

ESTIMATES = {
    "dis_error", "disagreement", "half_true_error", "loo_error", "max_cv_dt_e",
    "max_dt_e", "train_error", "true_error", "two_fold_cv",
}  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return make_classification(
        400, 5, n_informative=4, n_redundant=0, n_classes=2, random_state=3
    )


def steps_of(table, source=None, model=None, **options):
    X, y = table
    given = {"n_rows": 40, "every": 15, "repeats": 3} | options
    return list(
        learn_actively(
            model or LogisticRegression(),
            X if source is None else source,
            y.__getitem__,
            **given,
        )
    )


def test_learn_actively__labels_what_the_model_is_least_sure_of(table):
    X, y = table
    rows = steps_of(table)[-1].rows

    assert len(set(rows)) == 40
    for size in (10, 17, 39):
        seen = rows[:size]
        model = LogisticRegression().fit(X[seen], y[seen])
        free = np.setdiff1d(np.arange(400), seen)
        assert rows[size] == free[np.argmin(sure_margins(model, X[free]))]


def test_learn_actively__gives_every_estimate_at_regular_intervals(table):
    X, y = table
    steps = steps_of(table, pool_labels=y, leave_one_out=True)

    assert [len(step.rows) for step in steps] == [25, 40]
    for step in steps:
        assert set(step.estimates) == ESTIMATES
        rest = np.setdiff1d(np.arange(400), step.rows)
        alone = covalidate(
            LogisticRegression(), None, X[step.rows], y[step.rows], X[rest], repeats=3
        )
        found = select(alone, "max_cv_dt_e").estimate
        assert step.estimates["max_cv_dt_e"] == pytest.approx(found)
        assert int(step.results.test_rows) == len(rest)


def test_learn_actively__says_why_nothing_is_certified(table):
    certificate = select(steps_of(table)[-1].results).certificate

    assert not certificate.certified
    assert any("active learning" in reason for reason in certificate.reasons)


def test_learn_actively__is_the_same_for_every_kind_of_pool(table, tmp_path):
    X, _ = table
    write_pool(X, tmp_path / "pool.zarr", chunk_rows=64)
    sources = [None, open_pool(tmp_path / "pool.zarr"), sparse.csr_matrix(X)]

    found = [steps_of(table, source, batch=3)[-1].rows for source in sources]

    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_learn_actively__draws_at_random_until_there_are_two_classes():
    X = np.arange(100.0)[:, np.newaxis]
    y = (X[:, 0] > 96).astype(int)

    steps = steps_of((X, y), model=SVC(gamma=0.1), n_rows=100, batch=5, every=30)

    assert sorted(steps[-1].rows) == list(range(100))


def test_learn_actively__asks_for_labels_of_picked_rows_only(table):
    X, y = table
    asked = []

    def label_of(rows):
        asked.extend(rows)
        return y[rows]

    steps = learn_actively(
        LogisticRegression(), X, label_of, n_rows=60, every=10, repeats=2
    )

    first = next(steps)
    np.testing.assert_array_equal(asked, first.rows)


def test_learn_actively__refuses_more_rows_than_there_are(table):
    with pytest.raises(ValueError, match="`n_rows` must be"):
        steps_of(table, n_rows=401)


def test_learn_actively__wants_one_label_for_each_row(table):
    X, y = table
    steps = learn_actively(
        LogisticRegression(), X, lambda rows: y[rows, np.newaxis], n_rows=20
    )
    with pytest.raises(ValueError, match=r"for each of the 10 .*shape \(10, 1\)"):
        next(steps)
    steps = learn_actively(SVC(), X, lambda rows: [None, *y[rows[1:]]], n_rows=20)
    with pytest.raises(ValueError, match=r"that of row \d+ is missing"):
        next(steps)
    steps = learn_actively(SVC(), X, np.zeros_like, n_rows=20)
    with pytest.raises(ValueError, match=r"gave all 20 rows the label .* `n_rows`"):
        next(steps)
    with pytest.raises(ValueError, match=r"for each of the 10 .*shape \(9,\)"):
        sample_uncertain(LogisticRegression(), X, lambda rows: y[rows[1:]], n_rows=20)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"estimator": LogisticRegression}, "`estimator` must be an unfitted"),
        ({"estimator": NearestNeighbors()}, "`decision_function` or `predict_proba`"),
        ({"label_of": [0, 1]}, "`label_of` must be a function .* got list"),
        ({"n_rows": 401}, r"`n_rows` must be in \[2, 400\], got 401"),
        ({"every": 2.5}, "`every` must be an integer, got 2.5"),
        ({"repeats": 0}, "`repeats` must be >= 1, got 0"),
        ({"cv": 3}, "learn_actively has no option `cv`"),
        ({"out": "store"}, "learn_actively has no option `out`"),
    ],
)
def test_learn_actively__refuses_before_a_label_is_asked_for(table, given, message):
    X, y = table
    options = {"estimator": SVC(), "label_of": y.__getitem__, "n_rows": 20} | given
    with pytest.raises((TypeError, ValueError), match=message):
        learn_actively(pool=X, **options)


@pytest.mark.parametrize("kind", ["category", "polars", "parquet"])
def test_learn_actively__takes_frames_that_the_estimator_encodes(table, kind, tmp_path):
    X, _ = table
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["word"] = np.array(["low", "high"])[(X[:, 2] > 0).astype(int)]
    given = frame.astype({"word": "category"})
    if kind == "polars":
        given = pytest.importorskip("polars").from_pandas(frame)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        given.to_parquet(tmp_path / "pool.parquet")
        given = str(tmp_path / "pool.parquet")
    words = [("words", OneHotEncoder(sparse_output=False), ["word"])]
    encode = ColumnTransformer(words, remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression())

    found = steps_of(table, given, model, every=30)[-1]

    codes = clone(encode).fit_transform(frame)
    expected = steps_of(table, codes, every=30)[-1]
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert found.estimates == expected.estimates


def test_learn_actively__takes_missing_values_that_the_estimator_fills(table):
    X, _ = table
    holes = np.where(X > 2, np.nan, X)
    filled = steps_of(table, np.where(X > 2, 0.0, X), every=30)[-1]
    model = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=0.0), LogisticRegression()
    )
    found = steps_of(table, holes, model, every=30)[-1]
    np.testing.assert_array_equal(found.rows, filled.rows)


def test_sample_uncertain__picks_what_learn_actively_picks(table):
    X, y = table
    found = sample_uncertain(LogisticRegression(), X, y.__getitem__, n_rows=40)
    np.testing.assert_array_equal(found, steps_of(table)[-1].rows)
    other = sample_uncertain(
        LogisticRegression(), X, y.__getitem__, n_rows=40, random_state=1
    )
    assert not np.array_equal(found, other)


def test_sample_uncertain__sums_entries_of_one_place(table):
    X, y = table
    found, expected = (
        sample_uncertain(SVC(), made(X), y.__getitem__, n_rows=30)
        for made in (in_two_entries, sparse.csr_matrix)
    )
    np.testing.assert_array_equal(found, expected)


def test_sample_uncertain__sets_the_seed_of_a_forest_in_a_pipeline(table):
    X, y = table
    model = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3))
    one, other = (
        sample_uncertain(model, X, y.__getitem__, n_rows=25) for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)
