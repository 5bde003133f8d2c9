"""Nested cross-validation: one choice by all folds, and one without each fold.

The model without folds i and j serves two choices: what is chosen without fold i sees
its errors on fold j, and the other way round. A candidate is dropped where it can be
none of the choices, so every choice is that of the exhaustive search. `Scheme.order` is
made for that; to drop single fits by the choices that see them would have saved no more
on four data sets. A fit that fails rules a candidate out of the choices that see it,
and of no other: else what is chosen without a fold would depend on it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.estimates import cv_score
from dsel.errors import AllFitsFailedError
from dsel.families.family import FIT_DONE, FIT_FAILED
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.pruning import ROUNDING, with_messages

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NestedPruning:
    """Decides which candidates may still be chosen, by all folds or without one."""

    prunes: bool
    """False for the exhaustive search."""

    def prune(self, table: CountTable) -> Floats:
        """Drop the candidates that can be none of the choices any more.

        Returns the smallest score that each candidate can have in any choice.
        """
        lower, complete = _scores(table, table.in_order)
        if self.prunes:
            table.pruned |= table.active & _beaten(lower, _best(lower, complete))
        return np.asarray(lower.min(axis=0))

    def leader(self, table: CountTable) -> int:
        """Return the candidate chosen by all folds."""
        return choices(table)[0]

    def evidence(self, table: CountTable) -> dict[str, NDArray[Any]]:
        """Return the evidence of a finished run, those of inner folds included."""
        shown, status = _trimmed(table, prunes=self.prunes)
        return with_messages(table, shown, status) | _inner_counts(table, shown)


def choices(table: CountTable) -> list[int]:
    """Return the candidate chosen by all folds, then that without each fold.

    Raises AllFitsFailedError where a choice has no candidate left.
    """
    lower, complete = _scores(table, table.in_order)
    scores = np.where(complete, lower, np.inf)
    for number in np.flatnonzero(np.isinf(scores).all(axis=1)):
        which = "by all folds" if number == 0 else f"without fold {number - 1}"
        some = next(filter(None, table.messages.values()), "no message")
        raise AllFitsFailedError(
            f"no candidate can be chosen {which}: a fit of each has failed, such as "
            f"{some}"
        )
    return [int(number) for number in np.argmin(scores, axis=1)]


def _inner_counts(
    table: CountTable, shown: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Return errors of the models without two folds, by the fold that chooses."""
    k = table.scheme.n_folds
    errors = np.full((table.n_candidates, k, k), names.UNCOUNTED, np.int64)
    seconds = np.full(errors.shape, np.nan)
    for one, other, split in table.scheme.pairs:
        there = shown[:, split]
        errors[there, other, one] = table.test_errors[there, split]
        errors[there, one, other] = table.train_errors[there, split]
        seconds[there, one, other] = table.fit_seconds[there, split]
    return {names.INNER_ERRORS: errors, names.INNER_FIT_SECONDS: seconds}


def _scores(
    table: CountTable, shown: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return scores with missing counts at 0, and whether none is missing.

    Both have a row for each choice, (1 + n_folds, n_candidates).
    """
    k, n = table.scheme.n_folds, table.n_candidates
    rows = np.array([len(each.test_rows) for each in table.scheme.splits[:k]])
    errors = np.zeros((1 + k, n, k), np.int64)
    errors[0] = np.where(shown[:, :k], table.test_errors[:, :k], 0)
    for one, other, split in table.scheme.pairs:
        there = shown[:, split]
        errors[1 + other, there, one] = table.test_errors[there, split]
        errors[1 + one, there, other] = table.train_errors[there, split]
    lower, complete = np.empty((1 + k, n)), np.empty((1 + k, n), bool)
    for number, splits in enumerate(table.scheme.searches):
        folds = np.arange(k) != number - 1
        lower[number] = cv_score({
            names.FOLD_ERRORS: errors[number][:, folds].clip(min=0),
            names.FOLD_ROWS: rows[folds],
        })  # fmt: skip
        mine = list(splits)
        status = np.where(shown[:, mine], table.fit_status[:, mine], names.UNCOUNTED)
        lower[number, (status == FIT_FAILED).any(axis=1)] = np.inf
        complete[number] = (status == FIT_DONE).all(axis=1)
    return lower, complete


def _best(lower: Floats, complete: NDArray[np.bool_]) -> Floats:
    """Return the smallest score of a complete candidate in each choice."""
    return np.asarray(np.where(complete, lower, np.inf).min(axis=1, keepdims=True))


def _beaten(lower: Floats, best: Floats) -> NDArray[np.bool_]:
    """Return which candidates are worse than the best in every choice."""
    return np.asarray((lower > best + ROUNDING).all(axis=0))


def _trimmed(
    table: CountTable, *, prunes: bool
) -> tuple[NDArray[np.bool_], NDArray[np.int8]]:
    """Return the fits shown, and the status by the choice of all folds.

    Of candidates that are beaten the first fits that suffice to see it are shown: every
    run has counted these, because no score that candidates were compared with during
    the run is smaller than the best.
    """
    shown, status = table.in_order, table.status
    best = _best(*_scores(table, shown))
    undecided = np.full(table.n_candidates, prunes)
    for n_splits in range(shown.shape[1] + 1):
        first = np.isin(np.arange(shown.shape[1]), table.scheme.order[:n_splits])
        lower, _ = _scores(table, shown & first)
        beaten = undecided & _beaten(lower, best)
        shown[beaten] &= first
        status[beaten] = names.STATUS_PRUNED
        undecided &= ~beaten
    failed = (table.fit_status == FIT_FAILED) & shown
    status[failed[:, : table.scheme.n_folds].any(axis=1)] = names.STATUS_FAILED
    return shown, status
