"""Intervals for the error: a lower and an upper bound that hold at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dsel import checks
from dsel.bounds.best_fold import at_fold, smallest_rate
from dsel.bounds.binomial import Floats, lower_limits
from dsel.bounds.semi_supervised import (
    check_folds,
    divide_delta,
    fold_limits,
    mean_of_limits,
    with_disagreement,
)
from dsel.bounds.stopping import WHOLE_POOL, StoppingRule


class ErrorInterval(NamedTuple):
    """Two limits between which the error lies."""

    lower: Floats
    """Lower bound, at least 0."""
    upper: Floats
    """Upper bound, not clipped at 1."""


def cv_interval(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    n_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
    reading: StoppingRule = WHOLE_POOL,
) -> ErrorInterval:
    r"""Interval for the error from fold errors and disagreement on the pool.

    With the limits :math:`b \le B` of each fold at :math:`\gamma\delta / 2k` and the
    limit :math:`T_2 = B(a, m, (1-\gamma)\delta)` of the disagreement,

    .. math::
        \frac1k \sum_i b_i - T_2 \le \mathrm{err}(f) \le \frac1k \sum_i B_i + T_2.

    Parameters
    ----------
    fold_errors, fold_rows, n_disagreements, n_unlabeled, delta, label_share, reading
        As :func:`cv_bound` takes them, with the same errors.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows, pool and
    draws, the error of the full model lies in the interval. The limit of the
    disagreement is one event and serves both sides.
    Assumes: what :func:`cv_bound` assumes.
    Source: that of :func:`cv_bound`, with the lower limits of the folds
    beside the upper ones.

    Examples
    --------
    >>> interval = cv_interval([12, 9], [100, 100], 30, 10_000, delta=0.05)
    >>> [round(float(limit), 3) for limit in interval]
    [0.039, 0.209]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    labeled, second = divide_delta(delta, label_share)
    # Upper and lower limits of the folds are different events; the disagreement is one
    # event that serves both sides.
    side = labeled / 2.0
    upper, _, disagreement = with_disagreement(
        mean_of_limits(errors, rows, side),
        n_disagreements,
        n_unlabeled,
        share=second,
        reading=reading,
    )
    below = fold_limits(errors, rows, side, limits=lower_limits).mean(axis=-1)
    return ErrorInterval(np.maximum(below - disagreement, 0.0), upper)


def best_fold_interval(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    fold_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
    reading: StoppingRule = WHOLE_POOL,
) -> ErrorInterval:
    """Interval for the error through the best fold and the worst one.

    The upper end is the upper limit of the fold :math:`i^*` of smallest error rate plus
    the limit of its disagreement. The lower end is the largest lower limit of a fold,
    :math:`i^+`, minus the limit of its disagreement. The two disagreements are two
    events, so each gets half of the disagreement's part of delta; where both folds are
    the same, one event serves both sides.

    Parameters
    ----------
    fold_errors, fold_rows, n_unlabeled, delta, label_share, reading
        As :func:`cv_bound` takes them, with the same errors.
    fold_disagreements
        Pool rows on which the full model differs from each fold's model. Integers,
        folds on the last axis; only those of the two folds are used.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    error of the full model lies in the interval.
    Assumes: what :func:`best_fold` assumes; both folds are functions of the labeled
    rows alone.
    Source: as :func:`best_fold`, on both sides.

    Examples
    --------
    >>> interval = best_fold_interval(
    ...     [12, 9], [100, 100], [30, 25], 10_000, delta=0.05
    ... )
    >>> [round(float(limit), 3) for limit in interval]
    [0.048, 0.19]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    labeled, second = divide_delta(delta, label_share)
    upper = fold_limits(errors, rows, labeled / 2.0)
    lower = fold_limits(errors, rows, labeled / 2.0, limits=lower_limits)
    best = np.expand_dims(smallest_rate(errors, rows), -1)
    # The error is at least that of any fold model less its disagreement: the fold with
    # the largest lower limit says most.
    worst = lower.argmax(axis=-1)[..., np.newaxis]
    per_side = np.where(best == worst, 1.0, 0.5)[..., 0] * second
    differing, pool = checks.check_counts_of(
        fold_disagreements, n_unlabeled, "fold_disagreements", "n_unlabeled"
    )
    differing = np.broadcast_to(differing, lower.shape)
    pool = np.broadcast_to(pool, lower.shape)

    add, subtract = (
        reading.limits(at_fold(differing, fold), at_fold(pool, fold), per_side)
        for fold in (best, worst)
    )
    below = np.maximum(at_fold(lower, worst) - subtract, 0.0)
    return ErrorInterval(below, at_fold(upper, best) + add)
