"""Shares of delta of the folds, and what their smallest limit is on average."""

import numpy as np
import pytest
from scipy import stats

from dsel.bounds import binomial_tail_inversion, fold_shares

ROWS = 1_000
COUNTS = np.arange(ROWS + 1)


def mean_smallest_limit(shares, rate):
    """The exact expectation of the smallest limit of folds of `ROWS` rows."""
    limits = [binomial_tail_inversion(COUNTS, ROWS, delta=0.05 * w) for w in shares]
    values = np.unique(limits)
    # The limits of independent folds are all above a value if all counts are.
    at_most = [np.searchsorted(of_fold, values, side="right") for of_fold in limits]
    all_above = stats.binom.sf(np.subtract(at_most, 1), ROWS, rate).prod(axis=0)
    return values[0] + all_above[:-1] @ np.diff(values)


@pytest.mark.parametrize(
    ("n_folds", "smallest", "largest"), [(5, -0.20, 0.01), (20, -0.38, 0.05)]
)
def test_fold_shares__change_the_mean_limit_as_the_page_says(
    n_folds, smallest, largest
):
    changes = []
    for errors in (0, 1, 2, 4, 6, 8, 10, 12, 20, 100, 300):
        halves, equal = (
            mean_smallest_limit(shares, errors / ROWS)
            for shares in (fold_shares(n_folds), np.full(n_folds, 1 / n_folds))
        )
        changes.append(halves / equal - 1)
    assert changes[0] == min(changes) == pytest.approx(smallest, abs=0.005)
    assert max(changes) == pytest.approx(largest, abs=0.0015)
    assert changes[1] < 0  # with one error expected in a fold


@pytest.mark.parametrize("n_folds", [1, 2, 5, 64, 200])
def test_fold_shares__sum_to_one(n_folds):
    assert fold_shares(n_folds).sum() == 1.0
