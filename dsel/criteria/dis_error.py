"""The lower bound on the error that disagreement implies, as an estimate of it."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import error_from_disagreement
from dsel.criteria.base import Evidence
from dsel.criteria.disagreement import pool_disagreement
from dsel.criteria.estimate import Estimate, nothing


def dis_error(evidence: Evidence) -> NDArray[np.float64]:
    r"""Return :math:`e_l(\hat d; C)`, the paper's disE, for the cube's classes.

    The mean over halvings goes into the formula, not out of it: the mean of
    :math:`e_l(D_r)` is larger, since :math:`e_l` is convex.

    Parameters
    ----------
    evidence
        Disagreements, pool rows and number of classes.

    Returns
    -------
    ndarray
        Numbers in [0, (C-1)/C], one per candidate.

    Notes
    -----
    Guarantee: none; an estimate of a lower bound on the error at half the rows.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), equation (4), for C classes.
    """
    return error_from_disagreement(
        pool_disagreement(evidence), n_classes=int(evidence[names.N_CLASSES])
    )


DIS_ERROR = Estimate(
    name="dis_error",
    counts=(names.DISAGREEMENTS,),
    sizes=(names.POOL_ROWS, names.N_UNLABELED, names.N_CLASSES),
    estimate=dis_error,
    label_term=nothing,
    disagreement_term=dis_error,
    tie_break=pool_disagreement,
)
"""Judge candidates by disE; clipped ones tie, so disagreement decides there."""
