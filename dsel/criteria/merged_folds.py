"""The bound with folds merged by the geometric mean as a criterion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel.bounds import merged_folds
from dsel.criteria.base import Evidence, Settings, Terms, first_smallest
from dsel.criteria.fold_bounds import NEEDS, judge_complete, judge_partial


@dataclass(frozen=True)
class MergedFolds:
    """Judge candidates by `dsel.bounds.merged_folds`, each at its share.

    Notes
    -----
    Guarantee: with probability at least 1 - delta all candidates' bounds hold at
    once, so the bound of whichever is chosen holds.
    Assumes: A1 to A6; the shares sum to at most delta. Its label term is another
    event than that of `cv_bound`: the smaller of the two is no guarantee at delta.
    Source: merging by the geometric mean over folds, union bound over candidates.
    """

    name: str = "merged_folds"
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
        return judge_complete(merged_folds, evidence, settings)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet agreed."""
        return judge_partial(merged_folds, evidence, settings)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)
