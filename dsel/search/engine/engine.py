"""The engine of a run, which its loops share, and one of these: a pass over the pool.

The other loops are `fit_loop.FitLoop` and `running.fit_chosen.run_chosen_fits`. Each
submits jobs to a `JobQueue` while it has room, and writes what comes back to tables and
to the store; no job does.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Any, Final

import numpy as np

from dsel.data.pool import SLICE_NBYTES, Pool
from dsel.results.records import to_record
from dsel.results.run_store import Store
from dsel.runtime.submission import Executor
from dsel.runtime.tasks import Task, Work
from dsel.search.engine.counts import PoolTable
from dsel.search.engine.job_queue import JobQueue
from dsel.search.engine.jobs import CountedJob, CountJob

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
        most = int(self.task_seconds / max(1e-5, fmean(self.seconds)))
        return max(1, min(most, n_left // (2 * n_slots)))


@dataclass(frozen=True)
class Engine:
    """What all loops of a run share."""

    executor: Executor
    store: Store | None
    """The store that results are written to, or None."""
    pool: Pool | None
    """The pool that is counted, or None."""
    run_id: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:12])
    """Tasks of two runs on one cluster must not share keys or cached models."""
    serial: Iterator[int] = field(init=False, default_factory=lambda: count(1))
    """Numbers that end the keys of tasks."""


@dataclass(eq=False)
class PoolPass:
    """One pass over the pool, which reads the slices that are not counted yet."""

    engine: Engine
    pool_table: PoolTable
    """The counts are added to it."""
    make_batch: Callable[[tuple[CountJob, ...]], Work[Any, list[CountedJob]]]
    """Function that makes the work of one task."""
    inputs: tuple[str, ...] = ()
    """Tasks that have kept what the work needs."""
    context_key: str | None = None
    """Key that `put` returned for what the work needs; see `Task.context_key`."""
    queue: JobQueue[CountJob, CountedJob] = field(init=False)
    batch_size: BatchSize = field(init=False, default_factory=BatchSize)
    waiting: deque[CountJob] = field(init=False, default_factory=deque)
    pool: Pool = field(init=False)
    n_slices: int = field(init=False, default=0)
    n_slices_done: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.queue = JobQueue(self.engine.executor)
        assert self.engine.pool is not None  # else there are no slices
        self.pool = self.engine.pool

    def run(self, model_sets: Sequence[int]) -> Iterator[list[int]]:
        """Count; yield once a turn, which lasts half a second at most.

        Yields model sets of a slice that other models have counted, most often none.
        Its counts are added if the table has the tokens of these models by then.
        """
        numbers, queue = np.array(model_sets), self.queue
        is_missing = ~self.pool_table.is_counted[numbers].T
        # A resumed run reads only the slices that no earlier run has counted.
        self.waiting.extend(
            CountJob(rows.start, rows.stop, tuple(numbers[missing].tolist()))
            for rows, missing in zip(self.pool_table.slices, is_missing, strict=True)
            if missing.any()
        )
        self.n_slices = len(self.waiting)
        # A file that changes between two slices would give counts of no one pool.
        with self.pool.guard_pass():
            while True:
                yield []
                while queue.has_room and (
                    jobs := queue.pop_urgent() or self.next_jobs()
                ):
                    queue.submit(jobs, self.make_task(jobs))
                if not queue.running:
                    return
                for _, ended in queue.wait():
                    for counted in ended.get():
                        yield from self._take_slice(counted)

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

    def make_task(self, jobs: list[CountJob]) -> Task[Any, list[CountedJob]]:
        """Return the task that reads and counts some slices."""
        numbers = [self.pool_table.slice_number[job.start, job.stop] for job in jobs]
        slices = [self.pool_table.slices[number] for number in numbers]
        return Task(
            f"count-rows={jobs[0].start}-{next(self.engine.serial)}",
            self.make_batch(tuple(jobs)),
            lambda client: [self.pool.sources(rows, client) for rows in slices],
            inputs=self.inputs,
            context_key=self.context_key,
            priority=10,
        )

    def _take_slice(self, counted_job: CountedJob) -> Iterator[list[int]]:
        """Write counts to the table and the store; yield the sets of other models."""
        job, store = counted_job.job, self.engine.store
        seconds = sum(result.seconds for result in counted_job.results)
        self.batch_size.seconds.append(seconds)
        logger.info(
            "slice rows=%d-%d model_sets=%s seconds=%.6f",
            job.start,
            job.stop,
            job.model_sets,
            seconds,
        )
        results = dict(zip(job.model_sets, counted_job.results, strict=True))
        # Dask may have made a model again that was lost with its worker.
        changed = [n for n in results if not self.pool_table.add_slice(n, results[n])]
        if changed:
            yield changed
        for number, result in results.items():
            self.pool_table.add_slice(number, result)
            if store is not None:
                store.append(self.pool_table.key_of(number, result), to_record(result))
        self.n_slices_done += 1
