"""Fits with a time limit: what takes longer is recorded as failed, and goes no further.

Whether a fit ends in time depends on the machine, so with a limit two runs may end
with other failures, and with another choice. The certificate stands all the same: a
failure takes a candidate out, as if its bound were 1, and the shares of delta are those
of all candidates. A fit that was in time once is not judged again: where its model is
lost it is fitted without a limit.
"""

from collections.abc import Sequence

from dsel.data.trainings import LEAVE_ONE_OUT
from dsel.models.family import FitCounts
from dsel.searches.engine.fit_task import FitJob, FitRecord, Payload, Work
from dsel.searches.engine.fitting_process import fitting_process


def fit_jobs_in_time(
    work: Work, payloads: Sequence[Payload], jobs: Sequence[FitJob], seconds: float
) -> tuple[list[FitRecord], Payload]:
    """Fit the jobs one after another, `seconds` for each candidate and training."""
    del payloads  # a fit starts from nothing
    records: list[FitRecord] = []
    fitted: Payload = {}
    for job in jobs:
        records += _fit_in_time(work, job, seconds, fitted)
    return records, fitted


def _fit_in_time(
    work: Work, job: FitJob, seconds: float, fitted: Payload
) -> list[FitRecord]:
    """Fit a job, or each candidate where the whole is late; keep models in `fitted`.

    The candidates of a group share work, so that m of them have m times `seconds`
    together; where that is not enough, each is tried for itself.
    """
    limit = len(job.candidates) * _n_fits(work, job) * seconds
    try:
        counts, models = fitting_process(work).fit(job, limit)
    except TimeoutError:
        if len(job.candidates) == 1:
            return [FitRecord(job, _late(job, seconds), 0, is_late=True)]
        return [
            record
            for alone in job.apart()
            for record in _fit_in_time(work, alone, seconds, fitted)
        ]
    if models is None:
        return [FitRecord(job, counts, 0)]
    fitted[job] = models
    return [FitRecord(job, counts, models.nbytes)]


def _n_fits(work: Work, job: FitJob) -> int:
    """Return the fits of one candidate: leave-one-out has one for each row."""
    is_one = work.trainings[job.training].name != LEAVE_ONE_OUT
    return 1 if is_one else len(work.y)


def _late(job: FitJob, seconds: float) -> FitCounts:
    """Return the counts of a candidate that was not in time: there are none."""
    counts = FitCounts.empty(1, 1)
    error = TimeoutError(f"the fit took more than {seconds:g} s")
    counts.failed(job.candidates[0], job.training, error)
    return counts
