"""Bounds of counts by class hold, and agree with what scipy says."""

import numpy as np
import pytest
from scipy import stats

from dsel.bounds.by_class import added_false_answers, added_misses, counted_mean_limit

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


def test_added_false_answers__reads_the_pool_without_rows_that_are_known():
    def found(**changed):
        given = {"n_unlabeled": 5_000, "equal_rows": 100, **changed}
        return added_false_answers(
            [0.2, 0.1], [300, 310], 320, [25, 40], delta=0.03, **given
        )

    fresh, share = 4_900, 0.01
    least = lower(220, 5_000, share)
    wanted = [
        limit * upper(said, fresh, share / 2) / least + upper(moved, 220, share / 2)
        for limit, said, moved in ((0.2, 300, 25), (0.1, 310, 40))
    ]
    np.testing.assert_allclose(found(), wanted, rtol=1e-8)
    assert (found(equal_rows=0) < found()).all()
    assert np.isinf(found(equal_rows=320)).all()


@pytest.mark.parametrize("chances", [[0.9, 0.06, 0.03, 0.01], [0.5, 0.2, 0.2, 0.1]])
@pytest.mark.parametrize("n_rows", [20, 400])
def test_counted_mean_limit__fails_at_most_at_delta(rng, chances, n_rows):
    counts = rng.multinomial(n_rows, chances, N_DRAWS)
    limits = counted_mean_limit(counts, RATES, delta=0.2)
    n_wrong = int((limits < RATES @ chances).sum())
    assert stats.binom.sf(n_wrong - 1, N_DRAWS, 0.2) > 0.001
    assert (limits >= counts @ RATES / n_rows).all()


def test_counted_mean_limit__takes_stale_rows_out_of_the_smallest_values():
    counts = [900, 50, 0, 10]
    limit = counted_mean_limit(counts, RATES, delta=0.05, equal_rows=200)
    assert limit == counted_mean_limit([700, 50, 0, 10], RATES, delta=0.05)
    assert counted_mean_limit(counts, RATES, delta=0.05) < limit < 0.1
    assert counted_mean_limit(counts, RATES, delta=0.05, equal_rows=901) == 1.0
    assert counted_mean_limit([0, 0, 0, 0], RATES, delta=0.05) == 1.0


def test_counted_mean_limit__of_errors_is_above_the_binomial_limit():
    for wrong, rows in ((0, 50), (5, 200), (400, 2_000)):
        limit = counted_mean_limit([rows - wrong, wrong], [0, 1], delta=0.05)
        assert upper(wrong, rows, 0.05) < limit < 2 * upper(wrong, rows, 0.05)
