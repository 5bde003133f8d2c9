"""The best fold's bound for the candidate of least cross-validation error alone."""

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
    is_counted,
    judged,
    smallest,
)
from dsel.criteria.cv_error import cv_score
from dsel.criteria.fold_bounds import is_complete


@dataclass(frozen=True)
class BestFoldOfLeader:
    """Bound the candidate that `cv_error` chooses; the others have no number.

    The leader is a function of the labeled rows, so its disagreement with the best
    fold's model may spend all that is set aside for disagreement: the number of
    candidates enters the label term only. It is the read-out to ask for beside
    ``criterion="cv_error"``.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the error of the leader's full model
    is at most the number.
    Assumes: A1 to A6; the shares sum to at most delta.
    Source: union bound over candidates and folds, one fold of one candidate read out;
    the second limit conditionally on the labeled rows.
    """

    name: str = "best_fold_of_leader"
    """Value of `certificate=`."""
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
    """Who leads is known only when every fold that matters is counted."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """All folds count."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge the leader once its whole pool is counted; NaN for all others."""
        failed = has_failed(evidence)
        counts = smallest(evidence, names.FOLD_ERRORS, names.BEST_FOLD_DISAGREEMENTS)
        errors, rows = counts[names.FOLD_ERRORS], counts[names.FOLD_ROWS]
        bound = best_fold(
            errors,
            rows,
            counts[names.BEST_FOLD_DISAGREEMENTS],
            counts[names.N_UNLABELED],
            delta=settings.delta_shares,
            label_share=settings.label_share,
            disagreement_delta=(1.0 - settings.label_share)
            * float(settings.delta_shares.sum()),
            fold=smallest_rate(errors, rows),
        )
        known = is_complete(evidence, names.BEST_FOLD_DISAGREEMENTS)
        return judged(known & _leads(evidence), failed, *bound)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Return the number where it is known, else 0: a partial count proves nothing.

        A failed candidate stays at infinity.
        """
        estimate = self.evaluate(evidence, settings).estimate
        return np.nan_to_num(estimate, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the leader."""
        del evidence  # only the leader has a number
        return first_smallest(terms.estimate)


def _leads(evidence: Evidence) -> NDArray[np.bool_]:
    """Return where the first candidate of least cross-validation error stands.

    Folds that were not counted can only add errors: if the smallest score with these
    at 0 belongs to a candidate with all folds counted, it leads whatever they are.
    """
    scores = cv_score(
        evidence[names.FOLD_ERRORS].clip(min=0), evidence[names.FOLD_ROWS]
    )
    possible = np.where(has_failed(evidence), np.inf, scores)
    leads = np.zeros(len(possible), dtype=bool)
    if np.isfinite(possible).any():
        leads[np.argmin(possible)] = True
    return leads & is_counted(evidence, names.FOLD_ERRORS)
