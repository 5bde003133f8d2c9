"""Fits with a time limit: what takes longer is recorded as failed, and goes no further.

Whether a fit ends in time depends on the machine, so with a limit two runs may end
with other failures, and with another choice. The certificate stands all the same: a
failure takes a candidate out, as if its bound were 1, and the shares of delta are those
of all candidates. A fit that was in time once is not judged again: where its model is
lost it is fitted without a limit.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsel.data.trainings import LEAVE_ONE_OUT
from dsel.models.base import FIT_FAILED, FitCounts, FittedGroup
from dsel.searches.fitting_process import fitting_process
from dsel.searches.tasks import FitJob, FitRecord, Payload, Work


def fit_jobs_in_time(
    work: Work, payloads: Sequence[Payload], jobs: Sequence[FitJob], seconds: float
) -> tuple[list[FitRecord], Payload]:
    """Fit the jobs one after another, `seconds` for each candidate and training."""
    del payloads  # a fit starts from nothing
    records, fitted = [], {}
    for job in jobs:
        n_fits = _n_fits(work, job)
        counts, models = longest_in_time(work, job, n_fits * seconds)
        late = _late(work, job, 0 if counts is None else len(counts.status), seconds)
        records.append(
            FitRecord(
                job,
                late if counts is None else _joined(counts, late),
                0 if models is None else models.nbytes,
                len(late.status),
            )
        )
        if models is not None:
            fitted[job] = models
    return records, fitted


def _n_fits(work: Work, job: FitJob) -> int:
    """Return the fits of one candidate: leave-one-out has one for each row."""
    is_one = work.trainings[job.training].name != LEAVE_ONE_OUT
    return 1 if is_one else len(work.y)


def longest_in_time(
    work: Work, job: FitJob, seconds: float
) -> tuple[FitCounts | None, FittedGroup | None]:
    """Fit as many of a job's first candidates as take `seconds` each, on average.

    Candidates of a group share work and start one from another, so that the limit is
    one for the group's first i candidates together, i times `seconds`: the largest i
    that keeps it is looked for by halving.
    """
    best: tuple[FitCounts | None, FittedGroup | None] = (None, None)
    in_time, late = 0, job.n_candidates + 1
    asked = job.n_candidates
    while late - in_time > 1:
        part = replace(job, n_candidates=asked)
        try:
            best = fitting_process(work).fit(part, asked * seconds)
            in_time = asked
        except TimeoutError:
            late = asked
        asked = (in_time + late) // 2
    return best


def _late(work: Work, job: FitJob, n_in_time: int, seconds: float) -> FitCounts:
    """Return the counts of the candidates that were not in time: there are none."""
    members = work.groups[job.group].candidates[n_in_time : job.n_candidates]
    messages = {
        (candidate.number, job.training): (
            f"TimeoutError: it starts from a fit of more than {seconds:g} s"
            if i
            else f"TimeoutError: the fit took more than {seconds:g} s"
        )
        for i, candidate in enumerate(members)
    }
    shape = (len(members), 1)
    return FitCounts(
        np.full(shape, -1, np.int64),
        np.full(shape, -1, np.int64),
        np.full(shape, FIT_FAILED, np.int8),
        np.full(shape, np.nan),
        messages,
    )


def _joined(first: FitCounts, second: FitCounts) -> FitCounts:
    return FitCounts(
        np.concatenate((first.test_errors, second.test_errors)),
        np.concatenate((first.train_errors, second.train_errors)),
        np.concatenate((first.status, second.status)),
        np.concatenate((first.seconds, second.seconds)),
        {**first.messages, **second.messages},
    )
