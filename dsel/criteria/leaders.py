"""The bound whose second term is shared by the candidates that lead on labeled rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.binomial import upper_limits
from dsel.bounds.semi_supervised import mean_of_limits
from dsel.bounds.shares import leading_shares
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
from dsel.criteria.fold_bounds import NEEDS, is_complete


@dataclass(frozen=True)
class Leaders:
    """Judge the candidates with the smallest label terms; the others are out.

    The label term is that of `cv_bound`; what is left of delta for the second term
    is divided among the leaders only.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the bounds of all leaders hold at
    once, so the bound of whichever is chosen holds.
    Assumes: A1 to A6; the shares sum to at most delta; leaders are a function of the
    labeled rows, which is why all of those must be counted.
    Source: union bounds, the second one conditionally on the labeled rows. It pays
    for pools of a few thousand rows; above 1e5 the gain is below 0.001.
    """

    name: str = "leaders"
    """Value of `criterion=`."""
    needs: tuple[str, ...] = NEEDS
    """Variables of the cube that it reads."""
    is_guarantee: bool = True
    """A bound."""
    can_prune: bool = False
    """Who leads is known only when every fold is counted."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """All folds count."""
    n_leaders: int = 10
    """How many candidates share the second term."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge the leaders; NaN for all where some candidate's folds are unknown."""
        failed = has_failed(evidence)
        counts = smallest(evidence, names.FOLD_ERRORS, names.DISAGREEMENTS)
        gamma, shares = settings.label_share, settings.delta_shares
        label_term = mean_of_limits(
            counts[names.FOLD_ERRORS], counts[names.FOLD_ROWS], gamma * shares
        )
        second = leading_shares(
            np.where(failed, np.inf, label_term),
            delta=(1.0 - gamma) * float(shares.sum()),
            n_leaders=self.n_leaders,
        )
        leads = second > 0
        disagreement_term = np.ones_like(label_term)
        disagreement_term[leads] = upper_limits(
            counts[names.DISAGREEMENTS].sum(axis=-1)[leads],
            counts[names.N_UNLABELED],
            second[leads],
        )
        known = leads & is_complete(evidence, names.DISAGREEMENTS)
        known &= (is_counted(evidence, names.FOLD_ERRORS) | failed).all()
        estimate = label_term + disagreement_term
        return judged(known, failed, estimate, label_term, disagreement_term)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Return the number where it is known, else 0: a partial count proves nothing.

        A failed candidate stays at infinity.
        """
        estimate = self.evaluate(evidence, settings).estimate
        return np.nan_to_num(estimate, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the leaders with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)
