"""Intervals for the mean of values in [0, 1], rows drawn with or without replacement.

Losses that are no 0/1 errors, and importance weighted ones, are not binomial: these
limits hold for any law on [0, 1] and shrink with the variance that was seen.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import bracket_root
from dsel.checks import check_integer, check_probability

LARGEST_STAKE = 0.9
"""Below 1, so that no single value takes all of the wealth."""

Floats = NDArray[np.float64]


class MeanInterval(NamedTuple):
    """A mean and the limits of what it estimates.

    Notes
    -----
    Guarantee: as the function that returned it.
    Assumes: as the function that returned it.
    Source: as the function that returned it.
    """

    mean: float
    lower: float
    upper: float


def bounded_mean_interval(
    values: ArrayLike, *, delta: float, n_population: int | None = None
) -> MeanInterval:
    r"""Interval for the mean of values in [0, 1], by betting against each mean.

    A mean :math:`m` is left out where one of the two capitals

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
        Rows that they were drawn from without replacement, N; None for independent
        draws from a law.

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
    Guarantee: with probability at least ``1 - delta`` the mean of the law, or of all N
    rows, lies within the limits.
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


def leveled_risk(
    losses: ArrayLike,
    probabilities: ArrayLike,
    n_pool: int,
    *,
    least: float,
    delta: float,
) -> MeanInterval:
    r"""Risk of a fixed model on a pool, from rows picked one by one with known chances.

    With the :math:`m`-th of :math:`M` rows picked of the :math:`N - m + 1` that are
    left with chance :math:`q_m`, the leveled estimate is

    .. math:: \frac1M \sum_m v_m L_m, \qquad v_m = 1 + \frac{N - M}{N - m}
              \Big(\frac{1}{(N - m + 1) q_m} - 1\Big).

    The interval is of another unbiased sum of the same losses, the mean of
    :math:`a_m = L_m / (N q_m) + \frac1N \sum_{s < m} L_s`: given the past each of these
    has the mean loss of the pool as its mean, and lies in :math:`[0, 1/\epsilon]`.

    Parameters
    ----------
    losses
        In [0, 1], in the order in which rows were picked, shape (M,).
    probabilities
        Chance of each among the rows that were left, logged when it was picked.
    n_pool
        Rows of the pool, N.
    least
        Part of the chance that is given to all rows alike, :math:`\epsilon` in (0, 1]:
        every :math:`q_m` is at least :math:`\epsilon / (N - m + 1)`.
    delta
        Probability with which the interval may fail, in (0, 1).

    Returns
    -------
    MeanInterval
        The leveled estimate, which may lie above 1, and limits in [0, 1].

    Raises
    ------
    ValueError
        Where a loss lies outside [0, 1], or a chance below what `least` says.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the picks, the mean loss of
    the pool's rows lies within the limits.
    Assumes: a model that was fixed before these rows were labeled, and the chances with
    which they were really picked.
    Source: S. Farquhar, Y. Gal and T. Rainforth, On statistical bias in active
    learning, ICLR 2021, for both estimates; the limits of `bounded_mean_interval`.

    Examples
    --------
    >>> chances = 1.0 / np.arange(1000, 800, -1)  # all rows alike
    >>> found = leveled_risk(
    ...     np.tile([0.0, 0.0, 0.0, 1.0], 50), chances, 1000, least=1.0, delta=0.1)
    >>> round(found.mean, 3), round(found.lower, 2), round(found.upper, 2)
    (0.25, 0.19, 0.32)
    """
    loss = np.asarray(losses, dtype=np.float64)
    chances = np.asarray(probabilities, dtype=np.float64)
    size, floor = check_integer(n_pool, "n_pool", at_least=1), float(least)
    m = np.arange(len(loss))
    left = size - m
    if loss.ndim != 1 or loss.shape != chances.shape or not 0 < len(loss) <= size:
        raise ValueError(
            f"`probabilities` must have one chance for each of 1 to {size} losses."
        )
    if not 0.0 < floor <= 1.0 or (chances * left < floor * (1 - 1e-9)).any():
        raise ValueError(
            f"`least` must be in (0, 1] and `probabilities` at least `least` over the "
            f"rows that were left, got least={least!r}; rows that were picked greedily "
            f"have no chance and cannot be weighted."
        )
    weights = np.ones(len(loss))
    if len(loss) < size:
        weights += (size - len(loss)) / (left - 1.0) * (1.0 / (left * chances) - 1.0)
    before = np.append(0.0, np.cumsum(loss)[:-1])
    terms = loss / (size * chances) + before / size
    most = 1.0 / floor  # (N - m + 1) / (N epsilon) + (m - 1) / N is less
    # Every term has the pool's mean loss as its mean, so they need not be independent.
    found = bounded_mean_interval(np.minimum(terms / most, 1.0), delta=delta)
    return MeanInterval(
        float((weights * loss).mean()), found.lower * most, min(found.upper * most, 1.0)
    )
