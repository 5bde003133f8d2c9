"""Fits with a time limit: a fit that takes longer is recorded as failed.

Whether a fit ends in time depends on the machine, so with a limit two runs may have
other failures, and choose another candidate. The certificate stays valid: a candidate
that fails counts as if its bound were 1, and delta is divided among all candidates. A
fit that was done in time is fitted again without a limit if its model is lost.

A thread cannot be stopped, but a process can. So the process of the task sends each
job through a pipe to a second process that fits it, and kills that one when the time is
over. What is unpickled came through this pipe, from a process of the same user that
this one started or that started it, never from a file or a network.
"""

import os
import queue
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

import cloudpickle
from sklearn import config_context, get_config

from dsel.data.cache import ByteCache, process_cache
from dsel.data.splits import LEAVE_ONE_OUT
from dsel.models.family import FitCounts, FittedGroup
from dsel.runtime.threads import single_threaded
from dsel.searches.engine.fit_task import FitJob, FitRecord, Payload, Work, fit_jobs

IDLE_SECONDS: Final = 120.0  # after which an unused process ends and frees its memory
POLL_SECONDS: Final = 0.5
START_SECONDS: Final = 300.0  # for imports and the labeled rows, on a busy machine

_of_thread = threading.local()


class FittingProcess:
    """Fits jobs of one run in a process of its own, to which `work` is sent once."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._pipe, theirs = Pipe()
        handle = theirs.fileno()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from dsel.searches.engine.time_limits import serve; serve({handle})"
        )
        self._process = subprocess.Popen(
            # The tracker would warn of semaphores that a killed process has left.
            [sys.executable, "-W", "ignore:resource_tracker:UserWarning", "-c", code],
            pass_fds=[handle],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach only the process that waits
        )
        theirs.close()
        self.end = weakref.finalize(self, _end, self._process, self._pipe)
        # The other process gets half of this one's limit for cached arrays.
        limit = process_cache().limit // 2
        self._pipe.send_bytes(cloudpickle.dumps((work, limit, get_config())))
        self._answer(START_SECONDS)

    def is_alive(self) -> bool:
        """Whether the process can take jobs."""
        return self.end.alive and self._process.poll() is None

    def fit(self, job: FitJob, seconds: float) -> tuple[FitCounts, FittedGroup | None]:
        """Fit a job.

        Raises TimeoutError where it takes longer than `seconds`, and the process is
        gone then; ChildProcessError where the process died, as of too much memory.
        """
        self._pipe.send_bytes(cloudpickle.dumps(job))
        found = self._answer(seconds)
        if isinstance(found, BaseException):
            raise found
        fitted: tuple[FitCounts, FittedGroup | None] = found
        return fitted

    def _answer(self, seconds: float) -> Any:
        waited = 0.0
        while waited < seconds:
            began = time.monotonic()
            try:
                if self._pipe.poll(min(POLL_SECONDS, seconds - waited)):
                    return cloudpickle.loads(self._pipe.recv_bytes())
            except (EOFError, OSError) as error:
                self.end()
                raise ChildProcessError(
                    f"the process of the fit ended with code {self._process.returncode}"
                ) from error
            # Time during which the machine slept, and the fit with it, does not count.
            waited += min(2 * POLL_SECONDS, time.monotonic() - began)
        self.end()
        raise TimeoutError(f"nothing came back within {seconds:g} s")


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
                job = cloudpickle.loads(inbox.get(timeout=IDLE_SECONDS))
            except queue.Empty:
                return
            pipe.send_bytes(cloudpickle.dumps(_fitted(work, job, cache)))


def _receive(pipe: Connection, inbox: "queue.SimpleQueue[bytes]") -> None:
    """Queue messages; end the process, even during a fit, if its parent is gone."""
    while True:
        try:
            inbox.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def _fitted(work: Work, job: FitJob, cache: ByteCache) -> Any:
    try:
        records, fitted = fit_jobs(work, (), [job], cache=cache)
        return records[0].counts, fitted.get(job)
    except Exception as error:
        return error


def _end(process: "subprocess.Popen[bytes]", pipe: Connection) -> None:
    process.kill()
    process.wait()
    pipe.close()


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
        records += _fit_in_time(work, job, seconds, fitted)
        if not keeps_models:
            fitted.clear()
    return records, fitted


def _fit_in_time(
    work: Work, job: FitJob, seconds: float, fitted: Payload
) -> list[FitRecord]:
    """Fit a job, or its candidates one by one if it is late; add models to `fitted`.

    The candidates of a group share work, so m of them have m times `seconds` together.
    Where that is not enough, each of them is tried alone.
    """
    limit = len(job.candidates) * _n_fits(work, job) * seconds
    try:
        counts, models = fitting_process(work).fit(job, limit)
    except TimeoutError:
        if len(job.candidates) == 1:
            return [FitRecord(job, _late(job, seconds), 0, is_late=True)]
        return [
            record
            for alone in job.one_by_one()
            for record in _fit_in_time(work, alone, seconds, fitted)
        ]
    if models is None:
        return [FitRecord(job, counts, 0)]
    fitted[job] = models
    return [FitRecord(job, counts, models.nbytes)]


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
