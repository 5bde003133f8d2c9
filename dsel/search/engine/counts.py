"""The counts of a search: the table that it fills, and the record that it ends with.

A `CountTable` has every fit, as results come. When all have come, the pruner makes a
`SearchCounts` of it: criteria read this record, bounds are computed from it, and the
cube is made of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.families.family import FitKey
from dsel.losses.joint import Evidence
from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.results.records import from_record
from dsel.search.design.folds import CVScheme
from dsel.search.engine.jobs import CandidateGroup, FitResult, FitStatus
from dsel.search.engine.pool_table import Records, records_of


@dataclass(frozen=True)
class KnownCounts:
    """Numbers that need no fit, by the names of the cube's variables."""

    n_labeled: int
    n_unlabeled: int
    """Rows of the pool that are counted; 0 without a pool."""
    n_classes: int
    """0 for a regression."""
    equal_rows: int = 0
    """Pool rows that equal labeled rows."""
    n_groups: int | None = None
    """Groups of labeled rows; None if rows are independent."""
    prior_share: Floats | None = None
    """Part of delta of each candidate, (n_candidates,); None for equal parts."""


@dataclass(frozen=True)
class SearchCounts:
    """All counts of a search, by the names of the cube's variables.

    The first axis has the candidates, the second one the folds. A count that was not
    made is -1, a mean or a time NaN. None: searches of this kind have no such counts.
    `dsel.names` says what each of them counts.
    """

    known: KnownCounts
    status: NDArray[np.int8]
    fold_rows: Integers
    """(n_folds,)."""
    train_rows: Integers
    """(n_folds,)."""
    fold_errors: Integers | None = None
    fold_answers: Integers | None = None
    fold_loss_mean: Floats | None = None
    train_errors: Integers | None = None
    loo_errors: Integers | None = None
    """(n_candidates,)."""
    fit_seconds: Floats | None = None
    full_fit_seconds: Floats | None = None
    """(n_candidates,)."""
    pool: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Counts on the pool for all candidates, by the variable of each comparison."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of each candidate whose fits had a problem."""
    outer_candidate: Integers | None = None
    """The candidate that was chosen without each fold, (n_folds,)."""
    evidence: Evidence | None = None
    """Counts of the chosen models; None if bounds are those of all candidates."""

    @property
    def by_name(self) -> dict[str, NDArray[Any]]:
        """The counts of candidates and rows by their names, as criteria read them."""
        fields = {**vars(self.known), **vars(self), **self.pool}
        if self.evidence is not None:
            fields |= self.evidence.by_name
        return {
            name: np.asarray(value)
            for name, value in fields.items()
            if name in names.BY_NAME and value is not None
        }

    @property
    def answers(self) -> Integers:
        """The predictions behind the errors of a candidate on a fold.

        In a nested search several models predict each row of a fold.
        """
        return self.fold_rows if self.fold_answers is None else self.fold_answers

    def message_of(self, candidate: int) -> str:
        """Return the text of a candidate's message; "" without one."""
        message = self.messages.get(candidate)
        return "" if message is None else message.text


