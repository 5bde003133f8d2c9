"""What runs on a worker: fitting groups, and counting over a span of the pool."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.blocks import read_blocks
from dsel.data.cache import process_cache, spare_memory
from dsel.data.filters import Part
from dsel.data.trainings import LEAVE_ONE_OUT, Training
from dsel.models.family import Cache, Candidate, Family, FitCounts, FittedGroup
from dsel.models.leave_one_out import leave_one_out_counts
from dsel.searches.engine.count_task import SpanTally
from dsel.searches.engine.scheme import Comparison

BLOCK_NBYTES = 32 * 2**20  # working memory of a block: a few times the caches
BLOCK_ROWS = (64, 8192)  # fewest and most rows of a block: these stay in cache


@dataclass(frozen=True)
class Group:
    """Candidates that share work, and the family that fits them."""

    number: int
    """Place in the plan."""
    family: Family
    """How they are fitted."""
    candidates: tuple[Candidate, ...]
    """By number."""
    paths: tuple[str, ...]
    """For each candidate a hash of all that its fit depends on beside the rows."""

    def members(self, numbers: Collection[int]) -> list[Candidate]:
        """Return the candidates of these numbers."""
        return [each for each in self.candidates if each.number in numbers]


@dataclass(frozen=True)
class Work:
    """What every task of a run needs; enters the cluster once."""

    X: Any
    """Labeled rows, shape (n_labeled, n_columns)."""
    y: NDArray[np.int64]
    """Class codes."""
    trainings: tuple[Training, ...]
    """Of the scheme."""
    groups: tuple[Group, ...]
    """Of the plan."""
    fitting_pool: Any = None
    """Part of the pool that learners may use; None where they want none."""
    allow_nan: bool = False
    """Whether every estimator takes missing values."""

    def group_of(self, candidate: int) -> Group:
        """Return a candidate's group.

        Raises
        ------
        ValueError
            Where there is no candidate of that number.
        """
        for group in self.groups:
            if group.members((candidate,)):
                return group
        n = sum(len(group.candidates) for group in self.groups)
        raise ValueError(f"`candidate` must be in [0, {n - 1}], got {candidate!r}.")


@dataclass(frozen=True)
class FitJob:
    """Candidates of a group on one training."""

    group: int
    """Group number."""
    candidates: tuple[int, ...]
    """Candidate numbers, ascending."""
    training: int
    """Training number."""

    def apart(self) -> "list[FitJob]":
        """Return a job for each candidate."""
        return [replace(self, candidates=(number,)) for number in self.candidates]


@dataclass(frozen=True)
class FitRecord:
    """What one job counted."""

    job: FitJob
    """Which job."""
    counts: FitCounts
    """One column: the job's training."""
    nbytes: int
    """Size of the models."""
    is_late: bool = False
    """Whether the candidates failed for want of time."""


@dataclass(frozen=True)
class SpanJob:
    """Candidates to be compared on some consecutive rows of the pool."""

    start: int
    """First global row number."""
    stop: int
    """One past the last."""
    candidates: tuple[int, ...]
    """Candidate numbers."""
    look: int = 0
    """Look at which these rows are read."""

    def goes_with(self, other: "SpanJob") -> bool:
        """Whether both can be jobs of one task: the same models, the same look."""
        return (self.candidates, self.look) == (other.candidates, other.look)


@dataclass(frozen=True)
class SpanRecord:
    """What one span counted."""

    job: SpanJob
    """Which job."""
    differences: tuple[NDArray[np.int64], ...]
    """Per comparison, (n_candidates, n_bins)."""
    rows: tuple[NDArray[np.int64], ...]
    """Per comparison, pool rows in each bin, (n_bins,)."""
    seconds: float
    """Time that it took, reading included."""
    sample: Any = None
    """Rows that were brought along, (n_drawn, n_columns); None if none were asked."""


Payload = dict[FitJob, FittedGroup]
"""Fitted models by the first job of the call that fitted them."""


def fit_jobs(
    work: Work,
    payloads: Sequence[Payload],
    jobs: Sequence[FitJob],
    cache: Cache | None = None,
) -> tuple[list[FitRecord], Payload]:
    """Fit the jobs; the models stay, the counts travel."""
    del payloads  # a fit starts from nothing
    records: list[FitRecord] = []
    fitted: Payload = {}
    for together in _calls(work, jobs):
        first = together[0]
        if _is_leave_one_out(work, first):
            records.append(FitRecord(first, _leave_one_out(work, first), nbytes=0))
        else:
            models = fitted[first] = _fit(work, together, cache or process_cache())
            records += _records(together, models)
    return records, fitted


