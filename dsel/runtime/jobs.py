"""Tasks that do not depend on one another: submitted a few ahead, taken as they end.

The driver in `dsel.searches.engine.driver` is for searches that go in rounds and prune.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from dsel.runtime.executors import (
    Executor,
    Finished,
    Task,
    check_alive,
)
from dsel.runtime.tasks import TRIES, LostInputError

AHEAD: Final = 2
"""Tasks submitted for each slot: one runs, one is there when it ends."""
BEAT_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Job:
    """One task."""

    key: str
    """What it computes; no other job of the run has it."""
    task: Task
    """Called with the executor's work, no payloads, and the arguments."""
    arguments: tuple[Any, ...] = ()
    """Passed on to the task."""
    sources: Callable[[], list[Any]] | None = None
    """Gives the argument before these when the job is submitted, and again where rows
    of a pool, which are sent to a worker then, died with it."""

    def submit(self, executor: Executor, *, keeps_payload: bool) -> None:
        """Start it."""
        rows = () if self.sources is None else (self.sources(),)
        executor.submit(
            self.key, self.task, *rows, *self.arguments, keeps_payload=keeps_payload
        )


def completed(
    executor: Executor,
    jobs: Iterable[Job],
    *,
    check: Callable[[], None] | None = None,
    keeps_payloads: bool = False,
) -> Iterator[Finished]:
    """Run jobs and yield each as it ends, in no particular order.

    Parameters
    ----------
    executor
        Where they run.
    jobs
        Asked for one by one, as slots become free.
    check
        Called every second or so; what it raises ends the run: what cannot be
        written need not be counted.
    keeps_payloads
        Whether payloads stay where they are, for `Executor.fetch`.

    Raises
    ------
    ClusterLostError
        Where the scheduler or all workers are gone.
    """
    waiting = iter(jobs)
    running: dict[str, Job] = {}
    lost: Counter[str] = Counter()
    while True:
        free = max(0, AHEAD * executor.n_slots - len(running))
        for job in islice(waiting, free):
            running[job.key] = job
            job.submit(executor, keeps_payload=keeps_payloads)
        if not running:
            return
        for finished in executor.wait(BEAT_SECONDS):
            check_alive(finished.error)
            key = finished.key
            is_lost = isinstance(finished.error, LostInputError)
            lost[key] += is_lost
            if is_lost and lost[key] < TRIES:
                executor.forget(key)
                running[key].submit(executor, keeps_payload=keeps_payloads)
                continue
            del running[key]
            yield finished
            if not keeps_payloads:
                executor.forget(key)
        if check is not None:
            check()
