"""The engine of a run, which its three loops share.

These are `fit_loop.FitLoop`, `pool_pass.PoolPass` and
`running.fit_chosen.run_chosen_fits`. Each submits jobs by `JobQueue.run`, and writes
what comes back to tables and to the store; no job does.
"""

import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Final

from dsel.data.pool import Pool
from dsel.results.run_store import Store
from dsel.runtime.submission import Executor

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
    """The executor, store, pool and task numbers that all loops of a run share."""

    executor: Executor
    store: Store | None
    """The store that results are written to, or None."""
    pool: Pool | None
    """The pool that is counted, or None."""
    run_id: str = field(init=False, default_factory=lambda: uuid.uuid4().hex[:12])
    """Tasks of two runs on one cluster must not share keys or cached models."""
    serial: Iterator[int] = field(init=False, default_factory=lambda: count(1))
    """Numbers that end the keys of tasks."""
