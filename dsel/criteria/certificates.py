"""Criteria that are guarantees: bounds of counts at each candidate's share of delta.

All candidates are bounded at once, so that any of them may be chosen by hand. The
numbers of a nested search, which is bounded as a whole, are no criteria.

To add one: a formula of the evidence, and its line in `CERTIFICATES`. Each certificate
holds at the whole delta by itself: the smaller of two is not a guarantee at one delta.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.cross_validation import best_fold, cv_bound, upper_pool_rows
from dsel.bounds.holdout import holdout_bound
from dsel.criteria.base import FIRST_FOLD, Criterion, Evidence, Settings, Terms


@dataclass(frozen=True)
class Bound(Criterion):
    """A criterion that bounds the error of every candidate.

    Its formula takes evidence and settings, and returns the terms.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the bounds of all candidates hold at
    once, so that of the chosen candidate holds.
    Assumes: A1 to A7; the shares sum to at most delta.
    Source: the function of `dsel.bounds` that `formula` calls.
    """

    is_guarantee: bool = True
    """Always True."""

    def terms(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return what the formula says."""
        found: Terms = self.formula(evidence, settings)
        return found


def pool_rows(evidence: Evidence) -> NDArray[np.int64]:
    """Return the pool rows that count as seen, for upper limits."""
    equal = evidence.get(names.EQUAL_ROWS, np.array(0))
    return upper_pool_rows(evidence[names.N_UNLABELED], equal)


def _cv_bound(evidence: Evidence, settings: Settings) -> Terms:
    return Terms(
        *cv_bound(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.DISAGREEMENTS].sum(axis=-1),
            pool_rows(evidence),
            delta=settings.delta_shares,
        )
    )


def _best_fold(evidence: Evidence, settings: Settings) -> Terms:
    return Terms(
        *best_fold(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.BEST_FOLD_DISAGREEMENTS],
            pool_rows(evidence),
            delta=settings.delta_shares,
        )
    )


def _holdout(evidence: Evidence, settings: Settings) -> Terms:
    bound = holdout_bound(
        evidence[names.FOLD_ERRORS][:, 0],
        evidence[names.FOLD_ROWS][0],
        delta=settings.delta_shares,
    )
    return Terms(bound, bound, np.full_like(bound, np.nan))


CERTIFICATES: Final = (
    # Structural risk minimisation over the bound of Theorem 1 of ICSI TR-05-010.
    Bound(
        "cv_bound",
        _cv_bound,
        (names.FOLD_ERRORS, names.DISAGREEMENTS),
        (names.FOLD_ROWS, names.POOL_ROWS, names.N_UNLABELED),
    ),
    # It cannot prune: another count can make another fold the best one, and the number
    # smaller.
    Bound(
        "best_fold",
        _best_fold,
        (names.FOLD_ERRORS, names.BEST_FOLD_DISAGREEMENTS),
        (names.FOLD_ROWS, names.N_UNLABELED),
        can_prune=False,
    ),
    # About the model trained without the first fold, which is the one deployed.
    Bound(
        "holdout",
        _holdout,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        deploys=FIRST_FOLD,
        holds_out_one_fold=True,
    ),
)
"""All criteria that are guarantees."""
