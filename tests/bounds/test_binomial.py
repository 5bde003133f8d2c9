"""Limits of counts: closed forms, exact tails, and where SciPy's inverse is wrong."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

from dsel.bounds import binomial_tail_inversion as upper
from dsel.bounds.binomial import binomial_tail_inversion_lower as lower
from tests.bounds.exact_tails import lower_tail_ratio, upper_tail_ratio

DELTAS = st.floats(-12, np.log10(0.5)).map(lambda power: 10.0**power)


@st.composite
def counts_in_rows(draw):
    n_samples = draw(st.integers(1, 10**9))
    edge = min(n_samples, 1500)
    few, many = st.integers(0, edge), st.integers(n_samples - edge, n_samples)
    return draw(st.one_of(few, many, st.integers(0, n_samples))), n_samples


@pytest.mark.parametrize(
    ("limit", "n_errors", "n_samples", "delta", "expected"),
    [
        (upper, 0, 0, 0.1, 1.0),
        (upper, 7, 7, 0.1, 1.0),
        (upper, 0, 1, 0.1, 0.9),
        (upper, 0, 100, 0.05, 1 - 0.05 ** (1 / 100)),
        (upper, 99, 100, 0.05, 0.95 ** (1 / 100)),
        (upper, 0, 10, 1e-300, 1.0),
        (lower, 0, 0, 0.1, 0.0),
        (lower, 0, 7, 0.1, 0.0),
        (lower, 7, 7, 0.1, 0.1 ** (1 / 7)),
        (lower, 1, 1, 0.1, 0.1),
        (lower, 1, 100, 0.05, 1 - 0.95 ** (1 / 100)),
    ],
)
def test_limits__meet_their_closed_forms(limit, n_errors, n_samples, delta, expected):
    bound = limit(n_errors, n_samples, delta=delta)
    assert bound == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("limit", "n_errors", "n_samples", "delta"),
    [
        # SciPy 1.17 starts from 2.16e-6 here, where the tail is 1600 times delta.
        (upper, 999, 494_924_076, 8.3e-6),
        (upper, 999, 100_000, 1e-3),
        (upper, 999, 1_000_000_000, 0.05),
        (upper, 100_000 - 1000, 100_000, 1e-3),
        (upper, 10_000_000 - 1000, 10_000_000, 1e-6),
        (upper, 998, 10_000_000, 1e-6),
        (upper, 1000, 10_000_000, 1e-6),
        (upper, 3, 900_000_000, 1e-9),
        (upper, 49_998, 50_000, 1e-10),
        (lower, 2, 100, 0.1),
        (lower, 1000, 494_924_076, 8.3e-6),
        (lower, 1000, 1_000_000_000, 0.05),
        (lower, 999_001, 1_000_000, 1e-6),
        (lower, 3, 900_000_000, 1e-9),
        (lower, 49_999, 50_000, 1e-10),
    ],
)
def test_limits__have_at_most_delta_in_their_exact_tails(
    limit, n_errors, n_samples, delta
):
    bound = float(limit(n_errors, n_samples, delta=delta))
    if limit is upper:
        ratio, slope = lower_tail_ratio, 2e-9 / (1 - bound)
    else:  # the tail's own slope at the limit is below n_errors / bound
        ratio, slope = upper_tail_ratio, n_errors * (2e-9 + 6e-17 * n_samples)
    assert 1 - slope < ratio(n_errors, n_samples, bound, delta) <= 1


@settings(max_examples=300)
@given(counts_in_rows(), DELTAS)
@example((999, 494_924_076), 8.3e-6)
@example((1_000_000 - 1000, 1_000_000), 1e-4)
def test_limits__of_any_count(pair, delta):
    n_errors, n_samples = pair
    bound = float(upper(n_errors, n_samples, delta=delta))
    # The forward tail lies just below delta.
    tail = special.betaincc(n_errors + 1, n_samples - n_errors, bound)
    if n_errors < n_samples:
        assert tail <= delta * (1 + 1e-13)
        assert tail >= delta * (1 - 1e-9) or bound >= 0.99
    # It falls with delta and with rows, and is at least the rate.
    assert upper(n_errors, n_samples, delta=delta / 2) >= bound
    assert upper(n_errors, 2 * n_samples, delta=delta) <= bound
    assert bound >= n_errors / n_samples
    mirrored = 1 - lower(n_samples - n_errors, n_samples, delta=delta)
    assert mirrored == pytest.approx(bound, abs=2e-9 + 6e-17 * n_samples)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 10, 500, 4000])
@pytest.mark.parametrize("delta", [1e-200, 1e-6, 0.05, 0.5, 0.9])
def test_limits__rise_with_every_error(n_samples, delta):
    for limit in (upper, lower):
        bounds = limit(np.arange(n_samples + 1), n_samples, delta=delta)
        steps = np.diff(bounds)
        assert ((steps > 0) | (bounds[1:] == 1)).all()


def test_limits__are_the_same_from_a_table_and_one_by_one(rng):
    n_errors = rng.integers(0, 301, 100)
    singly = [upper(c, 300, delta=0.01) for c in n_errors]
    np.testing.assert_allclose(upper(n_errors, 300, delta=0.01), singly, rtol=1e-14)


def test_limits__broadcast_counts_rows_and_shares():
    bounds = upper([[1], [2]], [[100, 50]], delta=np.array([0.1, 0.01]))
    assert bounds.shape == (2, 2)
    assert bounds[1, 0] == upper(2, 100, delta=0.1)
    assert bounds[0, 1] == upper(1, 50, delta=0.01)
    assert upper(np.zeros(0, int), 5, delta=0.1).shape == (0,)
    nullable = pd.DataFrame([[3, 5]], dtype="Int64")
    expected = upper([[3, 5]], 10, delta=0.1)
    assert np.array_equal(upper(nullable, 10, delta=0.1), expected)


@pytest.mark.parametrize("delta", [1e-289, 1e-200])
def test_lower__is_the_first_term_at_tiny_delta(delta):
    counts = np.arange(1, 11)
    limits = lower(counts, 10, delta=delta)
    tails = np.log(special.comb(10, counts)) + counts * np.log(limits)
    assert tails == pytest.approx(np.log(delta), rel=1e-9)


def test_limits__hold_at_a_delta_of_nearly_one():
    counts, rest = range(1, 10), 1e-12
    above, below = (limit(counts, 10, delta=1 - rest) for limit in (upper, lower))
    for count, high, low in zip(counts, above, below, strict=True):
        assert upper_tail_ratio(count + 1, 10, high, rest) >= 0.9999
        assert lower_tail_ratio(count - 1, 10, low, rest) >= 0.9999
