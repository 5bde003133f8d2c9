"""The error of the half models on labeled test rows."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimate import Estimate, nothing
from dsel.criteria.train_error import half_error


def half_true_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the mean error of the half models on labeled test rows.

    Parameters
    ----------
    evidence
        Errors of the half models on test rows, and their number.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; it is what disagreement and two-fold cross-validation estimate.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: 1/2trueE in Madani, Pennock and Flake (2004).
    """
    return half_error(evidence[names.HALF_TEST_ERRORS], evidence[names.TEST_ROWS])


HALF_TRUE_ERROR = Estimate(
    name="half_true_error",
    counts=(names.HALF_TEST_ERRORS,),
    sizes=(names.TEST_ROWS,),
    estimate=half_true_error,
    label_term=nothing,
    disagreement_term=nothing,
    tie_break=half_true_error,
)
"""Judge candidates by the error of their half models on labeled test rows."""
