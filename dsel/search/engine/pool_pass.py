"""A pass over the pool: the loop that counts its slices."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsel.data.pool import SLICE_NBYTES, Pool
from dsel.results.records import to_record
from dsel.runtime.tasks import Task, Work
from dsel.search.engine.counts import PoolTable
from dsel.search.engine.job_queue import BatchSize, Engine, JobLoop, JobQueue
from dsel.search.engine.jobs import CountedJob, CountJob

logger = logging.getLogger("dsel.search")


@dataclass(eq=False)
class PoolPass(JobLoop[CountJob, CountedJob]):
    """One pass over the pool, which reads the slices that are not counted yet."""

    engine: Engine
    pool_table: PoolTable
    """Table to which the counts are added."""
    make_batch: Callable[[tuple[CountJob, ...]], Work[Any, list[CountedJob]]]
    """Function that returns the work of one task."""
    on_turn: Callable[[], object]
    """Called at each turn, at least every half second, such as to show the progress; an
    error in it ends the run."""
    input_tasks: tuple[str, ...] = ()
    """Tasks whose kept outputs the work needs."""
    context_key: str | None = None
    """Key that `put` returned for the context of the work; see `Task.context_key`."""
    batch_size: BatchSize = field(init=False, default_factory=BatchSize)
    waiting: deque[CountJob] = field(init=False, default_factory=deque)
    pool: Pool = field(init=False)
    n_slices: int = field(init=False, default=0)
    n_slices_done: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        assert self.engine.pool is not None  # without a pool there are no slices
        self.pool = self.engine.pool

    def run(self, model_sets: Sequence[int]) -> Iterator[CountedJob]:
        """Count the slices that some of these model sets lack, and yield the counts.

        The caller passes them to `add_counts`, or raises: other models than those of
        the table may have counted them, since Dask repeats the fit of a model that was
        lost with its worker.
        """
        model_set_numbers = np.array(model_sets)
        is_missing = ~self.pool_table.is_counted[model_set_numbers].T
        # A resumed run reads only the slices that no earlier run has counted.
        self.waiting.extend(
            CountJob(rows.start, rows.stop, tuple(model_set_numbers[missing].tolist()))
            for rows, missing in zip(self.pool_table.slices, is_missing, strict=True)
            if missing.any()
        )
        self.n_slices = len(self.waiting)
        queue: JobQueue[CountJob, CountedJob] = JobQueue(self.engine.executor)
        # A file that changes between two slices would give counts of no one pool.
        with self.pool.guard_pass():
            for _, task in queue.run(self):
                yield from task.get()

    def begin_turn(self) -> None:
        """Call `on_turn`."""
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
            # A task has slices of the same models, which it reads once.
            if jobs and (rows_left < 0 or job.model_sets != jobs[0].model_sets):
                break
            jobs.append(self.waiting.popleft())
        return jobs

    def make_task(self, jobs: list[CountJob]) -> Task[Any, list[CountedJob]]:
        """Return the task that reads and counts some slices."""
        slice_numbers = [
            self.pool_table.slice_number[job.start, job.stop] for job in jobs
        ]
        slices = [
            self.pool_table.slices[slice_number] for slice_number in slice_numbers
        ]
        return Task(
            f"count-rows={jobs[0].start}-{next(self.engine.serial)}",
            self.make_batch(tuple(jobs)),
            lambda client: [self.pool.sources(rows, client) for rows in slices],
            input_tasks=self.input_tasks,
            context_key=self.context_key,
            priority=10,
        )

    def add_counts(self, counted_job: CountedJob) -> None:
        """Write the counts of a slice to the table and the store.

        The table takes none of other models than its own.
        """
        job, table, store = counted_job.job, self.pool_table, self.engine.store
        seconds = sum(result.seconds for result in counted_job.results)
        self.batch_size.recent_seconds.append(seconds)
        logger.info(
            "slice rows=%d-%d model_sets=%s seconds=%.6f",
            job.start,
            job.stop,
            job.model_sets,
            seconds,
        )
        for model_set, result in counted_job.result_of.items():
            table.add_slice(model_set, result)
            if store is not None:
                store.append(table.key_of(model_set, result), to_record(result))
        self.n_slices_done += 1
