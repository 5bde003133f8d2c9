"""The counts of a search: the tables that it fills, and its final record.

A `FitTable` collects the result of every fit, and a `PoolTable` that of every slice of
a pass over the pool. When all fits are done, the pruner summarizes them in
`NestedCounts` or `ExhaustiveCounts`, from which criteria and the cube are computed.
Bounds of all candidates are criteria. Bounds of chosen models are computed from an
`Evidence`, which has their counts and no others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Bools, Floats, Integers
from dsel.checks import show
from dsel.data.pool import PoolSlice
from dsel.data.splits import SplitIndex
from dsel.families.family import FitId
from dsel.results.cube import error_rates
from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.results.records import from_record
from dsel.search.design.comparisons import Comparison, QueriedRows
from dsel.search.design.cv_schemes import CVScheme
from dsel.search.engine.jobs import (
    CandidateGroup,
    CountedJob,
    CountResult,
    FitResult,
    FitStatus,
    UnpredictedRows,
)


@dataclass(frozen=True)
class DataSizes:
    """Numbers of rows, classes and groups of the data, which need no fit."""

    n_labeled: int
    n_unlabeled: int
    """Rows of the pool that are counted; 0 without a pool."""
    n_classes: int
    """0 for a regression."""
    n_duplicates: int = 0
    """Pool rows that equal labeled rows. It is 0 for a pool that was declared to hold
    other records; `running.run_description.describe_run` counts it."""
    n_groups: int | None = None
    """Groups of labeled rows; None if rows are independent."""


@dataclass(frozen=True, kw_only=True)
class SearchCounts:
    """Counts of a search's candidates; each field is a variable of the cube.

    The first axis has the candidates, the second one the folds. A count that was not
    made is `names.UNCOUNTED`, a mean or a time NaN. `NestedCounts` and
    `ExhaustiveCounts` add what only one kind of search counts. `dsel.names` says what
    each of them is.
    """

    data: DataSizes
    status: NDArray[np.int8]
    fold_rows: Integers
    """(n_folds,)."""
    train_rows: Integers
    """(n_folds,)."""
    fold_errors: Integers | None
    """None for regressors."""
    fold_loss_mean: Floats | None
    """None where the error ranks candidates."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of each candidate whose fits had a problem."""

    @property
    def predictions_by_fold(self) -> Integers:
        """Number of predictions of the rows of each fold: one for each row."""
        return self.fold_rows

    @property
    def error_rates(self) -> Floats | None:
        """The error rate on each fold, NaN where not counted; None for regressors."""
        if self.fold_errors is None:
            return None
        return error_rates(self.fold_errors, self.predictions_by_fold)

    @property
    def fold_scores(self) -> Floats:
        """The scores on each fold by which candidates are ranked, NaN if unknown.

        These are mean losses, or error rates where the loss is the error.
        """
        scores = (
            self.error_rates if self.fold_loss_mean is None else self.fold_loss_mean
        )
        assert scores is not None  # regressors have mean losses
        return scores

    @property
    def by_name(self) -> dict[str, NDArray[Any]]:
        """The counts by the names of the cube's variables.

        Only criteria and the cube use this mapping; see `CountsByName`.
        """
        data = self.data
        counts: dict[str, Any] = {
            names.N_LABELED: data.n_labeled,
            names.N_UNLABELED: data.n_unlabeled,
            names.N_CLASSES: data.n_classes,
            names.N_DUPLICATES: data.n_duplicates,
            names.N_GROUPS: data.n_groups,
            names.STATUS: self.status,
            names.FOLD_ROWS: self.fold_rows,
            names.TRAIN_ROWS: self.train_rows,
            names.FOLD_ERRORS: self.fold_errors,
            names.FOLD_LOSS_MEAN: self.fold_loss_mean,
            **self.counts_of_kind,
        }
        return {name: np.asarray(n) for name, n in counts.items() if n is not None}

    @property
    def counts_of_kind(self) -> Mapping[str, NDArray[Any] | None]:
        """The counts of this kind of search, by the names of the cube's variables."""
        raise NotImplementedError

    @property
    def problems(self) -> NDArray[np.object_]:
        """The problem of each candidate's fits, (n_candidates,); None without one."""
        problems = np.full(len(self.status), None, object)
        for candidate, message in self.messages.items():
            problems[candidate] = message.problem
        return problems

    @property
    def texts(self) -> list[str]:
        """The text of each candidate's message; "" without one."""
        return [self.message_of(candidate) for candidate in range(len(self.status))]

    def message_of(self, candidate: int) -> str:
        """Return the text of a candidate's message; "" without one."""
        message = self.messages.get(candidate)
        return "" if message is None else message.text


