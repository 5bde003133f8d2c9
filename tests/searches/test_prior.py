"""Candidates may have unequal parts of delta, fixed before the run."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier

import dsel
from dsel.bounds import cv_bound

X, Y = make_classification(1500, 5, class_sep=1.5, random_state=4)
GRID = {"n_neighbors": [1, 3, 9, 27]}
PRIOR = [0.1, 0.1, 0.7, 0.05]


def plan(grid=GRID, **options):
    return dsel.plan_search(
        KNeighborsClassifier(), grid, X[:300], Y[:300], X[300:],
        **{"criterion": "cv_bound", "cv": 3, "delta": 0.1, "random_state": 3} | options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return plan(prior=PRIOR, prune=False).run()


def test_prior__divides_delta_as_the_formula_does(results):
    bounds = cv_bound(
        results.fold_errors.values.astype(int), results.fold_rows.values.astype(int),
        results.disagreements.sum("fold").values.astype(int), 1200,
        delta=0.1 * np.array(PRIOR), label_share=0.5,
    )  # fmt: skip
    expected = bounds.label_term + bounds.disagreement_term
    np.testing.assert_array_equal(results.dsel.bound(), expected)
    assert results.delta_share.sel(n_neighbors=9, criterion="cv_bound") == 0.1 * 0.7


def test_prior__favours_whom_it_favours(results):
    equal = dsel.select(results, prior=[0.25] * 4)
    favoured = dsel.select(results)
    assert favoured.params == {"n_neighbors": 9}
    bounds = plan(prune=False).run().dsel.bound()
    assert favoured.bound < bounds.sel(n_neighbors=9)
    assert favoured.certificate.certified
    assert not equal.certificate.certified
    assert "named after the run" in " ".join(equal.certificate.reasons)


def test_prior__of_no_larger_parts_is_still_certified(results):
    assert dsel.select(results, prior=[0.1, 0.1, 0.6, 0.05]).certificate.certified


def test_prior__prunes_to_the_same_choice(results):
    pruned = plan(prior=PRIOR).run()
    one, other = dsel.select(results), dsel.select(pruned)
    assert (one.candidate, one.bound) == (other.candidate, other.bound)


def test_prior__stays_with_its_candidates_in_a_slice(results):
    part = results.isel(n_neighbors=[2, 3]).dsel.bound()
    np.testing.assert_array_equal(part, results.dsel.bound()[2:])


@pytest.mark.parametrize(
    ("prior", "message"),
    [([0.5, 0.5], "one weight for each of 4"), ([0.5] * 4, "a sum of 2"),
     ([0, 0.5, 0.2, 0.1], "positive weights")],
)  # fmt: skip
def test_prior__refuses_what_is_none(prior, message):
    with pytest.raises(ValueError, match=message):
        plan(prior=prior)


def test_prior__that_is_named_in_a_second_run_is_not_paid_for(tmp_path):
    first = plan().run(out=tmp_path)
    again = plan(prior=PRIOR).run(out=tmp_path)
    assert dsel.select(first).certificate.certified
    assert not dsel.select(again).certificate.certified
    assert "larger share of delta" in " ".join(dsel.select(again).certificate.reasons)


def test_prior__of_the_first_run_holds_when_it_is_run_again(tmp_path):
    for _ in range(2):
        found = dsel.select(plan(prior=PRIOR).run(out=tmp_path))
        assert found.certificate.certified
    smaller = plan(prior=[0.1, 0.1, 0.5, 0.05]).run(out=tmp_path)
    assert dsel.select(smaller).certificate.certified


def test_prior__is_refused_where_no_candidate_is_paid_for():
    with pytest.raises(ValueError, match="pays for no candidate; leave `prior` out"):
        plan(prior=PRIOR, certificate="nested", criterion=None)


def test_prior__of_the_estimator(results):
    search = dsel.SemiSupervisedSearchCV(
        KNeighborsClassifier(), GRID, cv=3, delta=0.1, random_state=3, prior=PRIOR
    ).fit(X[:300], Y[:300], X[300:])
    assert search.certificate_.bound == dsel.select(results).bound


def test_prior__coverage_holds_for_all_candidates_at_once():
    # Fold errors and disagreements with known rates; the bounds fail at most at delta.
    rng, n = np.random.default_rng(0), 2000
    delta, prior = 0.3, np.array([0.6, 0.3, 0.1])
    rates = np.array([0.1, 0.2, 0.05])[:, None]
    errors = rng.binomial(30, rates, (n, 3, 4))
    differing = rng.binomial(200, 0.5 * rates[:, 0], (n, 3))
    terms = cv_bound(
        errors, np.full(4, 30), differing, 200, delta=delta * prior, label_share=0.5
    )
    total = terms.label_term + terms.disagreement_term
    failed = (total < rates[:, 0] * 1.5).any(axis=1)
    assert failed.mean() <= delta
