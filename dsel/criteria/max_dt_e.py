"""The larger of training error and disagreement's error, the paper's maxDtE."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.dis_error import dis_error
from dsel.criteria.estimate import Estimate
from dsel.criteria.train_error import train_error


def max_dt_e(evidence: Evidence) -> NDArray[np.float64]:
    """Return max(trainE, disE).

    Disagreement alone calls a constant learner perfect; its training error tells.

    Parameters
    ----------
    evidence
        Training errors, disagreements, their rows, and the number of classes.

    Returns
    -------
    ndarray
        Numbers in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; with random training rows it is usually below the error at half
    the rows, for labels picked by active learning nearer to the truth than
    cross-validation.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 2.2, e-hat.
    """
    return np.maximum(train_error(evidence), dis_error(evidence))


MAX_DT_E = Estimate(
    name="max_dt_e",
    counts=(names.TRAIN_ERRORS, names.DISAGREEMENTS),
    sizes=(names.TRAIN_ROWS, names.POOL_ROWS, names.N_UNLABELED, names.N_CLASSES),
    estimate=max_dt_e,
    label_term=train_error,
    disagreement_term=dis_error,
    tie_break=train_error,
)
"""Judge candidates by maxDtE; ties go to the lower training error."""
