import numpy as np
import pytest

from dsel.bounds import (
    binomial_tail_inversion,
    cv_bound,
    holdout_bound,
)


def test_semi_supervised_cv_bound__is_the_printed_formula_digit_by_digit():
    errors, rows = [3, 5, 2], [34, 33, 33]
    terms = cv_bound(errors, rows, 12, 1000, delta=0.1)
    limits = [
        float(binomial_tail_inversion(c, n, delta=0.1 / 2 / 3))
        for c, n in zip(errors, rows, strict=True)
    ]
    assert terms.label_term == np.mean(limits)
    assert terms.disagreement_term == binomial_tail_inversion(12, 1000, delta=0.05)
    assert terms.bound == terms.label_term + terms.disagreement_term


def test_semi_supervised_cv_bound__takes_a_share_for_each_candidate(rng):
    errors = rng.integers(0, 20, (4, 5, 10))
    disagreements = rng.integers(0, 100, (4, 5))
    shares = rng.uniform(1e-5, 1e-3, (4, 5))
    together = cv_bound(
        errors, np.full(10, 50), disagreements, 1000, delta=shares, label_share=0.8
    )
    alone = cv_bound(
        errors[2, 3], 50, disagreements[2, 3], 1000, delta=shares[2, 3], label_share=0.8
    )
    assert together.bound.shape == (4, 5)
    assert together.bound[2, 3] == pytest.approx(alone.bound, rel=1e-14)


def test_semi_supervised_cv_bound__is_not_clipped():
    terms = cv_bound([9, 9], 10, 90, 100, delta=0.05)
    assert terms.bound > 1


def test_semi_supervised_cv_bound__is_vacuous_without_a_pool():
    assert cv_bound([0, 0], 10, 0, 0, delta=0.05).bound >= 1


def test_semi_supervised_cv_bound__refuses_counts_without_folds():
    with pytest.raises(ValueError, match="folds on its last axis"):
        cv_bound(3, 10, 0, 10, delta=0.05)


def test_semi_supervised_cv_bound__refuses_rates():
    with pytest.raises(TypeError, match="`n_disagreements` must hold integer counts"):
        cv_bound([3, 1], 10, 0.02, 10, delta=0.05)


def test_semi_supervised_cv_bound__refuses_a_label_share_of_one():
    with pytest.raises(ValueError, match="`label_share` must be strictly between"):
        cv_bound([3, 1], 10, 0, 10, delta=0.05, label_share=1.0)


def test_semi_supervised_cv_bound__refuses_more_errors_than_rows():
    with pytest.raises(ValueError, match="`fold_errors` must be between 0 and 10"):
        cv_bound([3, 11], 10, 0, 10, delta=0.05)


def test_semi_supervised_cv_bound__gives_the_numbers_of_the_issue(rng):
    # 200 labels, 5 % CV error, delta 0.01, 225 candidates: .56 at k=10, .21 at k=2.
    for n_folds, expected in [(10, 0.56), (2, 0.21)]:
        rows = 200 // n_folds
        errors = np.full(n_folds, round(0.05 * rows))
        terms = cv_bound(errors, rows, 0, 10**6, delta=0.01 / 225)
        assert terms.label_term == pytest.approx(expected, abs=0.005)


def test_holdout_bound__is_the_inverse_tail():
    expected = binomial_tail_inversion([1, 2], 50, delta=0.1)
    assert (holdout_bound([1, 2], 50, delta=0.1) == expected).all()
