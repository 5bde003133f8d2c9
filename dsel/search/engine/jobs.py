"""Jobs, which are values that describe work, and their results.

The context that the jobs of a search need is sent to workers once; a pass of chosen
models needs only these models. `fit_batch` and `count_batch` run jobs there. Models are
dropped, or stay on the worker that fitted them, except those of chosen candidates: they
return in one message with their counts, so that the deployed object is the counted one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from dsel.arrays import Estimator
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.pool_parts import SampledRows
from dsel.data.splits import Split, SplitIndex
from dsel.families.family import Candidate, Family, FittedGroup
from dsel.losses.declared import DeclaredLosses
from dsel.losses.protocols import Counts
from dsel.results.fit_messages import FitMessage, FitProblem, message_of_text
from dsel.results.records import older_name, to_record
from dsel.search.design.baseline import Baseline
from dsel.search.design.comparisons import QueriedRows
from dsel.search.design.cv_schemes import CVScheme, ModelRef
from dsel.typing import Model


@dataclass(frozen=True)
class CandidateGroup:
    """Candidates that share work, and the family that fits them."""

    number: int
    family: Family
    candidates: tuple[Candidate, ...]
    """The candidates, in the order of their numbers."""
    candidate_keys: tuple[str, ...]
    """Hash for each candidate of everything except the rows that affects its fit."""
    short_name: str
    """Common parameters of the candidates, for names of tasks: ``gamma=0.01``."""

    def select(self, candidate_numbers: Collection[int]) -> list[Candidate]:
        """Return the candidates with these numbers."""
        return [c for c in self.candidates if c.number in candidate_numbers]


@dataclass(frozen=True)
class PoolReading:
    """How tasks read rows of the pool."""

    are_frames: bool
    """Whether models predict data frames, for which a call costs milliseconds."""
    allow_nan: bool
    """Whether every estimator accepts missing values."""
    sampled_rows: SampledRows | None = None
    """Sampled pool rows of an earlier pass, to notice changed files."""

    def with_sample(self, sampled_rows: SampledRows | None) -> "PoolReading":
        """Return the reading of passes that compare these rows; None compares none."""
        return replace(self, sampled_rows=sampled_rows)


@dataclass(frozen=True)
class JobContext:
    """Data that the jobs of a search need; sent to a cluster once."""

    labeled: LabeledRows
    scheme: CVScheme
    """The models that are trained, with the test rows of each."""
    candidate_groups: tuple[CandidateGroup, ...]
    reading: PoolReading
    fitting_pool: Pool | None = None
    """Subset of the pool that semi-supervised learners are fitted on, or None."""
    losses: DeclaredLosses = field(default_factory=DeclaredLosses)
    """The loss that ranks candidates, and the losses counted for the chosen ones."""
    baseline: Baseline | None = None
    """The model with which those of the search are compared, or None."""

    @property
    def estimators(self) -> list[Estimator]:
        """The candidates, unfitted."""
        candidate_groups = self.candidate_groups
        return [
            candidate.estimator
            for candidate_group in candidate_groups
            for candidate in candidate_group.candidates
        ]

    def with_sample(self, sampled_rows: SampledRows | None) -> "JobContext":
        """Return the context of passes that compare these rows; None compares none."""
        return replace(self, reading=self.reading.with_sample(sampled_rows))

    def candidate_group_of(self, candidate: int) -> CandidateGroup:
        """Return the candidate group that has a candidate."""
        candidate_groups = self.candidate_groups
        return next(
            candidate_group
            for candidate_group in candidate_groups
            if candidate_group.select((candidate,))
        )


@dataclass(frozen=True)
class FitJob:
    """Candidates of one candidate group on one split."""

    group_number: int
    """Number of the candidate group."""
    candidate_numbers: tuple[int, ...]
    """Numbers of the candidates, ascending."""
    split_number: SplitIndex
    part_number: int | None = None
    """Number of the only one of `Split.row_parts` that is tested; None for all."""

    def smaller_jobs(self) -> list["FitJob"]:
        """Return one job for each candidate."""
        return [
            replace(self, candidate_numbers=(number,))
            for number in self.candidate_numbers
        ]


@dataclass(frozen=True)
class ChosenFitJob:
    """A chosen candidate, for one of the bounded models."""

    group_number: int
    """Number of the candidate group."""
    candidate_number: int
    model_ref: ModelRef
    """The fold that the model leaves out, or `ALL_ROWS_MODEL`."""

    def smaller_jobs(self) -> list["ChosenFitJob"]:
        """Return the job itself, which is one fit."""
        return [self]


class FitStatus(IntEnum):
    """State of a fit; the table has one for each candidate and split."""

    # A pruned fit stays open: what is needed is decided again at each turn, in
    # `FitTable.needed_fits`.
    OPEN = 0
    SUBMITTED = 1
    DONE = 2
    FAILED = 3


@dataclass(frozen=True)
class FitResult:
    """Result of one fit of one candidate."""

    status: FitStatus
    """`DONE` or `FAILED`."""
    seconds: float
    # Errors are whole numbers, so that a resumed run ends with the very same bound.
    errors: tuple[int, ...] = ()
    """Errors on each of two parts of the split's test rows, as in `FitCounts`;
    `UNCOUNTED` for a part that it does not have. Empty for a failed fit."""
    scores: tuple[float, ...] = ()
    """`Loss.score` of the plan on each part of the split, one number or two."""
    message: FitMessage | None = None
    """The problem of the fit; None without one."""
    token: str = ""
    """`FittedGroup.token` of the model; "" if the fit failed, or its model is dropped
    once it is tested."""

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2, whose message was a text, with the current fields."""
        text = record.get("message")
        if not isinstance(text, str):
            return record
        has_failed = record.get("status") == FitStatus.FAILED.name
        message = message_of_text(text, has_failed=has_failed)
        return {**record, "message": None if message is None else to_record(message)}

    @classmethod
    def failure(cls, why: str) -> "FitResult":
        """Return the result of a fit that was given up."""
        message = FitMessage(FitProblem.FAILED, why)
        return cls(FitStatus.FAILED, float("nan"), message=message)

    def predicts_none_of(self, split: Split[int]) -> bool:
        """Return whether `predict` of the model raised on all test rows of its split.

        Then all of them count as errors. If it raised on only one of two parts, the
        model has predicted the other one.
        """
        if self.message is None or self.message.problem is not FitProblem.UNPREDICTED:
            return False
        # A split without a second part has no rows to compare its count with.
        parts = zip(self.errors, split.row_parts, strict=False)
        return all(n_errors == len(rows) for n_errors, rows in parts if len(rows))


