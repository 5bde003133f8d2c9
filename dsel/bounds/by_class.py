"""Bounds from counts by class: missed rows, false answers, and mean costs.

A model without a fold is bounded by the rows of this fold, whatever is counted there:
rows of one class are fresh draws of this class, and answers of one class are fresh
draws among such answers. The model of all rows differs from it on counted pool rows.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.arrays import Floats
from dsel.bounds.binomial import lower_limits, upper_limits

STAKES: Final = np.array([0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.7, 0.9])
"""Parts of the wealth that are bet against a mean, each with the same starting sum."""


def added_misses(
    left: ArrayLike,
    pool_rows: ArrayLike,
    class_rows: ArrayLike,
    n_labeled: ArrayLike,
    *,
    delta: float,
) -> Floats:
    r"""Bound on the misses of one class that a second model has beyond a first one.

    A row of the class that the second model misses is missed by the first, or leaves
    the class from the first to the second. With :math:`B` and :math:`b` the upper and
    lower binomial limits, the miss rate grows by at most

    .. math:: B\Big(l_i, m, \frac{\delta}{2k}\Big) \Big/ b\Big(n_c, n,
        \frac{\delta}{2}\Big).

    :math:`l_i` are the pool rows that the first model gives to the class and the second
    does not (the last axis is the fold of the first model), :math:`m` the pool rows
    that count as seen, of :func:`upper_pool_rows`, and :math:`n_c` of the :math:`n`
    labeled rows are of the class. It is infinite where these do not show that the class
    occurs.

    Guarantee: with probability at least ``1 - delta`` it holds for all folds at once.
    Assumes: i.i.d. labeled rows; a pool of fresh rows that no model saw; a class that
    was named before the rows were seen.
    Source: {second misses, of class c} lies in {first misses, of class c} or {first
    says c, second does not}; division by P(c), a constant, so that all labels may serve
    although the second model depends on them. Not in the papers that dsel follows.

    Examples
    --------
    >>> added_misses([30, 12], 100_000, 80, 2_000, delta=0.005).round(4).tolist()
    [0.0176, 0.0093]
    """
    found = checks.check_counts(left, "left")
    share = checks.check_probability(delta, "delta") / 2
    rows = np.broadcast_to(checks.check_counts(pool_rows, "pool_rows"), found.shape)
    moved = upper_limits(np.minimum(found, rows), rows, share / found.shape[-1])
    labeled = np.broadcast_arrays(np.asarray(class_rows), np.asarray(n_labeled))
    least = lower_limits(labeled[0], labeled[1], share)
    return _over(moved, np.asarray(least)[..., np.newaxis])


def added_false_answers(
    first_limits: ArrayLike,
    first_answers: ArrayLike,
    first_rows: ArrayLike,
    second_answers: int,
    second_rows: int,
    joined: ArrayLike,
    joined_rows: ArrayLike,
    *,
    delta: float,
) -> Floats:
    r"""Bound on the share of false answers of a second model, through a first one.

    Where the second model says a class falsely, the first one says it, too, and is
    false, or does not say it. With :math:`F_i` the limit of the first model's share of
    false answers, :math:`u_i` and :math:`v` the answers of both, and :math:`j_i` those
    of the second alone, counted on a pool of :math:`m` rows,

    .. math:: F_i \, B\Big(u_i, m, \frac{\delta}{3k}\Big) \Big/
        b\Big(v, m, \frac{\delta}{3}\Big) + B\Big(j_i, v, \frac{\delta}{3k}\Big).

    The :math:`F_i` fail together with the probability that they were given; their last
    axis is the fold of the first model. Each count is followed by the rows by which it
    is read. Where :math:`e` rows equal labeled rows, :math:`e_u`, :math:`e_v` and
    :math:`e_j` of them in the counts, these are :math:`u_i` of :math:`m - e + e_u`
    (:func:`upper_pool_rows`), :math:`v - e_v` of :math:`m - e_v`, and :math:`j_i` of
    :math:`v - e_v + e_j`. It is infinite where the pool does not show that the second
    model ever gives this answer.

    Guarantee: with probability at least ``1 - delta``, beside that of `first_limits`,
    all hold at once.
    Assumes: a pool of fresh rows that no model saw; a class that was named before.
    Source: {second says c, falsely} lies in {first says c, falsely} or {second says c,
    first does not}; division by P(second says c). Not in the papers that dsel follows.

    Examples
    --------
    >>> added_false_answers(
    ...     [0.2, 0.25], [900, 950], 10_000, 920, 10_000, [15, 60], 920, delta=0.005
    ... ).round(4).tolist()
    [0.2713, 0.407]
    """
    limits = np.asarray(first_limits, dtype=np.float64)
    share = checks.check_probability(delta, "delta") / 3
    of_first = checks.check_counts_of(
        first_answers, first_rows, "first_answers", "first_rows"
    )
    of_joined = checks.check_counts_of(joined, joined_rows, "joined", "joined_rows")
    most, moved = (
        upper_limits(counts, rows, share / limits.shape[-1])
        for counts, rows in (of_first, of_joined)
    )
    least = lower_limits(np.array([second_answers]), np.array([second_rows]), share)
    return _over(limits * most, least) + moved


def counted_mean_limit(
    counts: ArrayLike,
    values: ArrayLike,
    *,
    delta: ArrayLike,
    duplicates: ArrayLike = 0,
) -> Floats:
    r"""Upper limit for the mean of values in [0, 1], from the count of each value.

    It is the :math:`q` at which a gambler, who has bet at fixed stakes :math:`c_g` that
    the mean is less, has his wealth multiplied by :math:`1 / \delta`:

    .. math:: \frac1G \sum_g \prod_v \Big(1 + c_g \frac{q - v}{1 - q}\Big)^{n_v}
        = \frac1\delta.

    The last axis of `counts`, :math:`n_v`, is the value; `delta` is one number, or one
    for each mean. So many as `duplicates` of the rows of each value may be no fresh
    draws: those of values below :math:`q` are taken out, since they lower the limit. It
    is 1 where nothing was seen.

    Guarantee: with probability at least ``1 - delta`` the mean of the distribution is
    at most the limit.
    Assumes: independent draws; possible values that were known before.
    Source: for a true mean q the wealth is a nonnegative martingale (Ville), and it
    grows with q, whichever rows are taken out, so that the least of these wealths does,
    too. It does not depend on the order of the rows.

    Examples
    --------
    >>> counted_mean_limit([[180, 15, 5]], [0, 0.02, 1], delta=0.05).round(4).tolist()
    [0.0746]
    """
    seen = np.atleast_2d(checks.check_counts(counts, "counts"))
    worth = np.asarray(values, dtype=np.float64)
    order = np.argsort(worth, kind="stable")
    seen, worth = seen[..., order], worth[order]
    shape = np.asarray(counts).shape[:-1]
    shares = np.broadcast_to(checks.check_probabilities(delta, "delta"), shape)
    enough = np.log(len(STAKES) / shares.reshape(-1))
    stale = np.broadcast_to(checks.check_counts(duplicates, "duplicates"), seen.shape)
    stale = stale[..., order]
    is_open = seen.sum(axis=-1) > 0

    def is_rich(q: Floats) -> NDArray[np.bool_]:
        odds = (q[:, np.newaxis] - worth) / (1.0 - q[:, np.newaxis])
        factors = np.log1p(STAKES[:, np.newaxis, np.newaxis] * odds)
        # The least wealth, whichever of the duplicates are stale: it also rises with q.
        fresh = seen - np.where(worth < q[:, np.newaxis], stale, 0)
        return np.asarray(
            np.logaddexp.reduce((fresh * factors).sum(axis=-1), axis=0) >= enough
        )

    low, high = np.zeros(len(seen)), np.full(len(seen), 1.0 - 1e-12)
    is_open &= is_rich(high)
    for _ in range(60):  # halves the bracket; its upper end is on the safe side
        middle = (low + high) / 2
        is_above = is_rich(middle)
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    limits = np.where(is_open, high, 1.0)
    return np.asarray(limits.reshape(shape))[()]


def _over(above: Floats, below: Floats) -> Floats:
    """Return a quotient; infinity where the denominator may be 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.inf)
