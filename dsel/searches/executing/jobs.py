"""Tasks that do not depend on one another: submitted a few ahead, taken as they end.

What ends is noted in the run's journal, if there is one, and is not computed again.
The driver in `dsel.searches.engine.driver` is for searches that go in rounds and prune.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Final, TypeVar

from dsel.data.tasks import TRIES, LostInputError
from dsel.results.stored_journal import StoredJournal
from dsel.searches.executing.executors import (
    Executor,
    Finished,
    Task,
    check_alive,
)
from dsel.searches.executing.keeping import Notes

AHEAD: Final = 2
"""Tasks submitted for each slot: one runs, one is there when it ends."""
BEAT_SECONDS: Final = 1.0

Note = TypeVar("Note")


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
    notes: "Notebook | None" = None,
    keeps_payloads: bool = False,
) -> Iterator[Finished]:
    """Run jobs and yield each as it ends, in no particular order.

    Parameters
    ----------
    executor
        Where they run.
    jobs
        Asked for one by one, as slots become free.
    notes
        Where what ends is noted, if anywhere: without the right to write there the
        jobs are for nothing.
    keeps_payloads
        Whether payloads stay where they are, for `Executor.fetch`.

    Raises
    ------
    ClusterLostError
        Where the scheduler or all workers are gone.
    StoreBusyError
        Where another run has taken over the place of the notes.
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
        if notes is not None:
            notes.check()


@dataclass(frozen=True)
class Notebook:
    """What jobs have found, by key; in a journal it outlives the run."""

    journal: Notes | None
    """Where notes are kept; None keeps nothing."""

    def find(self, key: str, kind: type[Note]) -> Note | None:
        """Return what was noted under a key as a dataclass, or None.

        Raises
        ------
        OSError
            Where it is not there, and what is found instead could not be noted.
        """
        record = None if self.journal is None else self.journal.read().get(key)
        if record is not None:
            return kind(**_scalars(record))
        if isinstance(self.journal, StoredJournal):
            self.journal.refuse()
        return None

    def check(self) -> None:
        """Raise where another run has taken over the place."""
        if self.journal is not None:
            self.journal.check()

    def note(self, key: str, found: Any) -> None:
        """Keep a dataclass of numbers and arrays under a key."""
        if self.journal is not None:
            values = {each.name: getattr(found, each.name) for each in fields(found)}
            self.journal.append(key, values)


def _scalars(record: Mapping[str, Any]) -> dict[str, Any]:
    """Turn arrays without dimensions back into the numbers that they were."""
    return {name: value[()] for name, value in record.items()}
