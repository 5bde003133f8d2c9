"""The larger of two-fold cross-validation and maxDtE."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.dis_error import dis_error
from dsel.criteria.estimate import Estimate
from dsel.criteria.max_dt_e import max_dt_e
from dsel.criteria.two_fold_cv import halves_cv


def max_cv_dt_e(evidence: Evidence) -> NDArray[np.float64]:
    """Return max(2cvE, maxDtE).

    Parameters
    ----------
    evidence
        Errors on both halves, disagreements, their rows, and the number of classes.

    Returns
    -------
    ndarray
        Numbers in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 3.2, who report preliminary
    evidence of a slight advantage over cross-validation alone.
    """
    return np.maximum(halves_cv(evidence), max_dt_e(evidence))


MAX_CV_DT_E = Estimate(
    name="max_cv_dt_e",
    counts=(names.TRAIN_ERRORS, names.FOLD_ERRORS, names.DISAGREEMENTS),
    sizes=(
        names.TRAIN_ROWS,
        names.FOLD_ROWS,
        names.POOL_ROWS,
        names.N_UNLABELED,
        names.N_CLASSES,
    ),
    estimate=max_cv_dt_e,
    label_term=halves_cv,
    disagreement_term=dis_error,
    tie_break=max_dt_e,
)
"""Judge candidates by the larger of both; ties go to the lower maxDtE."""