@dataclass(frozen=True, kw_only=True)
class NestedCounts(SearchCounts):
    """Counts of the inner searches of a nested search."""

    fold_predictions: Integers
    """Predictions of the rows of each fold: by each model without it and another."""

    @property
    def predictions_by_fold(self) -> Integers:
        """Number of predictions of the rows of each fold: several for each row.

        Errors divided by rows would be wrong, so the cube has error rates, too.
        """
        return self.fold_predictions

    @property
    def counts_of_kind(self) -> Mapping[str, NDArray[Any] | None]:
        """The predictions, by the name of the cube's variable."""
        return {names.FOLD_PREDICTIONS: self.fold_predictions}


@dataclass(frozen=True, kw_only=True)
class ExhaustiveCounts(SearchCounts):
    """Counts of a search that counts all candidates on the same splits."""

    fit_seconds: Floats
    full_fit_seconds: Floats | None
    """(n_candidates,); None for a hold-out set, where no candidate is fitted on all
    rows."""
    train_errors: Integers | None
    """Errors of each half on its own rows; None unless splits are halvings."""
    loo_errors: Integers | None
    """Leave-one-out errors, (n_candidates,); None where none were planned."""
    counts_on_pool: Mapping[str, NDArray[Any]]
    """Counts on the pool for all candidates, by the key of each comparison; empty
    without a pool."""

    @property
    def counts_of_kind(self) -> Mapping[str, NDArray[Any] | None]:
        """Times, further errors and counts on the pool, by name."""
        return {
            names.TRAIN_ERRORS: self.train_errors,
            names.LOO_ERRORS: self.loo_errors,
            names.FIT_SECONDS: self.fit_seconds,
            names.FULL_FIT_SECONDS: self.full_fit_seconds,
            **self.counts_on_pool,
        }


Record = Mapping[str, object]
Records = Mapping[str, Record]
"""Records of a store, by key."""


def records_of(kind: str, records: Records) -> Iterator[tuple[list[str], Record]]:
    """Yield the records of one kind in the order of their keys, with a key's names.

    Raises ValueError if no run writes such a key.
    """
    for key in sorted(records):
        first, *names_in_key = key.split("/")
        if not any(names_in_key[:1]):
            raise ValueError(f"no record has the key {show(key)}")
        if first == kind:
            yield names_in_key, records[key]


