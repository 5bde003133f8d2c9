"""P-values and critical counts against the definitions, label by label."""

import numpy as np
import pytest

from dsel.bounds.nonconformity import (
    count_not_above,
    margin_conformity,
    threshold_bound,
)


def brute_force_counts(validation, scores, labels):
    """Count by the definition: every label, every validation row."""
    counts = np.zeros_like(scores, dtype=np.int64)
    for model, row, label in np.ndindex(scores.shape):
        test = scores[model, row, label] - np.delete(scores[model, row], label).max()
        for j, true in enumerate(labels):
            others = np.delete(validation[model, j], true)
            counts[model, row, label] += (
                validation[model, j, true] - others.max() <= test
            )
    return counts


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_count_not_above__equal_the_definition_with_ties(rng, n_classes):
    validation = rng.integers(-3, 4, (4, 30, n_classes)) / 2.0
    scores = rng.integers(-3, 4, (4, 60, n_classes)) / 2.0
    labels = rng.integers(0, n_classes, 30)
    expected = np.sort(brute_force_counts(validation, scores, labels), axis=-1)[..., -2]

    own = np.take_along_axis(
        margin_conformity(validation), labels[np.newaxis, :, np.newaxis], axis=-1
    )[..., 0]
    top = np.sort(scores, axis=-1)
    found = count_not_above(np.sort(own), top[..., -2] - top[..., -1])

    np.testing.assert_array_equal(found, expected)


def test_margin_conformity__is_the_distance_to_the_best_rival(rng):
    scores = rng.integers(0, 4, (50, 4)).astype(float)
    found = margin_conformity(scores)
    for row, label in np.ndindex(scores.shape):
        rival = np.delete(scores[row], label).max()
        assert found[row, label] == scores[row, label] - rival
    inf = np.inf  # of classes that are unknown, and of the only one that is not
    found = margin_conformity([[1.0, -inf, 0.0], [2.0, -inf, -inf]])
    np.testing.assert_array_equal(found, [[1.0, -inf, -1.0], [inf, -inf, -inf]])


def test_count_not_above__counts_ties_and_infinities():
    ascending = np.array([-np.inf, 0.0, 0.0, 1.0])
    found = count_not_above(ascending, np.array([-np.inf, -1.0, 0.0, np.inf]))
    np.testing.assert_array_equal(found, [1, 1, 3, 4])


@pytest.mark.parametrize(
    ("n", "delta", "counts", "expected"),
    [
        (50, 0.05, [0, 1, 5], [0.154, 0.216, 0.377]),
        (500, 0.05, [0, 5, 500], [0.0166, 0.0441, 1.0]),
        (5000, 0.01, [0], [0.0020]),
    ],
)
def test_threshold_bound__equals_worked_numbers(n, delta, counts, expected):
    found = threshold_bound(counts, n, n_models=110, delta=delta)
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_threshold_bound__holds_for_all_thresholds_at_once(rng):
    n, delta, draws = 50, 0.1, 2000
    limits = threshold_bound(np.arange(n), n, n_models=1, delta=delta)
    assert (np.diff(limits) > 0).all()
    # F(t) is at most the (c+1)-th smallest uniform for every t with count c.
    ordered = np.sort(rng.uniform(size=(draws, n)), axis=1)
    failures = (ordered > limits).any(axis=1).mean()
    assert failures <= delta + 3 * np.sqrt(delta / draws)
