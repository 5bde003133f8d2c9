"""Jobs: values that describe work, and the context that those of a search need.

The context is sent to workers once; the last step's pass over the pool has a
`ChosenPass` instead. `fit_batch` and `count_batch` run jobs there, and
`job_results` has what comes back.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.frames import Frame
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.sampled_rows import SampledRows
from dsel.data.splits import Split
from dsel.families.family import (
    Candidate,
    Family,
)
from dsel.losses.declared import DeclaredLosses


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

    def select(self, numbers: Collection[int]) -> list[Candidate]:
        """Return the candidates with these numbers."""
        return [each for each in self.candidates if each.number in numbers]


@dataclass(frozen=True)
class PoolReading:
    """How tasks read rows of the pool."""

    are_frames: bool
    """Whether models take data frames, so that a call costs milliseconds."""
    allow_nan: bool
    """Whether every estimator accepts missing values."""
    sampled_rows: SampledRows | None = None
    """Sampled pool rows of an earlier pass, to notice changed files."""


@dataclass(frozen=True)
class JobContext:
    """Data that the jobs of a search need; sent to a cluster once."""

    labeled: LabeledRows
    splits: tuple[Split, ...]
    """Splits on which the search fits its candidates."""
    final_splits: tuple[Split, ...]
    """Splits of the last step of a nested search; empty for other searches."""
    candidate_groups: tuple[CandidateGroup, ...]
    fitting_pool: Pool | None = None
    """Part of the pool that semi-supervised learners are fitted on, or None."""
    allow_nan: bool = False
    """Whether every estimator accepts missing values."""
    losses: DeclaredLosses = field(default_factory=DeclaredLosses)
    """The loss that ranks candidates, and the losses counted for the chosen ones."""
    sampled_rows: SampledRows | None = None
    """Sampled pool rows of an earlier pass, to notice changed files."""
    baseline: NDArray[np.int64] | None = None
    """Class codes that the baseline predicts for labeled rows, (n_labeled,)."""

    @property
    def pool_reading(self) -> PoolReading:
        """How tasks read rows of the pool."""
        are_frames = isinstance(self.labeled.X, Frame)
        return PoolReading(are_frames, self.allow_nan, self.sampled_rows)

    @property
    def estimators(self) -> list[Any]:
        """The candidates, unfitted."""
        groups = self.candidate_groups
        return [each.estimator for group in groups for each in group.candidates]

    def candidate_group_of(self, candidate: int) -> CandidateGroup:
        """Return the group of a candidate."""
        groups = self.candidate_groups
        return next(group for group in groups if group.select((candidate,)))


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
    """Number of the split in `JobContext.splits`, or in `final_splits`."""
    in_last_step: bool = False
    """Whether the split is one of `JobContext.final_splits`."""
    is_tested: bool = True
    """Whether the models predict; False to see whether the fit alone succeeds."""

    def alone(self) -> list["FitJob"]:
        """Return one job for each candidate."""
        return [replace(self, candidates=(number,)) for number in self.candidates]


@dataclass(frozen=True)
class CountJob:
    """Comparison of models on consecutive rows of the pool."""

    start: int
    """First global row number."""
    stop: int
    """One more than the last row number."""
    members: tuple[int, ...]
    """Numbers in the `PoolTable` of those whose models are compared."""

    def alone(self) -> list["CountJob"]:
        """Return the job itself: compared models must predict together."""
        return [self]
