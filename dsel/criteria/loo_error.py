"""Leave-one-out error of the labeled rows."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimate import Estimate, nothing


def loo_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the share of labeled rows that the model of all others errs on.

    Parameters
    ----------
    evidence
        Leave-one-out errors and the number of labeled rows.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; nearly unbiased where rows were drawn at random.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: the leave-one-out estimate, looE in Madani, Pennock and Flake (2004).
    """
    return np.asarray(evidence[names.LOO_ERRORS] / evidence[names.N_LABELED])


LOO_ERROR = Estimate(
    name="loo_error",
    counts=(names.LOO_ERRORS,),
    sizes=(names.N_LABELED,),
    estimate=loo_error,
    label_term=loo_error,
    disagreement_term=nothing,
    tie_break=loo_error,
    by_halves=False,
)
"""Judge candidates by leave-one-out."""
