"""Where a search chooses its own certificate, by what is there before labels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold
from sklearn.svm import SVC

import dsel

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [1e-3, 1e-2]}


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    return X[order[:200]], y[order[:200]], X[order[200:1200]]


def test_plan_search__takes_the_smallest_expected_bound_and_names_the_others(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows, certificate="auto", random_state=0)
    assert (plan.certificate.name, plan.criterion.name) == ("nested", "cv_error")
    assert (plan.scheme.n_folds, plan.label_share) == (3, 0.8)
    remark = plan.remarks[0]
    assert remark.startswith("certificate='auto' takes the smallest bound")
    assert remark.index("nested with 3") < remark.index("best_fold_of_leader with")
    assert "cv_bound with" in remark
    assert remark in repr(plan)
    results = plan.run(n_jobs=1)
    assert remark in results.attrs["remarks"]
    assert dsel.select(results).certificate.certified


def test_plan_search__takes_it_before_a_label_is_used(rows):
    X, y, pool = rows
    other = np.random.default_rng(0).permutation(y)
    plans = [
        dsel.plan_search(SVC(), GRID, X, each, pool, certificate="auto")
        for each in (y, other)
    ]
    assert plans[0].remarks[0] == plans[1].remarks[0]


def test_plan_search__takes_what_needs_no_pool_where_there_is_none(rows):
    X, y, _ = rows
    plan = dsel.plan_search(SVC(), GRID, X, y, certificate="auto")
    assert plan.certificate.name == "nested_fold_model"
    assert plan.run(n_jobs=1).status.size == 6


def test_plan_search__keeps_the_folds_that_are_named(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows, certificate="auto", cv=4)
    assert plan.scheme.n_folds == 4
    two = dsel.plan_search(SVC(), GRID, *rows, certificate="auto", cv=2)
    assert two.certificate.name == "best_fold_of_leader"  # no pairs of two folds


def test_plan_search__without_a_wish_is_what_it_was(rows):
    plan = dsel.plan_search(SVC(), GRID, *rows)
    assert (plan.certificate.name, plan.label_share) == ("cv_bound", 0.5)
    assert plan.scheme.n_folds == 10


def test_plan_search__refuses_wishes_beside_auto(rows):
    with pytest.raises(ValueError, match="leave `criterion` out"):
        dsel.plan_search(SVC(), GRID, *rows, certificate="auto", criterion="cv_bound")
    with pytest.raises(ValueError, match="number of random folds"):
        dsel.plan_search(SVC(), GRID, *rows, certificate="auto", cv=KFold(3))
