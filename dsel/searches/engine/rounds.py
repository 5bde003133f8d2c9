"""Rounds of scoring: which candidates are compared on the pool in one reading of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dsel.searches.engine.batch_size import Pace
from dsel.searches.engine.counts import Board
from dsel.searches.engine.fit_task import SpanJob

LEADERS = 4  # candidates of the first round, whose numbers then prune the others


@dataclass
class Round:
    """One reading of the pool for some candidates."""

    key: str
    """Names the joined models in the workers' caches."""
    members: tuple[int, ...]
    """Candidate numbers."""
    waiting: list[SpanJob]
    """Spans that are still to be submitted."""
    in_flight: int = 0
    """Spans that are running."""
    derived: dict[str, str] = field(default_factory=dict)
    """Task that holds members' models to one that holds little else."""
    pace: Pace = field(default_factory=Pace)
    """How long its spans take."""

    @property
    def is_over(self) -> bool:
        """Whether every span was counted."""
        return not self.waiting and not self.in_flight

    def take(self, n_slots: int, n_rows: int) -> list[SpanJob]:
        """Return the spans of the next task, for the same candidates; maybe none.

        Parameters
        ----------
        n_slots
            Tasks that run at the same time.
        n_rows
            Stored rows that a task may read; a longer span is a task of its own.
        """
        most = self.pace.jobs_of_a_task(len(self.waiting), n_slots)
        taken: list[SpanJob] = []
        for job in self.waiting[:most]:
            n_rows -= job.stop - job.start
            if taken and (n_rows < 0 or not job.goes_with(taken[0])):
                break
            taken.append(job)
        del self.waiting[: len(taken)]
        self.in_flight += len(taken)
        return taken


def next_members(
    board: Board,
    lower: NDArray[np.float64],
    *,
    leaders_first: bool,
    fits_are_over: bool,
    nbytes: Mapping[int, int],
    budget: int,
) -> tuple[int, ...]:
    """Return the candidates of the next round, most promising first; maybe none.

    With pruning, a first small round of leaders starts as soon as the candidate of
    smallest lower bound is fitted: its number is what prunes the rest. All others
    wait until no fit is left, so that the pool is read as few times as can be.

    Parameters
    ----------
    board, lower
        Counts so far and every candidate's lower bound.
    leaders_first
        Whether a first round of leaders is still to come.
    fits_are_over
        Whether every racing candidate is fitted.
    nbytes
        Size of each candidate's models.
    budget
        Bytes of models that every worker can hold.
    """
    ready = np.flatnonzero(board.racing & board.fitted)
    order = ready[np.lexsort((ready, lower[ready]))]
    if not fits_are_over:
        racing = np.flatnonzero(board.racing)
        top = racing[np.lexsort((racing, lower[racing]))][:1]
        if not leaders_first or not np.isin(top, ready).all():
            return ()
    if leaders_first:
        order = order[:LEADERS]
    weights = np.cumsum([nbytes.get(int(number), 0) for number in order])
    fitting = max(1, int(np.searchsorted(weights, budget, side="right")))
    return tuple(int(number) for number in order[:fitting])


def span_jobs(board: Board, members: tuple[int, ...]) -> list[SpanJob]:
    """Return a job for every span of its next look that some member still needs."""
    numbers = np.array(members)
    wanted = board.wanted(numbers)
    jobs = []
    for i, (look, span) in enumerate(board.spans):
        missing = numbers[wanted[:, i]]
        if len(missing):
            mine = tuple(map(int, missing))
            jobs.append(SpanJob(span.start, span.stop, mine, look))
    return jobs
