"""Every certificate is one object; plans and tables ask it, never its name."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.search.design.certificate_methods import METHODS
from tests.contract.runs import CERTIFICATES

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(120, 2)), RNG.normal(size=(400, 2))
Y = (X[:, 0] > 0).astype(int)
GRID = {"n_neighbors": [1, 5]}


def plan(**options):
    options = {"pool": POOL, "random_state": 0, **options}
    return dsel.plan_search(KNeighborsClassifier(), GRID, X, Y, **options)


@pytest.mark.parametrize("name", METHODS)
def test_plan__follows_its_method_where_nothing_else_is_wanted(name):
    method, made = METHODS[name], plan(certificate=name)
    assert made.search.method is method
    assert made.search.method_name == name
    assert made.search.prune == method.pruning
    assert made.search.deploy == method.deploys
    assert made.search.criterion is method.criterion
    assert made.search.scheme.is_nested == method.is_nested


@pytest.mark.parametrize("name", METHODS)
def test_choice__reports_the_bound_that_the_plan_declared(name):
    outcome = plan(certificate=name).run()
    assert outcome.certificate.method == name
    assert outcome.certificate.certified
    chosen = outcome.choice.criterion
    assert chosen == METHODS[name].ranks_by
    if not METHODS[name].is_nested:  # what ranks there reads the declared bound
        assert dsel.select(outcome, chosen).certificate == outcome.certificate


def test_plan_bound__has_a_row_for_every_certificate():
    rows = dsel.plan_bound(600, 5_000, n_candidates=4, error=0.1).certificate.values
    exhaustive = [name for name, each in METHODS.items() if not each.is_nested]
    assert {"one_fold", "all_rows", *exhaustive} <= set(rows.tolist())


def test_estimate__has_no_certificate_and_ranks_by_its_criterion():
    made = plan(criterion="cv_error")
    assert made.search.method_name is None
    assert not made.search.method.is_guarantee
    assert made.search.method.ranks_by == "cv_error"


def test_covalidation__counts_leave_one_out_without_a_scheme_as_cv():
    for both in (False, True):
        found = dsel.covalidate(
            KNeighborsClassifier(), GRID, X, Y, POOL, repeats=2, random_state=0,
            **({"leave_one_out": True} if both else {}),
        )  # fmt: skip
        assert ("loo_errors" in found) == both
        assert ("loo_error" in found.criterion.values) == both


def test_scheme__is_no_value_of_cv():
    scheme = plan().search.scheme
    with pytest.raises(TypeError, match="`cv` must be a number of folds"):
        plan(cv=scheme)


def test_methods__all_are_in_the_tests_of_the_contract():
    # These import public names alone, so their list cannot be made from `METHODS`.
    assert sorted(METHODS) == sorted(CERTIFICATES)
