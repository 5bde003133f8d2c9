import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dsel.bounds import binomial_tail_inversion, holdout_bound
from dsel.bounds.holdout import expected_holdout_bound


def test_holdout_bound__is_the_inverse_tail():
    expected = binomial_tail_inversion([1, 2], 50, delta=0.1)
    assert (holdout_bound([1, 2], 50, delta=0.1) == expected).all()


@pytest.mark.parametrize(
    ("n", "rate", "expected"),
    [
        (600, 0.05, 0.0953),
        (600, 0.10, 0.1557),
        (2000, 0.10, 0.1283),
        (2000, 0.02, 0.0357),
        (10_000, 0.10, 0.1119),
    ],
)
def test_expected_holdout_bound__of_a_fifth_is_that_of_the_table(n, rate, expected):
    found = expected_holdout_bound(rate, n // 5, delta=0.05)

    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.5, 1.0])
def test_expected_holdout_bound__equals_the_sum_over_all_counts(rate):
    counts = np.arange(201)
    chances = stats.binom.pmf(counts, 200, rate)

    expected = chances @ holdout_bound(counts, 200, delta=0.05)

    assert expected_holdout_bound(rate, 200, delta=0.05) == pytest.approx(expected)


def test_expected_holdout_bound__of_many_rows_lies_near_the_rate():
    found = expected_holdout_bound(0.2, 10**7, delta=0.05)

    expected = 0.2 + 1.645 * np.sqrt(0.2 * 0.8 / 10**7)
    assert found == pytest.approx(expected, abs=1e-6)


@given(st.floats(0, 1), st.integers(0, 500))
def test_expected_holdout_bound__rises_with_the_rate_and_falls_with_rows(rate, n_rows):
    found = expected_holdout_bound(rate, n_rows, delta=0.05)

    assert rate - 1e-9 <= found <= 1.0
    assert expected_holdout_bound(rate, n_rows + 50, delta=0.05) <= found + 1e-9
    assert expected_holdout_bound((1 + rate) / 2, n_rows, delta=0.05) >= found - 1e-9
