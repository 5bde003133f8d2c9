"""Intervals for bounded means."""

import numpy as np
import pytest

from dsel.bounds import bounded_mean_interval

N_DRAWS = 300


def misses(draw, truth, **options):
    found = [
        bounded_mean_interval(draw(), delta=0.2, **options) for _ in range(N_DRAWS)
    ]
    return np.mean([not each.lower <= truth <= each.upper for each in found])


def test_bounded_mean_interval__misses_at_most_at_delta(rng):
    assert misses(lambda: rng.random(100) < 0.1, 0.1) <= 0.2
    assert misses(lambda: rng.beta(0.3, 2.7, 100), 0.1) <= 0.2


def test_bounded_mean_interval__without_replacement_is_of_the_rows(rng):
    rows = rng.beta(0.5, 1.5, 200)
    rate = misses(lambda: rng.permutation(rows)[:120], rows.mean(), n_population=200)
    assert rate <= 0.2
    part = rng.permutation(rows)[:120]
    apart = bounded_mean_interval(part, delta=0.2)
    among = bounded_mean_interval(part, delta=0.2, n_population=200)
    assert among.upper - among.lower < apart.upper - apart.lower
    whole = bounded_mean_interval(rows, delta=0.2, n_population=200)
    np.testing.assert_allclose(whole, rows.mean())


def test_bounded_mean_interval__is_narrower_where_values_vary_less(rng):
    wide = bounded_mean_interval(rng.random(500) < 0.5, delta=0.05)
    narrow = bounded_mean_interval(0.5 + 0.1 * (rng.random(500) - 0.5), delta=0.05)
    hoeffding = np.sqrt(np.log(2 / 0.05) / (2 * 500))
    assert narrow.upper - narrow.lower < 0.5 * hoeffding
    assert wide.upper - wide.lower < 3 * hoeffding


@pytest.mark.parametrize("values", [[], [1.2], [[0.5]], [np.nan]])
def test_bounded_mean_interval__refuses_what_is_not_bounded(values):
    with pytest.raises(ValueError, match="`values` must be"):
        bounded_mean_interval(values, delta=0.1)
