"""Criteria that are guarantees: a bound of counts at each candidate's share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.reading import Reading, reading_of
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

Formula = Callable[[Evidence, Settings], Terms]
"""Takes evidence without a missing count; NaN for candidates that it is not about."""

POOL_SIZES: Final = (names.POOL_ROWS, names.N_UNLABELED)
"""What says how much of the pool was read."""


@dataclass(frozen=True)
class Bound:
    """A bound on the error of every candidate, or of some.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the bounds of all candidates that
    have one hold at once, so that of whichever is chosen does.
    Assumes: A1 to A6; the shares sum to at most delta.
    Source: as the function of `dsel.bounds` of the same name.
    """

    name: str
    """Value of `criterion=` and of `certificate=`."""
    formula: Formula
    """The bound."""
    counts: tuple[str, ...]
    """Variables that may not be counted yet."""
    sizes: tuple[str, ...] = (names.FOLD_ROWS, *POOL_SIZES)
    """Variables that are known from the start."""
    can_prune: bool = False
    """Whether it rises with every count."""
    compares_all: bool = False
    """Whether it is known for one candidate when the folds of all are counted."""
    deploys: str = "full"
    """Name of the training whose model it is about."""
    only_about: str = ""
    """Which candidates have a number, and what helps others; empty: all have."""
    by_halves: bool = False
    """It reads folds."""
    holds_out_one_fold: bool = False
    """Whether it reads the first fold only."""
    reads_whole_pool: bool = False
    """Whether it is about this pool, all of it."""
    is_guarantee: bool = True
    """A bound."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that it reads."""
        return self.counts + self.sizes

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose folds, and as much of the pool as is read, count."""
        if self.holds_out_one_fold:
            first = evidence[names.FOLD_ERRORS][:, :1]
            evidence = {**evidence, names.FOLD_ERRORS: first}
        known = is_counted(evidence, *self.counts)
        if names.POOL_ROWS in self.sizes:
            known &= has_read_enough(evidence, all_of_it=self.reads_whole_pool)
        if self.compares_all:
            folds = is_counted(evidence, names.FOLD_ERRORS)
            known &= (folds | has_failed(evidence)).all()
        return self._judge(evidence, settings, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet were 0.

        Where the bound does not rise with every count, a partial count proves nothing:
        the number is 0 then.
        """
        if self.can_prune:
            every = np.ones(len(evidence[names.STATUS]), dtype=bool)
            return self._judge(evidence, settings, every).estimate
        estimate = self.evaluate(evidence, settings).estimate
        return np.nan_to_num(estimate, nan=0.0, posinf=np.inf)

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the first of the candidates with the smallest bound."""
        del evidence  # the bound is the whole rule
        return first_smallest(terms.estimate)

    def _judge(
        self, evidence: Evidence, settings: Settings, known: NDArray[np.bool_]
    ) -> Terms:
        terms = self.formula(smallest(evidence, *self.counts), settings)
        return judged(known & ~np.isnan(terms.estimate), has_failed(evidence), terms)


def has_read_enough(evidence: Evidence, *, all_of_it: bool) -> NDArray[np.bool_]:
    """Return which candidates were compared up to a place where reading may stop.

    That is the whole pool, if all of it is needed or no looks were fixed in advance.
    """
    places = evidence[names.N_UNLABELED]
    if not all_of_it:
        places = evidence.get(names.LOOK_ROWS, places)
    return np.isin(evidence[names.POOL_ROWS].sum(axis=-1), places)


def rows_read(evidence: Evidence) -> NDArray[np.int64]:
    """Return the pool rows that each candidate was compared on; all, if none yet."""
    visited = evidence[names.POOL_ROWS].sum(axis=-1)
    return np.where(visited > 0, visited, evidence[names.N_UNLABELED])


def reading(evidence: Evidence) -> Reading:
    """Return when reading could stop, which says what limits hold."""
    return reading_of(int(evidence.get(names.N_LOOKS, np.array(1))))
