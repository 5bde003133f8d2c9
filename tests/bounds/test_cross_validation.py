"""Bounds of folds: printed formulas, tables, order, and how often they fail."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsel.bounds import (
    binomial_tail_inversion,
    fold_shares,
    holdout_bound,
    nested_all_rows,
    nested_one_fold,
    upper_pool_rows,
)
from dsel.bounds.cross_validation import best_fold, best_fold_number, cv_bound
from dsel.bounds.holdout import expected_holdout_bound

LABEL_SHARE = 0.95
BOTH = pytest.mark.parametrize("bound", [cv_bound, best_fold])


def halves(n_folds):
    """Return the shares of the folds of a nested search: the last two are equal."""
    return [2.0 ** -min(fold + 1, n_folds - 1) for fold in range(n_folds)]


@st.composite
def folds(draw):
    """Errors and rows of random folds: sizes that differ by one, the larger first."""
    n_folds, rows = draw(st.integers(2, 8)), draw(st.integers(1, 60))
    larger = draw(st.integers(0, n_folds - 1))
    sizes = [rows + 1] * larger + [rows] * (n_folds - larger)
    return [draw(st.integers(0, size)) for size in sizes], sizes


def exact_sum(terms):
    return Fraction(float(terms.label_term)) + Fraction(float(terms.disagreement_term))


def assert_rare(failed, delta):
    margin = 3 * np.sqrt(delta * (1 - delta) / len(failed))
    assert failed.mean() <= delta + margin


@pytest.mark.parametrize("n_folds", [1, 2, 5, 20, 60])
def test_fold_shares__are_halves_and_sum_to_one(n_folds):
    assert fold_shares(n_folds).tolist() == halves(n_folds)
    assert fold_shares(n_folds).sum() == 1.0


def test_fold_shares__of_thousands_of_folds_leave_a_limit_to_each():
    shares = fold_shares(3000)
    assert shares.sum() == pytest.approx(1.0, abs=1e-15)
    _, limit = nested_one_fold(np.ones(3000, int), 2, delta=0.05)
    assert 0.9 < limit < 1


# Mean smallest limit over a hold-out set's, with a pool: math of the page on nested.
@pytest.mark.parametrize(
    ("rows", "rate", "ratio"),
    [(60, 0.002, 1.187), (120, 0.01, 0.973), (120, 0.1, 0.923), (400, 0.02, 0.908)],
)
def test_nested_one_fold__compares_to_a_hold_out_set_as_the_page_says(
    rng, rows, rate, ratio
):
    errors = rng.binomial(rows, rate, (20_000, 5))
    _, limits = nested_one_fold(errors, rows, delta=LABEL_SHARE * 0.05)
    expected = expected_holdout_bound(rate, rows, delta=0.05)
    assert limits.mean() / expected == pytest.approx(ratio, rel=0.01)


def test_cv_bound__is_the_printed_formula_digit_by_digit():
    errors, rows = [3, 5, 2], [34, 33, 33]
    terms = cv_bound(errors, rows, 12, 1000, delta=0.1, label_share=0.5)
    limits = binomial_tail_inversion(errors, rows, delta=0.1 / 2 / 3)
    assert terms.label_term == pytest.approx(np.mean(limits), rel=1e-15)
    # The mean is rounded up: a limit stays one.
    assert Fraction(float(terms.label_term)) >= sum(map(Fraction, limits.tolist())) / 3
    assert terms.disagreement_term == binomial_tail_inversion(12, 1000, delta=0.05)
    assert exact_sum(terms) <= terms.bound == pytest.approx(float(exact_sum(terms)))


@BOTH
def test_bounds__take_a_share_for_each_candidate(rng, bound):
    errors = rng.integers(0, 20, (4, 5, 10))
    disagreements = rng.integers(0, 100, (4, 5))
    shares = rng.uniform(1e-5, 1e-3, (4, 5))
    together = bound(errors, np.full(10, 50), disagreements, 1000, delta=shares)
    alone = bound(errors[2, 3], 50, disagreements[2, 3], 1000, delta=shares[2, 3])
    assert together.bound.shape == (4, 5)
    assert together.bound[2, 3] == pytest.approx(alone.bound, rel=1e-14)
    # Several shares of one candidate, as many as it has folds.
    several = bound([4, 6], 100, 30, 10_000, delta=[0.05, 0.01])
    alone = [bound([4, 6], 100, 30, 10_000, delta=share) for share in (0.05, 0.01)]
    assert np.array_equal(several, np.stack(alone, axis=-1))


@BOTH
def test_bounds__are_not_clipped_and_vacuous_without_a_pool(bound):
    assert bound([9, 9], 10, 90, 100, delta=0.05).bound > 1
    assert bound([0, 0], 10, 0, 0, delta=0.05).disagreement_term == 1


@pytest.mark.parametrize(
    ("bound", "delta", "n", "rate", "n_folds", "expected"),
    [
        (partial(cv_bound, label_share=0.5), 0.01 / 225, 500, 0.05, 10, 0.323),
        (partial(cv_bound, label_share=0.5), 0.01 / 225, 5000, 0.01, 10, 0.0478),
        (partial(cv_bound, label_share=0.5), 0.01 / 225, 20_000, 0.05, 10, 0.0759),
        (best_fold, 0.01 / 225, 500, 0.05, 10, 0.241),
        (best_fold, 0.01 / 225, 500, 0.05, 5, 0.166),
        (best_fold, 0.01 / 225, 5000, 0.01, 10, 0.0339),
        (best_fold, 0.01 / 225, 5000, 0.20, 10, 0.258),
        # By scipy.stats.beta on 200,000 draws of their own.
        (nested_one_fold, 0.05, 600, 0.05, 5, 0.0862),
        (nested_one_fold, 0.05, 600, 0.01, 5, 0.0393),
        (nested_one_fold, 0.05, 600, 0.10, 3, 0.1335),
        (nested_one_fold, 0.05, 2000, 0.02, 10, 0.0400),
        (nested_one_fold, 0.05, 10_000, 0.10, 8, 0.1108),
    ],
)
def test_bounds__have_the_first_terms_of_the_tables(
    rng, bound, delta, n, rate, n_folds, expected
):
    errors = rng.binomial(n // n_folds, rate, (4000, n_folds))
    pool = () if bound is nested_one_fold else (0, 1)
    _, first, *_ = bound(errors, n // n_folds, *pool, delta=delta)
    assert np.mean(first) == pytest.approx(expected, rel=0.01)


@given(folds(), st.sampled_from([1e-6, 0.1, 0.5]))
def test_best_fold__takes_the_smallest_limit_of_those_that_cv_bound_averages(
    counts, delta
):
    errors, rows = counts
    best = best_fold(errors, rows, 7, 100, delta=delta)
    share = LABEL_SHARE * delta / len(rows)
    limits = binomial_tail_inversion(errors, rows, delta=share)
    assert best.label_term == limits.min()
    pool = binomial_tail_inversion(7, 100, delta=(1 - LABEL_SHARE) * delta)
    assert best.disagreement_term == pool
    mean = cv_bound(errors, rows, 7, 100, delta=delta).label_term
    assert mean >= limits.min() * (1 - 1e-15 * len(rows))  # a mean rounds


def test_best_fold_number__is_the_smallest_among_equals_and_never_an_empty_fold():
    assert best_fold_number([[5, 3, 3], [2, 2, 2]], 50).tolist() == [1, 0]
    assert best_fold_number([0, 3], [0, 10]) == 1


@given(folds(), st.floats(1e-6, 0.5))
def test_nested_one_fold__is_the_held_out_bound_of_its_fold(counts, delta):
    errors, rows = counts
    fold, limit = nested_one_fold(errors, rows, delta=delta)
    limits = [
        holdout_bound(c, n, delta=delta * share)
        for c, n, share in zip(errors, rows, halves(len(rows)), strict=True)
    ]
    assert limit == min(limits)
    assert fold == limits.index(limit)  # the first of equal ones


@given(folds(), st.data())
def test_nested_all_rows__is_the_smallest_sum_over_folds(counts, data):
    errors, rows = counts
    n_folds = len(rows)
    differing = [data.draw(st.integers(0, 300)) for _ in rows]
    fold, terms = nested_all_rows(errors, rows, differing, 200, delta=0.1)
    sums = [
        holdout_bound(c, n, delta=0.095 * share)
        + binomial_tail_inversion(min(a, 200), 200, delta=0.1 * 0.05 / n_folds)
        for c, n, a, share in zip(errors, rows, differing, halves(n_folds), strict=True)
    ]
    assert terms.bound == pytest.approx(min(sums), rel=1e-9)
    assert sums[fold] == pytest.approx(min(sums), rel=1e-9)
    assert exact_sum(terms) <= terms.bound
    # Without disagreement it reads the limits of one fold at the label share.
    _, terms = nested_all_rows(errors, rows, [0] * n_folds, 10**6, delta=0.05)
    _, limit = nested_one_fold(errors, rows, delta=LABEL_SHARE * 0.05)
    assert terms.label_term == limit


def test_nested_one_fold__of_a_single_fold_is_the_bound_of_a_hold_out_set():
    _, limits = nested_one_fold([[3], [8]], 50, delta=[0.05, 0.1])
    assert limits.tolist() == holdout_bound([3, 8], 50, delta=[0.05, 0.1]).tolist()


def test_nested__of_equal_folds_take_the_first():
    # The last two folds have the same share.
    fold, _ = nested_one_fold([6, 2, 2], 20, delta=0.05)
    among_sums, _ = nested_all_rows([6, 2, 2], 20, [5, 4, 4], 100, delta=0.05)
    assert (fold, among_sums) == (1, 1)


def test_nested__may_take_a_fold_that_has_more_errors_and_a_larger_share():
    fold, limit = nested_one_fold([1, 1, 0], [60, 60, 60], delta=0.05)
    assert best_fold_number([1, 1, 0], 60) == fold == 2
    assert limit == holdout_bound(0, 60, delta=0.05 / 4)
    fold, _ = nested_one_fold([10, 10, 10, 10, 9], 60, delta=0.05)
    assert fold == 0


def test_upper_pool_rows__leave_out_equal_rows():
    assert upper_pool_rows([100, 30], 30).tolist() == [70, 0]
    with pytest.warns(FutureWarning, match="`equal_rows` is now called `n_duplicates`"):
        assert upper_pool_rows(100, equal_rows=30) == 70
    rows = upper_pool_rows(100, 40)  # fewer than may differ: the limit is 1
    assert cv_bound([1, 1], 10, 61, rows, delta=0.05).disagreement_term == 1
    assert best_fold([1, 1], 10, 61, rows, delta=0.05).disagreement_term == 1
    _, terms = nested_all_rows([1, 1], 10, [61, 99], rows, delta=0.05)
    assert terms.disagreement_term == 1


@given(folds(), st.integers(0, 50), st.integers(0, 50))
def test_bounds__rise_with_disagreement_and_with_equal_rows(counts, differing, equal):
    for bound in (cv_bound, best_fold):
        least = bound(*counts, differing, 100, delta=0.05).bound
        fewer = upper_pool_rows(100, equal)
        assert bound(*counts, differing, fewer, delta=0.05).bound >= least
        assert bound(*counts, differing + 1, 100, delta=0.05).bound >= least


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("folds_are_one", [False, True])
def test_nested__fail_together_in_at_most_delta_of_draws(rng, delta, folds_are_one):
    """The model of all rows errs wherever it leaves a fold's: the worst that it can."""
    n_draws, n_folds, rows, pool = 4000, 5, 60, 3000
    rate, disagreement = 0.1, 0.03
    errors = rng.binomial(rows, rate, (n_draws, n_folds))
    differing = rng.binomial(pool, disagreement, (n_draws, n_folds))
    if folds_are_one:
        errors = np.repeat(errors[:, :1], n_folds, axis=1)
    _, limit = nested_one_fold(errors, rows, delta=LABEL_SHARE * delta)
    _, terms = nested_all_rows(errors, rows, differing, pool, delta=delta)
    assert_rare((limit < rate) | (terms.bound < rate + disagreement), delta)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("delta", [0.5, 0.05])
def test_bounds__of_all_candidates_fail_in_at_most_delta_of_draws(rng, bound, delta):
    n_draws, n_candidates, n_folds, rows, pool = 2000, 20, 5, 40, 2000
    errors = rng.binomial(rows, 0.2, (n_draws, n_candidates, n_folds))
    differing = rng.binomial(pool, 0.05, (n_draws, n_candidates))
    terms = bound(errors, rows, differing, pool, delta=delta / n_candidates)
    assert_rare((terms.bound < 0.2 + 0.05).any(axis=1), delta)


@pytest.mark.slow
@pytest.mark.parametrize("n_records", [0, 600])
def test_upper_pool_rows__keep_the_limit_where_records_of_the_labels_are_there(
    rng, n_records
):
    """Models agree on the records they know, and differ on a twentieth of the rest."""
    n_draws, pool, rate, delta = 4000, 2000, 0.05, 0.1
    differing = rng.binomial(pool - n_records, rate, n_draws)
    fresh = upper_pool_rows(pool, n_records)
    assert_rare(binomial_tail_inversion(differing, fresh, delta=delta) < rate, delta)
