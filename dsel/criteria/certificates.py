"""Criteria that are guarantees: bounds of counts at each candidate's share of delta.

To add one: a formula of the evidence, and its line in `CERTIFICATES`. Two of them can
be reported at one delta only if they rest on the same events (`dsel.bounds.events`):
the smaller of two bounds is not a guarantee at the same delta.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel import bounds, names
from dsel.bounds import BoundTerms, ErrorInterval
from dsel.bounds.semi_supervised import mean_of_limits
from dsel.bounds.shares import leading_shares
from dsel.bounds.stopping import StoppingRule, stopping_rule
from dsel.criteria.base import (
    BEST_FOLD,
    POOL_SIZES,
    Evidence,
    Settings,
    Terms,
    first_smallest,
    has_failed,
    is_counted,
    smallest,
    where_known,
)
from dsel.criteria.estimates import cv_score

Formula = Callable[[Evidence, Settings], Terms]
"""Takes evidence without a missing count; NaN for candidates that it is not about."""

RANDOM_FOLD: Final = (names.FOLD_ERRORS, names.DISAGREEMENTS)
"""Errors of the folds, and disagreement with a fold model drawn for each row."""
OF_BEST_FOLD: Final = (names.FOLD_ERRORS, names.BEST_FOLD_DISAGREEMENTS)
"""Errors of the folds, and disagreement with the model of the best one."""
EVERY_FOLD: Final = (names.FOLD_ERRORS, names.FOLD_DISAGREEMENTS)
"""Errors of the folds, and disagreement with each fold's model."""
N_LEADERS: Final = 10
"""How many candidates share the second term of ``leaders``."""


@dataclass(frozen=True)
class Bound:
    """A criterion that bounds the error of every candidate, or of some of them.

    Notes
    -----
    Guarantee: with probability at least 1 - delta the bounds of all candidates that
    have one hold at once, so that of the chosen candidate holds.
    Assumes: A1 to A6; the shares sum to at most delta.
    Source: the function of `dsel.bounds` that `formula` calls.
    """

    name: str
    """Value of `criterion=` and of `certificate=`."""
    formula: Formula
    """Function of evidence and settings that returns the terms."""
    counts: tuple[str, ...]
    """Variables of the cube that it reads and that may not be counted yet."""
    sizes: tuple[str, ...] = (names.FOLD_ROWS, *POOL_SIZES)
    """Variables of the cube that it reads and that are known from the start."""
    can_prune: bool = False
    """Whether the bound never falls when a count grows."""
    compares_all: bool = False
    """Whether the bound of one candidate needs the fold errors of all."""
    deploys: str = "full"
    """Name of the split whose model it is about."""
    only_about: str = ""
    """Which candidates have a bound, and what to do for others; empty: all have."""
    by_halves: bool = False
    """Always False: no guarantee reads random halves."""
    holds_out_one_fold: bool = False
    """Whether it reads the first fold only."""
    reads_whole_pool: bool = False
    """Whether every row of the pool must be read before it has a number."""
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
            known &= has_read_enough(evidence, all_of_it=self.reads_whole_pool)
        if self.compares_all:
            folds = is_counted(evidence, names.FOLD_ERRORS)
            known &= (folds | has_failed(evidence)).all()
        return self._terms(evidence, settings, known)

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
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
        failed = has_failed(evidence)
        if names.OUTER_ERRORS in self.sizes:
            # A fit that has seen a fold must not rule out what is chosen without it.
            failed = np.zeros_like(failed)
        return where_known(known & ~np.isnan(terms.estimate), failed, terms)


def has_read_enough(evidence: Evidence, *, all_of_it: bool) -> NDArray[np.bool_]:
    """Return which candidates were compared up to a place where reading may stop.

    That is the whole pool, if all of it is needed or no stages were fixed in advance.
    """
    places = evidence[names.N_UNLABELED]
    if not all_of_it:
        places = evidence.get(names.STAGE_ROWS, places)
    return np.isin(evidence[names.POOL_ROWS].sum(axis=-1), places)


def rows_read(evidence: Evidence) -> NDArray[np.int64]:
    """Return the pool rows that each candidate was compared on; all, if none yet."""
    visited = evidence[names.POOL_ROWS].sum(axis=-1)
    return np.where(visited > 0, visited, evidence[names.N_UNLABELED])


def stopping_rule_of(evidence: Evidence) -> StoppingRule:
    """Return when reading could stop, which says what limits hold."""
    return stopping_rule(int(evidence.get(names.N_STAGES, np.array(1))))


