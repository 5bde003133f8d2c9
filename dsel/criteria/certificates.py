"""Criteria that are guarantees: bounds of counts at each candidate's share of delta.

All candidates are bounded at once, so that any of them may be chosen by hand. The
numbers of a nested search, which is bounded as a whole, are no criteria.

To add one: a formula of the evidence, and its line in `CERTIFICATES`. Each certificate
holds at the whole delta by itself: the smaller of two is not a guarantee at one delta.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.bounds.cross_validation import best_fold, cv_bound, upper_pool_rows
from dsel.bounds.holdout import holdout_bound
from dsel.criteria.base import (
    FIRST_FOLD,
    FULL,
    Evidence,
    Settings,
    Terms,
    first_smallest,
    is_counted,
    smallest,
    where_known,
)

Formula = Callable[[Evidence, Settings], Terms]
"""Takes evidence without a missing count."""


@dataclass(frozen=True)
class Bound:
    """A criterion that bounds the error of every candidate.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the bounds of all candidates hold at
    once, so that of the chosen candidate holds.
    Assumes: A1 to A7; the shares sum to at most delta.
    Source: the function of `dsel.bounds` that `formula` calls.
    """

    name: str
    """Value of `criterion=` and of `certificate=`."""
    formula: Formula
    """Function of evidence and settings that returns the terms."""
    counts: tuple[str, ...]
    """Variables of the cube that it reads and that may not be counted yet."""
    sizes: tuple[str, ...]
    """Variables of the cube that it reads and that are known from the start."""
    can_prune: bool = True
    """Whether the bound never falls when a count grows."""
    deploys: str = FULL
    """Which model it is about."""
    holds_out_one_fold: bool = False
    """Whether it reads the first fold only."""
    by_halves: bool = False
    """Always False: no guarantee reads random halves."""
    is_guarantee: bool = True
    """Always True."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that it reads."""
        return self.counts + self.sizes

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms of candidates with all counts; NaN for the others."""
        if self.holds_out_one_fold:
            first = evidence[names.FOLD_ERRORS][:, :1]
            evidence = {**evidence, names.FOLD_ERRORS: first}
        known = is_counted(evidence, *self.counts)
        if names.POOL_ROWS in self.sizes:
            # Every pool row goes to one fold: without some folds the pool is not whole.
            read = evidence[names.POOL_ROWS].sum(axis=-1)
            known &= read == evidence[names.N_UNLABELED]
        return self._terms(evidence, settings, known)

    def lower_bound(self, evidence: Evidence, settings: Settings) -> Floats:
        """Return every bound with 0 for each count that is missing.

        Where a bound may fall when a count grows, incomplete counts say nothing about
        it, and the number is 0.
        """
        if self.can_prune:
            every = np.ones(len(evidence[names.STATUS]), dtype=bool)
            return self._terms(evidence, settings, every).estimate
        estimate = self.evaluate(evidence, settings).estimate
        return np.nan_to_num(estimate, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)

    def _terms(
        self, evidence: Evidence, settings: Settings, known: NDArray[np.bool_]
    ) -> Terms:
        terms = self.formula(smallest(evidence, *self.counts), settings)
        return where_known(known, evidence, terms)


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
