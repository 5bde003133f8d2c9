"""What every family promises: results that do not depend on who else is in the call."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import dsel
from dsel.data.cache import ByteCache
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


def test_nbytes__of_a_forest_contains_its_trees(rng):
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    forest = RandomForestClassifier(n_estimators=20)
    plan = dsel.plan_search(
        forest, {"max_depth": [None]}, X, y, cv=3, random_state=0, criterion="cv_error"
    )
    (group,), split = plan.work.groups, plan.work.splits[0]
    fitted = group.family.fit(
        group.candidates, X, plan.work.y, [split], budget=ByteCache(2**28)
    )
    length = len(pickle.dumps(fitted.model(group.candidates[0].number, split.number)))
    assert 0.9 * length < fitted.nbytes < 1.1 * length
