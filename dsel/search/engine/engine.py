"""The engine: the one loop that submits jobs and takes what comes back.

A run has one engine. Its loop runs the fits of a search, in `search_loop`, those of
chosen candidates, and passes over the pool. What comes back is written to the table
and to the store here; no job does.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Final, Protocol, TypeVar

import numpy as np

from dsel.arrays import Integers
from dsel.data.pool import SLICE_NBYTES, Pool
from dsel.results.records import to_record
from dsel.results.run_store import Store
from dsel.runtime.submission import Executor, run_tasks
from dsel.runtime.tasks import Task, Work
from dsel.search.engine.counts import PoolTable
from dsel.search.engine.jobs import CountedJob, CountJob
from dsel.search.engine.retries import J, JobQueue

R = TypeVar("R")
logger = logging.getLogger("dsel.search")

TASK_SECONDS: Final = 0.25  # work of one task: fifty times the overhead of Dask


@dataclass
class BatchSize:
    """Number of jobs of a task, by the time of recent jobs.

    Examples
    --------
    >>> size = BatchSize()
    >>> size.seconds.append(0.1)
    >>> size.jobs_per_task(n_left=100, n_slots=2), size.jobs_per_task(3, 2)
    (2, 1)
    """

    task_seconds: float = TASK_SECONDS
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=64))

    def jobs_per_task(self, n_left: int, n_slots: int) -> int:
        """Return the number of jobs, of `n_left`, to submit as one task; at least one.

        Tasks get smaller towards the end, so that all slots end at about the same time.
        """
        if not self.seconds:
            return 1
        # The mean of the last 64 jobs: later fits of a grid often take longer.
        wanted = int(self.task_seconds / max(1e-5, fmean(self.seconds)))
        return max(1, min(wanted, n_left // (2 * n_slots)))


class JobSource(Protocol[J, R]):
    """Jobs of one kind, and the tasks that are made of them."""

    queue: JobQueue[J]

    def begin_turn(self) -> None:
        """Decide or show something before tasks are submitted, twice a second."""

    def next_jobs(self) -> list[J]:
        """Return the jobs of the next task; none if there are none at present."""

    def make_task(self, jobs: list[J]) -> Task[list[R]]:
        """Return some jobs as one task."""


@dataclass
class Engine:
    """An executor and a store, and the loop that jobs go through."""

    executor: Executor
    store: Store | None
    """The store that results are written to, or None."""
    pool: Pool | None
    """The pool that is counted, or None."""
    run_id: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:12])
    """Tasks of two runs on one cluster must not share keys or cached models."""
    serial: Iterator[int] = field(init=False, default_factory=lambda: count(1))
    """Numbers that end the keys of tasks."""
    n_slices: int = field(init=False, default=0)
    """Slices of all passes that have begun."""
    n_slices_done: int = field(init=False, default=0)

    def run_jobs(self, source: JobSource[J, R]) -> Iterator[tuple[str, list[R]]]:
        """Run the jobs of a source until none is left.

        Yields key and results of each task as it ends.
        """
        queue = source.queue

        def next_task() -> Task[list[R]] | None:
            # Retries go first: an error that ends the run should end it early.
            is_urgent = bool(queue.urgent_jobs)
            jobs = queue.urgent_jobs.popleft() if is_urgent else source.next_jobs()
            if not jobs:
                return None
            task = source.make_task(jobs)
            queue.running[task.key] = jobs
            return task

        for finished in run_tasks(self.executor, next_task, on_turn=source.begin_turn):
            jobs = queue.running.pop(finished.key)
            if finished.error is None:
                yield finished.key, finished.get()
            else:
                queue.retry_or_give_up(jobs, finished.error)

    def count_pool(
        self,
        table: PoolTable,
        model_sets: Sequence[int],
        batch_of: Callable[[tuple[CountJob, ...]], Work[list[CountedJob]]],
        *,
        inputs: tuple[str, ...] = (),
        context: str | None = None,
        on_turn: Callable[[], object],
    ) -> Iterator[int]:
        """Read the pool once; yield model sets whose models are not those counted.

        Counts are added to the table. `batch_of` makes the work of one task; it gets
        what the tasks `inputs` have kept, and the `context` sent to the executor.
        """
        assert self.pool is not None  # else there are no slices
        reading = PoolPass(self, self.pool, table, batch_of, inputs, context, on_turn)
        reading.add_missing(np.array(model_sets))
        # A file that changes between two slices would give counts of no one pool.
        with self.pool.guard_pass():
            for _, counted_jobs in self.run_jobs(reading):
                for counted in counted_jobs:
                    seconds = sum(result.seconds for result in counted.results)
                    reading.batch_size.seconds.append(seconds)
                    yield from self._take_slice(table, counted)

    def _take_slice(self, table: PoolTable, counted: CountedJob) -> Iterator[int]:
        """Write counts to the table and the store; yield sets of other models."""
        job = counted.job
        logger.info(
            "slice rows=%d-%d model_sets=%s seconds=%.6f",
            job.start,
            job.stop,
            job.model_sets,
            sum(result.seconds for result in counted.results),
        )
        for number, result in zip(job.model_sets, counted.results, strict=True):
            # The counts are dropped if Dask made a model again, and it differs from the
            # counted one.
            if not table.add_slice(number, result):
                yield number
            if self.store is not None:
                self.store.append(table.key_of(number, result), to_record(result))
        self.n_slices_done += 1


@dataclass(eq=False)
class PoolPass:
    """One pass over the pool: the slices that are not counted yet, and their tasks."""

    engine: Engine
    pool: Pool
    table: PoolTable
    batch_of: Callable[[tuple[CountJob, ...]], Work[list[CountedJob]]]
    inputs: tuple[str, ...]
    context: str | None
    on_turn: Callable[[], object]
    queue: JobQueue[CountJob] = field(default_factory=JobQueue)
    batch_size: BatchSize = field(default_factory=BatchSize)
    waiting: deque[CountJob] = field(default_factory=deque)

    def add_missing(self, model_sets: Integers) -> None:
        """Add the slices that no earlier run has counted for these model sets."""
        is_missing = ~self.table.is_counted[model_sets].T
        self.waiting.extend(
            CountJob(part.start, part.stop, tuple(model_sets[missing].tolist()))
            for part, missing in zip(self.table.slices, is_missing, strict=True)
            if missing.any()
        )
        self.engine.n_slices += len(self.waiting)

    def begin_turn(self) -> None:
        """Show progress."""
        self.on_turn()

    def next_jobs(self) -> list[CountJob]:
        """Return slices of the same model sets, few enough to be read at once."""
        # A task of many slices is limited by the rows that it may hold, not only by
        # time.
        rows_left = SLICE_NBYTES // self.pool.row_nbytes
        n_slots = self.engine.executor.n_slots
        most = self.batch_size.jobs_per_task(len(self.waiting), n_slots)
        jobs: list[CountJob] = []
        while self.waiting and len(jobs) < most:
            job = self.waiting[0]
            rows_left -= job.stop - job.start
            # The same models in a task, which reads them once.
            if jobs and (rows_left < 0 or job.model_sets != jobs[0].model_sets):
                break
            jobs.append(self.waiting.popleft())
        return jobs

    def make_task(self, jobs: list[CountJob]) -> Task[list[CountedJob]]:
        """Return the task that reads and counts some slices."""
        numbers = [self.table.slice_number[job.start, job.stop] for job in jobs]
        slices = [self.table.slices[number] for number in numbers]
        return Task(
            f"count-rows={jobs[0].start}-{next(self.engine.serial)}",
            self.batch_of(tuple(jobs)),
            lambda client: [self.pool.sources(part, client) for part in slices],
            inputs=self.inputs,
            context=self.context,
            priority=10,
        )
