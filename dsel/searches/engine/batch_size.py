"""How many jobs make a task: long beside what Dask adds to it, short beside the run."""

from collections import deque
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

TASK_SECONDS: Final = 0.25  # work of one task: fifty times what Dask adds to it
REMEMBERED: Final = 64


@dataclass
class Pace:
    """How long jobs of a kind took of late.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.learn(0.1)
    >>> pace.jobs_of_a_task(n_left=100, n_slots=2), pace.jobs_of_a_task(3, 2)
    (2, 1)
    """

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def learn(self, seconds: float) -> None:
        """Take the time of a finished job."""
        self.seconds.append(seconds)

    def jobs_of_a_task(self, n_left: int, n_slots: int) -> int:
        """Return how many of `n_left` jobs to give away at once, at least one.

        Tasks get smaller towards the end, so that all slots end at about one time.
        """
        if not self.seconds:
            return 1
        wanted = int(TASK_SECONDS / max(1e-5, fmean(self.seconds)))
        return max(1, min(wanted, n_left // (2 * n_slots)))
