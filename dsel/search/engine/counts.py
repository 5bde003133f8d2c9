"""The table with the fits and counts of every candidate of a search."""

from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.cross_validation import best_fold_number
from dsel.data.pool import PoolSlice
from dsel.families.family import FitKey
from dsel.results.fit_messages import FitMessage
from dsel.search.design.comparisons import Comparison
from dsel.search.design.folds import CVScheme
from dsel.search.engine.job_results import FitResult, FitStatus, join_tokens
from dsel.search.engine.jobs import CandidateGroup
from dsel.search.engine.pool_table import PoolTable, Records, records_of


@dataclass
class CountTable:
    """Counts by candidate; only the driver writes to it."""

    scheme: CVScheme
    candidate_groups: tuple[CandidateGroup, ...]
    """Groups of the candidates, which have their keys in a store; or none."""
    comparisons: InitVar[tuple[Comparison, ...]]
    """Comparisons of models on the pool; empty without one."""
    slices: InitVar[tuple[PoolSlice, ...]]
    """Parts of the pool; empty without comparisons."""
    n_candidates: int
    is_regression: bool = False
    """Whether candidates are regressors."""

    def __post_init__(
        self, comparisons: tuple[Comparison, ...], slices: tuple[PoolSlice, ...]
    ) -> None:
        n, fits = self.n_candidates, (self.n_candidates, len(self.scheme.splits))
        # Plain arrays, since pruning reads the whole table at each turn of the loop. On
        # the last axis: the test rows; and the second rows of a pair of folds, or a
        # half's training rows.
        self.errors = np.full((*fits, 2), names.UNCOUNTED, np.int64)
        # The loss of the plan on both parts.
        self.scores = np.full((*fits, 2), np.nan)
        # All fits are open at first; halving then holds those of the second round.
        self.fit_status = np.full(fits, FitStatus.OPEN, np.int8)
        self.answered = np.zeros(fits, bool)  # where `predict` did on some test rows
        self.fit_seconds = np.full(fits, np.nan)
        # By candidate and split; a token identifies the model of one fit.
        self.tokens: dict[FitKey, str] = {}
        self.messages: dict[FitKey, FitMessage] = {}
        self.pruned = np.zeros(n, bool)  # they cannot win any more
        # Key of every candidate in the store.
        self.keys = [""] * n
        for group in self.candidate_groups:
            for candidate, key in zip(group.candidates, group.keys, strict=True):
                self.keys[candidate.number] = key
        # It asks for tokens when a slice arrives, because fits may have been repeated
        # by then.
        self.pool = PoolTable(slices, comparisons, self.keys, self.joined_token)

    def add_fit(self, number: int, split: int, result: FitResult) -> None:
        """Write the counts of a fit; drop those of its earlier models."""
        key = FitKey(number, split)
        # The pool may be counted with the former model, which is gone: a fit that
        # repeats exactly has no token, and its counts stay.
        is_again = self.fit_status[key] == FitStatus.DONE
        if is_again and self.tokens.get(key, "") != result.token:
            self.pool.forget(number)
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
        self.add_fit(number, split, FitResult.of_failure(why))

    def forget_fits(self, number: int) -> None:
        """Drop all counts of a candidate, whose models differ from the counted ones."""
        self.fit_status[number] = FitStatus.OPEN
        self.errors[number] = names.UNCOUNTED
        self.scores[number] = self.fit_seconds[number] = np.nan
        self.answered[number] = False
        for split in range(len(self.scheme.splits)):
            self.tokens.pop(FitKey(number, split), None)
            self.messages.pop(FitKey(number, split), None)
        self.pool.forget(number)

    def joined_token(self, number: int) -> str:
        """Return a text that identifies all models of a candidate."""
        splits = self.scheme.with_models
        tokens = {split: self.tokens.get(FitKey(number, split), "") for split in splits}
        return join_tokens(tokens)

    def key_of(self, number: int, split: int) -> str:
        """Return the key of a fit's result in the store."""
        return f"fit/{self.scheme.splits[split].name}/{self.keys[number]}"

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
    def complete(self) -> NDArray[np.bool_]:
        """Whether every fit of each candidate is done, and the whole pool counted."""
        return np.asarray(self.fitted & self.pool.is_complete)

    @property
    def active(self) -> NDArray[np.bool_]:
        """Whether each candidate may still win, and is not complete."""
        if self.scheme.is_nested:
            is_waiting = (self.fit_status == FitStatus.OPEN).any(axis=1)
            is_waiting |= (self.fit_status == FitStatus.SUBMITTED).any(axis=1)
            return np.asarray(is_waiting & ~self.pruned)
        return ~(self.pruned | self.failed | self.complete)

    @property
    def open_fits(self) -> NDArray[np.bool_]:
        """Whether each fit is needed and not submitted, (n_candidates, n_splits)."""
        is_open = self.fit_status == FitStatus.OPEN
        return np.asarray(is_open & self.active[:, np.newaxis])

    @property
    def status(self) -> NDArray[np.int8]:
        """Status of each candidate, by the codes of the cube."""
        status = np.full(self.n_candidates, names.STATUS_MISSING, np.int8)
        status[self.complete] = names.STATUS_DONE
        status[self.pruned] = names.STATUS_PRUNED
        status[self.failed] = names.STATUS_FAILED
        return status

    def current_comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons, with each candidate's best fold so far."""
        k, best = self.scheme.n_folds, np.full(self.n_candidates, -1)
        errors = self.errors[:, :k, 0]
        known = (errors >= 0).all(axis=1)
        # The best fold is read from the labeled rows alone, so the pool cannot choose
        # it.
        if known.any():
            best[known] = best_fold_number(errors[known], self.scheme.fold_rows)
        return tuple(each.at_best_folds(best) for each in self.pool.comparisons)

    @property
    def unpredicting(self) -> NDArray[np.bool_]:
        """Whether each candidate's `predict` raised in every call, (n_candidates,).

        Rows on which it raised count as errors. If it raised for all rows, a message
        explains the failure, which a bound of 100% would not.
        """
        is_tested = [any(map(len, split.test_parts)) for split in self.scheme.splits]
        tested = (self.fit_status == FitStatus.DONE) & np.array(is_tested, bool)
        return np.asarray(tested.any(axis=1) & ~(tested & self.answered).any(axis=1))

    def first_messages(self, shown: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """Return the first message of each candidate's fits, or "", and its problem."""
        texts = np.full(self.n_candidates, "", dtype=object)
        problems = np.zeros(self.n_candidates, np.int8)
        for key in sorted(self.messages, reverse=True):
            if shown[key]:
                message, where = self.messages[key], self.scheme.splits[key.split]
                texts[key.candidate] = f"{where.name}: {message.text}"
                problems[key.candidate] = message.problem.value
        return {names.MESSAGE: texts, names.FIT_PROBLEM: problems}

    def named_counts(
        self,
        shown: NDArray[np.bool_] | None = None,
        counted: NDArray[np.bool_] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the counts under the names of the cube, candidates first.

        By default those of the fits `in_order`, (n_candidates, n_splits), and the pool
        counts of complete candidates.
        """
        scheme, k = self.scheme, self.scheme.n_folds
        shown = self.in_order if shown is None else shown
        counted = self.pool.is_complete if counted is None else counted
        errors, train_errors = (
            np.where(shown, self.errors[..., part], names.UNCOUNTED) for part in (0, 1)
        )
        seconds = np.where(shown, self.fit_seconds, np.nan)
        named: dict[str, NDArray[Any]] = {
            names.FOLD_ERRORS: errors[:, :k],
            names.FOLD_ROWS: scheme.fold_rows,
            names.TRAIN_ROWS: np.array([len(t.train_rows) for t in scheme.splits[:k]]),
            names.FIT_SECONDS: seconds[:, :k],
            names.STATUS: self.status,
        }
        if self.is_regression:  # errors, which are predictions of no number, say little
            named[names.FOLD_LOSS_MEAN] = np.where(shown, self.scores[..., 0], np.nan)[
                :, :k
            ]
        if scheme.n_halvings:
            named[names.TRAIN_ERRORS] = train_errors[:, :k]
        if scheme.all_rows_number is not None:
            named[names.FULL_FIT_SECONDS] = seconds[:, scheme.all_rows_number]
        if scheme.leave_one_out is not None:
            named[names.LOO_ERRORS] = errors[:, scheme.leave_one_out]
        return named | self.pool.named_counts(counted)

    def replay(self, records: Records) -> None:
        """Write the records of an earlier run into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        numbers = {key: number for number, key in enumerate(self.keys)}
        splits = {split.name: split.number for split in self.scheme.splits}
        for (name, key, *_), record in records_of("fit", records):
            if key in numbers and name in splits:
                result = FitResult.from_record(record)
                self.add_fit(numbers[key], splits[name], result)
        # The tokens of the fits show which counts on the pool are of these models.
        self.pool.replay(records)
