"""What criteria share that read fold errors and the disagreement with f_rand."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import BoundTerms
from dsel.criteria.base import (
    Evidence,
    Settings,
    Terms,
    has_failed,
    is_counted,
    judged,
    smallest,
)

NEEDS = (
    names.FOLD_ERRORS,
    names.FOLD_ROWS,
    names.DISAGREEMENTS,
    names.POOL_ROWS,
    names.N_UNLABELED,
)
"""Variables of the cube that they read."""


def is_complete(evidence: Evidence, disagreements: str) -> NDArray[np.bool_]:
    """Return which candidates have all folds and the whole pool counted."""
    visited = evidence[names.POOL_ROWS].sum(axis=-1)
    counted = is_counted(evidence, names.FOLD_ERRORS, disagreements)
    return np.asarray(counted & (visited == evidence[names.N_UNLABELED]))


def judge(
    formula: Callable[..., BoundTerms],
    evidence: Evidence,
    settings: Settings,
    known: NDArray[np.bool_],
) -> Terms:
    """Apply a bound to every candidate, what is not counted yet taken as 0.

    Parameters
    ----------
    formula
        With the signature of `dsel.bounds.semi_supervised_cv_bound`.
    evidence
        The counts.
    settings
        Shares of delta.
    known
        Candidates whose number is wanted; the others get NaN.
    """
    counts = smallest(evidence, names.FOLD_ERRORS, names.DISAGREEMENTS)
    bound = formula(
        counts[names.FOLD_ERRORS],
        counts[names.FOLD_ROWS],
        counts[names.DISAGREEMENTS].sum(axis=-1),
        counts[names.N_UNLABELED],
        delta=settings.delta_shares,
        label_share=settings.label_share,
    )
    return judged(known, has_failed(evidence), *bound)


def judge_complete(
    formula: Callable[..., BoundTerms], evidence: Evidence, settings: Settings
) -> Terms:
    """Judge candidates whose folds and whole pool are counted."""
    known = is_complete(evidence, names.DISAGREEMENTS)
    return judge(formula, evidence, settings, known)


def judge_partial(
    formula: Callable[..., BoundTerms], evidence: Evidence, settings: Settings
) -> NDArray[np.float64]:
    """Judge every candidate as if all that was not counted yet agreed."""
    every = np.ones(len(evidence[names.STATUS]), dtype=bool)
    return judge(formula, evidence, settings, every).estimate
