"""Code of workers: fits, their losses, and counts over slices of the pool.

A job is a value that describes work, and a batch runs the jobs of one task. The
context, which is sent once, has the data that all jobs need. Results go to the table
and the store. Models stay where they were fitted, except in the last step of a nested
search: there a model comes back in one message with its counts, so that the deployed
object is the one that was counted.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import partial
from hashlib import blake2b
from numbers import Real
from typing import Any, Final, cast

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Features
from dsel.checks import show
from dsel.data.cache import LastUse, process_cache, spare_memory
from dsel.data.frames import Frame
from dsel.data.pool import Block, read_blocks
from dsel.data.sampled_rows import SampledRows
from dsel.data.splits import Split, SplitKind
from dsel.errors import LossError
from dsel.families.batches import has_function, refuse_batches
from dsel.families.family import (
    FIT_DONE,
    Cache,
    Candidate,
    Family,
    FitCounts,
    FittedGroup,
)
from dsel.families.leave_one_out import leave_one_out_counts
from dsel.losses.base import Counts, Loss, Predictions, Rows, no_predictions
from dsel.losses.declared import DeclaredLosses
from dsel.results.fit_messages import FitMessage, FitProblem, message_of_text
from dsel.results.records import from_record, to_record
from dsel.runtime.tasks import Inputs, Output
from dsel.search.design.comparisons import Comparison, count_differences
from dsel.search.design.drawn_rows import DrawnRows

BLOCK_NBYTES: Final = 32 * 2**20  # working memory of a block: a few times the caches
BLOCK_ROWS: Final = (64, 2**15)  # fewest and most: a block has an overhead of 0.2 ms
FRAME_NBYTES: Final = 2**27  # of data frames, of which a call costs milliseconds
FRAME_ROWS: Final = 2**16
NO_ROWS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class CandidateGroup:
    """Candidates that share work, and the family that fits them."""

    number: int
    family: Family
    candidates: tuple[Candidate, ...]
    """The candidates, in the order of their numbers."""
    keys: tuple[str, ...]
    """Hash for each candidate of everything except the rows that affects its fit."""
    label: str
    """Common parameters of the candidates, for names of tasks: ``gamma=0.01``."""

    def members(self, numbers: Collection[int]) -> list[Candidate]:
        """Return the candidates with these numbers."""
        return [each for each in self.candidates if each.number in numbers]


@dataclass(frozen=True)
class JobContext:
    """Data that every job of a run needs; sent to a cluster once."""

    X: Any
    """Labeled rows, shape (n_labeled, n_columns): array, CSR or `Frame`."""
    y: NDArray[Any]
    """Class codes, or numbers."""
    schemes: tuple[tuple[Split, ...], ...]
    """Splits of the search, and those of the last step of a nested one."""
    candidate_groups: tuple[CandidateGroup, ...]
    fitting_pool: Any = None
    """Part of the pool that semi-supervised learners are fitted on, or None."""
    allow_nan: bool = False
    """Whether every estimator accepts missing values."""
    losses: DeclaredLosses = field(default_factory=DeclaredLosses)
    """The loss that ranks candidates, and the losses counted for the chosen ones."""
    chosen: "ChosenModels | None" = None
    """The models of the last step, for its pass over the pool."""
    comparisons: tuple[Comparison, ...] = ()
    """Comparisons of that pass; jobs of other passes have their own."""
    sampled_rows: SampledRows | None = None
    """Sampled pool rows of an earlier pass, to notice changed files."""
    baseline: NDArray[np.int64] | None = None
    """Class codes that the baseline predicts for labeled rows, (n_labeled,)."""

    def candidate_group_of(self, candidate: int) -> CandidateGroup:
        """Return the group of a candidate."""
        groups = self.candidate_groups
        return next(group for group in groups if group.members((candidate,)))


class FitStatus(IntEnum):
    """State of a fit; the table has one for each candidate and split."""

    HELD = 0
    """Not needed, unless a later round opens it."""
    OPEN = 1
    """Needed, and not submitted."""
    SUBMITTED = 2
    DONE = 3
    FAILED = 4


class Keep(Enum):
    """Place of the models after a fit."""

    NOWHERE = 0
    ON_WORKER = 1
    """Models stay on the worker, for passes over the pool."""
    IN_RESULT = 2
    """Models come to the driver, in one message with the counts."""


@dataclass(frozen=True)
class FitJob:
    """Candidates of a group on one split."""

    candidate_group: int
    """Number of the group."""
    candidates: tuple[int, ...]
    """Candidate numbers, ascending."""
    split: int
    """Number of the split in the scheme."""
    scheme: int = 0
    """Number of the scheme in `JobContext.schemes`."""

    def alone(self) -> list["FitJob"]:
        """Return one job for each candidate."""
        return [
            FitJob(self.candidate_group, (number,), self.split, self.scheme)
            for number in self.candidates
        ]


@dataclass(frozen=True)
class CountJob:
    """Comparison of models on consecutive rows of the pool."""

    start: int
    """First global row number."""
    stop: int
    """One more than the last row number."""
    members: tuple[int, ...]
    """Rows of the table whose models are compared: candidates, or the chosen one."""

    def alone(self) -> list["CountJob"]:
        """Return the job itself: compared models must predict together."""
        return [self]


@dataclass(frozen=True)
class FitResult:
    """Result of one fit of one candidate."""

    status: FitStatus
    """`DONE` or `FAILED`."""
    seconds: float
    errors: tuple[int, ...] = ()
    """Two numbers: errors on the split's test rows, and on its second rows or, if these
    are counted, its training rows; -1 for a part that it does not have. Empty for a
    failed fit."""
    scores: tuple[float, ...] = ()
    """The loss of the plan on each part of the split, one number or two."""
    message: FitMessage | None = None
    """The problem of the fit; None without one."""
    token: str = ""
    """Identifies the model among those of other fits; "" if fits repeat exactly, or the
    model is not needed later."""

    def to_record(self) -> dict[str, Any]:
        """Return the record for the store."""
        return cast(dict[str, Any], to_record(self))

    @classmethod
    def from_record(cls, record: object) -> "FitResult":
        """Invert `to_record`; TypeError or ValueError for anything else."""
        return from_record(cls, record)

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2, whose message was a text, with the fields of now."""
        text = record.get("message")
        if not isinstance(text, str):
            return record
        has_failed = record.get("status") == FitStatus.FAILED.name
        message = message_of_text(text, has_failed=has_failed)
        return {**record, "message": None if message is None else to_record(message)}

    @classmethod
    def failed(cls, why: str) -> "FitResult":
        """Return the result of a fit that was given up."""
        message = FitMessage(FitProblem.FAILED, why)
        return cls(FitStatus.FAILED, float("nan"), message=message)

    def predicts_none_of(self, split: Split) -> bool:
        """Return whether `predict` of the model raised on all test rows of its split.

        Then all of them count as errors. If it raised on one of two parts only, the
        model has predicted the other one.
        """
        if self.message is None or self.message.problem is not FitProblem.UNPREDICTED:
            return False
        parts = zip(self.errors, split.tests, strict=False)
        return all(n_errors == len(rows) for n_errors, rows in parts if len(rows))


