"""In which order the fits of a run are submitted, and how many at a time.

If candidates may be pruned, those of smallest lower bound are fitted first; else as
many groups as there are slots are fitted side by side, one after another.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.searches.engine.counts import UNKNOWN, CountTable
from dsel.searches.engine.fit_task import FitJob

TASK_SECONDS: Final = 0.25  # work of one task: fifty times the overhead of Dask
PRUNED_TASK_SECONDS: Final = 0.05  # less, where what comes back decides what is next
REMEMBERED: Final = 64  # jobs whose times are averaged


@dataclass
class BatchSize:
    """How many jobs make a task, by how long recent jobs took.

    Examples
    --------
    >>> batch_size = BatchSize()
    >>> batch_size.add(0.1)
    >>> batch_size.jobs_per_task(n_left=100, n_slots=2), batch_size.jobs_per_task(3, 2)
    (2, 1)
    """

    task_seconds: float = TASK_SECONDS
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def add(self, seconds: float) -> None:
        """Take the time of a finished job."""
        self.seconds.append(seconds)

    def jobs_per_task(self, n_left: int, n_slots: int) -> int:
        """Return how many of `n_left` jobs to submit as one task, at least one.

        Tasks get smaller towards the end, so that all slots end at about the same time.
        """
        if not self.seconds:
            return 1
        wanted = int(self.task_seconds / max(1e-5, fmean(self.seconds)))
        return max(1, min(wanted, n_left // (2 * n_slots)))


@dataclass
class FitQueue:
    """Jobs that are still to be submitted."""

    table: CountTable
    best_first: bool
    """Whether candidates may be pruned, so that the order matters."""
    submitted: NDArray[np.bool_] = field(init=False)
    floor: NDArray[np.float64] | None = field(init=False, default=None)
    """Lower bounds before anything was counted, (n_candidates,)."""
    members: list[NDArray[np.int64]] = field(init=False)
    group_of: NDArray[np.int64] = field(init=False)
    batch_size: BatchSize = field(init=False)

    def __post_init__(self) -> None:
        self.batch_size = BatchSize(
            PRUNED_TASK_SECONDS if self.best_first else TASK_SECONDS
        )
        self.submitted = np.zeros(self.table.fit_status.shape, bool)
        self.members = [
            np.array([candidate.number for candidate in group.candidates])
            for group in self.table.groups
        ]
        self.group_of = np.empty(self.table.n_candidates, np.int64)
        for group, numbers in enumerate(self.members):
            self.group_of[numbers] = group

    def open_fits(self) -> NDArray[np.bool_]:
        """Return the fits needed and not submitted, (n_candidates, n_splits)."""
        unknown = self.table.fit_status == UNKNOWN
        return np.asarray(unknown & ~self.submitted & self.table.active[:, np.newaxis])

    def take(self, n_slots: int, lower: NDArray[np.float64]) -> list[FitJob]:
        """Return the jobs of the next task, best first; none where none is left."""
        open_fits = self.open_fits()
        size = self._task_size(open_fits, n_slots)
        jobs: list[FitJob] = []
        for group, split in self._in_order(open_fits, lower, n_slots):
            for sibling in self._together(group, split, open_fits):
                # They may be in a job of another candidate of the group already.
                wanted = open_fits[:, sibling] & ~self.submitted[:, sibling]
                jobs += self._jobs_of_group(group, sibling, wanted)
            if len(jobs) >= size:
                break
        return jobs

    def jobs(self, wanted: NDArray[np.bool_]) -> list[FitJob]:
        """Return jobs for some fits, (n_candidates, n_splits), submitted or not."""
        groups = np.unique(self.group_of[wanted.any(axis=1)]).tolist()
        return [
            job
            for split in np.flatnonzero(wanted.any(axis=0)).tolist()
            for group in groups
            for job in self._jobs_of_group(group, split, wanted[:, split])
        ]

    def without_fits(self, jobs: Sequence[FitJob]) -> set[int]:
        """Return the groups of these jobs of which no other fit is open."""
        groups = {job.group for job in jobs}
        return groups - set(self.group_of[self.open_fits().any(axis=1)].tolist())

    def _jobs_of_group(
        self, group: int, split: int, wanted: NDArray[np.bool_]
    ) -> list[FitJob]:
        """Return the job of a group's wanted candidates; none where it has none."""
        members = self.members[group]
        mine = members[wanted[members]]
        self.submitted[mine, split] = True
        return [FitJob(group, tuple(mine.tolist()), split)] if len(mine) else []

    def _together(
        self, group: int, split: int, open_fits: NDArray[np.bool_]
    ) -> list[int]:
        """Return the splits to fit in the same task as this one, itself included."""
        if not self.table.groups[group].family.fits_splits_together:
            return [split]
        mine = open_fits[self.members[group]].any(axis=0)
        return [int(number) for number in np.flatnonzero(mine)]

    def _task_size(self, open_fits: NDArray[np.bool_], n_slots: int) -> int:
        n_groups = max(1, len(np.unique(self.group_of[open_fits.any(axis=1)])))
        left = n_groups * max(1, int(open_fits.sum(axis=1).max(initial=0)))
        return self.batch_size.jobs_per_task(left, n_slots)

    def _in_order(
        self, open_fits: NDArray[np.bool_], lower: NDArray[np.float64], n_slots: int
    ) -> Iterator[tuple[int, int]]:
        numbers = np.flatnonzero(open_fits.any(axis=1))
        if not self.best_first:
            groups = list(dict.fromkeys(self.group_of[numbers].tolist()))
            # Slots work at different groups: none waits for what another one makes.
            groups[:n_slots] = sorted(groups[:n_slots], key=self._n_waiting)
            for group in groups:
                mine = open_fits[self.members[group]].any(axis=0)
                yield from ((group, int(t)) for t in np.flatnonzero(mine))
            return
        order = self.table.scheme.order
        for number in self._best_first(numbers, lower):
            split = int(order[np.argmax(open_fits[number, order])])
            if split != self.table.scheme.full or self._folds_known(number):
                yield int(self.group_of[number]), split

    def _n_waiting(self, group: int) -> int:
        """Return how many fits of a group are submitted and have not ended."""
        mine = self.members[group]
        unknown = self.table.fit_status[mine] == UNKNOWN
        return int((self.submitted[mine] & unknown).sum())

    def _best_first(
        self, numbers: NDArray[np.int64], lower: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return candidates in the order of the bounds that they are likely to have.

        Each fold that is not back yet is expected to add what each known one added. Of
        those of which nothing is known, those that wait for fewer folds come first.
        """
        if self.floor is None:
            self.floor = lower.copy()
        unknown = self.table.fit_status[numbers] == UNKNOWN
        waiting = (self.submitted[numbers] & unknown).sum(axis=1)
        slope = (lower[numbers] - self.floor[numbers]) / np.maximum(
            (~unknown).sum(axis=1), 1
        )
        likely = lower[numbers] + waiting * slope
        return numbers[np.lexsort((numbers, waiting, likely))]

    def _folds_known(self, number: int) -> bool:
        """Whether all folds have ended: before, they may still prune the full fit."""
        folds = self.table.fit_status[number, : self.table.scheme.n_folds]
        return bool((folds != UNKNOWN).all())
