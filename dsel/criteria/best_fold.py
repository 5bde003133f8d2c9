"""The bound through the best fold's model as a criterion and read-out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import best_fold
from dsel.bounds.best_fold import smallest_rate
from dsel.criteria.base import (
    Evidence,
    Settings,
    Terms,
    first_smallest,
    has_failed,
    judged,
    smallest,
)
from dsel.criteria.fold_bounds import is_complete


@dataclass(frozen=True)
class BestFold:
    """Judge candidates by `dsel.bounds.best_fold`, each at its share.

    It is at its best as the read-out of a choice that another criterion made:
    as a ranking it is noisier than the mean over folds, and cannot prune.

    Notes
    -----
    Guarantee: with probability at least 1 - delta all candidates' bounds hold at
    once, so the bound of whichever is chosen holds.
    Assumes: A1 to A6; the shares sum to at most delta. Its disagreement is another
    event than that of `cv_bound`: to report both as guarantees, divide delta.
    Source: union bound over candidates and folds, one fold read out.
    """

    name: str = "best_fold"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = (
        names.FOLD_ERRORS,
        names.FOLD_ROWS,
        names.BEST_FOLD_DISAGREEMENTS,
        names.POOL_ROWS,
        names.N_UNLABELED,
    )
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = False
    """Another count can make another fold the best one, and the number smaller."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """All folds count."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose folds and whole pool are counted."""
        known = is_complete(evidence, names.BEST_FOLD_DISAGREEMENTS)
        counts = smallest(evidence, names.FOLD_ERRORS, names.BEST_FOLD_DISAGREEMENTS)
        errors, rows = counts[names.FOLD_ERRORS], counts[names.FOLD_ROWS]
        bound = best_fold(
            errors,
            rows,
            counts[names.BEST_FOLD_DISAGREEMENTS],
            counts[names.N_UNLABELED],
            delta=settings.delta_shares,
            label_share=settings.label_share,
            fold=smallest_rate(errors, rows),
        )
        return judged(known, has_failed(evidence), *bound)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Return the number where it is known, else 0: a partial count proves nothing.

        A failed candidate stays at infinity.
        """
        estimate = self.evaluate(evidence, settings).estimate
        return np.nan_to_num(estimate, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)