@dataclass(frozen=True)
class CountResult:
    """Counts of one member in one slice of the pool."""

    start: int
    stop: int
    seconds: float
    token: str
    """Token of the compared models."""
    rows: Mapping[str, tuple[int, ...]]
    """Rows of each bin, by variable."""
    counts: Mapping[str, tuple[int, ...]]
    """Count of each bin, by variable."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Rows of the slice that may be queried, in the last step of a search with
    queries."""

    def to_record(self) -> dict[str, Any]:
        """Return the record for the store."""
        return cast(dict[str, Any], to_record(self))

    @classmethod
    def from_record(cls, record: object) -> "CountResult":
        """Invert `to_record`; TypeError or ValueError for anything else."""
        return from_record(cls, record)


@dataclass(frozen=True)
class KeptModels:
    """Fitted models, with a token that identifies each."""

    models: FittedGroup
    tokens: Mapping[tuple[int, int], str]
    """Tokens by candidate and split; they are made where the model was fitted, since a
    transferred model may have another pickle."""


Kept = dict[FitJob, KeptModels]
"""Kept models by the first job of the call that fitted them."""


@dataclass(frozen=True)
class FittedJob:
    """Result of a `FitJob`."""

    job: FitJob
    results: tuple[FitResult, ...]
    """Result of each candidate."""
    nbytes: int = 0
    """Bytes of the models, if they are kept."""
    models: FittedGroup | None = None
    """The models themselves, with `Keep.IN_RESULT`."""
    counts: tuple[Counts, ...] = ()
    """Counts of the plan's statistics on the held-out rows, with `Keep.IN_RESULT`."""


