"""The table with the counts of every candidate, and their records in a store.

The table also has the state of each fit. A record names its candidate by a key, and the
split, or the rows of the slice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.cross_validation import best_fold_number
from dsel.checks import show
from dsel.data.pool import PoolSlice
from dsel.results.fit_messages import FitMessage
from dsel.search.design.comparisons import Comparison
from dsel.search.design.drawn_rows import DrawnRows
from dsel.search.design.folds import CVScheme
from dsel.search.engine.jobs import (
    CandidateGroup,
    CountResult,
    FitResult,
    FitStatus,
    join_tokens,
)


@dataclass
class CountTable:
    """Counts by candidate; only the driver writes to it."""

    scheme: CVScheme
    candidate_groups: tuple[CandidateGroup, ...]
    """Groups of the candidates; empty in the last step, which has chosen ones only."""
    comparisons: tuple[Comparison, ...]
    """Comparisons of models on the pool; empty without one."""
    slices: tuple[PoolSlice, ...]
    """Parts of the pool, one task each; empty without one."""
    n_candidates: int
    of_numbers: bool = False
    """Whether candidates are regressors."""
    chosen: tuple[int, ...] = ()
    """In the last step, the candidate that was chosen for each split."""

    def __post_init__(self) -> None:
        n, fits = self.n_candidates, (self.n_candidates, len(self.scheme.splits))
        # On the test rows; and on the second rows of a pair of folds, or a half's
        # training rows.
        self.errors = np.full((*fits, 2), names.UNCOUNTED, np.int64)
        # The loss of the plan on both parts.
        self.scores = np.full((*fits, 2), np.nan)
        # All fits are open at first; halving then holds those of the second round.
        self.fit_status = np.full(fits, FitStatus.OPEN, np.int8)
        self.answered = np.zeros(fits, bool)  # where `predict` did on some test rows
        self.fit_seconds = np.full(fits, np.nan)
        # By candidate and split; a token identifies the model of one fit.
        self.tokens: dict[tuple[int, int], str] = {}
        self.messages: dict[tuple[int, int], FitMessage] = {}
        self.score_seconds = np.zeros(n)
        self.visited = np.zeros((n, len(self.slices)), bool)
        self.compare(self.comparisons)
        self.pruned = np.zeros(n, bool)  # they cannot win any more
        self.slice_number = {(s.start, s.stop): i for i, s in enumerate(self.slices)}
        # Key of every candidate in the store, by its number.
        self.keys = {0: f"chosen-{'-'.join(map(str, self.chosen))}"} | {
            candidate.number: key
            for group in self.candidate_groups
            for candidate, key in zip(group.candidates, group.keys, strict=True)
        }

    def compare(self, comparisons: tuple[Comparison, ...]) -> None:
        """Add comparisons, which may depend on the fits."""
        self.comparisons, n = comparisons, self.n_candidates
        self.differences = [np.zeros((n, c.n_bins), np.int64) for c in comparisons]
        self.pool_rows = [np.zeros_like(counts) for counts in self.differences]
        # Rows for queries; only the last step draws some.
        self.drawn = DrawnRows()

    def add_fit(self, number: int, split: int, result: FitResult) -> None:
        """Write the counts of a fit; drop those of its earlier models."""
        key = number, split
        # The pool may be counted with the former model, which is gone: a fit that
        # repeats exactly has no token, and its counts stay.
        is_again = self.fit_status[key] == FitStatus.DONE
        if is_again and self.tokens.get(key, "") != result.token:
            self.forget_pool(number)
        self.errors[key] = result.errors or names.UNCOUNTED
        self.scores[key] = np.nan
        self.scores[key][: len(result.scores)] = result.scores
        self.fit_status[key] = result.status
        self.fit_seconds[key] = result.seconds
        self.tokens[key] = result.token
        self.messages.pop(key, None)
        if result.message is not None:
            self.messages[key] = result.message
        self.answered[key] = not result.predicts_none_of(self.scheme.splits[split])

    def fail(self, number: int, split: int, why: str) -> None:
        """Record that a fit failed."""
        self.add_fit(number, split, FitResult.failed(why))

    def forget_fits(self, number: int) -> None:
        """Drop all counts of a candidate, whose models differ from the counted ones."""
        self.fit_status[number] = FitStatus.OPEN
        self.errors[number] = names.UNCOUNTED
        self.scores[number] = self.fit_seconds[number] = np.nan
        self.answered[number] = False
        for split in range(len(self.scheme.splits)):
            self.tokens.pop((number, split), None)
            self.messages.pop((number, split), None)
        self.forget_pool(number)

    def forget_pool(self, number: int) -> None:
        """Drop the pool counts of a candidate's earlier models."""
        self.visited[number] = False
        self.score_seconds[number] = 0.0
        for total in (*self.differences, *self.pool_rows):
            total[number] = 0
        self.drawn = DrawnRows()

    def add_slice(self, number: int, result: CountResult) -> bool:
        """Add a candidate's counts of a slice, once; return False if models differ."""
        at = self.slice_number[result.start, result.stop]
        # A slice may come twice: from a task that was thought dead, and from its retry.
        if self.visited[number, at]:
            return True
        # Fits may have been repeated while the slice was counted.
        if result.token != self.joined_token(number):
            return False
        for place, comparison in enumerate(self.comparisons):
            variable = comparison.variable
            self.differences[place][number] += result.counts[variable]
            self.pool_rows[place][number] += result.rows[variable]
            self.drawn = self.drawn.merge(result.drawn, comparison.n_queries)
        self.visited[number, at] = True
        self.score_seconds[number] += result.seconds
        return True

    def joined_token(self, number: int) -> str:
        """Return a text that identifies all models of a member."""
        splits = self.scheme.with_models
        tokens = {split: self.tokens.get((number, split), "") for split in splits}
        return join_tokens(tokens)

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whether each fit is done or failed."""
        return np.asarray(self.fit_status >= FitStatus.DONE)

    @property
    def in_order(self) -> NDArray[np.bool_]:
        """Whether each fit ended, and so did the candidate's fits on earlier splits.

        Exact pruning reads only these. A count that comes early waits for those before
        it, so that the outcome does not depend on the order in which tasks end.
        """
        return np.asarray(np.logical_and.accumulate(self.ended, axis=1))

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Whether a fit of each candidate failed, (n_candidates,); nested: by search.

        A candidate that can predict on no fold has failed, too: it gets no pool rows.
        """
        failed = ((self.fit_status == FitStatus.FAILED) & self.in_order).any(axis=1)
        if not self.scheme.is_nested:
            failed |= self.fitted & self.unpredicting
        return np.asarray(failed)

    @property
    def fitted(self) -> NDArray[np.bool_]:
        """Whether every fit of each candidate is done."""
        return np.asarray((self.fit_status == FitStatus.DONE).all(axis=1))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Whether each candidate is counted on the whole pool."""
        return np.asarray(self.visited.all(axis=1))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Whether each candidate may still win, and is not complete."""
        if self.scheme.is_nested:
            is_waiting = (self.fit_status == FitStatus.OPEN).any(axis=1)
            is_waiting |= (self.fit_status == FitStatus.SUBMITTED).any(axis=1)
            return np.asarray(is_waiting & ~self.pruned)
        return ~(self.pruned | self.failed | (self.fitted & self.scored))

    @property
    def open_fits(self) -> NDArray[np.bool_]:
        """Whether each fit is needed and not submitted, (n_candidates, n_splits)."""
        is_open = self.fit_status == FitStatus.OPEN
        return np.asarray(is_open & self.active[:, np.newaxis])

    @property
    def status(self) -> NDArray[np.int8]:
        """Status of each candidate, by the codes of the cube."""
        status = np.full(self.n_candidates, names.STATUS_MISSING, np.int8)
        status[self.fitted & self.scored] = names.STATUS_DONE
        status[self.pruned] = names.STATUS_PRUNED
        status[self.failed] = names.STATUS_FAILED
        return status

    def current_comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons, with each candidate's best fold so far."""
        k, best = self.scheme.n_folds, np.full(self.n_candidates, -1)
        errors = self.errors[:, :k, 0]
        known = (errors >= 0).all(axis=1)
        if known.any():
            best[known] = best_fold_number(errors[known], self.scheme.fold_rows)
        return tuple(each.at_best_folds(best) for each in self.comparisons)

    @property
    def unpredicting(self) -> NDArray[np.bool_]:
        """Whether each candidate's `predict` raised in every call, (n_candidates,).

        Rows on which it raised count as errors. If it raised for all rows, a message
        explains the failure, which a bound of 100% would not.
        """
        is_tested = [any(map(len, split.tests)) for split in self.scheme.splits]
        tested = (self.fit_status == FitStatus.DONE) & np.array(is_tested, bool)
        return np.asarray(tested.any(axis=1) & ~(tested & self.answered).any(axis=1))

    def first_messages(self, shown: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """Return the first message of each candidate's fits, or "", for the cube."""
        texts, problems = np.full((2, self.n_candidates), "", dtype=object)
        for number, split in sorted(self.messages, reverse=True):
            if shown[number, split]:
                message = self.messages[number, split]
                texts[number] = f"{self.scheme.splits[split].name}: {message.text}"
                problems[number] = message.problem.value
        return {names.MESSAGE: texts, names.FIT_PROBLEM: problems}

    def evidence(
        self,
        shown: NDArray[np.bool_] | None = None,
        scored: NDArray[np.bool_] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the counts under the names of the cube, candidates first.

        By default those of the fits `in_order`, (n_candidates, n_splits), and the pool
        counts of complete candidates.
        """
        scheme, k = self.scheme, self.scheme.n_folds
        shown = self.in_order if shown is None else shown
        scored = self.scored if scored is None else scored
        errors, train_errors = (
            np.where(shown, self.errors[..., side], names.UNCOUNTED) for side in (0, 1)
        )
        seconds = np.where(shown, self.fit_seconds, np.nan)
        evidence: dict[str, NDArray[Any]] = {
            names.FOLD_ERRORS: errors[:, :k],
            names.FOLD_ROWS: scheme.fold_rows,
            names.TRAIN_ROWS: np.array([len(t.train_rows) for t in scheme.splits[:k]]),
            names.FIT_SECONDS: seconds[:, :k],
            names.STATUS: self.status,
        }
        if self.of_numbers:  # errors, which are predictions of no number, say little
            evidence[names.FOLD_LOSS_MEAN] = np.where(
                shown, self.scores[..., 0], np.nan
            )[:, :k]
        if scheme.n_halvings:
            evidence[names.TRAIN_ERRORS] = train_errors[:, :k]
        if scheme.full is not None:
            evidence[names.FULL_FIT_SECONDS] = seconds[:, scheme.full]
        if scheme.leave_one_out is not None:
            evidence[names.LOO_ERRORS] = errors[:, scheme.leave_one_out]
        for comparison, differences, rows in zip(
            self.comparisons, self.differences, self.pool_rows, strict=True
        ):
            counts = np.where(scored[:, np.newaxis], differences, names.UNCOUNTED)
            if comparison.variable == names.BEST_FOLD_DISAGREEMENTS:
                evidence[comparison.variable] = counts[:, 0]
                continue
            evidence[comparison.variable] = counts
            pool_rows = np.where(scored[:, np.newaxis], rows, 0)
            evidence[names.POOL_ROWS] = pool_rows
            fraction = pool_rows / np.maximum(1, pool_rows.sum(axis=1, keepdims=True))
            spent = fraction * self.score_seconds[:, np.newaxis]
            evidence[names.SCORE_SECONDS] = np.where(
                scored[:, np.newaxis], spent, np.nan
            )
        return evidence


def fit_key(table: CountTable, number: int, split: int) -> str:
    """Return the key of a fit's result in the store."""
    return f"fit/{table.scheme.splits[split].name}/{table.keys[number]}"


def slice_key(table: CountTable, number: int, result: CountResult) -> str:
    """Return the key of a slice's counts in the store."""
    rows = f"{result.start}-{result.stop}"
    return f"slice/{rows}/{table.keys[number]}/{result.token}"


def replay(table: CountTable, records: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the records of an earlier run into the table: fits first, then slices.

    Raises TypeError or ValueError if a record was not written by a run.
    """
    numbers = {key: number for number, key in table.keys.items()}
    splits = {split.name: split.number for split in table.scheme.splits}
    variables = {comparison.variable for comparison in table.comparisons}
    for key in sorted(records):  # "fit" before "slice"
        kind, _, rest = key.partition("/")
        what, _, rest = rest.partition("/")
        if not what:
            raise ValueError(f"no record has the key {show(key)}")
        number, entry = numbers.get(rest.partition("/")[0]), records[key]
        # A store holds records of the search and of its last step, which has a table of
        # its own.
        if number is None:
            continue
        if kind == "fit" and what in splits:
            table.add_fit(number, splits[what], FitResult.from_record(entry))
        elif kind == "slice":
            result = CountResult.from_record(entry)
            is_there = (result.start, result.stop) in table.slice_number
            if is_there and variables <= result.rows.keys():
                table.add_slice(number, result)
