"""The semi-supervised cross-validation bound as a criterion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel.bounds import semi_supervised_cv_bound
from dsel.criteria.base import Evidence, Settings, Terms, first_smallest
from dsel.criteria.fold_bounds import NEEDS, judge_complete, judge_partial


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
    needs: tuple[str, ...] = NEEDS
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
        return judge_complete(semi_supervised_cv_bound, evidence, settings)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet agreed."""
        return judge_partial(semi_supervised_cv_bound, evidence, settings)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)
