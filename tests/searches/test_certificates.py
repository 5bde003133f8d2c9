"""Certificates read from one search: what each says, and what each costs."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dsel.searches import execute, plan_search


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:], y[900:]


ESTIMATORS = [GaussianNB(), DecisionTreeClassifier(max_depth=9, random_state=0)]


@pytest.mark.parametrize(
    ("criterion", "certificate"),
    [
        ("cv_error", "best_fold_of_leader"),
        ("cv_bound", "best_fold"),
        ("cv_error", "merged_folds"),
        ("merged_folds", "merged_folds"),
        ("cv_error", "leaders"),
    ],
)
@pytest.mark.parametrize("prune", [True, False])
def test_plan_search__certifies_by_each_certificate(
    digits, criterion, certificate, prune
):
    X, y, pool, hidden = digits
    plan = plan_search(
        None,
        ESTIMATORS,
        X,
        y,
        pool,
        criterion=criterion,
        certificate=certificate,
        cv=3,
        delta=0.05,
        prune=prune,
        shared_rows="keep",
        random_state=1,
    )
    outcome = execute(plan, with_model=True)
    found = outcome.choice.certificate
    assert found.criterion == certificate
    assert found.certified
    assert np.isfinite(found.unclipped)
    assert np.mean(outcome.model.predict(pool) != hidden) <= found.bound