def _of_random_fold(bound: Callable[..., Any]) -> Formula:
    """Return the formula of a bound that takes what `cv_bound` takes."""

    def formula(evidence: Evidence, settings: Settings) -> Terms:
        differing = evidence[names.DISAGREEMENTS].sum(axis=-1)
        return _with_pool(bound, evidence, settings, differing)

    return formula


def _with_pool(
    bound: Callable[..., BoundTerms | ErrorInterval],
    evidence: Evidence,
    settings: Settings,
    differing: NDArray[np.int64],
    **changed: Any,
) -> Terms:
    """Return what a bound says of fold errors and of the pool rows that differ."""
    rows = rows_read(evidence)
    found = bound(
        evidence[names.FOLD_ERRORS],
        evidence[names.FOLD_ROWS],
        differing,
        rows if differing.ndim == 1 else rows[:, np.newaxis],
        delta=settings.delta_shares,
        label_share=settings.label_share,
        reading=stopping_rule_of(evidence),
        **changed,
    )
    if not isinstance(found, ErrorInterval):
        return Terms(*found)
    unknown = np.full_like(found.upper, np.nan)  # one side's terms are not both's
    return Terms(found.upper, unknown, unknown, found.lower)


def _averaged(evidence: Evidence, settings: Settings) -> Terms:
    differing = evidence[names.DIFFERING_FOLDS]
    agreeing = rows_read(evidence)[:, np.newaxis] - differing.sum(axis=1, keepdims=True)
    # A product of bets at fixed stakes is a martingale: its limit holds at every row.
    return Terms(
        *bounds.averaged_disagreement(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            np.concatenate([agreeing, differing], axis=1),
            delta=settings.delta_shares,
            label_share=settings.label_share,
        )
    )


def _best_fold(evidence: Evidence, settings: Settings, **changed: Any) -> Terms:
    differing = evidence[names.BEST_FOLD_DISAGREEMENTS]
    return _with_pool(bounds.best_fold, evidence, settings, differing, **changed)


def _best_fold_interval(evidence: Evidence, settings: Settings) -> Terms:
    differing = evidence[names.FOLD_DISAGREEMENTS]
    return _with_pool(bounds.best_fold_interval, evidence, settings, differing)


def _best_fold_of_leader(evidence: Evidence, settings: Settings) -> Terms:
    # The leader is a function of the labeled rows, so its disagreement may spend all
    # that is set aside for disagreement: the number of candidates is in the label term.
    all_of_it = (1.0 - settings.label_share) * float(settings.delta_shares.sum())
    terms = _best_fold(evidence, settings, disagreement_delta=all_of_it)
    leads = np.arange(len(terms.estimate)) == leader(evidence)
    return replace(terms, estimate=np.where(leads, terms.estimate, np.nan))


def leader(evidence: Evidence) -> int:
    """Return the first candidate of least cross-validation error; -1 if there is none.

    Folds that were not counted can only add errors: if the smallest score with these
    at 0 belongs to a candidate with all folds counted, it leads whatever they are.
    """
    counted = smallest(evidence, names.FOLD_ERRORS)
    possible = np.where(has_failed(evidence), np.inf, cv_score(counted))
    return int(np.argmin(possible)) if np.isfinite(possible).any() else -1


def _best_fold_model(evidence: Evidence, settings: Settings) -> Terms:
    bound = bounds.best_fold_model(
        evidence[names.FOLD_ERRORS],
        evidence[names.FOLD_ROWS],
        delta=settings.delta_shares,
    )
    return Terms(bound, bound, np.full_like(bound, np.nan))


def _holdout(evidence: Evidence, settings: Settings) -> Terms:
    bound = bounds.holdout_bound(
        evidence[names.FOLD_ERRORS][:, 0],
        evidence[names.FOLD_ROWS][0],
        delta=settings.delta_shares,
    )
    return Terms(bound, bound, np.full_like(bound, np.nan))


def _leaders(evidence: Evidence, settings: Settings) -> Terms:
    """Divide what is left of delta for disagreement among the leaders only."""
    gamma, shares = settings.label_share, settings.delta_shares
    label_term = mean_of_limits(
        evidence[names.FOLD_ERRORS], evidence[names.FOLD_ROWS], gamma * shares
    )
    second = leading_shares(
        np.where(has_failed(evidence), np.inf, label_term),
        delta=(1.0 - gamma) * float(shares.sum()),
        n_leaders=N_LEADERS,
    )
    leads = second > 0
    disagreement_term = np.full_like(label_term, np.nan)
    disagreement_term[leads] = stopping_rule_of(evidence).limits(
        evidence[names.DISAGREEMENTS].sum(axis=-1)[leads],
        rows_read(evidence)[leads],
        second[leads],
    )
    return Terms(label_term + disagreement_term, label_term, disagreement_term)


