"""What every family promises: results that do not depend on who else is in the call."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.data.cache import ByteCache
from dsel.data.splits import Split
from dsel.families.assignment import assign_families
from dsel.families.family import FIT_DONE, Candidate
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
    plan = dsel.plan_search(
        estimator, GRIDS.get(name, grid), X[:90], y[:90], X[90:], cv=3, random_state=0,
        certificate="cv_bound",
    )  # fmt: skip
    work = plan.work
    for group in work.groups:

        def fit(candidates, splits, family=group.family):
            pool, budget = work.fitting_pool, ByteCache(memory)
            return family.fit(
                candidates, work.X, work.y, splits, pool=pool, budget=budget
            )

        together = fit(group.candidates, work.splits)
        for place, candidate in enumerate(group.candidates):
            for column, split in enumerate(work.splits):
                alone = fit([candidate], [split])
                for counted in ("test_errors", "train_errors", "status"):
                    found = getattr(alone.counts, counted)[0, 0]
                    expected = getattr(together.counts, counted)[place, column]
                    assert found == expected
                which = [np.array(split.number)]
                np.testing.assert_array_equal(
                    alone.predict(X, which)[:, 0],
                    together.predict(X, which)[:, place],
                )


FOLDS = np.arange(60) % 3


def counts_of(estimator, X, y):
    """Fit on the rows of fold 2, and count errors on folds 0 and 1 apart."""
    (assigned,) = assign_families(
        [Candidate(0, {}, estimator)], X, classes=np.unique(y), seed=0, fit_params={}
    )
    parts = [np.flatnonzero(fold == FOLDS) for fold in (2, 0, 1)]
    split = Split(3, "pair-0-1", *parts)
    return assigned.family.fit(
        assigned.groups[0], X, y, [split], budget=ByteCache(2**28)
    ).counts


class Choosy(KNeighborsClassifier):
    """Refuses rows whose first feature is large."""

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
    ],
)
@pytest.mark.parametrize("part", [0, 1])
def test_fit__a_part_that_predict_refuses_is_all_errors_and_the_other_one_as_ever(
    estimator, part, rng
):
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60)
    before = counts_of(estimator, X, y)
    X[part] = 1000.0
    counts = counts_of(estimator, X, y)
    assert counts.status.tolist() == [[FIT_DONE]]
    errors, usual = (
        (int(each.test_errors[0, 0]), int(each.train_errors[0, 0]))
        for each in (counts, before)
    )
    assert errors[part] == 20
    assert errors[1 - part] == usual[1 - part]
    assert "ValueError" in counts.messages[0, 3]