@dataclass(eq=False)
class FitTable:
    """Fits by candidate and split, and their counts.

    It belongs to the loop of fits, which alone changes it, by its methods: pruners, the
    queue, workers and displays read it, and return what should change. Before a loop
    begins, it gets the counts of an earlier run, or those of a closed form.

    Names that end with ``_fits``, and `failed_tests`, are flags of fits,
    (n_candidates, n_splits), those with ``_candidates`` flags of candidates,
    (n_candidates,).
    """

    # The counts are plain arrays, since pruning reads the whole table at each turn of
    # the loop.
    scheme: CVScheme
    candidate_groups: tuple[CandidateGroup, ...]
    """Groups of the candidates, which have the candidates' keys in a store; may be
    empty."""
    n_candidates: int
    errors: Integers = field(init=False)
    """Errors on both `Split.row_parts`, (n_candidates, n_splits, 2)."""
    scores: Floats = field(init=False)
    """The score by the plan's loss on both parts; see `Loss.score`."""
    fit_status: NDArray[np.int8] = field(init=False)
    fit_seconds: Floats = field(init=False)
    predicting_fits: Bools = field(init=False)
    """Whether the model of each fit has predicted some of its test rows."""
    failed_tests: Bools = field(init=False)
    """Whether a test of each fit failed; see `join_tests`."""
    beaten_candidates: Bools = field(init=False)
    """Whether each candidate was ever beaten, by the pruner of the search."""
    needed_fits: Bools = field(init=False)
    """Whether each fit can still change what is chosen; see `apply_pruning`."""
    messages: dict[FitId[SplitIndex], FitMessage] = field(
        init=False, default_factory=dict
    )
    candidate_keys: tuple[str, ...] = field(init=False)
    """Key of each candidate in the store."""
    candidates_of_group: list[Integers] = field(init=False)
    """Candidate numbers of each candidate group."""
    group_of_candidate: Integers = field(init=False)
    """Number of each candidate's group, (n_candidates,)."""

    def __post_init__(self) -> None:
        fits = self.n_candidates, len(self.scheme.splits)
        self.errors = np.full((*fits, 2), names.UNCOUNTED, np.int64)
        self.scores = np.full((*fits, 2), np.nan)
        self.fit_status = np.full(fits, FitStatus.OPEN, np.int8)
        self.fit_seconds = np.full(fits, np.nan)
        self.predicting_fits = np.zeros(fits, bool)
        self.failed_tests = np.zeros(fits, bool)
        self.beaten_candidates = np.zeros(self.n_candidates, bool)
        self.needed_fits = np.ones(fits, bool)
        keys = [""] * self.n_candidates
        for candidate_group in self.candidate_groups:
            for candidate, key in zip(
                candidate_group.candidates, candidate_group.candidate_keys, strict=True
            ):
                keys[candidate.number] = key
        self.candidate_keys = tuple(keys)
        self.candidates_of_group = [
            np.array([candidate.number for candidate in candidate_group.candidates])
            for candidate_group in self.candidate_groups
        ]
        self.group_of_candidate = np.zeros(self.n_candidates, np.int64)
        for group_number, candidates in enumerate(self.candidates_of_group):
            self.group_of_candidate[candidates] = group_number

    @property
    def waiting_fits(self) -> Bools:
        """Whether each fit is needed and not submitted."""
        is_open = (self.fit_status == FitStatus.OPEN) & self.needed_fits
        return np.asarray(is_open & self.active_candidates[:, np.newaxis])

    def fill(self, scores: Floats, reasons: Sequence[str]) -> None:
        """Write the scores of all fits of regressors at once, those of a closed form.

        `scores` are of shape (n_candidates, n_splits, 2). `reasons` has the reason why
        a candidate cannot be chosen, "" where it can.
        """
        # Residuals are numbers, which have no errors.
        self.scores[:], self.errors[:], self.predicting_fits[:] = scores, 0, True
        for candidate, reason in enumerate(reasons):
            status = FitStatus.FAILED if reason else FitStatus.DONE
            self.fit_status[candidate] = status
            if reason and len(self.scheme.splits):  # a single candidate needs no splits
                message = FitMessage(FitProblem.FAILED, reason)
                self.messages[FitId(candidate, SplitIndex(0))] = message

    def note_submission(
        self, candidate_numbers: Sequence[int], split_number: SplitIndex
    ) -> None:
        """Mark open fits of candidates as submitted; a fit that is done stays done."""
        status = self.fit_status[:, split_number]
        again = [n for n in candidate_numbers if status[n] != FitStatus.DONE]
        status[again] = FitStatus.SUBMITTED

    def add_fit(
        self, candidate: int, split_number: SplitIndex, result: FitResult
    ) -> None:
        """Write the result of a fit."""
        fit = FitId(candidate, split_number)
        self.errors[fit] = result.errors or names.UNCOUNTED
        self.scores[fit] = np.nan
        self.scores[fit][: len(result.scores)] = result.scores
        self.fit_status[fit] = result.status
        self.fit_seconds[fit] = result.seconds
        # The fit may have run before, on a worker that was lost with its model.
        self.messages.pop(fit, None)
        self.failed_tests[fit] = False
        if result.message is not None:
            self.messages[fit] = result.message
            self.failed_tests[fit] = result.message.problem is FitProblem.FAILED
        is_done = result.status is FitStatus.DONE
        self.predicting_fits[fit] = is_done and not result.predicts_none_of(
            self.scheme.splits[split_number]
        )

    def apply_pruning(self, needed_fits: Bools, beaten_candidates: Bools) -> None:
        """Apply the decision of a pruner; a candidate that was beaten stays beaten."""
        self.beaten_candidates |= beaten_candidates
        self.needed_fits = needed_fits & ~self.beaten_candidates[:, np.newaxis]

    def key_of(self, candidate: int, split_number: SplitIndex) -> str:
        """Return the key of a fit's result in the store."""
        split = self.scheme.splits[split_number]
        return f"fit/{split.name}/{self.candidate_keys[candidate]}"

    @property
    def failed_fits(self) -> Bools:
        """Whether each fit failed, or one of its tests."""
        return np.asarray((self.fit_status == FitStatus.FAILED) | self.failed_tests)

    @property
    def finished_fits(self) -> Bools:
        """Whether each fit is done or failed."""
        return np.asarray(self.fit_status >= FitStatus.DONE)

    @property
    def pruned_candidates(self) -> Bools:
        """Whether no fit of each candidate is needed any more."""
        # A single candidate of a nested search has no inner fits, and is not pruned.
        has_fits = self.needed_fits.shape[1] > 0
        return np.asarray(~self.needed_fits.any(axis=1) & has_fits)

    @property
    def failed_candidates(self) -> Bools:
        """Whether each candidate is dropped because one of its fits failed.

        A failure counts once all earlier fits of the candidate have ended.
        """
        return np.asarray((self.failed_fits & self.consecutive_fits).any(axis=1))

    @property
    def active_candidates(self) -> Bools:
        """Whether a search waits for each candidate."""
        return np.asarray((self.needed_fits & ~self.finished_fits).any(axis=1))

    @property
    def consecutive_fits(self) -> Bools:
        """Whether each fit has ended, as have the candidate's fits on earlier splits.

        Exact pruning reads only these. A count that comes early waits for those before
        it, so that the outcome does not depend on the order in which tasks end.
        """
        return np.asarray(np.logical_and.accumulate(self.finished_fits, axis=1))

    @property
    def unpredicting_candidates(self) -> Bools:
        """Whether each candidate's `predict` raised in every call.

        Rows on which it raised count as errors. If it raised for all rows, the
        candidate fails with a message, which explains more than a bound of 100%.
        """
        is_tested = [any(map(len, split.row_parts)) for split in self.scheme.splits]
        tested = (self.fit_status == FitStatus.DONE) & np.array(is_tested, bool)
        predicts = (tested & self.predicting_fits).any(axis=1)
        return np.asarray(tested.any(axis=1) & ~predicts)

    def first_messages(self, shown: Bools) -> dict[int, FitMessage]:
        """Return the first message of each candidate among its `shown` fits.

        Messages of failed fits come before those of others.
        """
        message_of = dict[int, FitMessage]()
        # Otherwise the warning of an earlier fit would be given as the cause of a
        # failure.
        failed = self.failed_fits
        for fit in sorted(self.messages, key=lambda fit: (not failed[fit], fit)):
            if shown[fit] and fit.candidate not in message_of:
                split, message = (
                    self.scheme.splits[fit.split_number],
                    self.messages[fit],
                )
                text = f"{split.trained_on}: {message.text}"
                message_of[fit.candidate] = replace(message, text=text)
        return message_of

    def replay(self, records: Records) -> None:
        """Write the records of an earlier run into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        candidates = {key: i for i, key in enumerate(self.candidate_keys)}
        splits = {split.name: SplitIndex(split.number) for split in self.scheme.splits}
        for (name, key, *_), record in records_of("fit", records):
            if key in candidates and name in splits:
                result = from_record(FitResult, record)
                self.add_fit(candidates[key], splits[name], result)


@dataclass(eq=False)
class PoolTable:
    """Counts on the pool, by model set; no worker writes to it.

    The models of a set are compared with each other. All chosen models are one set; in
    an exhaustive search each candidate has one, with the models of all its splits.
    """

    slices: tuple[PoolSlice, ...]
    """Slices of the pool; empty without a pool."""
    comparisons: tuple[Comparison, ...]
    """Comparisons of the models of a set."""
    model_set_keys: Sequence[str]
    """Key of each model set in the store."""
    tokens: list[str]
    """Token of the current models of each set; it is replaced when a model is fitted
    again."""
    is_counted: Bools = field(init=False)
    """Whether each set is counted on each slice, (n_model_sets, n_slices)."""
    differences: list[Integers] = field(init=False)
    """Counts of each comparison, (n_model_sets, n_bins)."""
    pool_rows: list[Integers] = field(init=False)
    """Rows of the bins of each comparison, in the same shape."""
    seconds: Floats = field(init=False)
    """Seconds of the passes by each set, (n_model_sets,)."""
    queried: QueriedRows = field(init=False, default_factory=QueriedRows)
    """Rows for queries; only a pass of chosen models has some."""
    unpredicted: UnpredictedRows = field(init=False, default_factory=UnpredictedRows)
    """Rows on which a model raised; only a pass of chosen models has some."""
    slice_number: dict[tuple[int, int], int] = field(init=False)
    """Number of each slice, by its first row and one more than its last."""

    def __post_init__(self) -> None:
        n = len(self.model_set_keys)
        self.is_counted = np.zeros((n, len(self.slices)), bool)
        self.differences = [np.zeros((n, c.n_bins), np.int64) for c in self.comparisons]
        self.pool_rows = [np.zeros_like(counts) for counts in self.differences]
        self.seconds = np.zeros(n)
        self.slice_number = {(s.start, s.stop): i for i, s in enumerate(self.slices)}

    @property
    def is_complete(self) -> Bools:
        """Whether each set is counted on the whole pool, (n_model_sets,)."""
        return np.asarray(self.is_counted.all(axis=1))

    def whole_counts(self, model_set: int) -> list[Integers]:
        """Return the counts of each comparison on the whole pool, (n_bins,).

        Raises RuntimeError where slices are missing, or were counted by other models
        only: a bound from a part of the pool that passes for the whole pool would be
        too small.
        """
        if n_missing := int((~self.is_counted[model_set]).sum()):
            raise RuntimeError(
                f"{n_missing} of {len(self.slices)} slices of the pool were not "
                f"counted; run the search again, with the same `out` if it had one."
            )
        return [counts[model_set] for counts in self.differences]

    def sets_of_other_models(self, counted_job: CountedJob) -> list[int]:
        """Return the model sets that other models than the current ones counted.

        Fits may have been repeated while the slice was counted. Sets for which the
        slice is counted already are left out.
        """
        job = counted_job.job
        slice_number = self.slice_number[job.start, job.stop]
        return [
            model_set
            for model_set, result in counted_job.result_of.items()
            if not self.is_counted[model_set, slice_number]
            and result.token != self.tokens[model_set]
        ]

    def add_slice(self, model_set: int, result: CountResult) -> None:
        """Add the counts of a slice, once, unless they are of other models."""
        slice_number = self.slice_number[result.start, result.stop]
        # A slice may come twice: from a task that was thought dead, and from its retry.
        is_counted = self.is_counted[model_set, slice_number]
        if is_counted or result.token != self.tokens[model_set]:
            return
        for comparison, differences, pool_rows in zip(
            self.comparisons, self.differences, self.pool_rows, strict=True
        ):
            differences[model_set] += result.counts[comparison.key]
            pool_rows[model_set] += result.rows[comparison.key]
            self.queried = self.queried.merge(result.queried, comparison.n_queries)
        self.unpredicted = self.unpredicted.merge(result.unpredicted)
        self.is_counted[model_set, slice_number] = True
        self.seconds[model_set] += result.seconds

    def forget_counts(self, model_set: int) -> None:
        """Drop the counts of a set's earlier models."""
        self.is_counted[model_set] = False
        self.seconds[model_set] = 0.0
        for total in (*self.differences, *self.pool_rows):
            total[model_set] = 0
        self.queried, self.unpredicted = QueriedRows(), UnpredictedRows()

    def key_of(self, model_set: int, result: CountResult) -> str:
        """Return the key of a set's counts of a slice in the store."""
        rows = f"{result.start}-{result.stop}"
        return f"slice/{rows}/{self.model_set_keys[model_set]}/{result.token}"

    def replay(self, records: Records) -> None:
        """Write the slices that an earlier run has counted into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        model_sets = {key: i for i, key in enumerate(self.model_set_keys)}
        # A store may be of a version that compared something else; then it is counted
        # again.
        compared = {comparison.key for comparison in self.comparisons}
        for (_, key, *_), record in records_of("slice", records):
            # A store may hold slices of a search and of chosen models.
            if key not in model_sets:
                continue
            result = from_record(CountResult, record)
            # Another version may have made other slices; then these are counted again.
            is_there = (result.start, result.stop) in self.slice_number
            if is_there and compared <= result.rows.keys():
                self.add_slice(model_sets[key], result)
