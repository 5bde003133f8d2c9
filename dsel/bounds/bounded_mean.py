"""Intervals for the mean of values in [0, 1], rows drawn with or without replacement.

Losses other than 0/1 errors are not binomial: these limits hold for any distribution on
[0, 1] and shrink with the variance that was seen.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dsel.arrays import Floats
from dsel.bounds.binomial import bracket_root
from dsel.checks import check_integer, check_probability

LARGEST_STAKE = 0.9
"""Below 1, so that no single value takes all of the wealth."""


class MeanInterval(NamedTuple):
    """A mean and the limits of what it estimates."""

    mean: float
    lower: float
    upper: float


def bounded_mean_interval(
    values: ArrayLike, *, delta: float, n_population: int | None = None
) -> MeanInterval:
    r"""Interval for the mean of values in [0, 1], by betting against each mean.

    The interval leaves out every mean :math:`m` for which one of the two capitals

    .. math:: \prod_t (1 + \lambda_t (x_t - m_t)), \qquad
              \prod_t (1 - \lambda_t (x_t - m_t))

    reaches :math:`2 / \delta`. Stakes :math:`\lambda_t` come from the values before
    :math:`t`; :math:`m_t = m` for independent draws, and without replacement
    :math:`m_t = (N m - \sum_{s < t} x_s) / (N - t + 1)`, the mean of what is left.

    Parameters
    ----------
    values
        In the order in which they were drawn, shape (n,).
    delta
        Probability with which the interval may fail, in (0, 1).
    n_population
        Number of rows that they were drawn from without replacement, N; None for
        independent draws from a distribution.

    Returns
    -------
    MeanInterval
        Mean of the values, and limits in [0, 1].

    Raises
    ------
    ValueError
        Where a value lies outside [0, 1], there is none, or there are more than N.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the mean of the distribution, or
    of all N rows, lies within the limits.
    Assumes: independent draws, or a random order of the N rows; also any sequence in
    which every value has the same mean given those before it.
    Source: I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables
    by betting, JRSS B 86, 2024, with stakes below 1 in place of truncated ones, so that
    both capitals are monotone in m.

    Examples
    --------
    >>> values = np.tile([0.0, 0.1, 0.0, 0.2], 100)
    >>> found = bounded_mean_interval(values, delta=0.05)
    >>> round(found.lower, 3), round(found.upper, 3)
    (0.062, 0.089)
    >>> whole = bounded_mean_interval(values, delta=0.05, n_population=400)
    >>> round(whole.lower, 6) == round(whole.upper, 6) == 0.075
    True
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x) or not ((x >= 0.0) & (x <= 1.0)).all():
        raise ValueError(
            "`values` must be one row of numbers in [0, 1], at least one; scale them "
            "by the largest that is possible."
        )
    share = check_probability(delta, "delta")
    n = len(x)
    before = np.append(0.0, np.cumsum(x)[:-1])
    if n_population is None:
        slope, offset, ends = np.ones(n), np.zeros(n), (0.0, 1.0)
    else:
        size = check_integer(n_population, "n_population", at_least=n)
        left = size - np.arange(n)
        slope, offset = size / left, before / left
        ends = float(x.sum() / size), float((x.sum() + size - n) / size)
    stakes = _stakes(x, before, share)

    def capital(m: Floats, side: float) -> Floats:
        means = slope * m[:, np.newaxis] - offset
        # Below 0 where m is impossible; the capital of the other side is large there.
        factors = np.maximum(1.0 + side * stakes * (x - means), 1e-300)
        return np.asarray(np.log(factors).sum(axis=1))

    enough = math.log(2.0 / share)
    low, high = np.array([ends[0]]), np.array([ends[1]])
    # The first capital falls in m, the second rises; a root is taken on the outer side.
    upper = bracket_root(lambda m: capital(m, -1.0) >= enough, low, high)[1]
    lower = bracket_root(lambda m: capital(m, 1.0) < enough, low, high)[0]
    mean = float(x.mean())
    return MeanInterval(mean, min(float(lower[0]), mean), max(float(upper[0]), mean))


def _stakes(x: Floats, before: Floats, delta: float) -> Floats:
    """Return stakes that fit the variance of the values before each."""
    steps = np.arange(len(x))
    # A quarter, the largest variance, counts as one value before the first.
    means = (0.5 + before) / (steps + 1.0)
    squares = np.append(0.0, np.cumsum((x - means) ** 2)[:-1])
    variances = (0.25 + squares) / (steps + 1.0)
    return np.minimum(
        np.sqrt(2.0 * math.log(2.0 / delta) / (variances * len(x))), LARGEST_STAKE
    )
