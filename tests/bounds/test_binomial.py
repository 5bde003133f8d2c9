import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

from dsel.bounds import binomial_tail_inversion
from dsel.bounds.binomial import binomial_tail_inversion_lower
from tests.bounds.exact_tails import lower_tail_ratio, upper_tail_ratio

DELTAS = st.floats(-12, np.log10(0.5)).map(lambda power: 10.0**power)


@st.composite
def counts_in_rows(draw, largest=1_000_000_000):
    n_samples = draw(st.integers(1, largest))
    edge = min(n_samples, 1500)
    n_errors = draw(
        st.one_of(
            st.integers(0, edge),
            st.integers(n_samples - edge, n_samples),
            st.integers(0, n_samples),
        )
    )
    return n_errors, n_samples


@pytest.mark.parametrize(
    ("limit", "n_errors", "n_samples", "delta", "expected"),
    [
        (binomial_tail_inversion, 0, 0, 0.1, 1.0),
        (binomial_tail_inversion, 7, 7, 0.1, 1.0),
        (binomial_tail_inversion, 0, 1, 0.1, 0.9),
        (binomial_tail_inversion, 0, 100, 0.05, 1 - 0.05 ** (1 / 100)),
        (binomial_tail_inversion, 99, 100, 0.05, 0.95 ** (1 / 100)),
        (binomial_tail_inversion, 0, 10, 1e-300, 1.0),
        (binomial_tail_inversion_lower, 0, 0, 0.1, 0.0),
        (binomial_tail_inversion_lower, 0, 7, 0.1, 0.0),
        (binomial_tail_inversion_lower, 7, 7, 0.1, 0.1 ** (1 / 7)),
        (binomial_tail_inversion_lower, 1, 1, 0.1, 0.1),
        (binomial_tail_inversion_lower, 1, 100, 0.05, 1 - 0.95 ** (1 / 100)),
    ],
)
def test_limits__meet_their_closed_forms(limit, n_errors, n_samples, delta, expected):
    bound = limit(n_errors, n_samples, delta=delta)
    assert bound == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("n_errors", "n_samples", "delta"),
    [
        (999, 494_924_076, 8.3e-6),
        (999, 100_000, 1e-3),
        (999, 10_000_000, 1e-6),
        (999, 1_000_000_000, 0.05),
        (100_000 - 1000, 100_000, 1e-3),
        (10_000_000 - 1000, 10_000_000, 1e-6),
        (998, 10_000_000, 1e-6),
        (1000, 10_000_000, 1e-6),
        (3, 900_000_000, 1e-9),
        (49_998, 50_000, 1e-10),
    ],
)
def test_binomial_tail_inversion__is_right_where_the_inverse_of_scipy_1_17_is_not(
    n_errors, n_samples, delta
):
    bound = binomial_tail_inversion(n_errors, n_samples, delta=delta)
    ratio = lower_tail_ratio(n_errors, n_samples, float(bound), delta)
    assert 1 - 2e-9 / (1 - bound) < ratio <= 1


def test_binomial_tail_inversion__gives_the_known_value_of_the_worst_case():
    # SciPy 1.17 starts from 2.16e-6 here, where the tail is 1600 times delta.
    bound = binomial_tail_inversion(999, 494_924_076, delta=8.3e-6)
    assert bound == pytest.approx(2.3075614e-6, rel=1e-7)


@pytest.mark.parametrize(
    ("n_errors", "n_samples", "delta"),
    [
        (2, 100, 0.1),
        (1000, 494_924_076, 8.3e-6),
        (1000, 1_000_000_000, 0.05),
        (999_001, 1_000_000, 1e-6),
        (3, 900_000_000, 1e-9),
        (49_999, 50_000, 1e-10),
    ],
)
def test_binomial_tail_inversion_lower__has_at_most_delta_in_its_tail(
    n_errors, n_samples, delta
):
    bound = binomial_tail_inversion_lower(n_errors, n_samples, delta=delta)
    ratio = upper_tail_ratio(n_errors, n_samples, float(bound), delta)
    # The tail's own slope at the limit is below n_errors / bound.
    assert 1 - n_errors * (2e-9 + 6e-17 * n_samples) < ratio <= 1


@settings(max_examples=300)
@given(counts_in_rows(), DELTAS)
@example((999, 494_924_076), 8.3e-6)
@example((1_000_000 - 1000, 1_000_000), 1e-4)
def test_binomial_tail_inversion__forward_tail_lies_just_below_delta(pair, delta):
    n_errors, n_samples = pair
    bound = float(binomial_tail_inversion(n_errors, n_samples, delta=delta))
    if n_errors == n_samples:
        assert bound == 1.0
        return
    tail = special.betaincc(n_errors + 1, n_samples - n_errors, bound)
    assert tail <= delta * (1 + 1e-13)
    if bound < 0.99:
        assert tail >= delta * (1 - 1e-9)


