"""Threshold bounds: the table of the specification, and how often they fail."""

import numpy as np
import pytest

from dsel.bounds.thresholds import (
    printed_error_bound,
    selective_error_bound,
    selective_risk_bound,
    threshold_bound,
    threshold_bound_dkw,
    threshold_bound_even,
    threshold_bound_vc,
)

VALID = [threshold_bound, threshold_bound_even, threshold_bound_dkw, threshold_bound_vc]


@pytest.mark.parametrize(
    ("bound", "n", "delta", "counts", "expected"),
    [
        (threshold_bound_vc, 50, 0.05, [0], [3.07]),
        (threshold_bound_dkw, 50, 0.05, [0, 1, 5], [0.277, 0.297, 0.377]),
        (threshold_bound_even, 50, 0.05, [0, 1, 5], [0.207, 0.252, 0.380]),
        (threshold_bound, 50, 0.05, [0, 1, 5], [0.154, 0.216, 0.377]),
        (threshold_bound_vc, 500, 0.05, [0], [1.04]),
        (threshold_bound_dkw, 500, 0.05, [0, 5], [0.0877, 0.0977]),
        (threshold_bound_even, 500, 0.05, [0, 5], [0.0274, 0.0500]),
        (threshold_bound, 500, 0.05, [0, 5], [0.0166, 0.0441]),
        (threshold_bound_vc, 5000, 0.01, [0], [0.366]),
        (threshold_bound_dkw, 5000, 0.01, [0], [0.0305]),
        (threshold_bound_even, 5000, 0.01, [0], [0.0036]),
        (threshold_bound, 5000, 0.01, [0], [0.0020]),
    ],
)
def test_threshold_bounds__equal_worked_numbers(bound, n, delta, counts, expected):
    found = bound(counts, n, n_models=110, delta=delta)

    np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.parametrize("bound", [threshold_bound, threshold_bound_even])
def test_threshold_bounds__are_one_where_every_row_is_below(bound):
    assert bound(50, 50, n_models=3, delta=0.1) == 1.0


@pytest.mark.parametrize("bound", VALID)
def test_threshold_bounds__rise_with_the_count(bound):
    found = bound(np.arange(51), 50, n_models=10, delta=0.1)

    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("bound", VALID)
def test_threshold_bounds__hold_for_all_thresholds_at_once(bound, rng):
    n, delta, draws = 50, 0.1, 2000
    limits = bound(np.arange(n), n, n_models=1, delta=delta)
    # F(t) is at most the (c+1)-th smallest uniform for every t with count c.
    ordered = np.sort(rng.uniform(size=(draws, n)), axis=1)
    failures = (ordered > limits).any(axis=1).mean()

    assert failures <= delta + 3 * np.sqrt(delta / draws)


def test_printed_error_bound__is_far_below_the_error_on_noise(rng):
    n_models, n = 110, 10_000
    # Scores and labels independent: every model errs half of the time everywhere.
    validation = np.sort(rng.normal(size=(n_models, n)), axis=1)
    test = -np.abs(rng.normal(size=(n_models, 500)))
    counts = [np.searchsorted(a, b) for a, b in zip(validation, test, strict=True)]
    critical = np.min(counts, axis=0)

    reported = printed_error_bound(critical, n, n_models=n_models, delta=0.05)

    assert reported.mean() == pytest.approx(0.26, abs=0.01)  # the true error is 0.50


def test_selective_error_bound__holds_for_all_models_and_margins(rng):
    n_models, n, m, delta, draws, failures = 3, 200, 400, 0.1, 300, 0
    margins, cuts = np.linspace(0.0, 1.0, 21), np.linspace(0.0, 1.0, 11)[:-1]
    error_beyond = {tau: _error_beyond(tau, margins) for tau in cuts}
    for _ in range(draws):
        wrong, pool = [], []
        for _ in range(n_models):
            margin = rng.choice(margins, n)
            errs = rng.uniform(size=n) < 0.4 * (1.0 - margin)
            pool_margin = rng.choice(margins, m)
            wrong.append([(errs & (margin >= tau)).sum() for tau in cuts])
            pool.append([(pool_margin >= tau).sum() for tau in cuts])
        found = selective_error_bound(
            np.array(wrong), n, np.array(pool), m,
            n_models=n_models, delta=delta / 2, pool_delta=delta / 2,
        )  # fmt: skip
        failures += (found < list(error_beyond.values())).any()

    assert failures / draws <= delta + 3 * np.sqrt(delta / draws)


def _error_beyond(tau, margins):
    return (0.4 * (1.0 - margins[margins >= tau])).mean()


def test_selective_error_bound__is_one_where_nothing_was_selected():
    found = selective_error_bound(
        [0], 50, [0], 1000, n_models=2, delta=0.05, pool_delta=0.05
    )

    np.testing.assert_array_equal(found, [1.0])


def test_threshold_bound__refuses_more_counts_than_rows():
    with pytest.raises(ValueError, match="`counts` must be between 0 and"):
        threshold_bound(51, 50, n_models=1, delta=0.1)


def test_threshold_bound_dkw__refuses_a_delta_above_one_half():
    with pytest.raises(ValueError, match="at most half"):
        threshold_bound_dkw(1, 50, n_models=1, delta=0.6)


def test_selective_error_bound__refuses_more_rows_than_the_pool():
    with pytest.raises(ValueError, match="`selected` must be between 0 and"):
        selective_error_bound(0, 50, 11, 10, n_models=1, delta=0.1, pool_delta=0.1)


def test_threshold_bound_vc__has_the_printed_dimension():
    n, delta = 5000, 0.05
    found = threshold_bound_vc([10], n, n_models=1, delta=delta, d=3)
    slack = 5.66 * np.sqrt((3 * np.log(np.e * n / 3) + np.log(8 / delta)) / n)
    np.testing.assert_allclose(found, 10 / n + slack)
    one = threshold_bound_vc([10], n, n_models=1, delta=delta)
    assert (one < found).all()
    with pytest.raises(ValueError, match="`d` must be"):
        threshold_bound_vc([0], 10, n_models=1, delta=delta, d=11)


def test_selective_risk_bound__fails_at_no_threshold_more_often_than_delta():
    # Scores are uniform, answers wrong with probability score / 2.
    rng, n, delta = np.random.default_rng(0), 200, 0.2
    cuts = np.linspace(0.02, 1.0, 50)
    scores = rng.random((2000, n))
    wrong = rng.random((2000, n)) < scores / 2
    kept = scores[:, None] <= cuts[:, None]
    found = selective_risk_bound(
        (kept & wrong[:, None]).sum(axis=2), kept.sum(axis=2), n, delta=delta
    )
    fails = (found.joint < cuts**2 / 4) | (found.coverage > cuts)
    fails |= found.conditional < cuts / 4
    assert 0.001 < fails.any(axis=1).mean() <= delta


def test_selective_risk_bound__refuses_counts_that_cannot_be():
    with pytest.raises(ValueError, match="`n_wrong` must be between 0 and"):
        selective_risk_bound([3], [2], 10, delta=0.1)
