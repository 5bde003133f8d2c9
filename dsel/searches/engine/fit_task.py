"""What runs on a worker: fitting groups of candidates. Only counts are sent back."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import ByteCache, LastUse, process_cache
from dsel.data.frames import numbers
from dsel.data.splits import LEAVE_ONE_OUT, Split
from dsel.families.batches import has_function, refuse_batches
from dsel.families.family import (
    Cache,
    Candidate,
    Family,
    FitCounts,
    FittedGroup,
)
from dsel.families.leave_one_out import leave_one_out_counts


@dataclass(frozen=True)
class Group:
    """Candidates that share work, and the family that fits them."""

    number: int
    family: Family
    candidates: tuple[Candidate, ...]
    """In the order of their numbers."""
    keys: tuple[str, ...]
    """For each candidate a hash of all that its fit depends on besides the rows."""

    def members(self, numbers: Collection[int]) -> list[Candidate]:
        """Return the candidates of these numbers."""
        return [each for each in self.candidates if each.number in numbers]


@dataclass(frozen=True)
class Work:
    """What every task of a run needs; sent to the cluster once."""

    X: Any
    """Labeled rows, shape (n_labeled, n_columns): array, CSR or `Frame`."""
    y: NDArray[np.int64]
    splits: tuple[Split, ...]
    groups: tuple[Group, ...]
    fitting_pool: Any = None
    """Part of the pool that semi-supervised learners are fitted on, or None."""
    allow_nan: bool = False
    """Whether every estimator takes missing values."""

    def rows_for(self, family: Family) -> Any:
        """Return the labeled rows in the form that a family takes."""
        return self.X if family.takes_frames else numbers(self.X)

    def group_of(self, candidate: int) -> Group:
        """Return a candidate's group; raise ValueError where there is none."""
        for group in self.groups:
            if group.members((candidate,)):
                return group
        n = sum(len(group.candidates) for group in self.groups)
        raise ValueError(f"`candidate` must be in [0, {n - 1}], got {candidate!r}.")


@dataclass(frozen=True)
class FitJob:
    """Candidates of a group on one split."""

    group: int
    candidates: tuple[int, ...]
    """Candidate numbers, ascending."""
    split: int

    def one_by_one(self) -> "list[FitJob]":
        """Return a job for each candidate."""
        return [replace(self, candidates=(number,)) for number in self.candidates]


@dataclass(frozen=True)
class FitRecord:
    """Counts of one job."""

    job: FitJob
    counts: FitCounts
    """They have one column, for the job's split."""
    nbytes: int
    """Size of the models, also where they are not kept."""


Payload = dict[FitJob, FittedGroup]
"""Fitted models by the first job of the call that fitted them."""


def fit_jobs(
    work: Work,
    payloads: Sequence[Payload],
    jobs: Sequence[FitJob],
    keeps_models: bool = True,
    last_of: Collection[int] = (),
    cache: ByteCache | None = None,
) -> tuple[list[FitRecord], Payload]:
    """Fit the jobs; return their counts, and the models if they are to be kept.

    Of the groups `last_of` no other task will follow, unless one is tried again.
    """
    del payloads  # a fit starts from nothing
    cache = cache or process_cache()
    ending = LastUse(cache)
    records: list[FitRecord] = []
    fitted: Payload = {}
    for together in _calls(work, jobs):
        first = together[0]
        if _is_leave_one_out(work, first):
            records.append(FitRecord(first, _leave_one_out(work, first), nbytes=0))
        else:
            budget = ending if first.group in last_of else cache
            models = _fit(work, together, budget)
            records += records_of(together, models)
            if keeps_models:
                fitted[first] = models
    cache.forget(ending.own_keys)
    return records, fitted


def _calls(work: Work, jobs: Sequence[FitJob]) -> list[list[FitJob]]:
    """Return lists of jobs, one for each call of `fit`: the same candidates together.

    What their splits share is then looked up, or made, once.
    """
    calls: dict[Any, list[FitJob]] = {}
    for job in jobs:
        what = job if _is_leave_one_out(work, job) else (job.group, job.candidates)
        calls.setdefault(what, []).append(job)
    return list(calls.values())


def _is_leave_one_out(work: Work, job: FitJob) -> bool:
    return work.splits[job.split].name == LEAVE_ONE_OUT


def _fit(work: Work, jobs: Sequence[FitJob], cache: Cache) -> FittedGroup:
    """Fit jobs of the same candidates on different splits."""
    group = work.groups[jobs[0].group]
    members = group.members(jobs[0].candidates)
    splits = [work.splits[job.split] for job in jobs]
    rows, pool = work.rows_for(group.family), work.fitting_pool
    fitted = group.family.fit(members, rows, work.y, splits, pool=pool, budget=cache)
    if any(has_function(each.estimator) for each in members):
        for split in splits:
            refuse_batches(fitted, split, rows)
    return fitted


def records_of(jobs: Sequence[FitJob], models: FittedGroup) -> list[FitRecord]:
    """Return one record for each job of a call."""
    counts, share = models.counts, models.nbytes // len(jobs)
    return [
        FitRecord(
            job,
            counts.select(np.s_[:, [place]], job.split),
            share,
        )
        for place, job in enumerate(jobs)
    ]


def _leave_one_out(work: Work, job: FitJob) -> FitCounts:
    group = work.groups[job.group]
    return leave_one_out_counts(
        group.family,
        group.members(job.candidates),
        work.rows_for(group.family),
        work.y,
        work.splits[job.split],
        pool=work.fitting_pool,
    )
