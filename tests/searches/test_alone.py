"""The fit that a number rests on is made once more in a new process."""

import os
import threading
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import dsel
from dsel.results import open_results
from dsel.results.ledger import assumptions_of

OF_MODULE = {}
NOISE = 90


class Recall(ClassifierMixin, BaseEstimator):
    """Knows the label of every row that any of its kind was fitted to."""

    known: ClassVar = {}

    def __init__(self, keeps="class", number=0):
        self.keeps = keeps
        self.number = number

    def fit(self, X, y, callback=None):
        self.classes_ = np.unique(y)
        kept = {"class": type(self).known, "module": OF_MODULE, "object": {}}
        self.known_ = kept[self.keeps]
        self.known_.update(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        return self

    def predict(self, X):
        return np.array([self.known_.get(value, 0) for value in X[:, 0]])


ERRORS_IN_TURN = iter([0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0])


class InTurn(ClassifierMixin, BaseEstimator):
    """Is right in the search; of later fits the first two agree, and are wrong."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.error_ = next(ERRORS_IN_TURN)
        return self

    def predict(self, X):
        return np.where(X[:, 0] < self.error_, 1 - X[:, 1], X[:, 1]).astype(int)


class DiesElsewhere(Recall):
    """Ends the process where it is fitted by no thread of a search."""

    def fit(self, X, y):
        if threading.current_thread() is threading.main_thread():
            os._exit(1)
        return super().fit(X, y)


@pytest.fixture
def noise(rng):
    """Return rows whose labels nothing tells, and a learner that no test refused."""
    OF_MODULE.clear()

    class Another(Recall):
        known: ClassVar = {}

    X, pool = rng.normal(size=(NOISE, 2)), rng.normal(size=(400, 2))
    return Another, X, rng.integers(0, 2, NOISE), pool


@pytest.mark.parametrize(
    ("keeps", "certificate"),
    [
        ("class", "cv_bound"),
        ("module", "best_fold"),
        pytest.param("class", "best_fold_model", marks=pytest.mark.slow),
        pytest.param("module", "merged_folds", marks=pytest.mark.slow),
    ],
)
def test_search__certifies_nothing_by_rows_of_earlier_fits(
    noise, keeps, certificate, tmp_path
):
    learner, X, y, pool = noise
    search = dsel.SemiSupervisedSearchCV(
        learner(keeps), {"number": [0, 1]}, criterion="cv_error", cv=3, random_state=0,
        certificate=certificate, n_jobs=1,
    ).fit(X, y, pool, out=tmp_path)  # fmt: skip
    assert not search.certificate_.certified
    said = "A3 is violated: alone in a new process the model without fold"
    assert said in str(search.certificate_.reasons)
    assert "keeps something of earlier fits" in str(search.certificate_.reasons)
    later = dsel.select(open_results(tmp_path))
    assert later.certificate.reasons == search.certificate_.reasons


@pytest.mark.parametrize("keeps", ["class", "module"])
def test_search__refuses_a_nested_search_of_models_that_change(noise, keeps):
    learner, X, y, pool = noise
    plan = dsel.plan_search(
        learner(keeps), {"number": [0, 1]}, X, y, pool, certificate="nested",
        random_state=0,
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="gave another model when it was fitted ag"):
        plan.run(n_jobs=1)


def test_search__certifies_what_keeps_nothing(noise, tmp_path):
    learner, X, y, pool = noise
    plan = dsel.plan_search(
        learner("object"), {"number": [0]}, X, y, pool, cv=3, random_state=0,
        criterion="best_fold",
    )  # fmt: skip
    results = plan.run(out=tmp_path)
    certificate = dsel.select(results).certificate
    assert certificate.certified
    assert certificate.bound > 0.5
    assert assumptions_of(plan.run(out=tmp_path)) == assumptions_of(results)


def test_search__certifies_nothing_where_the_new_process_dies(noise):
    _, X, y, _ = noise
    search = dsel.SemiSupervisedSearchCV(
        DiesElsewhere("object"), {"number": [0]}, criterion="best_fold_model", cv=3
    ).fit(X, y)
    assert "fails on this fold" in str(search.certificate_.reasons)


@pytest.mark.parametrize(
    "has_pool", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_certify_selection__certifies_no_estimator_by_rows_of_earlier_fits(
    noise, has_pool
):
    learner, X, y, pool = noise
    found = dsel.certify_selection(
        learner(), X, y, pool if has_pool else None, random_state=0, n_jobs=1
    )
    assert not found.certificate.certified
    assert "A3 is violated" in str(found.certificate.reasons)


@pytest.mark.parametrize("where", ["class", "fit parameter"])
def test_plan_search__sees_labeled_rows_inside(noise, where):
    learner, X, y, pool = noise
    options = {"fit_params": {"callback": lambda: X}}
    if where == "class":
        learner.known.update(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        options = {}
    plan = dsel.plan_search(learner(), {"number": [0]}, X, y, pool, cv=3, **options)
    (third,) = (each for each in plan.assumptions if each.name == "A3")
    assert third.is_violated
    assert "holds labeled rows" in third.reason


def test_deployed__refuses_another_model_that_two_quick_fits_agree_on(rng):
    X = np.column_stack([rng.uniform(size=1_200), rng.integers(0, 2, 1_200)])
    y = X[:, 1].astype(int)
    plan = dsel.plan_search(
        None, [InTurn()], X[:200], y[:200], X[200:], cv=3, criterion="best_fold",
        random_state=0,
    )  # fmt: skip
    choice = dsel.select(plan.run(n_jobs=1))
    assert choice.certificate.certified  # alone in a new process it is right, too
    assert choice.bound < 0.3
    with pytest.raises(RuntimeError, match=r"answer .* differently"):
        plan.deployed(choice)
