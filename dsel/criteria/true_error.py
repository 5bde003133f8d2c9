"""The error of the full model on labeled test rows."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimate import Estimate, nothing


def true_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the error of the full model on labeled test rows, for evaluation only.

    Parameters
    ----------
    evidence
        Errors of the full model on test rows, and their number.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none for the best of several: choosing by it spends the test rows.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: trueE in Madani, Pennock and Flake (2004).
    """
    return np.asarray(evidence[names.FULL_TEST_ERRORS] / evidence[names.TEST_ROWS])


TRUE_ERROR = Estimate(
    name="true_error",
    counts=(names.FULL_TEST_ERRORS,),
    sizes=(names.TEST_ROWS,),
    estimate=true_error,
    label_term=nothing,
    disagreement_term=nothing,
    tie_break=true_error,
    by_halves=False,
)
"""Judge candidates by their error on labeled test rows, where these were given."""
