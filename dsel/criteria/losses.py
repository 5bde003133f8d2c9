r"""Estimates of the squared error of least squares: five formulas, one rule for ties.

Each estimates G + :math:`\sigma^2`, the squared error against the target function and
the noise, in squared units of the target. Ties go to the larger regularization, then to
the larger width: the smoother model.

Guarantee: none with a probability. The expectation of an estimate from rows left out is
the expectation of G + :math:`\sigma^2` at the number of training rows that remain.
Assumes: i.i.d. inputs and zero-mean noise of equal variance, independent of all.
Source: M. Sugiyama, Pattern Information Processing: Model Selection by Cross-Validation
(slides), but for `gcv`; `dsel.solvers.least_squares` has the proof of the closed form.

To add one: the formula, and its line in `LOSSES`.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence
from dsel.criteria.estimates import Estimate, Formula

Floats = NDArray[np.float64]

ROUNDING: Final = 1e-12
"""Scores this close, relative to the smallest, count as equal."""


def smoothness_rank(evidence: Evidence) -> Floats:
    """Return the place of each candidate, that of the smoothest model being 0."""
    order = np.lexsort((-evidence[names.WIDTH], -evidence[names.REGULARIZATION]))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    return rank


def leave_one_out(evidence: Evidence) -> Floats:
    r"""Return :math:`\frac1n \sum_j (\hat f_j(x_j) - y_j)^2`, f_j trained without j."""
    return np.asarray(evidence[names.LOO_LOSSES] / evidence[names.N_LABELED])


def generalised_cross_validation(evidence: Evidence) -> Floats:
    r"""Return :math:`n \|H y\|^2 / (\mathrm{tr}\, H)^2`.

    That is leave-one-out with the mean of the diagonal of H in the place of its
    entries. Source: G. Golub, M. Heath and G. Wahba, Technometrics 21, 1979.
    """
    return np.asarray(evidence[names.GCV_LOSSES] / evidence[names.N_LABELED])


def k_fold(evidence: Evidence) -> Floats:
    """Return the mean over folds of the mean squared residual on the held-out fold."""
    rates = evidence[names.FOLD_LOSSES] / evidence[names.FOLD_ROWS]
    return np.asarray(rates.mean(axis=-1))


def first_fold(evidence: Evidence) -> Floats:
    """Return the mean squared residual on the first fold, which was held out."""
    first = evidence[names.FOLD_LOSSES][..., 0] / evidence[names.FOLD_ROWS][0]
    return np.asarray(first)


def extra_sample(evidence: Evidence) -> Floats:
    """Return the mean squared residual of the full model on other rows.

    Unbiased for the full model itself, if the extra rows were drawn like the others
    and independent of them. Rows used to choose are no longer fresh for the candidate
    that was chosen.
    """
    return np.asarray(evidence[names.EXTRA_LOSS], np.float64)


def _of_squares(name: str, formula: Formula, count: str, *sizes: str) -> Estimate:
    return Estimate(
        name,
        formula,
        (count,),
        sizes,
        label_term=formula,
        tie_break=smoothness_rank,
        rounding=ROUNDING,
        reads_whole_pool=False,
        can_prune=False,  # all regularizations of a width are known at once
    )


LOSSES: Final = (
    _of_squares("loo", leave_one_out, names.LOO_LOSSES, names.N_LABELED),
    _of_squares("gcv", generalised_cross_validation, names.GCV_LOSSES, names.N_LABELED),
    _of_squares("kfold", k_fold, names.FOLD_LOSSES, names.FOLD_ROWS),
    _of_squares("holdout", first_fold, names.FOLD_LOSSES, names.FOLD_ROWS),
    _of_squares("extra_sample", extra_sample, names.EXTRA_LOSS),
)
"""All estimates of a squared error."""
