import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dsel.bounds import holdout_bound
from dsel.bounds.holdout import expected_holdout_bound


@pytest.mark.parametrize(
    ("n", "rate", "expected"),
    [
        (120, 0.05, 0.0953),
        (120, 0.10, 0.1557),
        (400, 0.10, 0.1283),
        (400, 0.02, 0.0357),
        (2_000, 0.10, 0.1119),
        (10**7, 0.2, 0.2 + 1.645 * np.sqrt(0.2 * 0.8 / 10**7)),
    ],
)
def test_expected_holdout_bound__is_that_of_the_table(n, rate, expected):
    found = expected_holdout_bound(rate, n, delta=0.05)
    assert found == pytest.approx(expected, rel=0.01 if n < 10**6 else 1e-5)


@given(st.floats(0, 1), st.integers(0, 500))
def test_expected_holdout_bound__is_the_sum_over_all_counts(rate, n):
    found = expected_holdout_bound(rate, n, delta=0.05)
    counts = np.arange(n + 1)
    chances = stats.binom.pmf(counts, n, rate if rate > 1e-100 else 0.0)
    bounds = holdout_bound(counts, n, delta=0.05)
    assert found == pytest.approx(chances @ bounds)
    assert rate - 1e-9 <= found <= 1.0
    assert expected_holdout_bound(rate, n + 50, delta=0.05) <= found + 1e-9
    assert expected_holdout_bound((1 + rate) / 2, n, delta=0.05) >= found - 1e-9
