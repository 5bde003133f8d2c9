"""What runs on a worker: fitting groups of candidates; models stay, counts travel."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import process_cache
from dsel.data.trainings import LEAVE_ONE_OUT, Training
from dsel.models.family import Cache, Candidate, Family, FitCounts, FittedGroup
from dsel.models.leave_one_out import leave_one_out_counts


@dataclass(frozen=True)
class Group:
    """Candidates that share work, and the family that fits them."""

    number: int
    """Place in the plan."""
    family: Family
    """How they are fitted."""
    candidates: tuple[Candidate, ...]
    """By number."""
    keys: tuple[str, ...]
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

    def split(self) -> "list[FitJob]":
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
