"""What becomes of jobs whose task failed: the one policy of a run.

Tasks fail for reasons that have nothing to do with their jobs: a worker is killed, a
node is short of memory, a file system does not answer. So a job is tried again, alone,
before anything is concluded. What is concluded then depends on the job. A fit of one of
many candidates is given up, and the search goes on without the candidate. A pass over
the pool, or the fit of what was chosen, ends the run: to count them as failed would
make a certificate depend on the health of a cluster.

Inputs that died with the worker that held them are no failure of a job; the loop that
submits tasks sends them again.
"""

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, Self, TypeVar

from dsel.errors import ClusterLostError
from dsel.runtime.tasks import died_of_task
from dsel.runtime.workers import GO_ON, MORE_MEMORY

logger = logging.getLogger("dsel.search")

ATTEMPTS: Final = 3
"""Of one job, before its error is final."""
DEATHS: Final = 12
"""Tasks that killed their workers before any fit was done, after which a run ends."""
OF_DATA: Final = (ValueError, TypeError, KeyError)
"""Errors that another attempt would only repeat: rows or code are to blame."""


class RetriedJob(Protocol):
    """A job as the policy sees it."""

    def alone(self) -> list[Self]:
        """Return the smallest jobs that it can be divided into."""

    def __hash__(self) -> int: ...


J = TypeVar("J", bound=RetriedJob)


@dataclass
class Retries(Generic[J]):
    """Decides what becomes of the jobs of a task that failed."""

    may_give_up: bool
    """Whether a job may fail for good and the run go on."""
    tries: Counter[J] = field(default_factory=Counter)
    deaths: list[J] = field(default_factory=list)
    """Jobs that were alone in a task whose worker died, while no fit was done."""

    def sort_out(
        self, jobs: list[J], error: BaseException, *, any_done: bool
    ) -> tuple[list[J], list[J]]:
        """Return the jobs to be tried again, each as a task, and those to be given up.

        Raises the error where it ends the run. `any_done` says whether any fit of the
        run was ever done.
        """
        if not self.may_give_up and isinstance(error, OF_DATA):
            raise error
        if len(jobs) == 1 and died_of_task(error) and not any_done:
            self._count_death(jobs[0], error)
        # Jobs of one task are tried one by one, to find the one that is to blame. So
        # are the candidates of a job; but memory is needed for the work that they
        # share, alone no less.
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].alone()
        again, given_up = [], []
        for job in jobs:
            self.tries[job] += 1
            if len(jobs) > 1 or self.tries[job] < ATTEMPTS:
                logger.warning("retry %s: %s", job, type(error).__name__)
                again.append(job)
            elif not self.may_give_up:
                raise error
            else:
                given_up.append(job)
        return again, given_up

    def _count_death(self, job: J, error: BaseException) -> None:
        """End a run whose workers die whatever they run.

        They do not where only one group of candidates kills them, or any fit was ever
        done: then the candidates fail, and the run goes on.
        """
        self.deaths.append(job)
        groups = {getattr(each, "candidate_group", None) for each in self.deaths}
        if len(self.deaths) >= DEATHS and len(groups) > 1:
            raise ClusterLostError(
                f"workers die whatever they run: {len(self.deaths)} tasks ended "
                f"so, with fits of {len(groups)} groups of candidates, and none "
                f"was done. {MORE_MEMORY}; {GO_ON}"
            ) from error
