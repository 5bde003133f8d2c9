"""Intervals for the mean of values in [0, 1], rows drawn with or without replacement.

Losses other than 0/1 errors, and importance-weighted losses, are not binomial: these
limits hold for any distribution on [0, 1] and shrink with the variance that was seen.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import Floats, bracket_root
from dsel.checks import check_integer, check_probability

LARGEST_STAKE = 0.9
"""Below 1, so that no single value takes all of the wealth."""
STAKES = np.geomspace(0.02, LARGEST_STAKE, 9)
"""Stakes where the mean may change: for some tens of values to some ten thousand."""


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


def leveled_risk(
    losses: ArrayLike,
    probabilities: ArrayLike,
    n_pool: int,
    *,
    least: float,
    delta: float,
) -> MeanInterval:
    r"""Risk of a fixed model on a pool, from rows drawn with known probabilities.

    Rows are picked one by one. The :math:`m`-th of :math:`M` was picked with
    probability :math:`q_m` among the :math:`N - m + 1` rows that were left, and has the
    loss :math:`L_m`. The leveled estimate is

    .. math:: \frac1M \sum_m v_m L_m, \qquad v_m = 1 + \frac{N - M}{N - m}
              \Big(\frac{1}{(N - m + 1) q_m} - 1\Big).

    The interval is that of another unbiased estimate from the same losses, the mean of
    :math:`a_m = L_m / (N q_m) + \frac1N \sum_{s < m} L_s`. Given the rows picked
    before, the expectation of :math:`a_m` is the mean loss on the pool, and
    :math:`a_m` lies in :math:`[0, 1/\epsilon]`.

    Parameters
    ----------
    losses
        In [0, 1], in the order in which rows were picked, shape (M,).
    probabilities
        Probability of each pick among the rows that were left, as it was when the row
        was picked, shape (M,).
    n_pool
        Number of pool rows, N >= M.
    least
        Part of the probability that is spread evenly over the rows that are left,
        :math:`\epsilon` in (0, 1]: every :math:`q_m` is at least
        :math:`\epsilon / (N - m + 1)`.
    delta
        Probability with which the interval may fail, in (0, 1).

    Returns
    -------
    MeanInterval
        The leveled estimate, which may lie above 1, and limits in [0, 1].

    Raises
    ------
    ValueError
        Where a loss lies outside [0, 1], a probability is smaller than `least` allows,
        or the arrays differ in length.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the picks, the mean loss of
    the pool's rows lies within the limits.
    Assumes: a model that was fixed before these rows were labeled; `probabilities` are
    those with which the rows were picked.
    Source: S. Farquhar, Y. Gal and T. Rainforth, On statistical bias in active
    learning, ICLR 2021, for both estimates; the limits are those of
    :func:`bounded_mean_interval`.

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
    size = check_integer(n_pool, "n_pool", at_least=1)
    left = size - np.arange(loss.size)
    if loss.ndim != 1 or loss.shape != chances.shape or not 0 < len(loss) <= size:
        raise ValueError(
            f"`probabilities` must have one chance for each of 1 to {size} losses."
        )
    _check_picks(loss, chances, left, least)
    weights = np.ones(len(loss))
    if len(loss) < size:
        weights += (size - len(loss)) / (left - 1.0) * (1.0 / (left * chances) - 1.0)
    before = np.append(0.0, np.cumsum(loss)[:-1])
    terms = loss / (size * chances) + before / size
    most = 1.0 / least  # (N - m + 1) / (N epsilon) + (m - 1) / N is less
    # Every term has the pool's mean loss as its mean, so they need not be independent.
    found = bounded_mean_interval(np.minimum(terms / most, 1.0), delta=delta)
    return MeanInterval(
        float((weights * loss).mean()), found.lower * most, min(found.upper * most, 1.0)
    )