@dataclass(frozen=True)
class CountedJob:
    """Result of a `CountJob`."""

    job: CountJob
    results: tuple[CountResult, ...]
    """Result of each member."""


@dataclass(frozen=True)
class FitBatch:
    """Fits that are one task."""

    jobs: tuple[FitJob, ...]
    keep: Keep = Keep.NOWHERE
    last_of: frozenset[int] = frozenset()
    """Groups without a later task, unless one is retried."""

    def run(self, context: JobContext, inputs: Inputs) -> Output:
        """Fit; the result is a `FittedJob` for each job."""
        cache = process_cache()
        ending = LastUse(cache)
        fitted: list[FittedJob] = []
        kept: Kept = {}
        calls: dict[Any, list[FitJob]] = {}  # splits of one group share work
        for job in self.jobs:
            # Leave-one-out makes a model for each row in one call of its own.
            is_alone = _split_of(context, job).kind is SplitKind.LEAVE_ONE_OUT
            key = job if is_alone else (job.candidate_group, job.candidates, job.scheme)
            calls.setdefault(key, []).append(job)
        for together in calls.values():
            first = together[0]
            if _split_of(context, first).kind is SplitKind.LEAVE_ONE_OUT:
                fitted.append(_leave_one_out(context, first))
                continue
            # Data without another reader must not push shared data out of the cache.
            budget = ending if first.candidate_group in self.last_of else cache
            models = fit_splits(
                context,
                context.candidate_groups[first.candidate_group],
                first.candidates,
                [_split_of(context, job) for job in together],
                budget,
            )
            tokens: dict[tuple[int, int], str] = {}
            if self.keep is not Keep.NOWHERE:
                keys = [(n, job.split) for job in together for n in job.candidates]
                tokens = {key: model_token(models, *key) for key in keys}
            # Models of one call are kept together: each of its jobs counts its share.
            # To measure them may take a pickle.
            is_kept = self.keep is Keep.ON_WORKER
            nbytes = models.nbytes // len(together) if is_kept else 0
            for job in together:
                results = fit_results(context, job, models, tokens)
                fitted.append(
                    FittedJob(job, results, nbytes)
                    if self.keep is not Keep.IN_RESULT
                    else FittedJob(
                        job, results, 0, models, count_held_out(context, job, models)
                    )
                )
            models.forget_test_predictions()
            kept[first] = KeptModels(models, tokens)
        cache.forget(ending.own_keys)
        return Output(fitted, kept if self.keep is Keep.ON_WORKER else None)


def _split_of(context: JobContext, job: FitJob) -> Split:
    return context.schemes[job.scheme][job.split]


def _leave_one_out(context: JobContext, job: FitJob) -> FittedJob:
    group, split = (
        context.candidate_groups[job.candidate_group],
        _split_of(context, job),
    )
    counts = leave_one_out_counts(
        group.family,
        group.members(job.candidates),
        context.X,
        context.y,
        split,
        pool=context.fitting_pool,
    )
    results = (
        fit_result(counts, (row, 0), (number, job.split))
        for row, number in enumerate(job.candidates)
    )
    return FittedJob(job, tuple(results))


def fit_results(
    context: JobContext,
    job: FitJob,
    fitted: FittedGroup,
    tokens: Mapping[tuple[int, int], str],
) -> tuple[FitResult, ...]:
    """Return the counts of a job's fits, with the losses of their models."""
    split, column = _split_of(context, job), fitted.splits.index(job.split)
    scores = zip(
        *(
            score_models(context, fitted, split, side)
            for side in range(len(split.tests))
        ),
        strict=True,
    )
    keys = [(number, job.split) for number in job.candidates]
    return tuple(
        fit_result(fitted.counts, (row, column), key, tokens.get(key, ""), each)
        for row, (key, each) in enumerate(zip(keys, scores, strict=True))
    )


