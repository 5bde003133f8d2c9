"""Steps that candidates share are fitted once a split; the counts are as of each."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel


class Counting(TransformerMixin, BaseEstimator):
    """Subtracts the mean of its rows, and writes a byte whenever it is fitted."""

    def __init__(self, file=None):
        self.file = file

    def fit(self, X, y=None):
        if self.file is not None:
            with self.file.open("ab") as file:
                file.write(b".")
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(y))
    return X[order], y[order]


def plan(rows, *steps, **options):
    X, y = rows
    estimator = make_pipeline(*steps, LogisticRegression(max_iter=3000))
    grid = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}
    return dsel.plan_search(
        estimator, grid, X[:200], y[:200], X[200:500], certificate="cv_bound", cv=4,
        prune=False, random_state=0, **options,
    )  # fmt: skip


def test_run__fits_shared_steps_once_a_split(rows, tmp_path):
    file = tmp_path / "fits"
    plan(rows, Counting(file)).run(n_jobs=1)
    # Four folds and all rows, of four candidates.
    assert file.stat().st_size == 5
    weights = np.ones(200)  # may be for any step
    params = {"logisticregression__sample_weight": weights}
    plan(rows, Counting(file), fit_params=params).run(n_jobs=1)
    assert file.stat().st_size == 25


def doubled(frame):
    frame["a"] = 2.0 * frame["a"] - 1.0
    return frame


def doubled_copy(frame):
    return doubled(frame.copy())


def as_frame(table):
    return pd.DataFrame(table, columns=list("abc"))


IN_PLACE = MinMaxScaler(copy=False), MinMaxScaler()
ON_FRAMES = FunctionTransformer(doubled), FunctionTransformer(doubled_copy)


@pytest.mark.parametrize(
    ("steps", "last", "sizes", "kind"),
    [
        (IN_PLACE, LogisticRegression(), {"C": [0.1, 1.0]}, np.array),
        (IN_PLACE, KNeighborsClassifier(), {"n_neighbors": [1, 3]}, np.array),
        (IN_PLACE, SVC(), {"C": [0.1, 1.0]}, np.array),
        (ON_FRAMES, LogisticRegression(), {"C": [0.1, 1.0]}, as_frame),
    ],
)
def test_run__steps_that_work_in_place_change_no_rows(steps, last, sizes, kind, rng):
    tables = rng.normal(3.0, 2.0, (60, 3)), rng.normal(3.0, 2.0, (500, 3))
    y = (tables[0][:, 0] > 3.0).astype(int)
    ((name, values),) = sizes.items()
    found = []
    for step in steps:
        X, pool = (kind(table) for table in tables)
        models = [clone(last).set_params(**{name: value}) for value in values]
        results = dsel.plan_search(
            None, [make_pipeline(step, model) for model in models], X, y, pool,
            certificate="cv_bound", cv=3, prune=False, random_state=0,
        ).run().results  # fmt: skip
        found.append(results.disagreements.values)
        for given, table in zip((X, pool), tables, strict=True):
            np.testing.assert_array_equal(np.asarray(given), table)
    np.testing.assert_array_equal(*found)


def test_model__may_be_fitted_again_without_changing_another(rows):
    X = rows[0]
    planned = plan(rows, StandardScaler(), PCA(5))
    first, expected = planned.model(0), planned.model(1).predict(X)
    first[0].fit(100.0 * X)
    np.testing.assert_array_equal(planned.model(1).predict(X), expected)


class ScaledByLabels(TransformerMixin, BaseEstimator):
    """Multiplies rows by the mean of their labels, as numbers."""

    def fit(self, X, y):
        self.scale_ = float(np.mean(y))
        return self

    def transform(self, X):
        return X * self.scale_


def test_prefix__knows_labels_and_not_their_codes_alone(rows):
    X, codes = rows[0][:60], (rows[1][:60] > 4).astype(int)
    steps = make_pipeline(ScaledByLabels(), LogisticRegression())
    # The same codes, of other labels: in one process, whose cache both fits share.
    for labels in (codes, 7 * codes):
        made = dsel.plan_search(steps, {"logisticregression__C": [1.0]}, X, labels)
        assert made.model(0).steps[0][1].scale_ == labels.mean()


def test_fit__wraps_frozen_parts_anew(rows):
    X, y = rows[0][:60], rows[1][:60] > 4
    frozen = FrozenEstimator(LogisticRegression(max_iter=3000).fit(X, y))
    vote = VotingClassifier([("frozen", frozen), ("tree", DecisionTreeClassifier())])
    for given, part in ((frozen, lambda model: model), (vote, first_part)):
        made = dsel.plan_search(None, [given], X, y, random_state=0)
        wrappers = [part(made.model(0)), part(made.model(0, fold=1)), frozen]
        assert len({id(each) for each in wrappers}) == 3
        assert all(each.estimator is frozen.estimator for each in wrappers)


def first_part(vote):
    return vote.estimators[0][1]
