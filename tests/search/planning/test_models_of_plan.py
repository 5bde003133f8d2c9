"""`Plan.models`: all candidates, fitted on all labeled rows."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import dsel
from tests.contract.runs import digits

X, Y, POOL = digits(150)


def test_models__are_those_of_model_one_by_one():
    grid = {"C": [0.1, 10.0], "gamma": [0.001, 0.1]}
    plan = dsel.plan_search(SVC(), grid, X, Y, POOL, random_state=0)
    models = dict(plan.models())
    assert sorted(models) == [0, 1, 2, 3]
    for number, model in models.items():
        alone = plan.model(number)
        assert (model.C, model.gamma) == (alone.C, alone.gamma)
        np.testing.assert_array_equal(model.predict(POOL), alone.predict(POOL))


def test_models__a_fit_that_fails_has_none():
    grid = {"C": [1.0, -1.0]}
    plan = dsel.plan_search(LogisticRegression(), grid, X, Y, random_state=0)
    models = dict(plan.models())
    assert models[0] is not None
    assert models[1] is None
