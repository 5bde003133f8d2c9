"""The counts of a search: the tables that it fills, and the record that it ends with.

A `FitTable` has every fit, as results come, and a `PoolTable` every slice of a pass
over the pool. When all fits have come, the pruner makes a `SearchCounts` of them:
criteria read this record, and the cube is made of it. Bounds of chosen models are
computed from its `evidence`, those of all candidates are criteria.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.checks import show
from dsel.data.pool import PoolSlice
from dsel.families.family import FitId
from dsel.losses.joint import Evidence
from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.results.records import from_record
from dsel.search.design.comparisons import Comparison, DrawnRows
from dsel.search.design.folds import CVScheme
from dsel.search.engine.jobs import CandidateGroup, CountResult, FitResult, FitStatus


@dataclass(frozen=True)
class DataCounts:
    """Numbers of the data, which need no fit, by the names of the cube's variables."""

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
    """Share of delta of each candidate, (n_candidates,); None for equal parts."""


@dataclass(frozen=True)
class SearchCounts:
    """All counts of a search, by the names of the cube's variables.

    The first axis has the candidates, the second one the folds. A count that was not
    made is -1, a mean or a time NaN. None: searches of this kind have no such counts.
    `dsel.names` says what each of them counts.
    """

    data: DataCounts
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
    pool_counts: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Counts on the pool for all candidates, by the key of each comparison."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of each candidate whose fits had a problem."""
    outer_candidate: Integers | None = None
    """The candidate that was chosen without each fold, (n_folds,)."""
    evidence: Evidence | None = None
    """Counts of the chosen models; None if bounds are those of all candidates."""

    @property
    def by_name(self) -> dict[str, NDArray[Any]]:
        """The counts by the names of the cube's variables, as criteria read them."""
        data = self.data
        counts: dict[str, Any] = {
            names.N_LABELED: data.n_labeled,
            names.N_UNLABELED: data.n_unlabeled,
            names.N_CLASSES: data.n_classes,
            names.EQUAL_ROWS: data.equal_rows,
            names.N_GROUPS: data.n_groups,
            names.PRIOR_SHARE: data.prior_share,
            names.STATUS: self.status,
            names.FOLD_ROWS: self.fold_rows,
            names.TRAIN_ROWS: self.train_rows,
            names.FOLD_ERRORS: self.fold_errors,
            names.FOLD_PREDICTIONS: self.fold_answers,
            names.FOLD_LOSS_MEAN: self.fold_loss_mean,
            names.TRAIN_ERRORS: self.train_errors,
            names.LOO_ERRORS: self.loo_errors,
            names.FIT_SECONDS: self.fit_seconds,
            names.FULL_FIT_SECONDS: self.full_fit_seconds,
            names.OUTER_CANDIDATE: self.outer_candidate,
            **self.pool_counts,
        }
        if self.evidence is not None:
            # Statistics of the declared losses describe their own variables; they are
            # added by `add_evidence`.
            by_name = self.evidence.by_name
            counts |= {name: n for name, n in by_name.items() if name in names.BY_NAME}
        return {name: np.asarray(n) for name, n in counts.items() if n is not None}

    @property
    def problems(self) -> NDArray[np.object_]:
        """The problem of each candidate's fits, (n_candidates,); None without one."""
        problems = np.full(len(self.status), None, object)
        for number, message in self.messages.items():
            problems[number] = message.problem
        return problems

    @property
    def texts(self) -> list[str]:
        """The text of each candidate's message; "" without one."""
        return [self.message_of(number) for number in range(len(self.status))]

    def message_of(self, candidate: int) -> str:
        """Return the text of a candidate's message; "" without one."""
        message = self.messages.get(candidate)
        return "" if message is None else message.text


Record = Mapping[str, object]
Records = Mapping[str, Record]
"""Records of a store, by key."""


def records_of(kind: str, records: Records) -> Iterator[tuple[list[str], Record]]:
    """Yield the records of one kind in the order of their keys, with a key's names.

    Raises ValueError if a key is none of a run.
    """
    for key in sorted(records):
        first, *names_in_key = key.split("/")
        if not any(names_in_key[:1]):
            raise ValueError(f"no record has the key {show(key)}")
        if first == kind:
            yield names_in_key, records[key]


