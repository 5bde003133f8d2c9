"""The engine of a run, and the queue of jobs, which its loops share.

These loops are `fit_loop.FitLoop`, `pool_pass.PoolPass` and
`running.fit_chosen.ChosenFitLoop`. `JobQueue.run` gets jobs by the methods of
`JobLoop`, which each of them has, and yields the tasks that have ended. The first two
loops write the results to their table and to the store, the third one keeps the models
that it receives; no job writes anything.

Tasks fail for reasons that have nothing to do with their jobs: a worker is killed, a
node is short of memory, a file system does not respond. Therefore a job is first tried
again, alone. If it still fails, the consequence depends on the job. A fit of one of
many candidates is given up, and the search continues without the candidate. A pass over
the pool, or the fit of a chosen candidate, ends the run: if they counted as failed, a
certificate would depend on the health of a cluster.

Inputs that are lost with their worker do not count as a failure of a job; the
`TaskQueue` sends them again.
"""

import logging
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from itertools import count
from statistics import fmean
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from dsel.data.pool import Pool
from dsel.errors import ClusterLostError, LossError
from dsel.results.run_store import Store
from dsel.runtime.submission import Executor, TaskQueue
from dsel.runtime.tasks import Finished, Task, is_worker_death
from dsel.runtime.workers import GO_ON, MORE_MEMORY

TASK_SECONDS: Final = 0.25  # work of one task: fifty times the overhead of Dask


@dataclass
class BatchSize:
    """The number of jobs of one task, by the time of recent jobs.

    Examples
    --------
    >>> size = BatchSize()
    >>> size.recent_seconds.append(0.1)
    >>> size.jobs_per_task(n_left=100, n_slots=2), size.jobs_per_task(3, 2)
    (2, 1)
    """

    task_seconds: float = TASK_SECONDS
    recent_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=64))

    def jobs_per_task(self, n_left: int, n_slots: int) -> int:
        """Return the number of jobs, of `n_left`, to submit as one task; at least one.

        Tasks get smaller towards the end, so that all slots end at about the same time.
        """
        if not self.recent_seconds:
            return 1
        # The mean of the last 64 jobs: later fits of a grid often take longer.
        most = int(self.task_seconds / max(1e-5, fmean(self.recent_seconds)))
        return max(1, min(most, n_left // (2 * n_slots)))


@dataclass(frozen=True)
class Engine:
    """The executor, store, pool and task numbers that all loops of a run share."""

    executor: Executor
    store: Store | None
    """The store that results are written to, or None."""
    pool: Pool | None
    """The pool that is counted, or None."""
    run_id: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:12])
    """Identifier of the run: tasks of two runs on one cluster must not share keys or
    cached models."""
    serial: Iterator[int] = field(init=False, default_factory=lambda: count(1))
    """Numbers that end the keys of tasks."""


logger = logging.getLogger("dsel.search")

MOST_ATTEMPTS: Final = 3
"""Attempts of one job before its error is final, as Dask's `allowed-failures`."""
MOST_DEATHS: Final = 12
"""Tasks that may kill their workers, before any fit is done, until a run ends."""
DATA_ERRORS: Final = (ValueError, TypeError, KeyError)
"""Errors that another attempt would repeat: their cause is in the rows or the code."""


class RetriedJob(Protocol):
    """A job that may be tried again as smaller ones."""

    @property
    def group_number(self) -> int | None:
        """Number of the group whose candidates are fitted; None if none is."""

    def smaller_jobs(self) -> list[Self]:
        """Return the smallest jobs that together do its work; itself if it is one."""

    def __hash__(self) -> int: ...


J = TypeVar("J", bound=RetriedJob)
R = TypeVar("R")


class JobLoop(Protocol[J, R]):
    """A loop that makes jobs, which a queue submits as tasks."""

    def begin_turn(self) -> object:
        """Do what comes before the submission of tasks, at least every half second."""

    def next_jobs(self) -> list[J]:
        """Return the jobs of the next task, or none.

        The loop ends when this returns none and no task is running.
        """

    def make_task(self, jobs: list[J]) -> Task[Any, list[R]]:
        """Return jobs as one task."""


