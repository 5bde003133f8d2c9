"""Disagreement and error on finite domains where both are known exactly."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dsel.bounds.disagreement import (
    error_ends_from_disagreement,
    error_from_disagreement,
    error_variance_from_disagreement,
    error_variance_from_pairs,
    pair_error_bound,
    row_disagreement,
)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_error_from_disagreement__bounds_the_error_of_every_finite_learner(
    rng, n_classes
):
    for _ in range(50):
        predictions = rng.integers(0, n_classes, (6, 5))
        weights, rows = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
        labels = rng.integers(0, n_classes, 5)
        wrong = weights @ (predictions != labels)
        differ = [[(f != g) @ rows for g in predictions] for f in predictions]
        d = weights @ differ @ weights
        assert error_from_disagreement(d, n_classes=n_classes) <= wrong @ rows + 1e-12
        if n_classes == 2:  # half of d is the mean variance of the error at a row
            assert d / 2 == pytest.approx(rows @ (wrong * (1 - wrong)))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_error_from_disagreement__rises_from_zero_to_its_limit(n_classes):
    largest = (n_classes - 1) / n_classes
    found = error_from_disagreement(np.linspace(0, largest, 200), n_classes=n_classes)
    assert found[0] == 0.0
    assert found[-1] == pytest.approx(largest)
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize(
    ("d", "n_classes", "error"),
    [
        # Error .4 spread evenly over the two other classes: d is above one half.
        (1 - 0.6**2 - 2 * 0.2**2, 3, 0.4),
        (0.9, 2, 0.5),
        (1e-18, 2, 5e-19),
        (np.nan, 2, np.nan),
    ],
)
def test_error_from_disagreement__is_exact(d, n_classes, error):
    found = error_from_disagreement(d, n_classes=n_classes)
    assert found == pytest.approx(error, nan_ok=True)


def test_row_disagreement__of_two_models_is_whether_they_differ():
    assert row_disagreement([[2, 0], [1, 1], [0, 2]]).tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="one number of models >= 2 in every row"):
        row_disagreement([[1, 0]])


def test_row_disagreement__equals_the_average_over_all_pairs(rng):
    labels = rng.integers(0, 4, (30, 7))
    counts = np.stack([(labels == c).sum(axis=1) for c in range(4)], axis=-1)
    pairs = list(itertools.combinations(range(7), 2))
    expected = np.mean([labels[:, a] != labels[:, b] for a, b in pairs], axis=0)
    np.testing.assert_allclose(row_disagreement(counts), expected)


def test_pair_error_bound__fails_at_most_delta_of_the_time(rng):
    m, delta, draws = 300, 0.1, 5000
    # Two models that are never wrong together: the mean error is d/2 exactly.
    counts = rng.binomial(m, 0.08, draws)
    failures = (pair_error_bound(counts, m, delta=delta) > 0.04).mean()
    assert failures <= delta + 3 * np.sqrt(delta / draws)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_error_variance__is_bounded_by_disagreement_for_every_finite_learner(
    rng, n_classes
):
    for _ in range(50):
        predictions = rng.integers(0, n_classes, (6, 5))
        weights, rows = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
        labels = rng.integers(0, n_classes, 5)
        errors = (predictions != labels) @ rows
        variance = weights @ errors**2 - (weights @ errors) ** 2
        rates = np.array([[(f != g) @ rows for g in predictions] for f in predictions])
        d, of_squares = weights @ rates @ weights, weights @ rates**2 @ weights / 2
        theorem_1 = error_variance_from_disagreement(d)
        assert variance <= of_squares + 1e-12 <= theorem_1 + 2e-12
        if n_classes == 2:  # equation (3), and both ends of equation (4)
            wrong = weights @ (predictions != labels)
            error = wrong @ rows
            assert theorem_1 == pytest.approx(error - wrong**2 @ rows)
            lower, upper = error_ends_from_disagreement(d)
            assert lower - 1e-12 <= error <= upper + 1e-12


def test_error_variance_from_pairs__is_unbiased_for_the_mean_square(rng):
    rates = np.array([0.02, 0.1, 0.3])
    counts = rng.binomial(40, rates, (20_000, 3))
    found = [error_variance_from_pairs(each, 40) for each in counts]
    spread = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx((rates**2).mean() / 2, abs=4 * spread)


def test_error_variance__of_scattered_errors_is_far_below_half_the_disagreement(rng):
    # The paper: d/2 can be far larger than the variance; with more rows both fall.
    numbers = []
    for n_training in (5, 50, 500):
        means = rng.normal(0.3, 1 / np.sqrt(n_training), (400, 200))
        wrong = means < 0  # each model errs on scattered rows
        variance = wrong.mean(axis=1).var()
        half = wrong.mean(axis=0)
        numbers.append((variance, (half * (1 - half)).mean()))
    variances, halves = np.array(numbers).T
    assert (variances[:2] < halves[:2] / 50).all()
    assert (np.diff(variances) <= 0).all()
    assert (np.diff(halves) <= 0).all()


def test_error_from_disagreement__takes_the_classes_of_a_cube():
    rates = pd.DataFrame({"a": [0.0, 0.18], "b": [0.32, 0.5]})
    found = error_from_disagreement(rates, n_classes=xr.DataArray(2))
    assert found == pytest.approx(np.array([[0.0, 0.2], [0.1, 0.5]]))
