import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from dsel.bounds import (
    binomial_tail_inversion,
    cv_bound,
    merged_folds,
)


def label_term(errors, rows, delta):
    return merged_folds(errors, rows, 0, 1, delta=delta, label_share=0.5).label_term


@st.composite
def fold_counts(draw):
    rows = draw(st.lists(st.integers(1, 200), min_size=1, max_size=8))
    return [draw(st.integers(0, n)) for n in rows], rows


def largest_mean_by_search(errors, rows, delta):
    """The same program in the spending of each fold, by a general solver."""
    budget = len(rows) * (1 - np.log(delta))

    def mean_rate(spending):
        rates = [
            1.0 if c == n else special.betainccinv(c + 1, n - c, np.exp(-g))
            for c, n, g in zip(errors, rows, spending, strict=True)
        ]
        return -np.mean(rates)

    found = optimize.minimize(
        mean_rate,
        np.full(len(rows), budget / len(rows)),
        bounds=[(0, None)] * len(rows),
        constraints={"type": "eq", "fun": lambda g: g.sum() - budget},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return -found.fun


@pytest.mark.parametrize(
    ("errors", "rows"),
    [
        ([0, 3, 9], [10, 10, 10]),
        ([5, 3, 4, 6], [50, 50, 51, 51]),
        ([0, 0, 1], [20, 20, 20]),
        ([2, 7], [30, 90]),
        ([1, 10, 10], [10, 10, 10]),
        ([40, 55, 61, 38, 47], [500] * 5),
    ],
)
@pytest.mark.parametrize("delta", [1e-5, 0.1, 0.8])
def test_merged_folds__solve_the_program(errors, rows, delta):
    found = label_term(errors, rows, delta)
    searched = largest_mean_by_search(errors, rows, delta / 2)
    assert searched * (1 - 1e-7) <= found <= searched * (1 + 1e-6)


@pytest.mark.parametrize("count", [0, 1, 13, 49])
def test_merged_folds__of_equal_counts_are_one_limit_at_delta_over_e(count):
    found = label_term([count] * 5, [50] * 5, 0.02)
    expected = binomial_tail_inversion(count, 50, delta=0.01 / np.e)
    assert found == pytest.approx(expected, rel=1e-9)


def test_merged_folds__give_the_counter_example_to_always_being_tighter():
    merged = label_term([0, 3, 9], [10] * 3, 0.1)
    mean = cv_bound([0, 3, 9], 10, 0, 1, delta=0.1).label_term
    assert merged == pytest.approx(0.710, abs=5e-4)
    assert mean == pytest.approx(0.670, abs=5e-4)


def test_merged_folds__allow_everything_where_nothing_was_right():
    assert label_term([5, 7], [5, 7], 0.1) == 1.0


def test_merged_folds__stay_finite_where_tails_underflow():
    # The one fold that can spend takes the budget of all fifty.
    found = label_term([1] + [10] * 49, [1000] + [10] * 49, 1e-6)
    assert 0.98 < found <= 1.0


@settings(max_examples=150)
@given(fold_counts(), st.floats(1e-8, 0.9), st.integers(0, 7))
def test_merged_folds__rise_with_every_error(counts, delta, number):
    errors, rows = np.array(counts[0]), np.array(counts[1])
    more = errors.copy()
    number %= len(rows)
    more[number] = min(more[number] + 1, rows[number])
    before, after = label_term(np.stack([errors, more]), rows, delta)
    assert after >= before - 1e-9
    assert before >= np.mean(errors / rows) - 1e-12


@settings(max_examples=60)
@given(st.integers(3, 10), st.integers(2, 300), st.floats(1e-6, 0.5), st.data())
def test_merged_folds__beat_the_union_for_equal_counts(n_folds, n, delta, data):
    count = data.draw(st.integers(0, n))
    merged = label_term([count] * n_folds, [n] * n_folds, delta)
    mean = cv_bound([count] * n_folds, n, 0, 1, delta=delta).label_term
    assert merged <= mean * (1 + 1e-9)


def test_merged_folds__are_the_same_alone_and_among_many(rng):
    errors = rng.integers(0, 50, (30, 6))
    together = label_term(errors, 50, 0.01)
    alone = [label_term(row, np.full(6, 50), 0.01) for row in errors]
    np.testing.assert_allclose(together, alone, rtol=1e-11)


@pytest.mark.parametrize(
    ("n", "rate", "expected"),
    [
        (500, 0.05, 0.292),
        (500, 0.2, 0.491),
        (5000, 0.01, 0.0435),
        (50_000, 0.2, 0.2243),
    ],
)
def test_merged_folds__first_term_is_that_of_the_table(rng, n, rate, expected):
    errors = rng.binomial(n // 10, rate, (1000, 10))
    delta = 0.01 / 225
    terms = merged_folds(errors, n // 10, 0, 1, delta=delta, label_share=0.95)
    assert terms.label_term.mean() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_merged_folds__hold_when_every_fold_errs_alike(rng, n_folds):
    # The hardest dependence: all folds have the same errors, so nothing averages.
    rate, rows, delta = 0.2, 60, 0.5
    errors = np.repeat(rng.binomial(rows, rate, (4000, 1)), n_folds, axis=1)
    fails = label_term(errors, rows, 2 * delta * 0.999) < rate
    assert 0.05 < fails.mean() <= delta


@pytest.mark.parametrize("size", [20, 3_000, 10**7])
def test_merged_folds__are_above_all_that_the_constraint_allows(rng, size):
    delta, n_folds = 1e-4, 6
    rows = size + np.arange(n_folds) % 2
    errors = rng.binomial(rows, [0.0, 0.0, 0.02, 0.3, 0.3, 0.9])
    # What each fold spends of the budget k (ln(1 / delta) + 1), by chance.
    spent = rng.dirichlet(np.ones(n_folds), 300) * n_folds * (1 - np.log(delta))

    rates = binomial_tail_inversion(errors, rows, delta=np.exp(-spent - 1e-9))

    term = merged_folds(errors, rows, 0, 1, delta=2 * delta).label_term
    assert rates.mean(axis=1).max() <= term * (1 + 1e-9)
    assert term <= rates.mean(axis=1).max() * 1.2