@dataclass(eq=False)
class FitTable:
    """Fits by candidate and split, and their counts; no worker writes to it.

    Names that end with ``_fits``, and `failed_tests`, are flags of fits,
    (n_candidates, n_splits), those with ``_candidates`` flags of candidates,
    (n_candidates,).
    """

    # Plain arrays, since pruning reads the whole table at each turn of the loop.
    scheme: CVScheme
    candidate_groups: tuple[CandidateGroup, ...]
    """Groups of the candidates, which have their keys in a store; or none."""
    n_candidates: int
    errors: Integers = field(init=False)
    """Errors on both `Split.counted_parts`, (n_candidates, n_splits, 2)."""
    losses: Floats = field(init=False)
    """The loss of the plan on both parts."""
    fit_status: NDArray[np.int8] = field(init=False)
    fit_seconds: Floats = field(init=False)
    predicting_fits: NDArray[np.bool_] = field(init=False)
    """Whether the model of each fit has predicted some of its test rows."""
    failed_tests: NDArray[np.bool_] = field(init=False)
    """Whether a test of each fit failed; see `join_tests`."""
    needed_fits: NDArray[np.bool_] = field(init=False)
    """Whether each fit can still change what is chosen, by the pruner of the search."""
    messages: dict[FitId, FitMessage] = field(init=False, default_factory=dict)
    keys: list[str] = field(init=False)
    """Key of each candidate in the store."""

    def __post_init__(self) -> None:
        fits = self.n_candidates, len(self.scheme.splits)
        self.errors = np.full((*fits, 2), names.UNCOUNTED, np.int64)
        self.losses = np.full((*fits, 2), np.nan)
        self.fit_status = np.full(fits, FitStatus.OPEN, np.int8)
        self.fit_seconds = np.full(fits, np.nan)
        self.predicting_fits = np.zeros(fits, bool)
        self.failed_tests = np.zeros(fits, bool)
        self.needed_fits = np.ones(fits, bool)
        self.keys = [""] * self.n_candidates
        for group in self.candidate_groups:
            for candidate, key in zip(group.candidates, group.keys, strict=True):
                self.keys[candidate.number] = key

    def add_fit(self, number: int, split_number: int, result: FitResult) -> None:
        """Write the result of a fit."""
        fit = FitId(number, split_number)
        self.errors[fit] = result.errors or names.UNCOUNTED
        self.losses[fit] = np.nan
        self.losses[fit][: len(result.losses)] = result.losses
        self.fit_status[fit] = result.status
        self.fit_seconds[fit] = result.seconds
        self.messages.pop(fit, None)
        self.failed_tests[fit] = False
        if result.message is not None:
            self.messages[fit] = result.message
            self.failed_tests[fit] = result.message.problem is FitProblem.FAILED
        is_done = result.status is FitStatus.DONE
        self.predicting_fits[fit] = is_done and not result.predicts_none_of(
            self.scheme.splits[split_number]
        )

    def key_of(self, number: int, split_number: int) -> str:
        """Return the key of a fit's result in the store."""
        return f"fit/{self.scheme.splits[split_number].name}/{self.keys[number]}"

    @property
    def failed_fits(self) -> NDArray[np.bool_]:
        """Whether each fit failed, or one of its tests."""
        return np.asarray((self.fit_status == FitStatus.FAILED) | self.failed_tests)

    @property
    def ended_fits(self) -> NDArray[np.bool_]:
        """Whether each fit is done or failed."""
        return np.asarray(self.fit_status >= FitStatus.DONE)

    @property
    def pruned_candidates(self) -> NDArray[np.bool_]:
        """Whether no fit of each candidate is needed any more."""
        # A single candidate of a nested search has no inner fits, and is not pruned.
        has_fits = self.needed_fits.shape[1] > 0
        return np.asarray(~self.needed_fits.any(axis=1) & has_fits)

    @property
    def failed_candidates(self) -> NDArray[np.bool_]:
        """Whether each candidate is out because a fit of it failed.

        A later fit than one that has not ended does not count yet.
        """
        return np.asarray((self.failed_fits & self.consecutive_fits).any(axis=1))

    @property
    def active_candidates(self) -> NDArray[np.bool_]:
        """Whether a search waits for each candidate."""
        return np.asarray((self.needed_fits & ~self.ended_fits).any(axis=1))

    @property
    def consecutive_fits(self) -> NDArray[np.bool_]:
        """Whether each fit has ended, as have the candidate's fits on earlier splits.

        Exact pruning reads only these. A count that comes early waits for those before
        it, so that the outcome does not depend on the order in which tasks end.
        """
        return np.asarray(np.logical_and.accumulate(self.ended_fits, axis=1))

    @property
    def unpredicting_candidates(self) -> NDArray[np.bool_]:
        """Whether each candidate's `predict` raised in every call.

        Rows on which it raised count as errors. If it raised for all rows, a message
        explains the failure, which a bound of 100% would not.
        """
        is_tested = [any(map(len, split.counted_parts)) for split in self.scheme.splits]
        tested = (self.fit_status == FitStatus.DONE) & np.array(is_tested, bool)
        predicts = (tested & self.predicting_fits).any(axis=1)
        return np.asarray(tested.any(axis=1) & ~predicts)

    def first_messages(self, shown: NDArray[np.bool_]) -> dict[int, FitMessage]:
        """Return the first message of each candidate among its fits that are shown.

        Messages of failed fits come before those of others.
        """
        first: dict[int, FitMessage] = {}
        # Else the warning of an earlier fit would be given as the cause of a failure.
        failed = self.failed_fits
        for fit in sorted(self.messages, key=lambda fit: (not failed[fit], fit)):
            if shown[fit] and fit.candidate not in first:
                split, message = (
                    self.scheme.splits[fit.split_number],
                    self.messages[fit],
                )
                text = f"{split.trained_on}: {message.text}"
                first[fit.candidate] = replace(message, text=text)
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


