"""The semi-supervised cross-validation bound as a criterion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import semi_supervised_cv_bound
from dsel.criteria.base import (
    Evidence,
    Settings,
    Terms,
    first_smallest,
    has_failed,
    is_counted,
    judged,
    smallest,
)


@dataclass(frozen=True)
class CvBound:
    """Judge candidates by `dsel.bounds.semi_supervised_cv_bound`, each at its share.

    Notes
    -----
    Guarantee: with probability at least 1 - delta all candidates' bounds hold at
    once, so the bound of whichever is chosen holds.
    Assumes: A1 to A6; the shares sum to at most delta.
    Source: structural risk minimisation over the bound of Theorem 1 of the report
    ICSI TR-05-010.
    """

    name: str = "cv_bound"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = (
        names.FOLD_ERRORS,
        names.FOLD_ROWS,
        names.DISAGREEMENTS,
        names.POOL_ROWS,
        names.N_UNLABELED,
    )
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = True
    """It rises with every count."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """All folds count."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose folds and whole pool are counted."""
        visited = evidence[names.POOL_ROWS].sum(axis=-1)
        known = is_counted(evidence, names.FOLD_ERRORS, names.DISAGREEMENTS) & (
            visited == evidence[names.N_UNLABELED]
        )
        return self._judge(evidence, settings, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet agreed."""
        every = np.ones(len(evidence[names.STATUS]), dtype=bool)
        return self._judge(evidence, settings, every).estimate

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)

    def _judge(
        self, evidence: Evidence, settings: Settings, known: NDArray[np.bool_]
    ) -> Terms:
        counts = smallest(evidence, names.FOLD_ERRORS, names.DISAGREEMENTS)
        bound = semi_supervised_cv_bound(
            counts[names.FOLD_ERRORS],
            counts[names.FOLD_ROWS],
            counts[names.DISAGREEMENTS].sum(axis=-1),
            counts[names.N_UNLABELED],
            delta=settings.delta_shares,
            label_share=settings.label_share,
        )
        return judged(known, has_failed(evidence), *bound)