def check_one_fold(n_folds: int) -> None:
    """Raise ValueError unless there is one fold only, of the certifying rows."""
    if n_folds != 1:
        raise ValueError(
            f"`certificate` 'select_then_certify' needs labeled rows that took no part "
            f"in the selection, but there are {n_folds} folds that all did; search by "
            f"SemiSupervisedSearchCV(certify_rows=0.2), or use 'best_fold'."
        )


def _of_one_fold(
    fold_errors: NDArray[Any], fold_rows: NDArray[Any], *pool: Any, **settings: Any
) -> BoundTerms:
    check_one_fold(fold_errors.shape[1])
    return bounds.select_then_certify(
        fold_errors[:, 0], fold_rows[0], *pool, **settings
    )


def _transductive(evidence: Evidence, settings: Settings) -> Terms:
    return Terms(
        *bounds.transductive(
            evidence[names.FOLD_ERRORS],
            evidence[names.FOLD_ROWS],
            evidence[names.FOLD_DISAGREEMENTS],
            int(evidence[names.N_UNLABELED]),
            delta=settings.delta_shares,
        )
    )


SELECT_THEN_CERTIFY: Final = Bound(
    "select_then_certify", _of_random_fold(_of_one_fold), RANDOM_FOLD, can_prune=True
)
"""One fold, of certifying rows: its model is the winner trained without them."""

CERTIFICATES: Final = (
    # Structural risk minimisation over the bound of Theorem 1 of ICSI TR-05-010.
    Bound("cv_bound", _of_random_fold(bounds.cv_bound), RANDOM_FOLD, can_prune=True),
    # Its label term is another event than that of `cv_bound`.
    Bound(
        "merged_folds",
        _of_random_fold(bounds.merged_folds),
        RANDOM_FOLD,
        can_prune=True,
    ),
    # Both sides of a fold's limit cost delta, so an interval's upper end is larger than
    # the bound of one side.
    Bound(
        "cv_interval", _of_random_fold(bounds.cv_interval), RANDOM_FOLD, can_prune=True
    ),
    # Pays for pools below 1e5 rows; it rises where another fold model differs on a row.
    Bound(
        "averaged_disagreement",
        _averaged,
        (names.FOLD_ERRORS, names.DIFFERING_FOLDS),
        can_prune=True,
    ),
    # Best used as certificate of a choice that another criterion made. It cannot
    # prune: another count can make another fold the best one, and the number smaller.
    Bound("best_fold", _best_fold, OF_BEST_FOLD),
    Bound("best_fold_interval", _best_fold_interval, EVERY_FOLD),
    # About the model of the best fold, which is the one deployed: it pays neither for
    # disagreement nor for a pool, but has seen fewer rows.
    Bound(
        "best_fold_model",
        _best_fold_model,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        can_prune=True,
        deploys=BEST_FOLD,
    ),
    # The label term by a union over candidates and folds, the second one conditionally
    # on the labeled rows: the certificate to report with criterion="cv_error".
    Bound(
        "best_fold_of_leader",
        _best_fold_of_leader,
        OF_BEST_FOLD,
        only_about="the candidate of least cross-validation error; choose by "
        "criterion='cv_error', or report certificate='best_fold'",
    ),
    # About the model trained without the first fold, which is the one deployed.
    Bound(
        "holdout_bound",
        _holdout,
        (names.FOLD_ERRORS,),
        (names.FOLD_ROWS,),
        can_prune=True,
        deploys="fold-0",
        holds_out_one_fold=True,
    ),
    # Pays for pools of a few thousand rows; above 1e5 the gain is below 0.001. Leaders
    # are a function of all labeled counts, which is why all must be there.
    Bound(
        "leaders",
        _leaders,
        RANDOM_FOLD,
        compares_all=True,
        only_about=f"the {N_LEADERS} candidates of smallest label term, and known "
        f"where all folds are counted; search with prune=False, or report "
        f"certificate='cv_bound'",
    ),
    SELECT_THEN_CERTIFY,
    # About the counted rows of the pool and no others. Nothing proves that it rises
    # with every count.
    Bound("transductive", _transductive, EVERY_FOLD, reads_whole_pool=True),
)
"""All criteria that are guarantees."""
