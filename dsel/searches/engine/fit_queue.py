"""Which fits come next: best first where candidates are pruned, else group by group."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dsel.searches.engine.batch_size import Pace
from dsel.searches.engine.counts import UNKNOWN, Board
from dsel.searches.engine.fit_task import FitJob


@dataclass
class FitQueue:
    """Jobs that are still to be submitted."""

    board: Board
    """Counts so far."""
    best_first: bool
    """Whether candidates may be pruned, so that the order matters."""
    asked: NDArray[np.bool_] = field(init=False)
    members: list[NDArray[np.int64]] = field(init=False)
    group_of: NDArray[np.int64] = field(init=False)
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        self.asked = np.zeros(self.board.fit_status.shape, bool)
        self.members = [
            np.array([candidate.number for candidate in group.candidates])
            for group in self.board.groups
        ]
        self.group_of = np.empty(self.board.n_candidates, np.int64)
        for group, numbers in enumerate(self.members):
            self.group_of[numbers] = group

    def open_fits(self) -> NDArray[np.bool_]:
        """Return the fits wanted and not asked for, (n_candidates, n_trainings)."""
        unknown = self.board.fit_status == UNKNOWN
        return np.asarray(unknown & ~self.asked & self.board.racing[:, np.newaxis])

    def take(self, n_slots: int, lower: NDArray[np.float64]) -> list[FitJob]:
        """Return the jobs of the next task, best first; none where none is left."""
        open_fits = self.open_fits()
        size = self._task_size(open_fits, n_slots)
        jobs: list[FitJob] = []
        for group, training in self._in_order(open_fits, lower):
            for sibling in self._together(group, training, open_fits):
                # Another candidate of the group may have brought them along.
                wanted = open_fits[:, sibling] & ~self.asked[:, sibling]
                jobs += self._jobs_of_group(group, sibling, wanted)
            if len(jobs) >= size:
                break
        return jobs

    def jobs(self, wanted: NDArray[np.bool_]) -> list[FitJob]:
        """Return jobs for some fits, (n_candidates, n_trainings), asked for or not."""
        groups = np.unique(self.group_of[wanted.any(axis=1)]).tolist()
        return [
            job
            for training in np.flatnonzero(wanted.any(axis=0)).tolist()
            for group in groups
            for job in self._jobs_of_group(group, training, wanted[:, training])
        ]

    def _jobs_of_group(
        self, group: int, training: int, wanted: NDArray[np.bool_]
    ) -> list[FitJob]:
        """Return the job of a group's wanted candidates; none where it has none."""
        members = self.members[group]
        mine = members[wanted[members]]
        self.asked[mine, training] = True
        return [FitJob(group, tuple(mine.tolist()), training)] if len(mine) else []

    def _together(
        self, group: int, training: int, open_fits: NDArray[np.bool_]
    ) -> list[int]:
        """Return the trainings that go into one task with this one, itself included."""
        if not self.board.groups[group].family.fits_trainings_together:
            return [training]
        mine = open_fits[self.members[group]].any(axis=0)
        return [int(number) for number in np.flatnonzero(mine)]

    def _task_size(self, open_fits: NDArray[np.bool_], n_slots: int) -> int:
        n_groups = max(1, len(np.unique(self.group_of[open_fits.any(axis=1)])))
        left = n_groups * max(1, int(open_fits.sum(axis=1).max(initial=0)))
        return self.pace.jobs_of_a_task(left, n_slots)

    def _in_order(
        self, open_fits: NDArray[np.bool_], lower: NDArray[np.float64]
    ) -> Iterator[tuple[int, int]]:
        numbers = np.flatnonzero(open_fits.any(axis=1))
        if not self.best_first:
            groups = dict.fromkeys(self.group_of[numbers].tolist())
            for group in groups:
                mine = open_fits[self.members[group]].any(axis=0)
                yield from ((group, int(t)) for t in np.flatnonzero(mine))
            return
        order = numbers[np.lexsort((numbers, lower[numbers]))]
        for number in order:
            training = int(np.argmax(open_fits[number]))
            if training != self.board.scheme.full or self._folds_known(number):
                yield int(self.group_of[number]), training

    def _folds_known(self, number: int) -> bool:
        """Whether the full fit, the largest, is due: the folds may still prune it."""
        folds = self.board.fit_status[number, : self.board.scheme.n_folds]
        return bool((folds != UNKNOWN).all())
