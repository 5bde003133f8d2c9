import numpy as np
import pytest

from dsel.bounds import (
    best_fold,
    best_fold_interval,
    binomial_tail_inversion,
    binomial_tail_inversion_lower,
    cv_bound,
    cv_interval,
)


def test_cv_interval__pays_for_the_disagreement_once():
    interval = cv_interval([12, 9], 100, 30, 10_000, delta=0.08)
    above = binomial_tail_inversion([12, 9], 100, delta=0.01).mean()
    below = binomial_tail_inversion_lower([12, 9], 100, delta=0.01).mean()
    second = binomial_tail_inversion(30, 10_000, delta=0.04)
    assert interval.upper == pytest.approx(above + second)
    assert interval.lower == pytest.approx(below - second)


def test_cv_interval__is_wider_above_than_the_bound_alone(rng):
    errors = rng.integers(0, 30, (40, 5))
    upper = cv_interval(errors, 60, 10, 1000, delta=0.1).upper
    assert (upper >= cv_bound(errors, 60, 10, 1000, delta=0.1).bound).all()


def test_cv_interval__lower_end_is_never_negative():
    assert cv_interval([0, 0], 100, 30, 100, delta=0.1).lower == 0.0


def test_best_fold_interval__halves_the_second_share_for_two_folds():
    interval = best_fold_interval([12, 9], 100, [30, 25], 10_000, delta=0.08)
    best = best_fold(
        [12, 9], 100, 25, 10_000, delta=0.04, label_share=0.5, disagreement_delta=0.02
    )
    assert interval.upper == pytest.approx(best.bound)
    below = binomial_tail_inversion_lower(12, 100, delta=0.01)
    second = binomial_tail_inversion(30, 10_000, delta=0.02)
    assert interval.lower == pytest.approx(below - second)


def test_best_fold_interval__keeps_the_second_share_whole_for_one_fold():
    interval = best_fold_interval([9, 9], 100, [25, 99], 10_000, delta=0.08)
    second = binomial_tail_inversion(25, 10_000, delta=0.04)
    below = binomial_tail_inversion_lower(9, 100, delta=0.01)
    assert interval.lower == pytest.approx(below - second)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_cv_interval__contains_the_error(rng, n_folds):
    rate, rows, delta, draws = 0.3, 40, 0.5, 4000
    errors = rng.binomial(rows, rate, (draws, n_folds))
    if n_folds == 5:
        errors = np.repeat(errors[:, :1], n_folds, axis=1)
    interval = cv_interval(errors, rows, 0, 10**7, delta=delta, label_share=0.99)
    misses = (interval.lower > rate) | (interval.upper < rate)
    assert 0.01 < misses.mean() <= delta
