"""What every family promises: results that do not depend on who else is in the call."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.data.cache import ByteCache
from dsel.data.splits import Split, SplitKind
from dsel.families.assignment import assign_families
from dsel.families.family import Candidate
from dsel.kernels import KERNELS, Kernel
from dsel.kernels.functions import Polynomial
from dsel.kernels.reference_rows import DISTANCES, squared_distances
from tests.estimators import FAMILIES

GRIDS = {
    "kernel svm": {"C": [0.01, 0.5, 4.0, 64.0], "gamma": [0.02, 0.5]},
    "pipeline": {"svc__C": [0.01, 0.1, 1.0, 100.0]},
    "least squares": {"regularization": [1e-8, 1e-3, 1.0, 10.0]},
}
"""Grids of families that share work, with more candidates a group."""


@pytest.mark.parametrize("memory", [2**17, 2**28])
@pytest.mark.parametrize("name", FAMILIES)
def test_fit__counts_and_predictions_do_not_depend_on_the_company(name, memory, rng):
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 0.5])
    estimator, grid = FAMILIES[name]
    work = dsel.plan_search(
        estimator, GRIDS.get(name, grid), X[:90], y[:90], X[90:], cv=3, random_state=0,
        certificate="cv_bound",
    ).search.context  # fmt: skip

    def fit(family, candidates, splits):
        return family.fit(
            candidates, work.labeled.X, work.labeled.y, splits, pool=work.fitting_pool,
            cache=ByteCache(memory),
        )  # fmt: skip

    for group in work.candidate_groups:
        together = fit(group.family, group.candidates, work.scheme.splits)
        for place, candidate in enumerate(group.candidates):
            for column, split in enumerate(work.scheme.splits):
                alone = fit(group.family, [candidate], [split])
                for counted in ("errors", "has_failed"):
                    found = getattr(alone.fit_counts, counted)[0, 0]
                    expected = getattr(together.fit_counts, counted)[place, column]
                    np.testing.assert_array_equal(found, expected)
                found, expected = (
                    each.predict(X, [np.array(split.number)])
                    for each in (alone, together)
                )
                np.testing.assert_array_equal(found[:, 0], expected[:, place])


def counts_of(estimator, X, y):
    """Fit on the rows of fold 2, and count errors on folds 0 and 1 apart."""
    (assigned,) = assign_families(
        [Candidate(0, {}, estimator)], X, classes=np.unique(y), seed=0, fit_params={}
    )
    parts = [np.flatnonzero(fold == np.arange(60) % 3) for fold in (2, 0, 1)]
    split = Split(3, SplitKind.PAIR, (0, 1), *parts)
    counts = assigned.family.fit(
        assigned.candidate_groups[0], X, y, [split], cache=ByteCache(2**28)
    ).fit_counts
    assert counts.has_failed.tolist() == [[False]]
    return counts.errors[0, 0].tolist(), counts.messages.get((0, 3))


class Choosy(KNeighborsClassifier):
    """Refuses rows whose first feature is large; its `fit` returns nothing."""

    def fit(self, X, y):
        super().fit(X, y)

    def predict(self, X):
        if X[:, 0].max() > 100:
            raise ValueError("too large for me")
        return super().predict(X)


@pytest.mark.parametrize(
    "estimator",
    [
        Choosy(3),
        make_pipeline(StandardScaler(with_mean=False, with_std=False), Choosy(3)),
        make_pipeline(OneHotEncoder(), KNeighborsClassifier(3)),
        make_pipeline(OneHotEncoder(), SVC()),
        make_pipeline(
            StandardScaler(with_mean=False, with_std=False),
            SVC(kernel="poly", degree=1.5),
        ),
    ],
)
@pytest.mark.parametrize("part", [0, 1])
def test_fit__a_part_that_predict_refuses_is_all_errors_and_the_other_one_as_ever(
    estimator, part, rng
):
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60)
    usual, _ = counts_of(estimator, X, y)
    X[part] = [1000.0, 0.0] if "poly" not in str(estimator) else [-1000.0, 0.0]
    errors, message = counts_of(estimator, X, y)
    assert errors[part] == 20
    assert errors[1 - part] == usual[1 - part]
    assert "ValueError" in message.text


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma ||x - z||), which scikit-learn's SVC has no name for."""

    base: ClassVar[str] = DISTANCES
    gamma: float

    def values(self, base):
        return np.exp(-base.dtype.type(self.gamma) * np.sqrt(base))

    def rounding(self, base_error, base_size):
        return np.expm1(self.gamma * np.sqrt(base_error)), np.zeros_like(base_error)

    def __call__(self, X, Z):
        return self.values(squared_distances(X, Z))


@pytest.mark.parametrize(
    ("named", "function"),
    [({"kernel": "laplacian"}, Laplacian(0.5)),
     ({"kernel": "poly", "degree": 1.5}, Polynomial(0.5, 0.0, 1.5))],
)  # fmt: skip
def test_kernels__that_svc_has_no_name_for_equal_a_function(
    monkeypatch, named, function
):
    monkeypatch.setitem(KERNELS, "laplacian", lambda svc, gamma: Laplacian(gamma))
    X, y = load_iris(return_X_y=True)
    ours, theirs = (
        dsel.plan_search(
            SVC(gamma=0.5, **kernel), {"C": [0.1, 1.0, 10.0]}, X[::2], y[::2], X[1::2],
            cv=3, random_state=0, prune=False, certificate="cv_bound",
        )
        for kernel in (named, {"kernel": function})
    )  # fmt: skip
    assert "kernel SVM" in str(ours)
    assert "kernel SVM" not in str(theirs)  # only scikit-learn can call it
    found, expected = (plan.run().results for plan in (ours, theirs))
    for name in ("fold_errors", "disagreements"):
        np.testing.assert_array_equal(found[name], expected[name])
    assert (ours.model(1).predict(X) == theirs.model(1).predict(X)).all()


class ByRank(LogisticRegression):
    """Predicts by ranks among the rows that come together, a common mistake."""

    def predict(self, X):
        scores = self.decision_function(X)
        return self.classes_[(scores > np.median(scores)).astype(int)]


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), RandomForestClassifier(10, random_state=0), ByRank(),
     make_pipeline(StandardScaler(), LogisticRegression()),
     make_pipeline(StandardScaler(), ByRank())],
    ids=["logistic", "forest", "ranks", "scaled logistic", "scaled ranks"],
)  # fmt: skip
def test_fit__counts_either_fold_of_a_pair_as_if_it_were_the_only_one(estimator, rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    fold = np.arange(60) % 3
    X[fold == 0] += 2.0
    errors, _ = counts_of(estimator, X, y)
    model = clone(estimator).fit(X[fold == 2], y[fold == 2])
    expected = [
        int((model.predict(X[fold == k]) != y[fold == k]).sum()) for k in (0, 1)
    ]
    assert errors == expected
