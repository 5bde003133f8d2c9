"""Repeated two-fold cross-validation: each half's model on the other half."""

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimate import Estimate, nothing


def two_fold_cv(
    fold_errors: NDArray[np.int64], fold_rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over halvings of the error rate when each half's model tests the other.

    .. math:: \frac1R \sum_r \frac{c_{r1} + c_{r2}}{n}.

    Parameters
    ----------
    fold_errors
        Errors on the other half, shape ``(n_candidates, n_repeats, 2)``, or the last
        two axes in one.
    fold_rows
        Rows of each half; the two of a halving sum to n.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; unbiased for the error of models of half the rows (about) where
    rows were drawn at random, too high where hard ones were picked.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: Madani, Pennock and Flake (2004), section 3.1, there 2cvE.

    Examples
    --------
    >>> two_fold_cv(np.array([[[1, 2], [0, 3]]]), np.array([[10, 10], [10, 10]]))
    array([0.15])
    """
    errors = fold_errors.reshape(len(fold_errors), -1).sum(axis=1)
    return np.asarray(errors / fold_rows.sum())


def halves_cv(evidence: Evidence) -> NDArray[np.float64]:
    """Return `two_fold_cv` of the cube's counts."""
    return two_fold_cv(evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS])


TWO_FOLD_CV = Estimate(
    name="two_fold_cv",
    counts=(names.FOLD_ERRORS,),
    sizes=(names.FOLD_ROWS,),
    estimate=halves_cv,
    label_term=halves_cv,
    disagreement_term=nothing,
    tie_break=halves_cv,
)
"""Judge candidates by repeated two-fold cross-validation."""
