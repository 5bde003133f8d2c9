"""The error of half models on their own training rows."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimate import Estimate, nothing


def half_error(
    errors: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over halvings of the average of the two halves' error rates.

    .. math:: \frac{1}{2R} \sum_{r, h} \frac{c_{rh}}{n_{rh}}.

    Parameters
    ----------
    errors
        Errors of each half's model, shape ``(n_candidates, n_repeats, 2)``, or the
        last two axes in one.
    rows
        Rows that they were counted in: one number, or one a half.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 3.1; whether trainE there is
    that of the halves or of the full model is not said. These are the halves.

    Examples
    --------
    >>> half_error(np.array([[[1, 0], [0, 3]]]), np.array([[10, 10], [10, 10]]))
    array([0.1])
    """
    rates = errors.reshape(len(errors), -1) / np.ravel(rows)
    return np.asarray(rates.mean(axis=1))


def train_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return `half_error` on the halves' own rows, the paper's trainE."""
    return half_error(evidence[names.TRAIN_ERRORS], evidence[names.TRAIN_ROWS])


TRAIN_ERROR = Estimate(
    name="train_error",
    counts=(names.TRAIN_ERRORS,),
    sizes=(names.TRAIN_ROWS,),
    estimate=train_error,
    label_term=train_error,
    disagreement_term=nothing,
    tie_break=train_error,
)
"""Judge candidates by their training error; overfitting ones win."""
