"""A family and a kernel from outside of dsel: one class and one line each."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import dsel
from dsel.families.assignment import FAMILIES
from dsel.families.generic import ScikitLearnFamily
from dsel.families.svm.settings import KERNELS
from dsel.kernels.reference_rows import DISTANCES, squared_distances


@dataclass(frozen=True)
class BayesFamily(ScikitLearnFamily):
    """Naive Bayes, all smoothings in one group."""

    name = "naive Bayes"

    def refusal(self, estimator):
        return None if type(estimator) is GaussianNB else ""

    def groups(self, candidates):
        return [tuple(candidates)]

    def remark(self, n_groups, n_rows):
        return "all together"


def test_families__of_others_fit_the_candidates_that_they_do_not_refuse(monkeypatch):
    X, y = load_iris(return_X_y=True)
    grid = {"var_smoothing": [1e-9, 1e-3, 1.0]}

    def search():
        return dsel.plan_search(
            GaussianNB(), grid, X[::2], y[::2], X[1::2], cv=3, random_state=0,
            certificate="cv_bound",
        )  # fmt: skip

    before = search().run().results
    monkeypatch.setattr("dsel.families.assignment.FAMILIES", [BayesFamily, *FAMILIES])
    plan = search()
    assert "3 candidates by naive Bayes: all together" in " ".join(str(plan).split())
    after = plan.run().results
    for name in ("fold_errors", "disagreements"):
        np.testing.assert_array_equal(before[name], after[name])


@dataclass(frozen=True)
class Laplacian:
    """exp(-gamma ||x - z||), which scikit-learn's SVC has no name for."""

    gamma: float
    base = DISTANCES

    def values(self, base):
        return np.exp(-base.dtype.type(self.gamma) * np.sqrt(base))

    def diagonal(self, base):
        return np.ones_like(base)

    def rounding(self, base_error, base_size):
        return np.expm1(self.gamma * np.sqrt(base_error)), np.zeros_like(base_error)

    def __call__(self, X, Z):
        return self.values(squared_distances(X, Z))


def test_kernels__of_others_are_fitted_with_all_others_of_the_family(monkeypatch):
    monkeypatch.setitem(KERNELS, "laplacian", lambda svc, gamma: Laplacian(gamma))
    X, y = load_iris(return_X_y=True)
    grid = {"C": [0.1, 1.0, 10.0]}
    options = {
        "certificate": "cv_bound", "cv": 3, "random_state": 0, "prune": False,
    }  # fmt: skip

    def search(kernel):
        svc = SVC(kernel=kernel, gamma=0.5)
        return dsel.plan_search(svc, grid, X[::2], y[::2], X[1::2], **options)

    ours, function = search("laplacian"), search(Laplacian(0.5))
    assert "kernel SVM" in str(ours)
    assert "kernel SVM" not in str(function)  # only scikit-learn can call it
    found, expected = (plan.run().results for plan in (ours, function))
    for name in ("fold_errors", "disagreements"):
        assert (found[name].values == expected[name].values).all()
    model = ours.model(1)
    assert (model.predict(X) == function.model(1).predict(X)).all()