@dataclass(eq=False)
class JobQueue(Generic[J, R]):
    """Jobs of running tasks, and those that wait for another attempt."""

    executor: InitVar[Executor]
    may_give_up: bool = False
    """Whether a job may fail; else its error ends the run."""
    any_done: bool = True
    """Whether any task of the run has ever ended well."""
    tasks: TaskQueue[list[R]] = field(init=False)
    running: dict[str, list[J]] = field(init=False, default_factory=dict)
    """Jobs of each running task, by its key."""
    urgent_jobs: deque[list[J]] = field(init=False, default_factory=deque)
    """Jobs of tasks that are submitted first, such as jobs that failed once."""
    attempts: Counter[J] = field(init=False, default_factory=Counter)
    deaths: list[J] = field(init=False, default_factory=list)
    """Jobs that were alone in a task whose worker died."""

    def __post_init__(self, executor: Executor) -> None:
        self.tasks = TaskQueue(executor)

    def run(self, loop: JobLoop[J, R]) -> Iterator[tuple[list[J], Finished[list[R]]]]:
        """Submit jobs; yield those that succeeded or failed finally, with the task.

        Raises the error of a task if it ends the run.
        """
        while True:
            loop.begin_turn()
            while self.tasks.has_room:
                # Failed jobs go first, so that an error that ends the run ends it
                # early.
                urgent = self.urgent_jobs
                jobs = urgent.popleft() if urgent else loop.next_jobs()
                if not jobs:
                    break
                task = loop.make_task(jobs)
                self.running[task.key] = jobs
                self.tasks.submit(task)
            if not self.running:
                return
            for finished in self.tasks.wait():
                jobs = self.running.pop(finished.key)
                if finished.error is None:
                    self.any_done = True
                    yield jobs, finished
                else:
                    for job in self.retry(jobs, finished.error):
                        yield [job], finished

    def retry(self, jobs: list[J], error: BaseException) -> list[J]:
        """Make the jobs of a failed task urgent, each as a task; return the others.

        The others have failed finally. Raises the error if it ends the run.
        """
        # A loss that fails on the rows of one fold must not fail a candidate: searches
        # that may not see this fold would choose among fewer.
        if isinstance(error, LossError) or (
            not self.may_give_up and isinstance(error, DATA_ERRORS)
        ):
            raise error
        if len(jobs) == 1 and is_worker_death(error):
            self.deaths.append(jobs[0])
            self._end_if_all_die(error)
        # Jobs of one task are tried one by one, to find the one that is to blame. So
        # are the candidates of a job, unless memory is short: a single candidate needs
        # as much for the data that they share.
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].smaller_jobs()
        failed = []
        for job in jobs:
            self.attempts[job] += 1
            if len(jobs) > 1 or self.attempts[job] < MOST_ATTEMPTS:
                logger.warning("a task failed and runs again: %s", type(error).__name__)
                self.submit_first([job])
            elif self.may_give_up:
                failed.append(job)
            else:
                raise error
        return failed

    def submit_first(self, jobs: list[J]) -> None:
        """Make jobs urgent, as one task."""
        self.urgent_jobs.append(jobs)

    def try_once_more(self, job: J) -> None:
        """Make a job urgent; its next failure is final."""
        self.attempts[job] = MOST_ATTEMPTS - 1
        self.submit_first([job])

    @property
    def unfinished_jobs(self) -> list[J]:
        """Jobs that run, or are urgent."""
        tasks = (*self.running.values(), *self.urgent_jobs)
        return [job for jobs in tasks for job in jobs]

    def _end_if_all_die(self, error: BaseException) -> None:
        """Raise ClusterLostError if any task kills its worker, and none has succeeded.

        If only one group of candidates kills workers, or any task has succeeded before,
        the candidates fail instead, and the run continues.
        """
        # Deaths in several groups are no fault of one learner, but of the cluster.
        group_numbers = {job.group_number for job in self.deaths}
        n_deaths, n_groups = len(self.deaths), len(group_numbers)
        if not self.any_done and n_deaths >= MOST_DEATHS and n_groups > 1:
            raise ClusterLostError(
                f"workers die whatever they run: {n_deaths} tasks ended so, with fits "
                f"of {n_groups} groups of candidates, and none was done. "
                f"{MORE_MEMORY}; {GO_ON}"
            ) from error
