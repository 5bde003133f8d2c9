"""Stages in which a pool is read, fixed in advance, each with a share of delta."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import Floats, upper_limits


def stage_schedule(n_unlabeled: int, n_stages: int) -> NDArray[np.int64]:
    """Return numbers of rows at which reading may stop, in about equal ratios.

    Parameters
    ----------
    n_unlabeled
        Pool rows in all; the last stage. At least 1.
    n_stages
        Number of stages, fixed in advance. Short pools get fewer.

    Returns
    -------
    ndarray
        Rows read at each stage, strictly increasing: from about the square root of
        `n_unlabeled`, or with one stage from `n_unlabeled` itself, up to `n_unlabeled`.

    Raises
    ------
    ValueError
        Where there is no row or no stage.

    Notes
    -----
    Guarantee: none of its own; :func:`limits_at_stages` gives the limits.
    Assumes: it is computed before the pool is read.
    Source: a geometric schedule, since a limit's distance from the rate falls with the
    square root of the rows.

    Examples
    --------
    >>> stage_schedule(10_000, 3).tolist()
    [100, 1000, 10000]
    """
    rows = checks.check_integer(n_unlabeled, "n_unlabeled", at_least=1)
    stages = checks.check_integer(n_stages, "n_stages", at_least=1)
    first = rows if stages == 1 else rows**0.5
    # Rounded stages of a short pool may coincide; fewer than declared is conservative.
    sizes = np.unique(np.rint(np.geomspace(first, rows, stages)).astype(np.int64))
    sizes[-1] = rows
    return sizes


def limits_at_stages(
    n_disagreements: ArrayLike, n_rows: ArrayLike, *, delta: float
) -> Floats:
    r"""Upper limits of a rate at a fixed number of stages, valid at all of them.

    At each of :math:`J` stages the limit is :math:`B(s, t, \delta / J)`.

    Parameters
    ----------
    n_disagreements
        Disagreements up to each stage, :math:`s`. Integers; stages on the last axis.
    n_rows
        Rows up to each stage, :math:`t`, broadcast against `n_disagreements`. All
        stages of the schedule must be given, even where reading stopped earlier: their
        number divides delta.
    delta
        Probability with which any of the limits may fail, in ``(0, 1)``.

    Returns
    -------
    ndarray
        Limits in ``(0, 1]``, in the broadcast shape.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or rows do not increase along the stages.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the rate is at most the limit
    at every stage, so at the one where reading stopped, whatever the reason.
    Assumes: the schedule is fixed in advance; rows are independent.
    Source: the union bound over stages.

    Examples
    --------
    >>> limits_at_stages([2, 20], [100, 1000], delta=0.05).round(4).tolist()
    [0.0704, 0.0307]
    """
    counts, rows = checks.check_counts_of(
        n_disagreements, n_rows, "n_disagreements", "n_rows"
    )
    share = checks.check_probability(delta, "delta")
    if not rows.ndim or (np.diff(rows, axis=-1) <= 0).any():
        raise ValueError(
            "`n_rows` must have the stages on its last axis, in increasing order; "
            "call `stage_schedule` before the pool is read."
        )
    return upper_limits(counts, rows, share / rows.shape[-1])
