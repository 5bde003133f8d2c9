"""The semi-supervised cross-validation bound as a criterion."""

from collections.abc import Callable
from typing import Final

from dsel import names
from dsel.bounds import BoundTerms, semi_supervised_cv_bound
from dsel.criteria.base import Evidence, Settings, Terms
from dsel.criteria.bound import Bound, Formula, reading, rows_read

COUNTS: Final = (names.FOLD_ERRORS, names.DISAGREEMENTS)
"""Errors of the folds, and disagreement with f_rand."""


def of_random_fold(bound: Callable[..., BoundTerms]) -> Formula:
    """Return the criterion's formula of a bound that takes what `cv_bound` takes."""

    def judge(evidence: Evidence, settings: Settings) -> Terms:
        return Terms(
            *bound(
                evidence[names.FOLD_ERRORS],
                evidence[names.FOLD_ROWS],
                evidence[names.DISAGREEMENTS].sum(axis=-1),
                rows_read(evidence),
                delta=settings.delta_shares,
                label_share=settings.label_share,
                reading=reading(evidence),
            )
        )

    return judge


CV_BOUND: Final = Bound(
    "cv_bound", of_random_fold(semi_supervised_cv_bound), COUNTS, can_prune=True
)
"""Structural risk minimisation over the bound of Theorem 1 of ICSI TR-05-010."""
