"""Bounds from counts by class: missed rows, false predictions, and mean costs.

A model trained without a fold is tested on the rows of that fold. Rows of one class
are fresh draws from the class, and rows predicted as one class are fresh draws among
such predictions, so binomial limits hold for both. The model trained on all labeled
rows is bounded through a fold's model and the pool rows on which the two differ.
"""

from typing import Final

import numpy as np

from dsel import checks
from dsel.arrays import ArrayLike, Bools, Floats
from dsel.bounds.binomial import lower_limits, sum_outward, upper_limits

# They span two orders of magnitude: the best size depends on the unknown mean, and the
# average wealth of all sizes is at least a ninth of that of the best one.
BET_SIZES: Final = np.array([0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.7, 0.9])
"""Parts of the wealth that are bet against a mean; each starts with an equal sum."""


def added_misses(
    left: ArrayLike,
    pool_rows: ArrayLike,
    class_rows: ArrayLike,
    n_labeled: ArrayLike,
    *,
    delta: float,
) -> Floats:
    r"""Upper bound on the rise of a class's miss rate from one model to another.

    A row of the class that the second model misses is missed by the first, or leaves
    the class from the first to the second. With :math:`B` and :math:`b` the upper and
    lower binomial limits, the miss rate grows by at most

    .. math:: B\Big(l_i, m, \frac{\delta}{2k}\Big) \Big/ b\Big(n_c, n,
        \frac{\delta}{2}\Big).

    :math:`l_i` are the pool rows that the first model gives to the class and the second
    does not (the last axis is the fold of the first model), :math:`m` is the number of
    pool rows from :func:`upper_pool_rows`, and :math:`n_c` of the :math:`n` labeled
    rows are of the class. The bound is infinite where the labeled rows do not show that
    the class occurs.

    Guarantee: with probability at least ``1 - delta`` it holds for all folds at once.
    Assumes: i.i.d. labeled rows; a pool of fresh rows that no model saw; a class that
    was named before the rows were seen.
    Source: {second misses, of class c} lies in {first misses, of class c} or {first
    predicts c, second does not}; division by P(c), a constant, so that all labels may
    serve although the second model depends on them. Derived for dsel:
    docs/theory/by_class.md.

    Examples
    --------
    >>> added_misses([30, 12], 100_000, 80, 2_000, delta=0.005).round(4).tolist()
    [0.0176, 0.0093]
    """
    counts, rows = checks.check_counts_of(left, pool_rows, "left", "pool_rows")
    checks.check_axes(counts, "left", 1, "one number for each fold")
    half = checks.check_probability(delta, "delta") / 2
    moved = upper_limits(counts, rows, half / counts.shape[-1])
    labeled = checks.check_counts_of(class_rows, n_labeled, "class_rows", "n_labeled")
    least = lower_limits(*labeled, half)
    return _quotient_or_infinity(moved, np.asarray(least)[..., np.newaxis])


def added_false_predictions(
    first_limits: ArrayLike,
    first_predictions: ArrayLike,
    first_rows: ArrayLike,
    second_predictions: int,
    second_rows: int,
    joined: ArrayLike,
    joined_rows: ArrayLike,
    *,
    delta: float,
) -> Floats:
    r"""Upper bound on a model's fraction of false predictions, through another model.

    Where the second model wrongly predicts a class, the first one wrongly predicts it,
    too, or predicts another class. Let :math:`F_i` be the limit of the first model's
    fraction of false predictions, :math:`u_i` and :math:`v` the predictions of the
    class by each model, and :math:`j_i` those by the second alone, counted on a pool of
    :math:`m` rows. The bound is

    .. math:: F_i \, B\Big(u_i, m, \frac{\delta}{3k}\Big) \Big/
        b\Big(v, m, \frac{\delta}{3}\Big) + B\Big(j_i, v, \frac{\delta}{3k}\Big).

    The :math:`F_i` have a failure probability of their own; their last axis is the fold
    of the first model. Each count is followed by the number of rows that it is counted
    in. Where :math:`e` pool rows equal labeled rows, :math:`e_u`, :math:`e_v` and
    :math:`e_j` of them in the counts, these are :math:`u_i` of :math:`m - e + e_u`
    (:func:`upper_pool_rows`), :math:`v - e_v` of :math:`m - e_v`, and :math:`j_i` of
    :math:`v - e_v + e_j`. The bound is infinite where the pool does not show that the
    second model ever predicts the class.

    Guarantee: all bounds hold at once, except with probability ``delta`` plus that with
    which `first_limits` fail.
    Assumes: a pool of fresh rows that no model saw; a class that was named before.
    Source: {second predicts c, wrongly} lies in {first predicts c, wrongly} or {second
    predicts c, first does not}; division by P(second predicts c). Derived for dsel:
    docs/theory/by_class.md.

    Examples
    --------
    >>> added_false_predictions(
    ...     [0.2, 0.25], [900, 950], 10_000, 920, 10_000, [15, 60], 920, delta=0.005
    ... ).round(4).tolist()
    [0.2713, 0.407]
    """
    limits = checks.check_between(first_limits, "first_limits", 0.0, np.inf)
    third = checks.check_probability(delta, "delta") / 3
    firsts = checks.check_counts_of(
        first_predictions, first_rows, "first_predictions", "first_rows"
    )
    joins = checks.check_counts_of(joined, joined_rows, "joined", "joined_rows")
    limits, *counts = checks.broadcast(
        first_limits=limits, first_predictions=firsts[0], joined=joins[0]
    )
    checks.check_axes(limits, "first_limits", 1, "one number for each fold")
    most, moved = (
        upper_limits(count, rows, third / len(limits))
        for count, (_, rows) in zip(counts, (firsts, joins), strict=True)
    )
    least = lower_limits(
        *checks.check_counts_of(
            second_predictions, second_rows, "second_predictions", "second_rows"
        ),
        third,
    )
    product = np.nextafter(limits * most, np.inf)
    return sum_outward(_quotient_or_infinity(product, least), moved)


