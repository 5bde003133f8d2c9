"""The bound of a single held-out part as a criterion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds import holdout_bound
from dsel.criteria.base import (
    Evidence,
    Settings,
    Terms,
    first_smallest,
    has_failed,
    judged,
)


@dataclass(frozen=True)
class HoldoutBound:
    """Judge candidates by the binomial bound of their errors on the first fold.

    The number is about the model trained without the first fold, which is therefore
    the one that is deployed.

    Notes
    -----
    Guarantee: with probability at least 1 - delta all candidates' bounds hold at once.
    Assumes: A1 to A3, A5; the shares sum to at most delta.
    Source: the test set bound with a union over candidates.
    """

    name: str = "holdout_bound"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = (names.FOLD_ERRORS, names.FOLD_ROWS)
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = True
    """It rises with every count."""
    deploys: str = "fold-0"
    """The model trained without the first fold."""
    holds_out_one_fold: bool = True
    """Only the first fold is read."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose first fold is counted."""
        known = np.asarray(evidence[names.FOLD_ERRORS][:, 0] >= 0)
        return self._judge(evidence, settings, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate with an uncounted fold at 0 errors."""
        every = np.ones(len(evidence[names.STATUS]), dtype=bool)
        return self._judge(evidence, settings, every).estimate

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)

    def _judge(
        self, evidence: Evidence, settings: Settings, known: NDArray[np.bool_]
    ) -> Terms:
        n_errors = evidence[names.FOLD_ERRORS][:, 0].clip(min=0)
        bound = holdout_bound(
            n_errors, evidence[names.FOLD_ROWS][0], delta=settings.delta_shares
        )
        none = np.full_like(bound, np.nan)
        return judged(known, has_failed(evidence), bound, bound, none)