@dataclass(eq=False)
class PoolTable:
    """Counts on the pool, by model set; no worker writes to it.

    The models of a set are compared with each other. All chosen models are one set; in
    an exhaustive search each candidate has one, with the models of all its splits.
    """

    slices: tuple[PoolSlice, ...]
    """Slices of the pool; empty without one."""
    comparisons: tuple[Comparison, ...]
    """Comparisons of the models of a set."""
    keys: Sequence[str]
    """Key of each model set in the store."""
    token_of: Callable[[int], str]
    """Function that returns the token of all present models of a set."""
    is_counted: NDArray[np.bool_] = field(init=False)
    """Whether each set is counted on each slice, (n_model_sets, n_slices)."""
    differences: list[Integers] = field(init=False)
    """Counts of each comparison, (n_model_sets, n_bins)."""
    pool_rows: list[Integers] = field(init=False)
    """Rows of the bins of each comparison, in the same shape."""
    seconds: Floats = field(init=False)
    """Seconds of the passes by each set, (n_model_sets,)."""
    drawn: DrawnRows = field(init=False, default_factory=DrawnRows)
    """Rows for queries; only a pass of chosen models draws some."""
    slice_number: dict[tuple[int, int], int] = field(init=False)
    """Number of each slice, by its first row and one more than its last."""

    def __post_init__(self) -> None:
        n = len(self.keys)
        self.is_counted = np.zeros((n, len(self.slices)), bool)
        self.differences = [np.zeros((n, c.n_bins), np.int64) for c in self.comparisons]
        self.pool_rows = [np.zeros_like(counts) for counts in self.differences]
        self.seconds = np.zeros(n)
        self.slice_number = {(s.start, s.stop): i for i, s in enumerate(self.slices)}

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether each set is counted on the whole pool, (n_model_sets,)."""
        return np.asarray(self.is_counted.all(axis=1))

    def is_of_other_models(self, model_set: int, result: CountResult) -> bool:
        """Return whether a slice that is not counted yet was counted by other models.

        Fits may have been repeated while it was counted.
        """
        number = self.slice_number[result.start, result.stop]
        is_counted = self.is_counted[model_set, number]
        return not is_counted and result.token != self.token_of(model_set)

    def add_slice(self, model_set: int, result: CountResult) -> None:
        """Add the counts of a slice, once, unless they are of other models."""
        number = self.slice_number[result.start, result.stop]
        # A slice may come twice: from a task that was thought dead, and from its retry.
        is_counted = self.is_counted[model_set, number]
        if is_counted or result.token != self.token_of(model_set):
            return
        for comparison, differences, pool_rows in zip(
            self.comparisons, self.differences, self.pool_rows, strict=True
        ):
            differences[model_set] += result.counts[comparison.key]
            pool_rows[model_set] += result.rows[comparison.key]
            self.drawn = self.drawn.merge(result.drawn, comparison.n_queries)
        self.is_counted[model_set, number] = True
        self.seconds[model_set] += result.seconds

    def forget_counts(self, model_set: int) -> None:
        """Drop the counts of a set's earlier models."""
        self.is_counted[model_set] = False
        self.seconds[model_set] = 0.0
        for total in (*self.differences, *self.pool_rows):
            total[model_set] = 0
        self.drawn = DrawnRows()

    def key_of(self, model_set: int, result: CountResult) -> str:
        """Return the key of a set's counts of a slice in the store."""
        rows = f"{result.start}-{result.stop}"
        return f"slice/{rows}/{self.keys[model_set]}/{result.token}"

    def replay(self, records: Records) -> None:
        """Write the slices that an earlier run has counted into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        numbers = {key: number for number, key in enumerate(self.keys)}
        # A store may be of a version that compared something else; then it is counted
        # again.
        compared = {comparison.key for comparison in self.comparisons}
        for (_, key, *_), record in records_of("slice", records):
            # A store may hold slices of a search and of chosen models.
            if key not in numbers:
                continue
            result = from_record(CountResult, record)
            # Another version may have made other slices; then these are counted again.
            is_there = (result.start, result.stop) in self.slice_number
            if is_there and compared <= result.rows.keys():
                self.add_slice(numbers[key], result)