@settings(max_examples=200)
@given(counts_in_rows(), DELTAS)
def test_binomial_tail_inversion__falls_with_delta_and_with_rows(pair, delta):
    n_errors, n_samples = pair
    bound = binomial_tail_inversion(n_errors, n_samples, delta=delta)
    assert binomial_tail_inversion(n_errors, n_samples, delta=delta / 2) >= bound
    more_rows = binomial_tail_inversion(n_errors, 2 * n_samples, delta=delta)
    assert more_rows <= bound
    assert bound >= n_errors / n_samples


@settings(max_examples=200)
@given(counts_in_rows(10**9), DELTAS)
def test_binomial_tail_inversion_lower__mirrors_the_upper_limit(pair, delta):
    n_errors, n_samples = pair
    lower = binomial_tail_inversion_lower(n_errors, n_samples, delta=delta)
    upper = binomial_tail_inversion(n_samples - n_errors, n_samples, delta=delta)
    assert lower == pytest.approx(1 - upper, abs=2e-9 + 6e-17 * n_samples)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 10, 500, 4000])
@pytest.mark.parametrize("delta", [1e-200, 1e-6, 0.05, 0.5, 0.9])
def test_binomial_tail_inversion__rises_with_every_error(n_samples, delta):
    bounds = binomial_tail_inversion(np.arange(n_samples + 1), n_samples, delta=delta)
    steps = np.diff(bounds)
    assert (steps >= 0).all()
    assert (steps[bounds[1:] < 1] > 0).all()


def test_binomial_tail_inversion__is_the_same_from_a_table_and_one_by_one(rng):
    n_errors = rng.integers(0, 301, 100)
    together = binomial_tail_inversion(n_errors, 300, delta=0.01)
    singly = [binomial_tail_inversion(c, 300, delta=0.01) for c in n_errors]
    np.testing.assert_allclose(together, singly, rtol=1e-14)


def test_binomial_tail_inversion__broadcasts_counts_rows_and_shares():
    bounds = binomial_tail_inversion(
        [[1], [2]], [[100, 50]], delta=np.array([0.1, 0.01])
    )
    assert bounds.shape == (2, 2)
    assert bounds[1, 0] == binomial_tail_inversion(2, 100, delta=0.1)
    assert bounds[0, 1] == binomial_tail_inversion(1, 50, delta=0.01)
    assert binomial_tail_inversion(np.zeros(0, int), 5, delta=0.1).shape == (0,)
    nullable = pd.DataFrame([[3, 5]], dtype="Int64")
    expected = binomial_tail_inversion([[3, 5]], 10, delta=0.1)
    assert np.array_equal(binomial_tail_inversion(nullable, 10, delta=0.1), expected)


def test_binomial_tail_inversion__may_fall_below_the_rate_for_large_delta():
    assert binomial_tail_inversion(50, 100, delta=0.9) < 0.5


def test_binomial_tail_inversion__fails_at_most_delta_and_not_much_less(rng):
    n_samples, rate, delta = 200, 0.13, 0.3
    errors = rng.binomial(n_samples, rate, 20_000)
    fails = binomial_tail_inversion(errors, n_samples, delta=delta) < rate
    margin = 4 * np.sqrt(delta * (1 - delta) / fails.size)
    assert 0.7 * delta < fails.mean() <= delta + margin


@pytest.mark.parametrize("delta", [1e-289, 1e-200])
def test_binomial_tail_inversion_lower__is_the_first_term_at_tiny_delta(delta):
    counts = np.arange(1, 11)

    limits = binomial_tail_inversion_lower(counts, 10, delta=delta)

    tails = np.log(special.comb(10, counts)) + counts * np.log(limits)
    assert tails == pytest.approx(np.log(delta), rel=1e-9)


def test_limits__hold_at_a_delta_of_nearly_one():
    counts, rest = range(1, 10), 1e-12

    above = binomial_tail_inversion(counts, 10, delta=1 - rest)
    below = binomial_tail_inversion_lower(counts, 10, delta=1 - rest)

    for count, high, low in zip(counts, above, below, strict=True):
        assert upper_tail_ratio(count + 1, 10, high, rest) >= 0.9999
        assert lower_tail_ratio(count - 1, 10, low, rest) >= 0.9999
