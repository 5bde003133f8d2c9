"""Scores and weights of Dask collections are those of their rows in memory."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

import dsel
from dsel.least_squares import (
    KernelLeastSquares,
    KernelLeastSquaresClassifier,
    LeastSquaresSearch,
)
from dsel.mcpl import MaximumLikelihoodLDA
from dsel.nonconformity import NonconformityClassifier

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(90, 2)), columns=["a", "b"])
NUMBERS = ROWS.a + RNG.normal(size=90)
LABELS = (NUMBERS > 0).astype(int)
FITTED = [
    lambda: dsel.SemiSupervisedSearchCV(LogisticRegression(), {"C": [1]}, cv=3),
    lambda: dsel.SemiSupervisedSearchCV(Ridge(), {"alpha": [1.0]}, cv=3),
    lambda: LeastSquaresSearch([1.0], [0.1], cv=3),
    lambda: KernelLeastSquares(1.0, 0.1),
    lambda: KernelLeastSquaresClassifier(1.0, 0.1),
    lambda: NonconformityClassifier(GaussianNB(), {"var_smoothing": [1e-9]}),
    MaximumLikelihoodLDA,
]


@pytest.mark.parametrize("make", FITTED)
def test_score__of_a_dask_collection_is_that_of_its_rows(make):
    model = make()
    is_regressor = model.__sklearn_tags__().estimator_type == "regressor"
    y = NUMBERS if is_regressor else LABELS
    lazy_rows, lazy_y = dd.from_pandas(ROWS, 3), dd.from_pandas(y, 3)
    model.fit(ROWS, y)
    expected = model.score(ROWS, y)
    assert 0.3 < expected < 1
    weights = np.arange(90.0)
    weighted = model.score(ROWS, y, weights)
    assert weighted != expected
    unknown = lazy_rows[lazy_rows.a > -9]  # of unknown length
    for rows in (lazy_rows, unknown, ROWS):
        for labels in (lazy_y, lazy_y.to_dask_array(), y):
            assert model.score(rows, labels) == pytest.approx(expected)
    assert model.score(lazy_rows, lazy_y, weights) == pytest.approx(weighted)


def test_fit__takes_weights_of_a_dask_collection():
    def choose(weights):
        search = dsel.SemiSupervisedSearchCV(
            LogisticRegression(), {"C": [1]}, cv=3, random_state=0
        )
        return search.fit(ROWS, LABELS, sample_weight=weights).best_estimator_.coef_

    weights = pd.Series(np.arange(90.0))
    np.testing.assert_array_equal(choose(dd.from_pandas(weights, 3)), choose(weights))
    assert not np.array_equal(choose(weights), choose(None))