@dataclass
class CountTable:
    """Fits by candidate and split, and their counts; only the driver writes to it."""

    scheme: CVScheme
    candidate_groups: tuple[CandidateGroup, ...]
    """Groups of the candidates, which have their keys in a store; or none."""
    n_candidates: int

    def __post_init__(self) -> None:
        fits = self.n_candidates, len(self.scheme.splits)
        # Plain arrays, since pruning reads the whole table at each turn of the loop. On
        # the last axis: the test rows; and the second rows of a pair of folds, or a
        # half's training rows.
        self.errors = np.full((*fits, 2), names.UNCOUNTED, np.int64)
        # The loss of the plan on both parts.
        self.scores = np.full((*fits, 2), np.nan)
        self.fit_status = np.full(fits, FitStatus.OPEN, np.int8)
        self.answered = np.zeros(fits, bool)  # where `predict` did on some test rows
        self.fit_seconds = np.full(fits, np.nan)
        self.failed_tests = np.zeros(fits, bool)  # see `join_tests`
        self.messages: dict[FitKey, FitMessage] = {}
        # Fits that can still change what is chosen: only the search writes them, by its
        # pruner.
        self.needed = np.ones(fits, bool)
        # Key of every candidate in the store.
        self.keys = [""] * self.n_candidates
        for group in self.candidate_groups:
            for candidate, key in zip(group.candidates, group.keys, strict=True):
                self.keys[candidate.number] = key

    def add_fit(self, number: int, split: int, result: FitResult) -> None:
        """Write the result of a fit."""
        key = FitKey(number, split)
        self.errors[key] = result.errors or names.UNCOUNTED
        self.scores[key] = np.nan
        self.scores[key][: len(result.scores)] = result.scores
        self.fit_status[key] = result.status
        self.fit_seconds[key] = result.seconds
        self.messages.pop(key, None)
        self.failed_tests[key] = False
        if result.message is not None:
            self.messages[key] = result.message
            self.failed_tests[key] = result.message.problem is FitProblem.FAILED
        # Where `predict` raised on all rows, a message explains it, as a bound of 100%
        # would not.
        is_done = result.status is FitStatus.DONE
        self.answered[key] = is_done and not result.predicts_none_of(
            self.scheme.splits[split]
        )

    def fail(self, number: int, split: int, why: str) -> None:
        """Record that a fit failed."""
        self.add_fit(number, split, FitResult.of_failure(why))

    def key_of(self, number: int, split: int) -> str:
        """Return the key of a fit's result in the store."""
        return f"fit/{self.scheme.splits[split].name}/{self.keys[number]}"

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Whether each fit failed, or one of its tests."""
        return np.asarray((self.fit_status == FitStatus.FAILED) | self.failed_tests)

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whether each fit is done or failed."""
        return np.asarray(self.fit_status >= FitStatus.DONE)

    @property
    def pruned(self) -> NDArray[np.bool_]:
        """Whether no fit of each candidate is needed any more, (n_candidates,)."""
        # A single candidate of a nested search has no inner fits, and is not pruned.
        has_fits = self.needed.shape[1] > 0
        return np.asarray(~self.needed.any(axis=1) & has_fits)

    @property
    def in_order(self) -> NDArray[np.bool_]:
        """Whether each fit ended, and so did the candidate's fits on earlier splits.

        Exact pruning reads only these. A count that comes early waits for those before
        it, so that the outcome does not depend on the order in which tasks end.
        """
        return np.asarray(np.logical_and.accumulate(self.ended, axis=1))

    @property
    def unpredicting(self) -> NDArray[np.bool_]:
        """Whether each candidate's `predict` raised in every call, (n_candidates,).

        Rows on which it raised count as errors. If it raised for all rows, a message
        explains the failure, which a bound of 100% would not.
        """
        is_tested = [any(map(len, split.test_parts)) for split in self.scheme.splits]
        tested = (self.fit_status == FitStatus.DONE) & np.array(is_tested, bool)
        return np.asarray(tested.any(axis=1) & ~(tested & self.answered).any(axis=1))

    def first_messages(self, shown: NDArray[np.bool_]) -> dict[int, FitMessage]:
        """Return the first message of each candidate among its fits that are shown.

        Messages of failed fits come before those of others.
        """
        first: dict[int, FitMessage] = {}
        # Else the warning of an earlier fit would be given as the cause of a failure.
        failed = self.failed
        for key in sorted(self.messages, key=lambda key: (not failed[key], key)):
            if shown[key] and key.candidate not in first:
                split, message = self.scheme.splits[key.split], self.messages[key]
                text = f"{split.name}: {message.text}"
                first[key.candidate] = replace(message, text=text)
        return first

    def replay(self, records: Records) -> None:
        """Write the records of an earlier run into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        numbers = {key: number for number, key in enumerate(self.keys)}
        splits = {split.name: split.number for split in self.scheme.splits}
        for (name, key, *_), record in records_of("fit", records):
            if key in numbers and name in splits:
                result = from_record(FitResult, record)
                self.add_fit(numbers[key], splits[name], result)
