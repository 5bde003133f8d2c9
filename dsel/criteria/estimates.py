"""Criteria without a guarantee that need no delta: one formula of counts each.

To add one: the formula, and its line in `ESTIMATES` (of folds, leave-one-out and test
labels; those of random halves are in `co_validation`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

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
    smallest,
    where_known,
)

Formula = Callable[[Evidence], NDArray[np.float64]]
"""Takes evidence without a missing count, returns one number per candidate."""


def no_term(evidence: Evidence) -> NDArray[np.float64]:
    """Return NaN for every candidate: the term is no part of the criterion."""
    return np.full(len(evidence[names.STATUS]), np.nan)


def no_tie_break(evidence: Evidence) -> NDArray[np.float64]:
    """Return 0 for every candidate: of equal ones the first is chosen."""
    return np.zeros(len(evidence[names.STATUS]))


def has_whole_pool(evidence: Evidence) -> NDArray[np.bool_]:
    """Return which candidates were compared on every pool row, in every repeat."""
    visited = evidence[names.POOL_ROWS] == evidence[names.N_UNLABELED]
    return np.asarray(visited.reshape(len(visited), -1).all(axis=1))


@dataclass(frozen=True)
class Estimate:
    """A criterion without a guarantee, which needs no delta.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing, since nothing is claimed.
    Source: that of its formula.
    """

    name: str
    """Value of `criterion=`."""
    estimate: Formula
    """Function of the evidence that returns one number for each candidate."""
    counts: tuple[str, ...]
    """Variables of the cube that it reads and that may not be counted yet."""
    sizes: tuple[str, ...]
    """Variables of the cube that it reads and that are known from the start."""
    label_term: Formula = no_term
    """Function that returns the part of the number that comes from labeled rows."""
    disagreement_term: Formula = no_term
    """Function that returns the part of the number that comes from the pool."""
    margin: Formula | None = None
    """Numbers above the smallest one by at most its margin count as equal to it."""
    exact: Formula | None = None
    """A multiple of the number without rounding, which is compared in its place."""
    tie_break: Formula = no_tie_break
    """The smallest value of this is chosen among equal numbers, then the first."""
    rounding: float = 0.0
    """Numbers this close, relative to the smallest, count as equal."""
    by_halves: bool = False
    """Whether it reads counts of random halves, not of folds."""
    reads_whole_pool: bool = True
    """Whether every row of the pool must be read before it has a number."""
    is_guarantee: bool = False
    """Always False."""
    can_prune: bool = True
    """Whether the number never falls when a count grows."""
    deploys: str = "full"
    """Name of the split whose model it is about."""
    only_about: str = ""
    """Empty: all candidates have a number."""
    holds_out_one_fold: bool = False
    """Always False: a search counts all folds for it."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that it reads."""
        return self.counts + self.sizes

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms of candidates whose counts are complete."""
        del settings  # an estimate needs no delta
        known = is_counted(evidence, *self.counts)
        if names.DISAGREEMENTS in self.counts:
            known &= has_whole_pool(evidence)
        return self._terms(evidence, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Return every number with 0 for each count that is missing."""
        del settings
        every = np.ones(len(evidence[names.STATUS]), dtype=bool)
        return self._terms(evidence, every).estimate

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the candidate of smallest number; of equal ones by the tie break."""
        counts, values = smallest(evidence, *self.counts), terms.estimate
        if self.exact is not None:
            values = np.where(np.isfinite(values), self.exact(counts), np.inf)
        least = first_smallest(values)  # raises where none is known
        most = values[least] * (1.0 + self.rounding)
        if self.margin is not None:
            most += self.margin(counts)[least]
        best = values <= most
        return first_smallest(np.where(best, self.tie_break(counts), np.inf))

    def _terms(self, evidence: Evidence, known: NDArray[np.bool_]) -> Terms:
        counts = smallest(evidence, *self.counts)
        formulas = (self.estimate, self.label_term, self.disagreement_term)
        terms = Terms(*(formula(counts) for formula in formulas))
        return where_known(known, has_failed(evidence), terms)


def fold_error(evidence: Evidence) -> NDArray[np.float64]:
    r"""Mean over folds of the fold model's error rate on the held-out fold.

    .. math:: \frac{1}{k} \sum_{i=1}^k c_i / n_i.

    It estimates the average error of the fold models: M. Kaariainen, ICSI TR-05-010,
    2005, section 2.
    """
    rates = evidence[names.FOLD_ERRORS] / evidence[names.FOLD_ROWS]
    return np.asarray(rates.mean(axis=-1))


def cv_score(evidence: Evidence) -> NDArray[np.float64]:
    """Return `fold_error` times a constant, whole numbers where fold sizes allow it.

    Two candidates tie exactly where these are equal; the rates themselves round.
    """
    fold_errors, fold_rows = evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS]
    small, large = int(fold_rows.min()), int(fold_rows.max())
    if large - small > 1:
        return fold_error(evidence)
    weights = np.where(fold_rows == small, large, small) if large > small else 1
    return np.asarray((fold_errors * weights).sum(axis=-1), np.float64)


def loo_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the share of labeled rows that the model of all others errs on.

    Nearly unbiased where rows were drawn at random; looE in Madani, Pennock and Flake
    (2004).
    """
    return np.asarray(evidence[names.LOO_ERRORS] / evidence[names.N_LABELED])


def true_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the error of the full model on labeled test rows, for evaluation only.

    To choose by it uses the test rows up: for the best of several it is too small.
    """
    return np.asarray(evidence[names.FULL_TEST_ERRORS] / evidence[names.TEST_ROWS])


def standard_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the standard error of `fold_error`, as if folds were independent.

    They are not, so it is a rule of thumb: L. Breiman, J. Friedman, R. Olshen and
    C. Stone, Classification and Regression Trees, 1984, section 3.4.3.
    """
    rates = evidence[names.FOLD_ERRORS] / evidence[names.FOLD_ROWS]
    n_folds = rates.shape[-1]
    if n_folds < 2:
        return np.zeros(len(rates))
    return np.asarray(rates.std(axis=-1, ddof=1) / np.sqrt(n_folds))


ESTIMATES: Final = (
    Estimate(
        "cv_error",
        fold_error,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=fold_error,
        exact=cv_score,
        reads_whole_pool=False,
    ),
    Estimate(
        "loo_error",
        loo_error,
        (names.LOO_ERRORS,),
        (names.N_LABELED,),
        label_term=loo_error,
    ),
    Estimate("true_error", true_error, (names.FULL_TEST_ERRORS,), (names.TEST_ROWS,)),
    # The first candidate within a standard error of the best one: list the grid from
    # the simplest model to the most complex one.
    Estimate(
        "one_standard_error",
        fold_error,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=fold_error,
        margin=standard_error,
        reads_whole_pool=False,
        can_prune=False,  # the choice is not the best, and may be dropped for it
    ),
)
"""Estimates of the error of models of all, or nearly all, labeled rows."""
