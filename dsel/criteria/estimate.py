"""Criteria without a guarantee: one formula of counts, and a rule for ties."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
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

Formula = Callable[[Evidence], NDArray[np.float64]]
"""Takes evidence without a missing count, returns one number per candidate."""


def nothing(evidence: Evidence) -> NDArray[np.float64]:
    """Return NaN for every candidate: the term is no part of the criterion."""
    return np.full(len(evidence[names.STATUS]), np.nan)


def has_whole_pool(evidence: Evidence) -> NDArray[np.bool_]:
    """Return which candidates were compared on every pool row, in every repeat."""
    visited = evidence[names.POOL_ROWS] == evidence[names.N_UNLABELED]
    return np.asarray(visited.reshape(len(visited), -1).all(axis=1))


@dataclass(frozen=True)
class Estimate:
    """A criterion that rises with every count and needs no delta."""

    name: str
    """Value of `criterion=`."""
    counts: tuple[str, ...]
    """Variables that may not be counted yet; missing ones are 0 in the lower bound."""
    sizes: tuple[str, ...]
    """Variables that are known from the start: rows, classes."""
    estimate: Formula
    """The number."""
    label_term: Formula
    """The part from labeled rows; `nothing` where there is none."""
    disagreement_term: Formula
    """The part from the pool; `nothing` where there is none."""
    tie_break: Formula
    """What decides between equal numbers, before the candidate's number does."""
    by_halves: bool = True
    """Whether the trainings are random halvings; else folds."""
    is_guarantee: bool = False
    """An estimate."""
    can_prune: bool = True
    """It never falls when a count grows."""
    deploys: str = "full"
    """The model of all labeled rows."""
    only_about: str = ""
    """Every candidate has a number."""
    holds_out_one_fold: bool = False
    """All trainings count."""
    reads_whole_pool: bool = True
    """No limit holds where reading stopped."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that it reads."""
        return self.counts + self.sizes

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose counts are complete."""
        del settings  # an estimate needs no delta
        known = is_counted(evidence, *self.counts)
        if names.DISAGREEMENTS in self.counts:
            known &= has_whole_pool(evidence)
        return self._judge(evidence, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate as if all that was not counted yet were 0."""
        del settings
        every = np.ones(len(evidence[names.STATUS]), dtype=bool)
        return self._judge(evidence, every).estimate

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the best candidate; equal ones by the tie break, then the first."""
        first = first_smallest(terms.estimate)  # raises where nothing is known
        best = terms.estimate == terms.estimate[first]
        second = self.tie_break(smallest(evidence, *self.counts))
        return first_smallest(np.where(best, second, np.inf))

    def _judge(self, evidence: Evidence, known: NDArray[np.bool_]) -> Terms:
        counts = smallest(evidence, *self.counts)
        formulas = (self.estimate, self.label_term, self.disagreement_term)
        terms = Terms(*(formula(counts) for formula in formulas))
        return judged(known, has_failed(evidence), terms)
