"""Lower bounds on the error, and intervals that pay for the disagreement once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.best_fold import fold_limits, smallest_rate
from dsel.bounds.binomial import lower_limits, upper_limits
from dsel.bounds.semi_supervised import check_folds, mean_of_limits

Floats = NDArray[np.float64]


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
) -> ErrorInterval:
    r"""Interval for the error from fold errors and disagreement on the pool.

    With the limits :math:`b \le B` of each fold at :math:`\gamma\delta / 2k` and the
    limit :math:`T_2 = B(a, m, (1-\gamma)\delta)` of the disagreement,

    .. math::
        \frac1k \sum_i b_i - T_2 \le \mathrm{err}(f) \le \frac1k \sum_i B_i + T_2.

    Parameters
    ----------
    fold_errors
        Errors of each fold's model on its held-out rows. Integers; the last axis
        is the fold, the others are candidates of any shape.
    fold_rows
        Held-out rows of each fold, broadcast against `fold_errors`.
    n_disagreements
        Pool rows on which the full model differs from the fold model drawn for
        the row. Integers in the shape of the candidates.
    n_unlabeled
        Pool rows visited. Integers >= 0.
    delta
        Probability with which the interval may miss, in ``(0, 1)``; or one share
        for each candidate.
    label_share
        Part of ``delta`` spent on the fold limits, in ``(0, 1)``.

    Returns
    -------
    ErrorInterval
        `lower` and `upper`, in the shape of the candidates.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or a probability lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the error of the full model
    lies in the interval. The disagreement is one event and serves both sides.
    Assumes: what :func:`semi_supervised_cv_bound` assumes.
    Source: as there, with the lower limits of the folds beside the upper ones.

    Examples
    --------
    >>> interval = cv_interval([12, 9], [100, 100], 30, 10_000, delta=0.05)
    >>> [round(float(limit), 3) for limit in interval]
    [0.039, 0.209]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    disagreements, pool = checks.check_counts_of(
        n_disagreements, n_unlabeled, "n_disagreements", "n_unlabeled"
    )
    shares = checks.check_probabilities(delta, "delta")
    gamma = checks.check_probability(label_share, "label_share")
    second = upper_limits(disagreements, pool, (1.0 - gamma) * shares)
    upper = mean_of_limits(errors, rows, gamma * shares / 2.0) + second
    below = _lower_fold_limits(errors, rows, gamma * shares / 2.0).mean(axis=-1)
    return ErrorInterval(np.maximum(below - second, 0.0), upper)


def best_fold_interval(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    fold_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
) -> ErrorInterval:
    r"""Interval for the error through the best fold and the worst one.

    The upper end goes through the fold :math:`i^*` that errs least, the lower end
    through the fold :math:`i^+` with the largest lower limit. They are two events on
    the pool, so each gets half of what disagreement may spend; where both are the
    same fold, one event serves both sides.

    Parameters
    ----------
    fold_errors
        Errors of each fold's model on its held-out rows. Integers; the last axis
        is the fold, the others are candidates of any shape.
    fold_rows
        Held-out rows of each fold, broadcast against `fold_errors`.
    fold_disagreements
        Pool rows on which the full model differs from each fold's model. Integers,
        folds on the last axis; only those of the two folds are used.
    n_unlabeled
        Pool rows visited. Integers >= 0.
    delta
        Probability with which the interval may miss, in ``(0, 1)``; or one share
        for each candidate.
    label_share
        Part of ``delta`` spent on the fold limits, in ``(0, 1)``.

    Returns
    -------
    ErrorInterval
        `lower` and `upper`, in the shape of the candidates.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or a probability lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the error of the full model
    lies in the interval.
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
    shares = checks.check_probabilities(delta, "delta")
    gamma = checks.check_probability(label_share, "label_share")
    upper = fold_limits(errors, rows, gamma * shares / 2.0)
    lower = _lower_fold_limits(errors, rows, gamma * shares / 2.0)
    best = np.expand_dims(smallest_rate(errors, rows), -1)
    worst = lower.argmax(axis=-1)[..., np.newaxis]
    per_side = np.where(best == worst, 1.0, 0.5)[..., 0] * (1.0 - gamma) * shares
    differing, pool = checks.check_counts_of(
        fold_disagreements, n_unlabeled, "fold_disagreements", "n_unlabeled"
    )
    differing = np.broadcast_to(differing, lower.shape)
    pool = np.broadcast_to(pool, lower.shape)

    def through(number: NDArray[np.intp], limits: Floats) -> tuple[Floats, Floats]:
        limit, count, visited = (
            np.take_along_axis(each, number, -1)[..., 0]
            for each in (limits, differing, pool)
        )
        return np.asarray(limit), upper_limits(count, visited, per_side)

    (first, add), (last, subtract) = through(best, upper), through(worst, lower)
    return ErrorInterval(np.maximum(last - subtract, 0.0), first + add)


def _lower_fold_limits(
    errors: NDArray[np.int64], rows: NDArray[np.int64], share: Floats | float
) -> Floats:
    per_fold = np.asarray(share)[..., np.newaxis] / errors.shape[-1]
    return np.asarray(lower_limits(errors, rows, per_fold))