def counted_mean_limit(
    counts: ArrayLike, values: ArrayLike, *, delta: ArrayLike, duplicates: ArrayLike = 0
) -> Floats:
    r"""Upper limit for the mean of values in [0, 1], from the count of each value.

    The limit is the :math:`q` at which the wealth of bets against the mean :math:`q`,
    with fixed bet sizes :math:`c_g`, has grown by the factor :math:`1 / \delta`:

    .. math:: \frac1G \sum_g \prod_v \Big(1 + c_g \frac{q - v}{1 - q}\Big)^{n_v}
        = \frac1\delta.

    The last axis of `counts`, :math:`n_v`, is the value; `delta` is one number, or one
    for each mean. Up to `duplicates` of the rows of each value may be copies of labeled
    rows; those with values below :math:`q` are left out, since they would lower the
    limit. The limit is 1 where nothing was counted.

    Guarantee: with probability at least ``1 - delta`` the mean of the distribution is
    at most the limit.
    Assumes: independent draws; possible values that were known before.
    Source: at the true mean the wealth is a nonnegative martingale, which exceeds
    1/delta with probability at most delta (Ville's inequality); betting on means of
    bounded values follows Waudby-Smith and Ramdas. The wealth grows with q whichever
    rows are left out, so the least of these wealths does, too. It does not depend on
    the order of the rows.

    Examples
    --------
    >>> counted_mean_limit([[180, 15, 5]], [0, 0.02, 1], delta=0.05).round(4).tolist()
    [0.0746]
    """
    n_copies, n_rows = checks.check_counts_of(
        duplicates, counts, "duplicates", "counts"
    )
    ascending_values = checks.check_between(values, "values", 0.0, 1.0)
    if ascending_values.ndim != 1 or n_rows.shape[-1:] != ascending_values.shape:
        raise ValueError(
            f"`counts` must have one number for each of the values on the last axis, "
            f"got the shapes {n_rows.shape} and {ascending_values.shape} (`values`)."
        )
    order = np.argsort(ascending_values, kind="stable")
    shape = n_rows.shape[:-1]
    ascending_values = ascending_values[order]
    n_rows, n_copies = (
        a[..., order].reshape(-1, order.size) for a in (n_rows, n_copies)
    )
    deltas, _ = checks.broadcast(
        delta=checks.check_probabilities(delta, "delta"), counts=np.empty(shape)
    )
    checks.check_axes(deltas, "delta", len(shape), "one number, or one for each mean")
    log_target = np.log(len(BET_SIZES) / deltas.reshape(-1))

    def reaches_wealth(q: Floats) -> Bools:
        """Return whether the bets against a mean of q reach wealth 1 / delta."""
        odds = (q[:, np.newaxis] - ascending_values) / (1.0 - q[:, np.newaxis])
        factors = np.log1p(BET_SIZES[:, np.newaxis, np.newaxis] * odds)
        # This is the least wealth, whichever duplicates are copies: it also rises with
        # q.
        is_below = ascending_values < q[:, np.newaxis]
        fresh = n_rows - np.where(is_below, n_copies, 0)
        return np.asarray(
            np.logaddexp.reduce((fresh * factors).sum(axis=-1), axis=0) >= log_target
        )

    low, high = np.zeros(len(n_rows)), np.full(len(n_rows), 1.0 - 1e-12)
    has_limit = (n_rows.sum(axis=-1) > 0) & reaches_wealth(high)
    # The root is found by bisection: the wealth rises with q, so the upper end is
    # always a valid limit.
    for _ in range(60):
        middle = (low + high) / 2
        is_above = reaches_wealth(middle)
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    limits = np.where(has_limit, high, 1.0)
    return np.asarray(limits.reshape(shape))[()]


def _quotient_or_infinity(above: Floats, below: Floats) -> Floats:
    """Return a quotient, rounded up; infinity where the denominator may be 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, np.nextafter(above / below, np.inf), np.inf)