def progressive_risk(
    losses: ArrayLike,
    probabilities: ArrayLike,
    earlier_losses: ArrayLike,
    n_left: ArrayLike,
    n_pool: int,
    *,
    least: float,
    delta: float,
) -> MeanInterval:
    r"""Mean risk on a pool of the models that an active learner had while it learned.

    Row :math:`m` is predicted by the model that was trained on the rows labeled before
    it. With :math:`L_m` the loss, :math:`q_m` the probability with which the row was
    picked among the :math:`n_m` rows of :math:`N` that were left, and :math:`E_m` the
    sum of the same model's losses on the rows labeled before,

    .. math:: a_m = \frac{L_m / q_m + E_m}{N}

    is unbiased for that model's mean loss on the pool. The estimate is the mean of
    :math:`a_1, \ldots, a_T`. With :math:`x_m = \epsilon a_m`, its limits lie at the
    distance

    .. math:: \min_\lambda \frac{\ln(2G/\delta) + \psi(\lambda) \sum_m
              (x_m - \hat x_m)^2}{\lambda T \epsilon}, \qquad
              \psi(\lambda) = -\ln(1 - \lambda) - \lambda,

    the minimum over :math:`G` stakes; :math:`\hat x_m` is the mean of the
    :math:`x` before :math:`m`.

    Parameters
    ----------
    losses, probabilities, delta
        As :func:`leveled_risk` takes them, shape (T,).
    earlier_losses
        Sum of the losses of the model that predicted the row, over the rows labeled
        before it, shape (T,).
    n_left
        Number of rows that the row was picked from, shape (T,).
    n_pool
        Number of pool rows, N, those of a random start included.
    least
        Part of the probability that is spread evenly over the rows that are left,
        :math:`\epsilon` in (0, 1]: every :math:`q_m` is at least
        :math:`\epsilon / n_m`.

    Returns
    -------
    MeanInterval
        The estimate, and limits in [0, 1].

    Raises
    ------
    ValueError
        Where a loss lies outside [0, 1], a probability is smaller than `least` allows,
        there are more earlier losses than rows, or the arrays differ in length.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the picks, the mean of these
    models' mean losses on the pool lies within the limits. It says nothing about the
    last model alone, which is better where learning helps.
    Assumes: `probabilities` are those with which rows were picked; each model is a
    function of the rows picked before, and of independent randomness.
    Source: :math:`e^{\lambda\xi - \psi(\lambda)\xi^2} \le 1 + \lambda\xi` for
    :math:`\xi \ge -1` (Fan, Grama and Liu 2015), taken at :math:`\xi = \pm(x_m -
    \hat x_m)`, makes :math:`e^{\pm\lambda(x_m - E x_m) - \psi(x_m - \hat x_m)^2}`
    have a mean of at most 1 given the past; their product, Markov and a union bound.

    Examples
    --------
    >>> left = np.arange(1000, 600, -1)
    >>> found = progressive_risk(
    ...     np.tile([0.0, 0.0, 0.0, 1.0], 100), 1.0 / left, np.arange(400) / 4, left,
    ...     1000, least=1.0, delta=0.1)
    >>> round(found.mean, 2), round(found.lower, 2), round(found.upper, 2)
    (0.25, 0.18, 0.32)
    """
    loss, chances, earlier, left = (
        np.asarray(each, dtype=np.float64)
        for each in (losses, probabilities, earlier_losses, n_left)
    )
    size = check_integer(n_pool, "n_pool", at_least=1)
    if not loss.size or {each.shape for each in (chances, earlier, left)} != {
        (loss.size,)
    }:
        raise ValueError(
            "`probabilities`, `earlier_losses` and `n_left` must have one number for "
            "each of `losses`, at least one."
        )
    _check_picks(loss, chances, left, least)
    if not ((earlier >= 0.0) & (earlier <= (size - left) * (1 + 1e-9))).all():
        raise ValueError(
            f"`earlier_losses` must be at least 0 and at most the number of rows "
            f"labeled before, `n_pool` = {size} less `n_left`."
        )
    x = least * (loss / chances + earlier) / size
    before = np.append(0.0, np.cumsum(x)[:-1]) / np.maximum(np.arange(len(x)), 1)
    spread = float(((x - before) ** 2).sum())
    cost = math.log(2 * len(STAKES) / check_probability(delta, "delta"))
    psi = -np.log1p(-STAKES) - STAKES
    half = float(((cost + psi * spread) / STAKES).min()) / (len(x) * least)
    mean = float(x.mean()) / least
    return MeanInterval(mean, max(0.0, mean - half), min(1.0, mean + half))


def _check_picks(
    losses: Floats, chances: Floats, left: NDArray[Any], least: float
) -> None:
    """Raise where a loss or a probability is none, or below `least`, as if greedy."""
    if not ((losses >= 0.0) & (losses <= 1.0) & ~(chances > 1.0 + 1e-9)).all():
        raise ValueError(
            "`losses` and `probabilities` must be in [0, 1]; scale losses by the "
            "largest that is possible."
        )
    if not 0.0 < least <= 1.0 or not (chances * left >= least * (1 - 1e-9)).all():
        raise ValueError(
            f"`least` must be in (0, 1] and `probabilities` at least `least` over the "
            f"number of rows left, got least={least!r}; rows that were picked greedily "
            f"(always the least sure one) cannot be weighted."
        )
