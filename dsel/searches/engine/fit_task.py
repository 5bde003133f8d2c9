"""What runs on a worker: fitting groups of candidates. Only counts are sent back."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer

from dsel.data.cache import ByteCache, LastUse, process_cache
from dsel.data.frames import numbers
from dsel.data.splits import LEAVE_ONE_OUT, Split
from dsel.families.family import (
    FIT_DONE,
    Cache,
    Candidate,
    Family,
    FitCounts,
    FittedGroup,
)
from dsel.families.leave_one_out import leave_one_out_counts

BY_ROW: Final = ("sklearn.", "dsel.families.", "dsel.models.")
"""Where classes are that answer each row by itself, but `FunctionTransformer`."""


@dataclass(frozen=True)
class Group:
    """Candidates that share work, and the family that fits them."""

    number: int
    family: Family
    candidates: tuple[Candidate, ...]
    """In the order of their numbers."""
    keys: tuple[str, ...]
    """For each candidate a hash of all that its fit depends on besides the rows."""

    @cached_property
    def answers_by_row(self) -> bool:
        """Whether all candidates are known to answer each row by itself."""
        return all(_answers_by_row(each.estimator) for each in self.candidates)

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
    if not group.answers_by_row:
        for split in splits:
            _refuse_batches(fitted, split, rows)
    return fitted


def _answers_by_row(estimator: Any) -> bool:
    """Whether all parts of an estimator are known to answer each row by itself."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return all(
        type(each).__module__.startswith(BY_ROW)
        and not isinstance(each, FunctionTransformer)
        for each in parts
        if isinstance(each, BaseEstimator)
    )


def _refuse_batches(fitted: FittedGroup, split: Split, X: Any) -> None:
    """Record models as failed that answer rows otherwise alone than among others.

    Then errors depend on which rows come together, and no count tells those of a row.
    One difference in eight rows may be a tie, which rounding decides.
    """
    counts, rows = fitted.counts, split.test_rows[:64]
    column = fitted.splits.index(split.number)
    done = np.flatnonzero(counts.status[:, column] == FIT_DONE)
    if not len(rows) or not len(done):
        return

    def ask(rows: Any) -> Any:
        return fitted.predict(X[rows], [np.array(split.number)])[0][done]

    together = ask(rows)
    # Where all rows are answered alike when alone, four of the rarest answer, or four
    # of the others, show it.
    _, kinds, n = np.unique(together[0], return_inverse=True, return_counts=True)
    order = np.argsort(n[kinds], kind="stable")
    some = np.unique(np.r_[order[:4], order[-4:]])
    try:
        alone = np.concatenate([ask(rows[[place]]) for place in some], axis=1)
    except Exception as error:
        alone = np.full((len(done), len(some)), np.iinfo(np.int64).min)
        cause = f" (alone: {type(error).__name__}: {error})"
    else:
        cause = ""
    n_differ = np.sum(alone != together[:, some], axis=1)
    for place, n in zip(done.tolist(), n_differ, strict=True):
        if n > 1 or cause:
            counts.refuse((place, column), (fitted.candidates[place], split.number), (
                f"`predict` answers {n} of {len(some)} rows otherwise alone than among "
                f"other rows{cause}, so its errors depend on which rows come together. "
                f"Compute means, ranks and codes of columns in `fit`, not in "
                f"`transform` or `predict`; draw nothing there without a fixed seed."
            ))  # fmt: skip


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
