"""Limits for equal rows, which may be copies, and a test that some of them are."""

from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dsel.arrays import ArrayLike, Floats
from dsel.bounds.binomial import lower_limits
from dsel.checks import check_counts_of, check_probability


def lower_rate_limits(
    counts: ArrayLike, counted_duplicates: ArrayLike, n_rows: ArrayLike, delta: float
) -> Floats:
    r"""Return lower limits of rates; NaN where there are no rows.

    Of :math:`v` counted rows :math:`e_v` equal labeled rows. These are subtracted from
    the count and from its total, :math:`b(v - e_v, m - e_v, \delta)`. Whichever of the
    rows that equal labeled ones are fresh draws, the limit of the fresh rows is no
    smaller: a row that was counted raises it, any other one lowers it.

    Guarantee: each rate is at least its limit with probability at least ``1 - delta``.
    Assumes: rows that equal no labeled row are independent draws, and so are those that
    equal one but are other records.
    Source: :func:`dsel.bounds.binomial_tail_inversion_lower`.

    Examples
    --------
    >>> lower_rate_limits([30, 30], [0, 10], 300, 0.01).round(4).tolist()
    [0.0636, 0.0388]
    """
    v, m = check_counts_of(counts, n_rows, "counts", "n_rows")
    e, v = check_counts_of(counted_duplicates, v, "counted_duplicates", "counts")
    deltas = np.full(v.shape, check_probability(delta, "delta"))
    # Duplicates are subtracted from count and total together: limits with the count
    # alone reduced would be valid, too, but smaller than needed.
    fresh = np.maximum(m - e, 1)  # where m is 0, the limit becomes NaN below
    limits = lower_limits(v - e, fresh, deltas)
    return np.where(m > 0, limits, np.nan)


def copies_refute_independence(times: NDArray[Any], level: float) -> bool:
    r"""Return whether rows repeat in a way in which independent draws cannot.

    `times` is how often each distinct row occurs, shape (n_distinct,), at least 1. If
    every second record is there twice, many rows occur twice and none three times.
    Independent draws that often occur twice also occur three times: with
    :math:`\Psi_k` the number of distinct rows that occur `k` times or more, a row of
    probability :math:`p` adds :math:`P(\mathrm{Bin}(n, p) \ge k)` to the mean of
    :math:`\Psi_k`. So the means of :math:`\Psi_k / n` and :math:`\Psi_{k+1} / n` are a
    point in the convex hull of the curve of :math:`(g_k, g_{k+1})` with
    :math:`g_k(\lambda) = P(\mathrm{Bin}(n, \lambda / n) \ge k) / \lambda`, whatever
    the population is. Its lower edge is the curve itself where :math:`g_k` rises, as
    the page on equal rows proves. How often rows occur is negatively associated, so
    Chernoff's limits of sums of independent indicators hold for both means.
    Independence is refuted where no point of the hull is within both limits; each
    :math:`k` has the share :math:`1 / (k (k - 1))` of `level`.

    Copies drawn with replacement, as in a bootstrap, are independent draws from the
    rows that they copy, and nothing refutes them.

    Guarantee: of independent draws from any one population it returns True with
    probability at most `level`.
    Assumes: no groups of rows, which occur together.
    Source: negative association, Joag-Dev and Proschan (1983); Chernoff's bounds for
    it, Dubhashi and Ranjan (1998).

    Examples
    --------
    >>> twice, once = np.full(300, 2), np.ones(200)
    >>> copies_refute_independence(np.concatenate([twice, once]), 1e-6)
    True
    >>> drawn = np.random.default_rng(0).integers(500, size=800)
    >>> copies_refute_independence(np.unique(drawn, return_counts=True)[1], 1e-6)
    False
    """
    n_rows = int(times.sum())
    for k in np.unique(times[times >= 2]).astype(int).tolist():
        level_of_one = level / (k * (k - 1))
        fewest = _mean_limits(int((times >= k).sum()), level_of_one / 2)[0] / n_rows
        most = _mean_limits(int((times > k).sum()), level_of_one / 2)[1] / n_rows
        means = np.geomspace(1e-4, min(3 * k, n_rows), 1_000)
        rising = stats.binom.sf(k - 1, n_rows, means / n_rows) / means
        rising = rising[: int(rising.argmax()) + 1]
        # This is the point of the grid below the limit, so that its steps raise no
        # false alarm.
        place = int(np.searchsorted(rising, fewest, side="right")) - 1
        # Between two points of the grid a row repeats no more often than at the second.
        if fewest > rising[-1] * means[1] / means[0]:
            return True
        if place >= 0:
            mean = means[place]
            if stats.binom.sf(k, n_rows, mean / n_rows) / mean > most:
                return True
    return False


def _mean_limits(count: int, level: float) -> tuple[float, float]:
    r"""Return limits of the mean of a sum of indicators, each wrong at most at `level`.

    Chernoff's bound of both tails is :math:`\exp(-(x \ln(x / \mu) - x + \mu))`; with
    :math:`\mu = -x w` it is `level` where :math:`w e^w = -e^{-1} level^{1 / x}`.
    """
    if count == 0:
        return 0.0, -log(level)
    product = -np.exp(-1.0 + log(level) / count)
    if product == 0.0:
        return 0.0, inf
    lower, upper = (special.lambertw(product, branch).real for branch in (0, -1))
    return -count * float(lower), -count * float(upper)
