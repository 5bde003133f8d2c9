"""Which of the bounded models is deployed."""

import numpy as np
import pytest

from dsel.losses.joint import fold_to_deploy

# Limits, ranks of candidates, folds without a model, and the deployed fold.
FOLDS = [
    ([0.30, 0.20, 0.40], [0, 0, 0], [], 1),
    ([0.30, 0.20, 0.21], [0, 1, 0], [], 2),
    ([0.30, 0.20, 0.2101], [0, 1, 0], [], 1),
    ([0.205, 0.20, 0.205], [0, 1, 0], [], 0),
    ([0.205, 0.20, 0.202], [0, 1, 0], [], 2),
    ([1.0, 1.0, 1.0], [2, 1, 1], [], 1),
    ([1.0, 1.0, 1.0], [0, 2, 1], [0], 2),
    ([0.1, 1.0, 0.99], [1, 0, 2], [0], 1),
    ([np.inf, np.inf, np.inf], [1, 0, 0], [], 1),
    ([0.0, 0.0, 0.1], [1, 0, 0], [], 1),
]


@pytest.mark.parametrize(("limits", "ranks", "without", "expected"), FOLDS)
def test_fold_to_deploy__has_the_best_candidate_of_those_with_a_limit_near_the_smallest(
    limits, ranks, without, expected
):
    has_model = ~np.isin(np.arange(len(limits)), without)
    found = fold_to_deploy(np.array(limits), has_model, np.array(ranks))
    assert found == expected
    smallest = np.array(limits)[has_model].min()
    assert limits[found] <= 1.05 * smallest
