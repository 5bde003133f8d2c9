"""Bounds from labeled rows that took no part in training."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import qmc

from dsel import checks
from dsel.arrays import ArrayLike, Floats, Integers
from dsel.bounds.binomial import upper_limits

N_TABLES: Final = 256
"""Tables of an average, which differs by less than .001 from that of all tables."""


def holdout_bound(
    n_errors: ArrayLike, n_rows: ArrayLike, *, delta: ArrayLike
) -> Floats:
    r"""Error bound from the labeled rows of a hold-out set.

    The :func:`binomial_tail_inversion` :math:`B(c, n, \delta)` of the errors on
    the held-out part.

    Parameters
    ----------
    n_errors, n_rows
        Errors on the held-out rows, :math:`c`, and these rows, :math:`n`.
    delta
        As :func:`binomial_tail_inversion` takes it, with the same errors.

    Returns
    -------
    ndarray
        Bounds in ``(0, 1]``, in the broadcast shape.

    Raises
    ------
    TypeError
        If counts are no integers.
    ValueError
        If counts are below 0 or above their rows, shapes do not fit each other, or
        `delta` is outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the held-out rows, the
    error of the model trained on the other rows is at most the bound. With one
    delta for each candidate all bounds hold at once, so the held-out rows may
    also be used to choose.
    Assumes: i.i.d. labeled rows, split at random before training; one candidate
    chosen without the held-out rows, or a delta for each candidate.
    Source: the classical test-set bound; Clopper and Pearson (1934).

    Examples
    --------
    >>> float(holdout_bound(3, 100, delta=0.05).round(4))
    0.0757
    """
    errors, rows = checks.check_counts_of(n_errors, n_rows, "n_errors", "n_rows")
    return upper_limits(errors, rows, checks.check_probabilities(delta, "delta"))


def expected_holdout_bound(error_rate: float, n_rows: int, *, delta: float) -> float:
    r"""Average of :func:`holdout_bound` over random draws of the hold-out set.

    .. math:: E\, B(C, n, \delta), \qquad C \sim \mathrm{Bin}(n, p).

    This is the bound to expect from a hold-out set of `n_rows` labeled rows, without
    setting any rows aside: for a 20% hold-out set, at the error rate of
    cross-validation. It is an average of bounds, not itself a bound.

    Examples
    --------
    >>> round(expected_holdout_bound(0.1, 120, delta=0.05), 3)
    0.156
    """
    rate = checks.check_between(
        error_rate, "error_rate", 0.0, 1.0, end="; 5% is written 0.05."
    )
    checks.check_axes(rate, "error_rate", 0, "one number")
    n = checks.check_count(n_rows, "n_rows", at_least=0)
    probability = checks.check_probability(delta, "delta")
    counts, probabilities = likely_counts(n, float(rate))
    return float(probabilities @ upper_limits(counts, n, probability))


def likely_counts(n_rows: int, rate: float) -> tuple[Integers, Floats]:
    """Return the likely counts of a binomial variable, and their probabilities.

    Both tails, with a total probability below 1e-12, are left out. Where more than
    about 500 counts are likely, evenly spaced ones stand for their neighbors, because
    the averaged function is smooth.
    """
    if rate < 1e-100:  # SciPy overflows, and no number of rows has such an error
        rate = 0.0
    mean = n_rows * rate
    spread = np.sqrt(n_rows * rate * (1.0 - rate))
    # Eight standard deviations; the constants cover small means, where the tail of the
    # distribution is that of Poisson's.
    low = max(0, int(mean - 8 * spread) - 10)
    high = min(n_rows, int(mean + 8 * spread) + 30)
    counts = np.arange(low, high + 1, 1 + (high - low) // 500)
    probabilities = stats.binom.pmf(counts, n_rows, rate)
    return counts, probabilities / probabilities.sum()


def likely_tables(table: NDArray[np.number], n_rows: int) -> Integers:
    """Return evenly spread tables of rows that are drawn with replacement from a table.

    `table` has counts of rows, in any shape, not all 0; those returned have `n_rows`
    rows each, shape (256, *table.shape). Each cell is a quantile of its binomial
    distribution, given the cells before, at the points of a Sobol sequence: a
    multinomial distribution without random numbers.

    Examples
    --------
    >>> tables = likely_tables(np.array([[27, 3], [0, 570]]), 120)
    >>> tables.mean(axis=0).round(1).tolist()
    [[5.4, 0.6], [0.0, 114.0]]
    """
    cells = np.ravel(table)
    present = np.flatnonzero(cells)
    # Unscrambled points begin at 0, whose quantile is no count.
    points = qmc.Sobol(len(present), scramble=False).random(N_TABLES) + 0.5 / N_TABLES
    tables = np.zeros((N_TABLES, cells.size), np.int64)
    left = np.full(N_TABLES, n_rows)
    rows_left = cells.sum()
    for cell, quantiles in zip(present, points.T, strict=True):
        tables[:, cell] = stats.binom.ppf(quantiles, left, cells[cell] / rows_left)
        left, rows_left = left - tables[:, cell], rows_left - cells[cell]
    return tables.reshape(N_TABLES, *np.shape(table))