def join_tests(tests: tuple[FitResult, FitResult], split: Split[int]) -> FitResult:
    """Return the result of a fit without two folds, each of which was tested alone.

    If a test failed, the search that reads it never chooses the candidate; the other
    search is not affected. The fit failed if both tests failed.
    """
    failed = [test for test in tests if test.status is FitStatus.FAILED]
    if len(failed) == 2:
        return failed[0]
    errors, scores = [], []
    for part_number, (test, rows) in enumerate(
        zip(tests, split.row_parts, strict=True)
    ):
        is_done = test.status is FitStatus.DONE
        errors.append(test.errors[part_number] if is_done else len(rows))
        # The fit has failed for the search that reads this part. The search that reads
        # the other part must not be affected.
        scores.append(test.scores[part_number] if is_done else np.inf)
    message = next((t.message for t in (*failed, *tests) if t.message), None)
    seconds = float(np.nansum([test.seconds for test in tests]))
    return FitResult(FitStatus.DONE, seconds, tuple(errors), tuple(scores), message)


@dataclass(frozen=True)
class FittedJob:
    """Result of a `FitJob`."""

    job: FitJob
    results: tuple[FitResult, ...]
    """Result of each candidate."""
    nbytes: int = 0
    """Bytes of the models, if they are kept."""


@dataclass(frozen=True)
class ChosenFit:
    """Result of a `ChosenFitJob`."""

    job: ChosenFitJob
    result: FitResult
    fitted_group: FittedGroup
    """The model alone, as a group."""
    counts_on_fold: tuple[Counts, ...]
    """Counts of each of the plan's statistics on the rows of the fold."""

    @property
    def model(self) -> Model:
        """The fitted estimator; KeyError if the fit failed."""
        [split_number] = self.fitted_group.split_numbers
        model: Model = self.fitted_group.model(self.job.candidate_number, split_number)
        return model


@dataclass(frozen=True)
class CountJob:
    """Comparison of models on consecutive rows of the pool."""

    start: int
    """First global row number."""
    stop: int
    """One more than the last row number."""
    model_sets: tuple[int, ...]
    """Numbers of the model sets in the `PoolTable`."""

    @property
    def group_number(self) -> None:
        """None, since a pass fits nothing."""

    def smaller_jobs(self) -> list["CountJob"]:
        """Return the job itself: compared models must predict together."""
        return [self]


NO_ROW: Final = -1
"""Number in place of that of a pool row, where there is none."""


@dataclass(frozen=True)
class UnpredictedRows:
    """Pool rows on which `predict` of a compared model raised.

    They count as differences of a model that raised from all others. No difference is
    missed, so that the bounds from the pool hold, and may get larger.
    """

    n_rows: int = 0
    first_row: int = NO_ROW
    """Number of the first such row."""
    cause: str = ""
    """Error of the first row."""

    def merge(self, other: "UnpredictedRows") -> "UnpredictedRows":
        """Return the rows of both, with the cause of the first row of all."""
        first = min(
            (rows for rows in (self, other) if rows.n_rows),
            key=lambda rows: rows.first_row,
            default=self,
        )
        return replace(first, n_rows=self.n_rows + other.n_rows)


@dataclass(frozen=True)
class CountResult:
    """Counts of one model set in one slice of the pool."""

    start: int
    stop: int
    seconds: float
    token: str
    """Token of the compared models."""
    rows: Mapping[str, tuple[int, ...]]
    """Rows of each bin, by the key of its comparison."""
    counts: Mapping[str, tuple[int, ...]]
    """Count of each bin, by the key of its comparison."""
    queried: QueriedRows = field(
        default_factory=QueriedRows, metadata=older_name("drawn")
    )
    """Rows of the slice that may be queried, in a pass of chosen models."""
    unpredicted: UnpredictedRows = field(default_factory=UnpredictedRows)
    """Rows of the slice on which a model raised, in a pass of chosen models."""


@dataclass(frozen=True)
class CountedJob:
    """Result of a `CountJob`."""

    job: CountJob
    results: tuple[CountResult, ...]
    """Result of each model set."""

    @property
    def result_of(self) -> dict[int, CountResult]:
        """The results by the number of the model set."""
        return dict(zip(self.job.model_sets, self.results, strict=True))


def join_tokens(token_of_split: dict[int, str]) -> str:
    """Return the tokens of a candidate's models, by split, as one text."""
    # Tokens are joined by split number: fits end in any order, and a resumed run must
    # find its counts.
    text = ".".join(
        f"{split}:{token_of_split[split]}" for split in sorted(token_of_split)
    )
    return blake2b(text.encode(), digest_size=12).hexdigest()
