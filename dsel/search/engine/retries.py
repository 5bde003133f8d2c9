"""The policy for jobs whose task failed.

Tasks fail for reasons that have nothing to do with their jobs: a worker is killed, a
node is short of memory, a file system does not respond. Therefore a job is first tried
again, alone. If it still fails, the consequence depends on the job. A fit of one of
many candidates is given up, and the search continues without the candidate. A pass over
the pool, or the fit of a chosen candidate, ends the run: if they counted as failed, a
certificate would depend on the health of a cluster.

Inputs that are lost with their worker are no failure of a job; the loop that submits
tasks sends them again.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, Self, TypeVar

from dsel.errors import ClusterLostError, LossError
from dsel.runtime.tasks import died_of_task
from dsel.runtime.workers import GO_ON, MORE_MEMORY

logger = logging.getLogger("dsel.search")

MOST_ATTEMPTS: Final = 3
"""Attempts of one job before its error is final."""
MOST_DEATHS: Final = 12
"""Tasks that may kill their workers, before any fit is done, until a run ends."""
DATA_ERRORS: Final = (ValueError, TypeError, KeyError)
"""Errors that another attempt would repeat: their cause is in the rows or the code."""


class RetriedJob(Protocol):
    """A job that can be divided for another attempt."""

    def divide(self) -> list[Self]:
        """Return the smallest jobs into which it can be divided."""

    def __hash__(self) -> int: ...


J = TypeVar("J", bound=RetriedJob)


@dataclass(eq=False)
class JobQueue(Generic[J]):
    """The jobs of running tasks, and those that are submitted before any other."""

    give_up: Callable[[J, BaseException], object] | None = None
    """Called with a job that has failed finally, and its error; None ends the run."""
    any_done: Callable[[], bool] = lambda: True
    """Function that returns whether any fit of the run was ever done."""
    running: dict[str, list[J]] = field(default_factory=dict)
    """Jobs of each running task, by its key."""
    urgent_jobs: deque[list[J]] = field(default_factory=deque)
    """Jobs of tasks that are submitted first, such as what failed once."""
    attempts: Counter[J] = field(default_factory=Counter)
    deaths: list[J] = field(default_factory=list)
    """Jobs that were alone in a task whose worker died, before any fit was done."""

    def retry_or_give_up(self, jobs: list[J], error: BaseException) -> None:
        """Make the jobs of a failed task urgent, each as a task, or give them up.

        Raises the error if it ends the run.
        """
        # A loss that fails on the rows of one fold must not fail a candidate: searches
        # that may not see this fold would choose among fewer.
        if isinstance(error, LossError) or (
            self.give_up is None and isinstance(error, DATA_ERRORS)
        ):
            raise error
        if len(jobs) == 1 and died_of_task(error) and not self.any_done():
            self._count_death(jobs[0], error)
        # Jobs of one task are tried one by one, to find the one that is to blame. So
        # are the candidates of a job; but memory is needed for the work that they
        # share, alone no less.
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].divide()
        for job in jobs:
            self.attempts[job] += 1
            if len(jobs) > 1 or self.attempts[job] < MOST_ATTEMPTS:
                logger.warning("a task failed and runs again: %s", type(error).__name__)
                self.urgent_jobs.append([job])
            elif self.give_up is None:
                raise error
            else:
                self.give_up(job, error)

    def _count_death(self, job: J, error: BaseException) -> None:
        """End a run whose workers die in any task.

        If only one group of candidates kills them, or any fit was ever done, the
        candidates fail instead, and the run continues.
        """
        self.deaths.append(job)
        # Deaths in several groups are no fault of one learner, but of the cluster.
        groups = {getattr(job, "candidate_group", None) for job in self.deaths}
        if len(self.deaths) >= MOST_DEATHS and len(groups) > 1:
            raise ClusterLostError(
                f"workers die whatever they run: {len(self.deaths)} tasks ended "
                f"so, with fits of {len(groups)} groups of candidates, and none "
                f"was done. {MORE_MEMORY}; {GO_ON}"
            ) from error
