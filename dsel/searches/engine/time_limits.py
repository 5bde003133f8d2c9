"""Fits with a time limit: a fit that takes longer is recorded as failed.

Whether a fit ends in time depends on the machine, so with a limit two runs may have
other failures, and choose another candidate. The certificate stays valid: a candidate
that fails counts as if its bound were 1, and delta is divided among all candidates. A
fit that was done in time is fitted again without a limit if its model is lost.

A thread cannot be stopped, but a process can. So the process of the task sends each
job through a pipe to a second process that fits it, and kills that one when the time is
over.
"""

import os
import queue
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

import cloudpickle
from sklearn import config_context, get_config

from dsel.data.cache import ByteCache, process_cache
from dsel.data.splits import LEAVE_ONE_OUT
from dsel.models.family import FitCounts, FittedGroup
from dsel.runtime.processes import IDLE_SECONDS, OtherProcess
from dsel.runtime.threads import single_threaded
from dsel.searches.engine.fit_task import FitJob, FitRecord, Payload, Work, fit_jobs

START_SECONDS: Final = 300.0  # for imports and the labeled rows, on a busy machine

_of_thread = threading.local()


class FittingProcess(OtherProcess):
    """Fits jobs of one run in a process of its own, to which `work` is sent once."""

    def __init__(self, work: Work) -> None:
        super().__init__("dsel.searches.engine.time_limits", "serve")
        self.work = work
        # The other process gets half of this one's limit for cached arrays.
        limit = process_cache().limit // 2
        self.ask((work, limit, get_config()), START_SECONDS)

    def fit(
        self, job: FitJob, seconds: float, keeps_models: bool = True
    ) -> tuple[FitRecord, FittedGroup | None]:
        """Fit a job; return its models only if they are to be kept.

        Raises TimeoutError where it takes longer than `seconds`, and the process is
        gone then; ChildProcessError where the process died, as of too much memory.
        """
        fitted: tuple[FitRecord, FittedGroup | None]
        fitted = self.ask((job, keeps_models), seconds)
        return fitted


def fitting_process(work: Work) -> FittingProcess:
    """Return this thread's process for a run; start one if there is none."""
    found: FittingProcess | None = getattr(_of_thread, "process", None)
    if found is None or found.work is not work or not found.is_alive():
        if found is not None:
            found.end()
        found = _of_thread.process = FittingProcess(work)
    return found


def serve(handle: int) -> None:
    """Fit jobs as they come: the main function of the process of `FittingProcess`."""
    pipe = Connection(handle)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
    work, limit, config = cloudpickle.loads(inbox.get())
    cache = ByteCache(limit)
    pipe.send_bytes(cloudpickle.dumps(None))
    with single_threaded(), config_context(**config):
        while True:
            try:
                job, keeps_models = cloudpickle.loads(inbox.get(timeout=IDLE_SECONDS))
            except queue.Empty:
                return
            answer = _fitted(work, job, keeps_models, cache)
            pipe.send_bytes(cloudpickle.dumps(answer))


def _receive(pipe: Connection, inbox: "queue.SimpleQueue[bytes]") -> None:
    """Queue messages; end the process, even during a fit, if its parent is gone."""
    while True:
        try:
            inbox.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def _fitted(work: Work, job: FitJob, keeps_models: bool, cache: ByteCache) -> Any:
    try:
        [record], fitted = fit_jobs(work, (), [job], keeps_models, cache=cache)
        return record, fitted.get(job)
    except Exception as error:
        return error


def fit_jobs_in_time(
    work: Work,
    payloads: Sequence[Payload],
    jobs: Sequence[FitJob],
    keeps_models: bool,
    seconds: float,
) -> tuple[list[FitRecord], Payload]:
    """Fit the jobs one after another, `seconds` for each candidate and split."""
    del payloads  # a fit starts from nothing
    records: list[FitRecord] = []
    fitted: Payload = {}
    for job in jobs:
        records += _fit_in_time(work, job, seconds, fitted, keeps_models)
    return records, fitted


def _fit_in_time(
    work: Work, job: FitJob, seconds: float, fitted: Payload, keeps_models: bool
) -> list[FitRecord]:
    """Fit a job, or its candidates one by one if it is late; add models to `fitted`.

    The candidates of a group share work, so m of them have m times `seconds` together.
    Where that is not enough, each of them is tried alone.
    """
    limit = len(job.candidates) * _n_fits(work, job) * seconds
    try:
        record, models = fitting_process(work).fit(job, limit, keeps_models)
    except TimeoutError:
        if len(job.candidates) == 1:
            return [FitRecord(job, _late(job, seconds), 0, is_late=True)]
        return [
            record
            for alone in job.one_by_one()
            for record in _fit_in_time(work, alone, seconds, fitted, keeps_models)
        ]
    if models is not None:
        fitted[job] = models
    return [record]


def _n_fits(work: Work, job: FitJob) -> int:
    """Return the fits of one candidate: leave-one-out has one for each row."""
    is_one = work.splits[job.split].name != LEAVE_ONE_OUT
    return 1 if is_one else len(work.y)


def _late(job: FitJob, seconds: float) -> FitCounts:
    """Return the counts of a candidate that exceeded the limit: a failure."""
    counts = FitCounts.empty(1, 1)
    error = TimeoutError(f"the fit took more than {seconds:g} s")
    counts.failed(job.candidates[0], job.split, error)
    return counts
