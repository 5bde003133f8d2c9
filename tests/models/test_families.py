"""What every family promises: results that do not depend on who else is in the call."""

import numpy as np
import pytest

import dsel
from dsel.data.cache import ByteCache
from tests.estimators import FAMILIES

GRIDS = {
    "kernel svm": {"C": [0.01, 0.5, 4.0, 64.0], "gamma": [0.02, 0.5]},
    "pipeline": {"svc__C": [0.01, 0.1, 1.0, 100.0]},
    "least squares": {"regularization": [1e-8, 1e-3, 1.0, 10.0]},
}
"""Grids of families that share work, with more candidates a group."""


@pytest.mark.parametrize("memory", [2**14, 2**28])
@pytest.mark.parametrize("name", FAMILIES)
def test_fit__counts_and_predictions_do_not_depend_on_the_company(name, memory, rng):
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 0.5])
    estimator, grid = FAMILIES[name]
    plan = dsel.plan_search(
        estimator, GRIDS.get(name, grid), X[:90], y[:90], X[90:], cv=3, random_state=0
    )
    work = plan.work
    for group in work.groups:

        def fit(candidates, trainings, family=group.family):
            pool, budget = work.fitting_pool, ByteCache(memory)
            return family.fit(
                candidates, work.X, work.y, trainings, pool=pool, budget=budget
            )

        together = fit(group.candidates, work.trainings)
        for place, candidate in enumerate(group.candidates):
            for column, training in enumerate(work.trainings):
                alone = fit([candidate], [training])
                for counted in ("test_errors", "train_errors", "status"):
                    found = getattr(alone.counts, counted)[0, 0]
                    expected = getattr(together.counts, counted)[place, column]
                    assert found == expected
                which = [np.array(training.number)]
                np.testing.assert_array_equal(
                    alone.predict(X, which)[:, 0],
                    together.predict(X, which)[:, place],
                )
