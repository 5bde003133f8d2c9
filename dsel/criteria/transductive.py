"""The bound on the error made on the rows of the pool themselves, as a criterion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import transductive
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
class Transductive:
    """Judge candidates by `dsel.bounds.transductive`, each at its share.

    Notes
    -----
    Guarantee: with probability at least 1 - delta every candidate errs on at most that
    share of the rows of this pool. It says nothing about other rows.
    Assumes: A1 to A6; the whole pool is counted, for every fold model.
    Source: hypergeometric tails given the bag of labeled and pool rows.
    """

    name: str = "transductive"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = (
        names.FOLD_ERRORS,
        names.FOLD_ROWS,
        names.FOLD_DISAGREEMENTS,
        names.POOL_ROWS,
        names.N_UNLABELED,
    )
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = False
    """Nothing proves that it rises with every count."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """All folds count."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose folds and whole pool are counted."""
        counts = smallest(evidence, names.FOLD_ERRORS, names.FOLD_DISAGREEMENTS)
        bound = transductive(
            counts[names.FOLD_ERRORS],
            counts[names.FOLD_ROWS],
            counts[names.FOLD_DISAGREEMENTS],
            int(counts[names.N_UNLABELED]),
            delta=settings.delta_shares,
        )
        known = is_complete(evidence, names.FOLD_DISAGREEMENTS)
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
