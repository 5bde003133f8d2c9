"""What disagreement says of ranges, classes, numbers and votes, on exact laws."""

import numpy as np
import pytest

from dsel.bounds import (
    error_from_disagreement,
    error_range_from_disagreement,
    precision_recall_from_disagreement,
    variance_from_disagreement,
    vote_error_bound,
)


@pytest.fixture
def law(rng):
    """Chances of every label at 50 rows, and the true labels."""
    chances = rng.dirichlet([0.5, 0.5, 0.5], size=(200, 50))
    return chances, rng.integers(0, 3, (200, 50))


def test_error_range__holds_for_every_law_of_three_classes(law):
    chances, truth = law
    right = np.take_along_axis(chances, truth[..., np.newaxis], axis=-1)[..., 0]
    error = 1 - right.mean(axis=1)
    disagreement = 1 - (chances**2).sum(axis=-1).mean(axis=1)
    found = error_range_from_disagreement(disagreement, n_classes=3)
    assert (found.lower <= error + 1e-12).all()
    assert (error <= found.upper + 1e-12).all()
    np.testing.assert_array_equal(
        found.lower, error_from_disagreement(disagreement, n_classes=3)
    )


def test_error_range__has_the_printed_ends_for_two_classes():
    found = error_range_from_disagreement([0.1, 0.5], n_classes=2)
    root = np.sqrt(1 - 2 * np.array([0.1, 0.5]))
    np.testing.assert_allclose(found.lower, (1 - root) / 2)
    np.testing.assert_allclose(found.upper, (1 + root) / 2)


def test_precision_recall__hold_for_every_law(law):
    chances, truth = law
    of_class = chances[..., 0]
    present = truth == 0
    disagreement = (2 * of_class * (1 - of_class)).mean(axis=1)
    hit = np.where(present, of_class, 0).mean(axis=1)
    predicted, share = of_class.mean(axis=1), present.mean(axis=1)
    found = precision_recall_from_disagreement(
        disagreement, predicted_share=predicted, class_share=share
    )
    assert (hit / predicted <= found.precision + 1e-12).all()
    assert (hit / share <= found.recall + 1e-12).all()
    assert (found.precision < 1).any()
    with pytest.raises(ValueError, match="`predicted_share` must be"):
        precision_recall_from_disagreement(0.1, predicted_share=0.0, class_share=0.5)


def test_variance_from_disagreement__is_below_the_squared_error(rng):
    truth = rng.normal(size=4000)
    bias, noise = 0.3, rng.normal(size=(2, 4000))
    one, other = truth + bias + 0.5 * noise
    found = variance_from_disagreement(one, other)
    assert found == pytest.approx(0.25, rel=0.1)
    assert found < np.mean((one - truth) ** 2)
    with pytest.raises(ValueError, match="the shape of `answers`"):
        variance_from_disagreement(one, other[:-1])


def test_vote_error_bound__holds_for_weighted_votes(rng):
    for _ in range(200):
        # Eleven models, right at a rate of their own, partly on the same rows.
        hard = rng.random(300)
        wrong = hard + 0.5 * rng.random((11, 300)) > rng.uniform(0.7, 1.3, (11, 1))
        weights = rng.dirichlet(np.ones(11))
        error = weights @ wrong.mean(axis=1)
        differ = (wrong[:, np.newaxis] != wrong).mean(axis=2)
        vote = np.mean(weights @ wrong >= 0.5)
        bound = vote_error_bound(error, weights @ differ @ weights)
        assert vote <= bound + 1e-12
