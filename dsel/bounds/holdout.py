"""The test-set bound: labeled rows that took no part in training."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import upper_limits


def holdout_bound(
    n_errors: ArrayLike, n_rows: ArrayLike, *, delta: ArrayLike
) -> NDArray[np.float64]:
    r"""Error bound from labeled rows that were held out.

    The :func:`binomial_tail_inversion` :math:`B(c, n, \delta)` of the errors on
    the held-out part.

    Parameters
    ----------
    n_errors
        Errors on the held-out rows, :math:`c`. Integers, any shape.
    n_rows
        Held-out rows, :math:`n`; broadcast against `n_errors`.
    delta
        Probability with which the bound may fail, in ``(0, 1)``; or one share
        for each candidate.

    Returns
    -------
    ndarray
        Bounds in ``(0, 1]``, in the broadcast shape.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the held-out rows, the
    error of the model trained on the other rows is at most the bound. With one
    share for each candidate all bounds hold at once, so the held-out rows may
    also be used to choose.
    Assumes: i.i.d. labeled rows, split at random before training; one candidate
    chosen without the held-out rows, or a share for each candidate.
    Source: the classical test-set bound; Clopper and Pearson (1934).

    Examples
    --------
    >>> float(holdout_bound(3, 100, delta=0.05).round(4))
    0.0757
    """
    errors, rows = checks.check_counts_of(n_errors, n_rows, "n_errors", "n_rows")
    return upper_limits(errors, rows, checks.check_probabilities(delta, "delta"))
