"""The engine: submits jobs that must not fail, and counts on the pool.

It writes what comes back to the table and to the store; no job does. A run has one
engine: the loop of its search, in `search_loop`, uses it, and so do the fits and
counts of the candidates that a nested search has chosen.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Final, TypeVar

import numpy as np

from dsel.data.pool import SLICE_NBYTES, Pool
from dsel.results.records import to_record
from dsel.results.run_store import Store
from dsel.runtime.submission import Executor, run_tasks
from dsel.runtime.tasks import Task, Work
from dsel.search.engine.counts import PoolTable
from dsel.search.engine.jobs import CountedJob, CountJob
from dsel.search.engine.retries import J, Retries

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

    def run_jobs(
        self,
        batches: Iterable[list[J]],
        task_of: Callable[[list[J]], Task[list[R]]],
        *,
        on_turn: Callable[[], object],
    ) -> Iterator[R]:
        """Run jobs, each list as a task; yield results as tasks end.

        `batches` is iterated as slots become free. None of these jobs may fail: after
        some attempts the error ends the run.
        """
        running: dict[str, list[J]] = {}
        waiting, again = iter(batches), deque[list[J]]()
        # Without one of these counts a certificate would be about other rows or models.
        retries: Retries[J] = Retries(may_give_up=False)

        def next_task() -> Task[list[R]] | None:
            # Retries go first: an error that ends the run should end it early.
            jobs = again.popleft() if again else next(waiting, None)
            if jobs is None:
                return None
            task = task_of(jobs)
            running[task.key] = jobs
            return task

        for finished in run_tasks(self.executor, next_task, on_turn=on_turn):
            jobs = running.pop(finished.key)
            if finished.error is None:
                yield from finished.get()
                continue
            retried, _ = retries.retry_or_give_up(jobs, finished.error, any_done=True)
            again.extend([job] for job in retried)

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
        pool, numbers = self.pool, np.array(model_sets)
        assert pool is not None  # else there are no slices
        # A resumed run reads only the slices that no earlier run has counted.
        waiting = deque(
            CountJob(
                pool_slice.start, pool_slice.stop, tuple(numbers[missing].tolist())
            )
            for pool_slice, missing in zip(
                table.slices, ~table.is_counted[numbers].T, strict=True
            )
            if missing.any()
        )
        self.n_slices += len(waiting)
        size = BatchSize()

        def batches() -> Iterator[list[CountJob]]:
            """Yield slices of the same model sets, few enough to be read at once."""
            while waiting:
                # A task of many slices is limited by the rows that it may hold, not
                # only by time.
                n_left, rows_left = len(waiting), SLICE_NBYTES // pool.row_nbytes
                most = size.jobs_per_task(n_left, self.executor.n_slots)
                jobs: list[CountJob] = []
                while waiting and len(jobs) < most:
                    job = waiting[0]
                    rows_left -= job.stop - job.start
                    # The same models in a task, which reads them once.
                    if jobs and (rows_left < 0 or job.model_sets != jobs[0].model_sets):
                        break
                    jobs.append(waiting.popleft())
                yield jobs

        def task_of(jobs: list[CountJob]) -> Task[list[CountedJob]]:
            slices = [table.slice_number[job.start, job.stop] for job in jobs]
            return Task(
                f"count-rows={jobs[0].start}-{next(self.serial)}",
                batch_of(tuple(jobs)),
                lambda client: [pool.sources(table.slices[n], client) for n in slices],
                inputs=inputs,
                context=context,
                priority=10,
            )

        # A file that changes between two slices would give counts of no one pool.
        with pool.guard_pass():
            for counted in self.run_jobs(batches(), task_of, on_turn=on_turn):
                size.seconds.append(sum(r.seconds for r in counted.results))
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
