"""Steps that candidates share are fitted once a split; the counts are as of each."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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

    def fit_transform(self, X, y=None):
        return 2.0 * self.fit(X).transform(X)  # as target encoders, it treats its own


GRID = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(y))
    return X[order], y[order]


def plan(rows, *steps, **options):
    X, y = rows
    estimator = make_pipeline(*steps, LogisticRegression(max_iter=3000))
    given = {
        "criterion": "cv_bound",
        "cv": 4,
        "prune": False,
        "train_errors": True,
        "random_state": 0,
    }
    given |= options
    return dsel.plan_search(estimator, GRID, X[:200], y[:200], X[200:500], **given)


@pytest.mark.parametrize(
    "steps",
    [(StandardScaler(), PCA(9, random_state=1)), (Counting(), StandardScaler())],
)
def test_run__counts_what_whole_pipelines_would(rows, steps):
    X, y = rows
    planned = plan(rows, *steps)
    results = planned.run()
    for number, C in enumerate(GRID["logisticregression__C"]):
        model = clone(planned.candidate(number).estimator)
        for split in planned.work.splits[:4]:
            model.fit(X[split.train_rows], y[split.train_rows])
            at = {"logisticregression__C": C, "fold": split.number}
            for name, mine in (
                ("fold_errors", split.test_rows), ("train_errors", split.train_rows)
            ):  # fmt: skip
                wrong = model.predict(X[mine]) != y[mine]
                assert int(results[name].sel(at)) == wrong.sum()


def test_run__fits_shared_steps_once_a_split(rows, tmp_path):
    file = tmp_path / "fits"
    plan(rows, Counting(file)).run(n_jobs=1)
    assert file.stat().st_size == 5  # four folds and all rows, of four candidates
    weights = np.ones(200)  # may be for any step
    params = {"logisticregression__sample_weight": weights}
    plan(rows, Counting(file), fit_params=params).run(n_jobs=1)
    assert file.stat().st_size == 25


def test_model__may_be_fitted_again_without_changing_another(rows):
    X = rows[0]
    planned = plan(rows, StandardScaler(), PCA(5))
    first, expected = planned.model(0), planned.model(1).predict(X)
    first[0].fit(100.0 * X)
    np.testing.assert_array_equal(planned.model(1).predict(X), expected)
