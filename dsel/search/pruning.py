"""Which candidates can still win: exact decisions, and halving in nested searches.

An exact run drops a candidate as soon as its counts prove that it cannot win. How much
of it was counted by then depends on the order in which tasks end. The cube therefore
shows of each dropped candidate only the first fits that suffice to prove it worse than
the final winner. Every run has counted these, because no estimate that candidates were
compared with during the run is smaller than the winner's. So runs that were killed and
resumed end with the same cube as others.

Halving drops candidates of an inner search by what that search may read, and is no less
valid: the bounds hold whichever candidate is chosen. It may choose another candidate
than the exhaustive search.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.criteria import Criterion, Settings
from dsel.errors import AllFitsFailedError
from dsel.families.family import FIT_DONE, FIT_FAILED
from dsel.search.counts import UNKNOWN, CountTable
from dsel.search.folds import InnerTest, Layout

ROUNDING: Final = 1e-9
"""A lower bound must exceed the best estimate by more than this to prune."""
KEPT: Final = 3
"""Of so many candidates each search keeps one after the first round of halving."""

Flags = NDArray[np.bool_]


class Race(Protocol):
    """What the driver asks: which candidates to drop, and in which order to go on."""

    @property
    def best_first(self) -> bool:
        """Whether counts decide what is fitted next, so that the order matters."""

    def prune(self, table: CountTable) -> Floats:
        """Drop candidates that cannot win; return numbers to order the others by."""

    def evidence(self, table: CountTable) -> dict[str, NDArray[Any]]:
        """Return the evidence of a finished run, as the cube shows it."""


@dataclass(frozen=True)
class ExactRace:
    """Drops candidates that cannot win by one criterion."""

    criterion: Criterion
    settings: Settings
    """Its shares of delta."""
    fixed: dict[str, NDArray[Any]]
    """Evidence that no task counts, such as the number of pool rows."""
    may_prune: bool
    """False for the exhaustive search."""

    @property
    def best_first(self) -> bool:
        """Whether any candidate is ever dropped."""
        return self.may_prune and self.criterion.can_prune

    def prune(self, table: CountTable) -> Floats:
        """Drop the candidates that cannot win whatever is counted from now on.

        While counts come in, lower bounds only grow and the best estimate only falls,
        so a candidate that is dropped would never win later. Returns the lower bounds.
        """
        evidence = table.evidence() | self.fixed
        lower = self.criterion.lower_bound(evidence, self.settings)
        if self.best_first:
            table.pruned |= table.active & (lower > self._best(evidence) + ROUNDING)
        return np.asarray(lower)

    def _best(self, evidence: dict[str, NDArray[Any]]) -> float:
        """Return the smallest estimate of a complete candidate, or infinity."""
        found = self.criterion.evaluate(evidence, self.settings).estimate
        return float(np.min(found[~np.isnan(found)], initial=np.inf))

    def evidence(self, table: CountTable) -> dict[str, NDArray[Any]]:
        """Return the evidence of a finished run, as the cube shows it."""
        shown, scored, status = table.in_order, table.scored, table.status
        if self.best_first:
            best = self._best(table.evidence() | self.fixed)
            undecided = np.ones(table.n_candidates, bool)
            failed = (table.fit_status == FIT_FAILED) & shown
            for n_splits in range(table.layout.n_folds + 1):
                first = np.arange(shown.shape[1]) < n_splits
                evidence = table.evidence(shown & first, np.zeros_like(undecided))
                evidence |= self.fixed | {names.STATUS: np.zeros_like(status)}
                lower = self.criterion.lower_bound(evidence, self.settings)
                undecided &= ~failed[:, :n_splits].any(axis=1)
                beaten = undecided & (lower > best + ROUNDING)
                shown[beaten] &= first
                scored[beaten] = False
                status[beaten] = names.STATUS_PRUNED
                undecided &= ~beaten
        messages = [table.message(j, shown[j]) for j in range(table.n_candidates)]
        return table.evidence(shown, scored) | self.fixed | {
            names.STATUS: status,
            names.MESSAGE: np.array(messages, dtype=object),
        }  # fmt: skip


@dataclass(frozen=True)
class InnerSearches:
    """The searches without each fold, and the one of all folds: who leads in each.

    The winner of the search without fold i is a function of the fits without i and one
    other fold that succeeded and of their errors on that other fold. Nothing else may
    drop a candidate there: not its errors on fold i, nor what other fits did. An error
    of `fit` fails the candidate in both searches that would read it; an error of
    `predict` counts all rows as errors in the search that reads them.
    """

    layout: Layout

    @cached_property
    def tests(self) -> list[list[InnerTest]]:
        """What each search reads: that of all folds first, then without each fold."""
        own: defaultdict[int, list[InnerTest]] = defaultdict(list)
        for test in self.layout.inner_tests:
            own[test.search].append(test)
        everything = list(self.layout.inner_tests)
        return [everything, *(own[fold] for fold in range(self.layout.n_folds))]

    def scores(self, table: CountTable, shown: Flags) -> tuple[list[Floats], Flags]:
        """Return scores with missing errors at 0, and where none is missing.

        Of each search, shape (n_candidates,); the second (n_searches, n_candidates).
        Infinity stands where a fit failed. A score is the mean of the error rates over
        the tests of the search, times a constant.
        """
        if not self.layout.inner_tests:  # a single candidate is chosen unseen
            nothing = np.zeros(table.n_candidates)
            n_searches = 1 + self.layout.n_folds
            return [nothing] * n_searches, np.ones((n_searches, len(nothing)), bool)
        scores, complete = [], []
        for tests in self.tests:
            errors = np.stack([errors_of(table, test) for test in tests], axis=1)
            splits = [test.split for test in tests]
            rows = np.array([test.n_rows for test in tests])
            there = shown[:, splits]
            score = mean_rate(np.where(there, errors, 0), rows)
            status = np.where(there, table.fit_status[:, splits], UNKNOWN)
            score[(status == FIT_FAILED).any(axis=1)] = np.inf
            scores.append(score)
            complete.append((status == FIT_DONE).all(axis=1))
        return scores, np.array(complete)


def errors_of(table: CountTable, test: InnerTest) -> NDArray[np.int64]:
    """Return the errors that a test counted, (n_candidates,)."""
    counted = table.second_errors if test.side else table.test_errors
    return np.asarray(counted[:, test.split])


def mean_rate(errors: NDArray[np.int64], rows: NDArray[np.int64]) -> Floats:
    """Return the mean error rate over the last axis, times a constant.

    Whole numbers, so that equal means are equal floats, where sizes differ by one.
    """
    small, large = int(rows.min()), int(rows.max())
    if large - small > 1:
        return np.asarray((errors / rows).mean(axis=-1))
    weights = np.where(rows == small, large, small) if large > small else 1
    return np.asarray((errors * weights).sum(axis=-1), np.float64)


@dataclass(frozen=True)
class NestedRace:
    """Decides which fits inner searches still need: exactly, by halving, or all."""

    searches: InnerSearches
    prune_by: str
    """``"halving"``, ``"exact"``, or ``""`` for the exhaustive search."""

    @property
    def best_first(self) -> bool:
        """Whether counts decide what is fitted next."""
        return self.prune_by == "exact"

    def begin(self, table: CountTable) -> None:
        """Allow the fits of the first round."""
        if self.prune_by == "halving":
            table.allowed[:] = False
            table.allowed[:, list(self.searches.layout.first)] = True

    def prune(self, table: CountTable) -> Floats:
        """Drop candidates, or begin the second round; return the smallest scores."""
        shown = table.in_order
        if self.prune_by == "halving":
            self._allow_survivors(table)
            return np.zeros(table.n_candidates)
        scores, complete = self.searches.scores(table, shown)
        lower = np.array(scores)
        if self.prune_by == "exact":
            best = np.where(complete, lower, np.inf).min(axis=1, keepdims=True)
            table.pruned |= table.active & (lower > best + ROUNDING).all(axis=0)
        return np.asarray(lower.min(axis=0))

    def _allow_survivors(self, table: CountTable) -> None:
        """Once the first round is over, allow the other fits of each search's best."""
        layout = self.searches.layout
        first, others = list(layout.first), range(len(layout.first), len(layout.splits))
        if (table.fit_status[:, first] == UNKNOWN).any():
            return
        kept = self.survivors(table)
        for split in others:
            readers = {t.search for t in layout.inner_tests if t.split == split}
            mine = kept[[0, *(1 + fold for fold in readers)]].any(axis=0)
            table.allowed[:, split] = mine

    def survivors(self, table: CountTable) -> Flags:
        """Return whom each search keeps, (n_searches, n_candidates)."""
        everyone = np.ones((1 + self.searches.layout.n_folds, table.n_candidates), bool)
        if self.prune_by != "halving" or not self.searches.layout.inner_tests:
            return everyone
        shown = np.zeros(table.fit_status.shape, bool)
        shown[:, list(self.searches.layout.first)] = True
        n_kept = -(-table.n_candidates // KEPT)
        kept = np.zeros_like(everyone)
        for place, tests in enumerate(self.searches.tests):
            mine = [t for t in tests if t.split in self.searches.layout.first]
            errors = np.stack([errors_of(table, test) for test in mine], axis=1)
            rows = np.array([test.n_rows for test in mine])
            score = mean_rate(errors.clip(min=0), rows)
            status = table.fit_status[:, [test.split for test in mine]]
            score[(status == FIT_FAILED).any(axis=1)] = np.inf
            kept[place, np.argsort(score, kind="stable")[:n_kept]] = True
        return kept

    def choices(self, table: CountTable) -> list[int]:
        """Return the candidate of all folds, then that without each fold.

        Raises AllFitsFailedError where a search has no candidate left.
        """
        scores, complete = self.searches.scores(table, table.fit_status != UNKNOWN)
        found = np.where(complete & self.survivors(table), np.array(scores), np.inf)
        for number in np.flatnonzero(np.isinf(found).all(axis=1)):
            which = "by all folds" if number == 0 else f"without fold {number - 1}"
            some = next(filter(None, table.messages.values()), "no message")
            raise AllFitsFailedError(
                f"no candidate can be chosen {which}: a fit of each has failed, such "
                f"as {some}"
            )
        return [int(number) for number in np.argmin(found, axis=1)]

    def evidence(self, table: CountTable) -> dict[str, NDArray[Any]]:
        """Return errors on each fold of the models that have not seen it, and status.

        Each row of a fold is answered once by every model without this fold and one
        other that was fitted.
        """
        shown, status = self._shown(table)
        layout, n = self.searches.layout, table.n_candidates
        errors = np.zeros((n, layout.n_folds), np.int64)
        answers = np.zeros((n, layout.n_folds), np.int64)
        for test in layout.inner_tests:
            there = shown[:, test.split] & (table.fit_status[:, test.split] == FIT_DONE)
            errors[there, test.fold] += errors_of(table, test)[there]
            answers[there, test.fold] += test.n_rows
        messages = [table.message(j, shown[j]) for j in range(n)]
        return {
            names.FOLD_ERRORS: np.where(answers > 0, errors, names.UNCOUNTED),
            names.FOLD_ANSWERS: answers,
            names.FOLD_ROWS: layout.fold_rows,
            names.TRAIN_ROWS: np.array([len(s.train_rows) for s in layout.held_out]),
            names.STATUS: status,
            names.MESSAGE: np.array(messages, dtype=object),
        }

    def _shown(self, table: CountTable) -> tuple[Flags, NDArray[np.int8]]:
        """Return the fits that every run of this plan has made, and the status."""
        ended = table.fit_status != UNKNOWN
        shown = ended.copy() if self.prune_by != "exact" else table.in_order
        status = np.full(table.n_candidates, names.STATUS_DONE, np.int8)
        if self.prune_by == "exact":
            scores, complete = self.searches.scores(table, shown)
            found = np.where(complete, np.array(scores), np.inf)
            best = found.min(axis=1, keepdims=True)
            undecided = np.ones(table.n_candidates, bool)
            for n_splits in range(shown.shape[1] + 1):
                first = np.arange(shown.shape[1]) < n_splits
                lower = np.array(self.searches.scores(table, shown & first)[0])
                beaten = undecided & (lower > best + ROUNDING).all(axis=0)
                shown[beaten] &= first
                undecided &= ~beaten
        status[(~shown).any(axis=1)] = names.STATUS_PRUNED
        failed = (table.fit_status == FIT_FAILED) & shown
        status[failed.any(axis=1)] = names.STATUS_FAILED
        return shown, status