def fit_result(
    counts: FitCounts,
    place: tuple[int, int],
    key: tuple[int, int],
    token: str = "",
    scores: Sequence[float] = (),
) -> FitResult:
    """Return the result of one fit: `place` in the arrays, `key` as in messages."""
    seconds = round(float(counts.seconds[place]), 6)
    message = counts.messages.get(key)
    if counts.status[place] != FIT_DONE:
        return FitResult(FitStatus.FAILED, seconds, message=message)
    errors = int(counts.test_errors[place]), int(counts.train_errors[place])
    return FitResult(FitStatus.DONE, seconds, errors, tuple(scores), message, token)


def fit_splits(
    context: JobContext,
    group: CandidateGroup,
    candidates: Collection[int],
    splits: Sequence[Split],
    budget: Cache | None = None,
) -> FittedGroup:
    """Fit candidates of a group on some splits, and count their errors."""
    fitted = group.family.fit(
        group.members(candidates),
        context.X,
        context.y,
        splits,
        pool=context.fitting_pool,
        budget=budget or process_cache(),
    )
    if any(has_function(each) for each in group.members(candidates)):
        for split in splits:
            refuse_batches(fitted, split, context.X)
    return fitted


def score_models(
    context: JobContext, fitted: FittedGroup, split: Split, side: int
) -> list[float]:
    """Return the loss of each candidate on one part of a split's test rows."""
    loss, rows = context.losses.main, split.tests[side]
    counts, column = fitted.counts, fitted.splits.index(split.number)
    errors = (counts.test_errors, counts.train_errors)[side][:, column]
    known = [loss.score_errors(int(n), len(rows)) for n in errors]
    if None not in known:
        return cast(list[float], known)  # no row is predicted twice
    predictions = fitted.test_predictions(split.number, side)
    if predictions is None:
        predictions = predict_rows(context, fitted, split.number, rows)
    labeled = Rows(context.X[rows], context.y[rows])
    return [score_rows(loss, labeled, each) for each in predictions]


def score_rows(loss: Loss, rows: Rows, predictions: Predictions) -> float:
    """Return the loss of one model on some rows.

    Raises LossError if the loss raises, or returns anything but a number.
    """
    try:
        score: object = loss.score(rows, predictions)
    except Exception as error:
        raise LossError(
            f"`loss` {loss!r} raised {type(error).__name__} in `score`: {error}. It "
            "must return a number for any rows and predictions; "
            "dsel.losses.check_loss tests it on some."
        ) from error
    if not isinstance(score, Real) or np.isnan(float(score)):
        raise LossError(
            f"`loss` {loss!r} must return a number from `score`, got {show(score)}; "
            "dsel.losses.check_loss tests it."
        )
    return float(score)


def count_held_out(
    context: JobContext, job: FitJob, fitted: FittedGroup
) -> tuple[Counts, ...]:
    """Return the counts of the plan's statistics for the only candidate of a job."""
    column = fitted.splits.index(job.split)
    n_errors = int(fitted.counts.test_errors[0, column])
    return count_rows(context, _split_of(context, job), fitted, n_errors)


def count_rows(
    context: JobContext, split: Split, fitted: FittedGroup, n_errors: int = -1
) -> tuple[Counts, ...]:
    """Return the counts of each statistic for one candidate on a split's test rows.

    `n_errors` are the errors of its fit; -1 if they are not known.
    """
    rows, statistics = split.test_rows, context.losses.statistics
    # Errors were counted when the model was fitted; one that failed has none.
    counts = [
        statistic.count_errors(n_errors) if n_errors >= 0 else None
        for statistic in statistics
    ]
    if any(known is None for known in counts):
        baseline = None if context.baseline is None else context.baseline[rows]
        labeled = Rows(context.X[rows], context.y[rows], baseline)
        kept = fitted.test_predictions(split.number, 0)
        if kept is None:
            kept = predict_rows(context, fitted, split.number, rows)
        [predictions] = kept
    return tuple(
        statistic.count(labeled, predictions) if known is None else known
        for statistic, known in zip(statistics, counts, strict=True)
    )


