"""A schedule of looks at the pool, fixed in advance, each with a share of delta."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import upper_limits

Floats = NDArray[np.float64]


def look_schedule(n_unlabeled: int, n_looks: int) -> NDArray[np.int64]:
    """Return pool sizes at which to look, each about the same multiple of the last.

    Parameters
    ----------
    n_unlabeled
        Pool rows in all; the last look. At least 1.
    n_looks
        Looks wanted, fixed in advance. Short pools have fewer.

    Returns
    -------
    ndarray
        Rows at each look, strictly increasing, from about ``n_unlabeled ** (1/2)``.

    Raises
    ------
    ValueError
        Where there is no row or no look.

    Notes
    -----
    Guarantee: none of its own; :func:`limits_at_looks` gives the limits.
    Assumes: it is computed before the pool is read.
    Source: a geometric schedule, as slack falls with the square root of the rows.

    Examples
    --------
    >>> look_schedule(10_000, 3).tolist()
    [100, 1000, 10000]
    """
    rows = checks.check_integer(n_unlabeled, "n_unlabeled", at_least=1)
    looks = checks.check_integer(n_looks, "n_looks", at_least=1)
    first = rows if looks == 1 else rows**0.5
    sizes = np.unique(np.rint(np.geomspace(first, rows, looks)).astype(np.int64))
    sizes[-1] = rows
    return sizes


def limits_at_looks(
    n_disagreements: ArrayLike, n_rows: ArrayLike, *, delta: float
) -> Floats:
    r"""Upper limits of a rate at a fixed number of looks, valid at all of them.

    At each of :math:`J` looks the limit is :math:`B(s, t, \delta / J)`.

    Parameters
    ----------
    n_disagreements
        Disagreements up to each look, :math:`s`. Integers; looks on the last axis.
    n_rows
        Rows up to each look, :math:`t`, the whole schedule even where only part of
        it was read, broadcast against `n_disagreements`. The last axis is complete.
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
        Where a count exceeds its rows, or rows do not increase along the looks.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the rate is at most the limit
    at every look, so at the one where reading stopped, whatever the reason.
    Assumes: the schedule is fixed in advance; rows are independent.
    Source: the union bound over looks.

    Examples
    --------
    >>> limits_at_looks([2, 20], [100, 1000], delta=0.05).round(4).tolist()
    [0.0704, 0.0307]
    """
    counts, rows = checks.check_counts_of(
        n_disagreements, n_rows, "n_disagreements", "n_rows"
    )
    share = checks.check_probability(delta, "delta")
    if not rows.ndim or (np.diff(rows, axis=-1) <= 0).any():
        raise ValueError(
            "`n_rows` must have the looks on its last axis, in increasing order; "
            "call `look_schedule` before the pool is read."
        )
    return upper_limits(counts, rows, share / rows.shape[-1])


def doubling_shares(n_looks: int, *, delta: float) -> Floats:
    """Return shares for the first looks at a stream without an end.

    Look ``l`` (from 1) gets ``delta / (l (l + 1))``, so that looks can be added.

    Parameters
    ----------
    n_looks
        How many looks to give shares. At least 1.
    delta
        Probability with which any of the limits may fail, in ``(0, 1)``.

    Returns
    -------
    ndarray
        Shares that sum to less than delta, shape ``(n_looks,)``.

    Raises
    ------
    ValueError
        Where there is no look or ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: limits at these shares hold at every look at once.
    Assumes: the sizes of the looks are fixed in advance, say by doubling.
    Source: the union bound and a telescoping sum.

    Examples
    --------
    >>> doubling_shares(3, delta=0.12).round(3).tolist()
    [0.06, 0.02, 0.01]
    """
    looks = checks.check_integer(n_looks, "n_looks", at_least=1)
    number = np.arange(1.0, looks + 1)
    return checks.check_probability(delta, "delta") / (number * (number + 1))
