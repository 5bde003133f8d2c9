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
    judged,
    smallest,
)

Formula = Callable[[Evidence], NDArray[np.float64]]
"""Takes evidence without a missing count, returns one number per candidate."""


def nothing(evidence: Evidence) -> NDArray[np.float64]:
    """Return NaN for every candidate: the term is no part of the criterion."""
    return np.full(len(evidence[names.STATUS]), np.nan)


def equal(evidence: Evidence) -> NDArray[np.float64]:
    """Return 0 for every candidate: of equal ones the first is chosen."""
    return np.zeros(len(evidence[names.STATUS]))


def has_whole_pool(evidence: Evidence) -> NDArray[np.bool_]:
    """Return which candidates were compared on every pool row, in every repeat."""
    visited = evidence[names.POOL_ROWS] == evidence[names.N_UNLABELED]
    return np.asarray(visited.reshape(len(visited), -1).all(axis=1))


@dataclass(frozen=True)
class Estimate:
    """A criterion that rises with every count and needs no delta.

    Notes
    -----
    Guarantee: none.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: that of its formula.
    """

    name: str
    """Value of `criterion=`."""
    estimate: Formula
    """The number."""
    counts: tuple[str, ...]
    """Variables that may not be counted yet; missing ones are 0 in the lower bound."""
    sizes: tuple[str, ...]
    """Variables that are known from the start: rows, classes."""
    label_term: Formula = nothing
    """The part from labeled rows."""
    disagreement_term: Formula = nothing
    """The part from the pool."""
    exact: Formula | None = None
    """A multiple of the number that does not round: what is compared in its place."""
    tie_break: Formula = equal
    """What decides between equal numbers, before the candidate's number does."""
    by_halves: bool = False
    """Whether the trainings are random halvings; else folds."""
    reads_whole_pool: bool = True
    """Whether no limit holds where reading stopped."""
    is_guarantee: bool = False
    can_prune: bool = True
    """It never falls when a count grows."""
    deploys: str = "full"
    only_about: str = ""
    holds_out_one_fold: bool = False

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
        counts, values = smallest(evidence, *self.counts), terms.estimate
        if self.exact is not None:
            values = np.where(np.isfinite(values), self.exact(counts), np.inf)
        best = values == values[first_smallest(values)]  # raises where none is known
        return first_smallest(np.where(best, self.tie_break(counts), np.inf))

    def _judge(self, evidence: Evidence, known: NDArray[np.bool_]) -> Terms:
        counts = smallest(evidence, *self.counts)
        formulas = (self.estimate, self.label_term, self.disagreement_term)
        terms = Terms(*(formula(counts) for formula in formulas))
        return judged(known, has_failed(evidence), terms)


def cv_error(
    fold_errors: NDArray[np.int64], fold_rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""Mean over folds of the fold model's error rate on the held-out fold.

    .. math:: \frac{1}{k} \sum_{i=1}^k c_i / n_i.

    Parameters
    ----------
    fold_errors
        Errors counted on each fold, :math:`c_i`; the folds on the last axis.
    fold_rows
        Rows of each fold, :math:`n_i`, broadcast against `fold_errors`.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; it is an estimate of the average error of the fold models.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: the cross-validation estimate, [1]_ section 2.

    References
    ----------
    .. [1] M. Kaariainen, "Semi-supervised model selection based on
       cross-validation", ICSI TR-05-010, 2005.

    Examples
    --------
    >>> cv_error(np.array([[1, 0], [2, 2]]), np.array([10, 10]))
    array([0.05, 0.2 ])
    """
    rates: NDArray[np.float64] = (fold_errors / fold_rows).mean(axis=-1)
    return rates


def cv_score(evidence: Evidence) -> NDArray[np.float64]:
    """Return `cv_error` times a constant, whole numbers where fold sizes allow it.

    Two candidates tie exactly where these are equal; the rates themselves round.
    """
    fold_errors, fold_rows = evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS]
    small, large = int(fold_rows.min()), int(fold_rows.max())
    if large - small > 1:
        return cv_error(fold_errors, fold_rows)
    weights = np.where(fold_rows == small, large, small) if large > small else 1
    return np.asarray((fold_errors * weights).sum(axis=-1), np.float64)


def fold_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return `cv_error` of the cube's counts."""
    return cv_error(evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS])


def loo_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the share of labeled rows that the model of all others errs on.

    Parameters
    ----------
    evidence
        Leave-one-out errors and the number of labeled rows.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none; nearly unbiased where rows were drawn at random.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: the leave-one-out estimate, looE in Madani, Pennock and Flake (2004).
    """
    return np.asarray(evidence[names.LOO_ERRORS] / evidence[names.N_LABELED])


def true_error(evidence: Evidence) -> NDArray[np.float64]:
    """Return the error of the full model on labeled test rows, for evaluation only.

    Parameters
    ----------
    evidence
        Errors of the full model on test rows, and their number.

    Returns
    -------
    ndarray
        Rates in [0, 1], one per candidate.

    Notes
    -----
    Guarantee: none for the best of several: choosing by it spends the test rows.
    Assumes: nothing is claimed, so nothing is assumed.
    Source: trueE in Madani, Pennock and Flake (2004).
    """
    return np.asarray(evidence[names.FULL_TEST_ERRORS] / evidence[names.TEST_ROWS])


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
)
"""Estimates of the error of models of all, or nearly all, labeled rows."""
