"""Criteria without a guarantee that need no delta: one formula of counts each.

To add one: the formula, and its line in `ESTIMATES` (of folds and leave-one-out; those
of random halves are in `co_validation`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.criteria.base import (
    FULL,
    Evidence,
    Settings,
    Terms,
    first_smallest,
    is_counted,
    smallest,
    where_known,
)

Formula = Callable[[Evidence], Floats]
"""Takes evidence without a missing count, returns one number per candidate."""


def no_term(evidence: Evidence) -> Floats:
    """Return NaN for every candidate: the term is no part of the criterion."""
    return np.full(len(evidence[names.STATUS]), np.nan)


def no_tie_break(evidence: Evidence) -> Floats:
    """Return 0 for every candidate: of equal ones the first is chosen."""
    return np.zeros(len(evidence[names.STATUS]))


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
    exact: Formula | None = None
    """A multiple of the number without rounding, which is compared in its place."""
    tie_break: Formula = no_tie_break
    """The smallest value of this is chosen among equal numbers, then the first."""
    can_prune: bool = True
    """Whether the number never falls when a count grows."""
    by_halves: bool = False
    """Whether it reads counts of random halves, not of folds."""
    deploys: str = FULL
    """Which model it is about."""
    holds_out_one_fold: bool = False
    """Always False: a search counts all folds for it."""
    is_guarantee: bool = False
    """Always False."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that it reads."""
        return self.counts + self.sizes

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms of candidates whose counts are complete."""
        del settings  # an estimate needs no delta
        known = is_counted(evidence, *self.counts)
        if names.POOL_ROWS in self.sizes:
            whole = evidence[names.POOL_ROWS] == evidence[names.N_UNLABELED]
            known &= whole.reshape(len(whole), -1).all(axis=1)
        if names.FOLD_ERRORS in self.counts and names.FOLD_ANSWERS in evidence:
            # Who was dropped before the last round was asked less often than others.
            answers = evidence[names.FOLD_ANSWERS]
            known &= (answers == answers.max(axis=0)).all(axis=1)
        return self._terms(evidence, known)

    def lower_bound(self, evidence: Evidence, settings: Settings) -> Floats:
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
        best = values <= values[least]
        return first_smallest(np.where(best, self.tie_break(counts), np.inf))

    def _terms(self, evidence: Evidence, known: NDArray[np.bool_]) -> Terms:
        counts = smallest(evidence, *self.counts)
        formulas = (self.estimate, self.label_term, self.disagreement_term)
        terms = Terms(*(formula(counts) for formula in formulas))
        return where_known(known, evidence, terms)


def fold_answers(evidence: Evidence) -> NDArray[np.int64]:
    """Return in how many answers errors on each fold are counted, shape (n_folds,).

    Its rows; in a nested search, where several models answer the rows of a fold, as
    many times more. Of candidates that were asked less often, the answers that are
    missing count as right, as all counts that are missing do.
    """
    if names.FOLD_ANSWERS not in evidence:
        return evidence[names.FOLD_ROWS]
    return np.asarray(np.maximum(evidence[names.FOLD_ANSWERS].max(axis=0), 1))


def fold_error(evidence: Evidence) -> Floats:
    r"""Mean over folds of the error rate, on the held-out fold, of models without it.

    .. math:: \frac{1}{k} \sum_{i=1}^k c_i / n_i.

    It estimates the average error of the fold models: M. Kaariainen, ICSI TR-05-010,
    2005, section 2.
    """
    rates = evidence[names.FOLD_ERRORS] / fold_answers(evidence)
    return np.asarray(rates.mean(axis=-1))


def cv_score(evidence: Evidence) -> Floats:
    """Return `fold_error` times a constant, whole numbers where fold sizes allow it.

    Two candidates tie exactly where these are equal; the rates themselves round.
    """
    answers = fold_answers(evidence)
    sizes = np.unique(answers)
    if sizes.size > 2:
        return fold_error(evidence)
    # Errors of small folds times the large size, and of large ones times the small one.
    weights = sizes.sum() - answers if sizes.size == 2 else np.ones_like(answers)
    errors = evidence[names.FOLD_ERRORS]
    return np.asarray((errors * weights).sum(axis=-1), np.float64)


def loo_error(evidence: Evidence) -> Floats:
    """Return the share of labeled rows that the model of all others errs on.

    Nearly unbiased where rows were drawn at random; looE in Madani, Pennock and Flake
    (2004).
    """
    return np.asarray(evidence[names.LOO_ERRORS] / evidence[names.N_LABELED])


ESTIMATES: Final = (
    Estimate(
        "cv_error",
        fold_error,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        label_term=fold_error,
        exact=cv_score,
    ),
    Estimate(
        "loo_error",
        loo_error,
        (names.LOO_ERRORS,),
        (names.N_LABELED,),
        label_term=loo_error,
    ),
)
"""Estimates of the error of models of all, or nearly all, labeled rows."""