def _calls(work: Work, jobs: Sequence[FitJob]) -> list[list[FitJob]]:
    """Return the jobs by the call of `fit` that does them.

    Where a family's trainings share work, those of the same candidates are one call.
    """
    calls: dict[Any, list[FitJob]] = {}
    for job in jobs:
        shares = work.groups[job.group].family.fits_trainings_together
        alone = not shares or _is_leave_one_out(work, job)
        what = job if alone else (job.group, job.candidates)
        calls.setdefault(what, []).append(job)
    return list(calls.values())


def _is_leave_one_out(work: Work, job: FitJob) -> bool:
    return work.trainings[job.training].name == LEAVE_ONE_OUT


def _fit(work: Work, jobs: Sequence[FitJob], cache: Cache) -> FittedGroup:
    """Fit jobs of the same candidates, each of them one training."""
    group = work.groups[jobs[0].group]
    return group.family.fit(
        group.members(jobs[0].candidates),
        work.X,
        work.y,
        [work.trainings[job.training] for job in jobs],
        pool=work.fitting_pool,
        budget=cache,
    )


def _records(jobs: Sequence[FitJob], models: FittedGroup) -> list[FitRecord]:
    """Return the counts of a call job by job."""
    counts, share = models.counts, models.nbytes // len(jobs)
    return [
        FitRecord(
            job,
            counts.select(np.s_[:, [place]], job.training),
            share,
        )
        for place, job in enumerate(jobs)
    ]


def _leave_one_out(work: Work, job: FitJob) -> FitCounts:
    group = work.groups[job.group]
    return leave_one_out_counts(
        group.family,
        group.members(job.candidates),
        work.X,
        work.y,
        work.trainings[job.training],
        pool=work.fitting_pool,
    )


def models_of(
    work: Work, payloads: Sequence[Payload], candidates: tuple[int, ...]
) -> tuple[None, Payload]:
    """Return what fit tasks hold of some candidates: less to move than all of it."""
    held: Payload = {}
    for job, models in (item for payload in payloads for item in payload.items()):
        mine = [number for number in models.candidates if number in candidates]
        if mine:
            held[job] = work.groups[job.group].family.join([models], mine)
    return None, held


def count_spans(
    work: Work,
    payloads: Sequence[Payload],
    jobs: Sequence[SpanJob],
    sources: Sequence[list[Any]],
    comparisons: Sequence[Comparison],
    round_key: str,
    drawn: Sequence[Part | None],
) -> tuple[list[SpanRecord], None]:
    """Count over spans of the pool where the compared models differ.

    All jobs name the same candidates. Of each span, the rows that its `drawn` picks
    are brought along.
    """
    parts = process_cache().get(
        f"joined-{round_key}", lambda: _join(work, payloads, jobs[0].candidates)
    )
    records = [
        _count_span(work, parts, job, rows, comparisons, picked)
        for job, rows, picked in zip(jobs, sources, drawn, strict=True)
    ]
    return records, None


def _count_span(
    work: Work,
    parts: Sequence[FittedGroup],
    job: SpanJob,
    sources: list[Any],
    comparisons: Sequence[Comparison],
    drawn: Part | None,
) -> SpanRecord:
    started = time.perf_counter()
    brought = None if drawn is None else drawn.rows(job.start, job.stop)
    tally = SpanTally(comparisons, job.candidates, brought)
    row_nbytes = max(part.row_nbytes for part in parts) + tally.row_nbytes
    block_rows = _block_rows(row_nbytes, spare_memory())
    for block in read_blocks(sources, block_rows, allow_nan=work.allow_nan):
        tally.add(block, parts)
    seconds = time.perf_counter() - started
    return SpanRecord(job, *tally.counts, seconds, tally.sample)


def _join(
    work: Work, payloads: Sequence[Payload], candidates: Sequence[int]
) -> list[FittedGroup]:
    """Pack the models of the candidates, one pack a family."""
    wanted = set(candidates)
    by_family: dict[int, tuple[Family, list[FittedGroup], list[int]]] = {}
    for payload in payloads:
        for job, models in payload.items():
            family = work.groups[job.group].family
            numbers = [number for number in models.candidates if number in wanted]
            if numbers:
                entry = by_family.setdefault(id(family), (family, [], []))
                entry[1].append(models)
                entry[2].extend(numbers)
    return [
        family.join(models, sorted(set(numbers)))
        for family, models, numbers in by_family.values()
    ]


def _block_rows(row_nbytes: int, spare: int) -> int:
    """Return the rows of a block: fewer where the process is short of memory."""
    fewest, most = BLOCK_ROWS
    nbytes = min(BLOCK_NBYTES, spare // 4)
    return int(np.clip(nbytes // max(1, row_nbytes), fewest, most))
