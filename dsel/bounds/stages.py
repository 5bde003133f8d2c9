"""Stages in which a pool is read, fixed in advance."""

import numpy as np
from numpy.typing import NDArray

from dsel import checks


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
    Guarantee: none of its own; :class:`FixedStages` gives the limits.
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
