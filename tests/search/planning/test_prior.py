"""Prior shares of delta among the candidates of structural risk minimization."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

import dsel
from dsel.bounds import cv_bound
from dsel.errors import StoreMismatchError
from dsel.results import open_results
from tests.contract.runs import digits

GRID = {"C": [0.01, 1.0, 100.0], "gamma": [0.001, 0.1]}
WEIGHTS = [0.0, 1.0, 8.0, 4.0, 2.0, 1.0]
X, Y, POOL = digits(150)


def plan(**options):
    options = {"certificate": "cv_bound", "prior": WEIGHTS, "random_state": 0} | options
    return dsel.plan_search(SVC(), GRID, X, Y, POOL, **options)


def cut(outcome):
    results = outcome.results
    return results.estimate[0].values.ravel(), results.candidate_delta[0].values.ravel()


def test_prior__bounds_are_those_at_the_shares():
    outcome = plan(prune=False).run()
    results = outcome.results
    estimates, shares = cut(outcome)
    np.testing.assert_allclose(shares, 0.05 * np.array(WEIGHTS) / 16)
    errors = results.fold_errors.values.reshape(6, -1).astype(int)
    differing = results.disagreements.sum("fold").values.ravel().astype(int)
    rows, m = results.fold_rows.values.astype(int), int(results.n_unlabeled)
    for number in range(1, 6):
        found = cv_bound(
            errors[number], rows, differing[number], m, delta=shares[number]
        )
        assert estimates[number] == pytest.approx(float(found.bound), abs=1e-9)
    chosen = outcome.choice.candidate
    assert outcome.choice.certificate.certified
    assert outcome.choice.bound == estimates[chosen] == estimates.min()


def test_prior__a_candidate_of_weight_0_has_no_bound_and_is_not_chosen():
    best = plan(prior=None, prune=False).run().choice.candidate
    weights = np.ones(6)
    weights[best] = 0
    for prune in ("exact", False):
        outcome = plan(prior=weights, prune=prune).run()
        assert outcome.choice.candidate != best
        assert not np.isfinite(cut(outcome)[0][best])
        assert outcome.results.status.values.ravel()[best] == (prune == "exact")
    assert "gives 1 of 6 candidates the weight 0" in str(plan(prior=weights))


@pytest.mark.parametrize("certificate", ["cv_bound", "best_fold"])
def test_prior__equal_weights_are_none(certificate):
    equal, none = (
        plan(certificate=certificate, prior=prior).run()
        for prior in (np.full(6, 3), None)
    )
    assert equal.choice.bound == pytest.approx(none.choice.bound, rel=1e-12)
    assert equal.choice.params == none.choice.params


def test_prior__more_weight_makes_a_bound_smaller():
    none, some = plan(prior=None, prune=False), plan(prune=False)
    less, more = cut(none.run())[0], cut(some.run())[0]
    assert more[2] < less[2]
    assert more[1] > less[1]
    best = plan(certificate="best_fold").run().choice
    assert best.bound < plan(certificate="best_fold", prior=None).run().choice.bound


def test_prior__is_an_array_or_a_function_of_the_parameters():
    by_function = plan(prior=lambda params: params["C"] * params["gamma"])
    listed = [each["C"] * each["gamma"] for each in by_function.axes.candidates]
    assert plan(prior=listed).facts.identity == by_function.facts.identity
    assert "divided by `prior`" in str(by_function)


def test_prior__is_part_of_the_plan(tmp_path):
    first = plan().run(out=tmp_path)
    assert plan(prior=np.array(WEIGHTS) * 7).run(out=tmp_path).choice == first.choice
    with pytest.raises(StoreMismatchError, match="prior"):
        plan(prior=None).run(out=tmp_path)
    with pytest.raises(StoreMismatchError, match="prior"):
        plan(prior=WEIGHTS[::-1]).run(out=tmp_path)


def test_prior__is_read_from_the_cube_again(tmp_path):
    outcome = plan(prune=False).run(out=tmp_path)
    results = open_results(tmp_path)
    again = dsel.select(results, "cv_bound")
    assert (again.bound, again.certificate.certified) == (outcome.choice.bound, True)
    np.testing.assert_array_equal(results.dsel.bound().values.ravel(), cut(outcome)[0])
    # Of candidates that are left each keeps its share.
    part = results.isel(C=[2])
    np.testing.assert_array_equal(
        part.dsel.bound("cv_bound").values.ravel(), cut(outcome)[0][4:]
    )
    assert not part.dsel.select("cv_bound").certificate.certified


def test_prior__of_the_estimator_survives_clone():
    search = dsel.SemiSupervisedSearchCV(
        SVC(), GRID, certificate="best_fold", prior=WEIGHTS, random_state=0
    )
    found = clone(search).fit(X, Y, POOL)
    assert found.certificate_.bound == plan(certificate="best_fold").run().choice.bound


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([1, 2], r"one weight for each of the 6 candidates, got shape \(2,\)"),
        (np.ones((3, 2)), r"got shape \(3, 2\)"),
        ([1, 1, 1, 1, 1, -1], "not negative, got -1 for candidate 5"),
        ([1, np.nan, 1, 1, 1, 1], "finite .*, got nan for candidate 1"),
        ([1, np.inf, 1, 1, 1, 1], "finite .*, got inf for candidate 1"),
        ([0] * 6, "but all are 0"),
        ([1e300, 1e-2, 0, 0, 0, 0], "got 0.01 for candidate 1; write 0"),
        (np.ma.masked_equal([1.0] * 5 + [2.0], 2.0), "got nan for candidate 5"),
        (["a"] * 6, "numbers as weights"),
        ([True] * 6, "numbers as weights"),
        ([[1], [1, 2], 1, 1, 1, 1], "numbers as weights"),
        (5, "a list of 6 weights"),
        ("even", "a list of 6 weights"),
        ({"C": 1}, "a list of 6 weights"),
        (lambda params: "high", "numbers as weights"),
        (lambda params: params["c"], "for C=0.01, gamma=0.001 it raised KeyError: 'c'"),
    ],
)
def test_prior__refuses_what_are_no_weights(prior, words):
    with pytest.raises((TypeError, ValueError), match=f"`prior` .*{words}"):
        plan(prior=prior)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"certificate": "nested"}, "got 'nested'; .* does not pay"),
        ({"certificate": None}, "got 'nested'; .* does not pay"),
        ({"certificate": "holdout"}, "got 'holdout'; leave it out"),
        ({"certificate": None, "criterion": "cv_error"}, "got None; leave it out"),
    ],
)
def test_prior__refuses_searches_that_do_not_divide_delta(options, words):
    with pytest.raises(ValueError, match=f"`prior` .*{words}"):
        plan(**options)