def predict_rows(
    context: JobContext, fitted: FittedGroup, split: int, rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return predictions for labeled rows, (n_candidates, n_rows).

    If `predict` raises, or there is no model, they are those of `no_predictions`.
    """
    # An error of `predict` is an error on each row, which any loss can count.
    codes = no_predictions((len(fitted.candidates), len(rows)), context.y.dtype)
    if len(rows):
        with suppress(Exception):  # what it raised is in the counts
            codes = fitted.predict(context.X[rows], [np.array(split)])[0]
    return codes


def model_token(fitted: FittedGroup, candidate: int, split: int) -> str:
    """Return a token that identifies a model; "" if fits repeat exactly.

    Families of dsel make the same model for the same rows and seed. For other learners
    a hash of the pickle reveals draws without a seed.
    """
    models = getattr(fitted, "models", None)
    if models is None or (candidate, split) not in models:
        return ""
    # Where the model was fitted: one that has moved may be written otherwise.
    try:
        content = cloudpickle.dumps(models[candidate, split])
    except Exception:  # what cannot be pickled stays in this process
        return f"object-{id(models[candidate, split])}"
    return blake2b(content, digest_size=12).hexdigest()


@dataclass(frozen=True)
class ChosenModels(FittedGroup):
    """Models of the chosen candidates, which may differ between splits.

    They predict together as those of one candidate, number 0. A split without a model
    gives no predictions.
    """

    parts: tuple[tuple[tuple[int, ...], FittedGroup], ...]
    """Splits, and the group that has their models; each has one candidate."""
    splits: tuple[int, ...]
    token: str
    """Of all models."""
    counts: FitCounts = field(default_factory=lambda: FitCounts.empty(0, 0))
    candidates: tuple[int, ...] = (0,)

    @property
    def nbytes(self) -> int:
        """Bytes of all models."""
        return sum(group.nbytes for _, group in self.parts)

    @property
    def row_nbytes(self) -> int:
        """Working memory for one row."""
        return max(group.row_nbytes for _, group in self.parts)

    def predict(self, X: Features, which: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
        """Return predictions, (len(which), 1, n_rows); each item has one split."""
        wanted = [int(each) for each in which]
        predicted: dict[int, NDArray[Any]] = {}
        for splits, group in self.parts:
            places = [place for place, split in enumerate(wanted) if split in splits]
            parts = group.predict(X, [which[place] for place in places])
            predicted |= dict(zip(places, parts, strict=True))
        kind = next(iter(predicted.values())).dtype
        nothing = no_predictions((1, X.shape[0]), kind)
        return np.stack([predicted.get(n, nothing) for n in range(len(wanted))])


@dataclass(frozen=True)
class CountBatch:
    """Slices of the pool that are one task; all jobs have the same members."""

    jobs: tuple[CountJob, ...]
    comparisons: tuple[Comparison, ...]
    """Comparisons; empty if the context has them."""
    key: str
    """Cache key of the joined models, which other tasks of the pass use, too."""

    def run(self, context: JobContext, inputs: Inputs) -> Output:
        """Count; the result is a `CountedJob` for each job.

        Models are those of the context, or those that fits have kept.
        """
        # Joining copies models, so a worker joins them once for all tasks of a pass.
        members = self.jobs[0].members
        parts, tokens = (
            process_cache().get(
                f"joined-{self.key}",
                lambda: _join_models(context, inputs.kept, members),
            )
            if context.chosen is None
            else ([context.chosen], (context.chosen.token,))
        )
        comparisons = self.comparisons or context.comparisons
        return Output(
            [
                _count_slice(context, job, sources, parts, tokens, comparisons)
                for job, sources in zip(self.jobs, inputs.sources, strict=True)
            ]
        )


def _count_slice(
    context: JobContext,
    job: CountJob,
    sources: list[Any],
    parts: Sequence[FittedGroup],
    tokens: Sequence[str],
    comparisons: Sequence[Comparison],
) -> CountedJob:
    started, members = time.perf_counter(), job.members
    n_predictions = sum(
        len(each.compared_splits(NO_ROWS, members)) for each in comparisons
    )
    # Predictions are int64; as much again is for what comparisons make of them.
    row_nbytes = max(p.row_nbytes for p in parts) + 16 * n_predictions * len(members)
    bins = {each.variable: each.n_bins for each in comparisons}
    counts = {k: np.zeros((len(members), n), np.int64) for k, n in bins.items()}
    rows = {each.variable: each.rows_by_bin(NO_ROWS) for each in comparisons}
    drawn = DrawnRows()
    for block in _blocks(
        sources,
        row_nbytes,
        are_frames=isinstance(context.X, Frame),
        allow_nan=context.allow_nan,
    ):
        if context.sampled_rows is not None:
            context.sampled_rows.check(block)
        for part in parts:
            places = [members.index(number) for number in part.candidates]
            with _naming_rows(block):
                differences = count_differences(
                    comparisons, partial(part.predict, block.X), block, part.candidates
                )
            for comparison, (more, rows_drawn) in zip(
                comparisons, differences, strict=True
            ):
                counts[comparison.variable][places] += more
                drawn = drawn.merge(rows_drawn, comparison.n_queries)
        for comparison in comparisons:
            rows[comparison.variable] += comparison.rows_by_bin(block.rows)
        del block  # else it would be in memory together with the next one
    # Members predict together, so that each gets an equal part of the time.
    seconds = round((time.perf_counter() - started) / len(members), 6)
    rows_by_bin = {name: tuple(each.tolist()) for name, each in rows.items()}
    return CountedJob(
        job,
        tuple(
            CountResult(
                job.start,
                job.stop,
                seconds,
                token,
                rows_by_bin,
                {name: tuple(each[place].tolist()) for name, each in counts.items()},
                drawn,
            )
            for place, token in enumerate(tokens)
        ),
    )


def _join_models(
    context: JobContext, kept: Sequence[Kept], members: Sequence[int]
) -> tuple[list[FittedGroup], tuple[str, ...]]:
    """Return the models of the members joined, one group a family, and their tokens."""
    families: dict[int, tuple[Family, list[FittedGroup]]] = {}
    tokens: dict[int, dict[int, str]] = {number: {} for number in members}
    for job, each in (item for fits in kept for item in fits.items()):
        family = context.candidate_groups[job.candidate_group].family
        if any(number in tokens for number in each.models.candidates):
            families.setdefault(id(family), (family, []))[1].append(each.models)
        for (number, split), token in each.tokens.items():
            if number in tokens:
                tokens[number][split] = token
    parts = []
    for family, fitted in families.values():
        numbers = {number for models in fitted for number in models.candidates}
        parts.append(family.join(fitted, sorted(numbers & set(members))))
    return parts, tuple(join_tokens(tokens[number]) for number in members)


def join_tokens(tokens: dict[int, str]) -> str:
    """Return the tokens of a candidate's models, by split, as one text."""
    if not any(tokens.values()):
        return ""
    text = ".".join(f"{split}:{tokens[split]}" for split in sorted(tokens))
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _blocks(
    sources: list[Any], row_nbytes: int, *, are_frames: bool, allow_nan: bool
) -> Iterator[Block]:
    """Yield the rows of a slice in blocks, which are small if memory is short."""
    fewest, most = BLOCK_ROWS
    nbytes = min(FRAME_NBYTES if are_frames else BLOCK_NBYTES, spare_memory() // 16)
    most = FRAME_ROWS if are_frames else most
    n_rows = int(np.clip(nbytes // max(1, row_nbytes), fewest, most))
    return read_blocks(sources, n_rows, allow_nan=allow_nan)


@contextmanager
def _naming_rows(block: Block) -> Iterator[None]:
    """Add the numbers of the pool rows to errors of `predict`."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Models cannot predict pool rows {block.rows[0]} to {block.rows[-1]}: "
            f"{error}. All rows of `pool` must be such as `predict` takes; where "
            f"it has categories of its own, encoders must take unknown ones, as "
            f'OneHotEncoder(handle_unknown="ignore") does.'
        ) from error
