"""Bounds of counts by class hold, and agree with what scipy says."""

import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from dsel.bounds.class_counts import (
    added_false_predictions,
    added_misses,
    counted_mean_limit,
)

N_DRAWS = 400
RATES = np.array([0.0, 0.02, 0.3, 1.0])
"""Values of a cost, as parts of the largest."""


def upper(count, rows, delta):
    return 1.0 if count >= rows else stats.beta.ppf(1 - delta, count + 1, rows - count)


def lower(count, rows, delta):
    return 0.0 if count == 0 else stats.beta.ppf(delta, count, rows - count + 1)


def test_added_misses__is_the_quotient_of_two_limits():
    found = added_misses([30, 12, 400], 5_000, 80, 2_000, delta=0.01)
    least = lower(80, 2_000, 0.005)
    wanted = [upper(left, 5_000, 0.005 / 3) / least for left in (30, 12, 400)]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    assert np.isinf(added_misses([0], 5_000, 0, 2_000, delta=0.01)).all()


def test_added_false_predictions__reads_each_count_by_its_rows():
    found = added_false_predictions(
        [0.2, 0.1], [300, 310], [4_930, 4_940], 220, 4_900, [25, 40], [230, 225],
        delta=0.03,
    )  # fmt: skip
    least, share = lower(220, 4_900, 0.01), 0.01
    wanted = [
        limit * upper(*first, share / 2) / least + upper(*joined, share / 2)
        for limit, first, joined in (
            (0.2, (300, 4_930), (25, 230)),
            (0.1, (310, 4_940), (40, 225)),
        )
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    none = added_false_predictions([0.2], [3], [100], 0, 90, [0], [0], delta=0.03)
    assert np.isinf(none).all()


@pytest.mark.parametrize("chances", [[0.9, 0.06, 0.03, 0.01], [0.5, 0.2, 0.2, 0.1]])
@pytest.mark.parametrize("n_rows", [20, 400])
def test_counted_mean_limit__fails_at_most_at_delta(rng, chances, n_rows):
    counts = rng.multinomial(n_rows, chances, N_DRAWS)
    limits = counted_mean_limit(counts, RATES, delta=0.2)
    n_wrong = int((limits < RATES @ chances).sum())
    assert stats.binom.sf(n_wrong - 1, N_DRAWS, 0.2) > 0.001
    assert (limits >= counts @ RATES / n_rows).all()


def test_counted_mean_limit__takes_stale_rows_out_whichever_raise_the_limit():
    counts, duplicates = np.array([300, 50, 20, 10]), np.array([200, 30, 20, 9])

    def limit(counts, **options):
        return counted_mean_limit(counts, RATES, delta=0.05, **options)

    found = limit(counts, duplicates=duplicates)
    some = [np.linspace(0, most, 4).astype(int) for most in duplicates]
    each = [
        limit(counts - taken)
        for taken in np.stack(np.meshgrid(*some), -1).reshape(-1, 4)
    ]
    assert found == pytest.approx(max(each), rel=1e-9)
    assert limit(counts) < found < limit(counts - [200, 0, 0, 0]) * 1.2
    assert limit(counts, duplicates=counts) == 1.0
    assert limit([0, 0, 0, 0]) == 1.0


@pytest.mark.parametrize("n_records", [0, 400])
def test_counted_mean_limit__holds_with_rows_that_are_no_fresh_draws(rng, n_records):
    chances = [0.9, 0.06, 0.03, 0.01]
    fresh = rng.multinomial(200, chances, N_DRAWS)
    stale = np.array([n_records, 0, 0, 0])  # they cost nothing
    limits = counted_mean_limit(fresh + stale, RATES, delta=0.2, duplicates=stale)
    n_wrong = int((limits < RATES @ chances).sum())
    assert stats.binom.sf(n_wrong - 1, N_DRAWS, 0.2) > 0.001
    if n_records:
        naive = counted_mean_limit(fresh + stale, RATES, delta=0.2)
        assert (naive < RATES @ chances).mean() > 0.5


def test_counted_mean_limit__of_errors_is_above_the_binomial_limit():
    for wrong, rows in ((0, 50), (5, 200), (400, 2_000)):
        limit = counted_mean_limit([rows - wrong, wrong], [0, 1], delta=0.05)
        assert upper(wrong, rows, 0.05) < limit < 2 * upper(wrong, rows, 0.05)


BET_SIZES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.7, 0.9)


def mean_wealth(q, counts, values):
    """Return the average wealth of bets against a mean of q, by another route."""
    q = Decimal(q)
    return sum(
        math.prod(
            (1 + Decimal(str(size)) * (q - Decimal(str(value))) / (1 - q)) ** int(n)
            for value, n in zip(values, counts, strict=True)
        )
        for size in BET_SIZES
    ) / len(BET_SIZES)


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-4])
@pytest.mark.parametrize("counts", [[300, 50, 20, 10], [60, 0, 0, 0], [9, 0, 1, 90]])
def test_counted_mean_limit__is_where_the_wealth_is_one_over_delta(counts, delta):
    limit = float(counted_mean_limit(counts, RATES, delta=delta))
    assert mean_wealth(limit * (1 + 1e-9), counts, RATES) >= 1 / Decimal(delta)
    assert mean_wealth(limit * (1 - 1e-9), counts, RATES) < 1 / Decimal(delta)
    assert counted_mean_limit(counts[::-1], RATES[::-1], delta=delta) == limit


def test_counted_mean_limit__is_1_where_no_mean_below_it_reaches_the_wealth():
    # A row of the largest value alone never makes a bet win.
    assert counted_mean_limit([0, 1], [0, 1], delta=0.05) == 1.0
    # A row of 0 makes it 1 / delta at a mean of about 1 - delta * (mean bet size).
    for delta in (1e-6, 1e-10):
        limit = counted_mean_limit([1, 0], [0, 1], delta=delta)
        assert 1.0 - limit == pytest.approx(delta * np.mean(BET_SIZES), rel=1e-3)
    assert counted_mean_limit([1, 0], [0, 1], delta=1e-13) == 1.0
