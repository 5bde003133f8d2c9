"""The fits of a run: in which order they are submitted, and where their models are.

Where candidates may be pruned the most promising come first, else groups go one after
another. Models stay where tasks made them, until nothing will score them.
"""

import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.errors import ClusterLostError
from dsel.models.family import FIT_DONE
from dsel.runtime.tasks import Executor, Finished, Task, died_of_task
from dsel.runtime.workers import GO_ON, MORE_MEMORY
from dsel.searches.engine.checkpoint import Checkpoint, log_fit, log_retry
from dsel.searches.engine.counts import UNKNOWN, CountTable
from dsel.searches.engine.fit_task import FitJob, FitRecord, fit_jobs
from dsel.searches.engine.time_limits import fit_jobs_in_time

TASK_SECONDS: Final = 0.25  # work of one task: fifty times what Dask adds to it
REMEMBERED: Final = 64


@dataclass
class BatchSize:
    """How long jobs of a kind took of late.

    Examples
    --------
    >>> batch_size = BatchSize()
    >>> batch_size.add(0.1)
    >>> batch_size.jobs_per_task(n_left=100, n_slots=2), batch_size.jobs_per_task(3, 2)
    (2, 1)
    """

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def add(self, seconds: float) -> None:
        """Take the time of a finished job."""
        self.seconds.append(seconds)

    def jobs_per_task(self, n_left: int, n_slots: int) -> int:
        """Return how many of `n_left` jobs to give away at once, at least one.

        Tasks get smaller towards the end, so that all slots end at about one time.
        """
        if not self.seconds:
            return 1
        wanted = int(TASK_SECONDS / max(1e-5, fmean(self.seconds)))
        return max(1, min(wanted, n_left // (2 * n_slots)))


@dataclass
class ModelRegistry:
    """What the driver knows of models that the executor keeps."""

    keys: dict[tuple[int, int], str] = field(default_factory=dict)
    """Candidate and training number to the task that holds the model."""
    sizes: dict[str, dict[int, int]] = field(default_factory=dict)
    """Task to the bytes that it holds of each candidate."""
    nbytes: dict[int, int] = field(default_factory=dict)
    """Candidate number to the bytes of all that was ever fitted of it."""

    def add(self, key: str, record: FitRecord) -> None:
        """Take what a task holds of one job."""
        numbers, sizes = record.job.candidates, self.sizes.setdefault(key, {})
        share = record.nbytes // max(1, len(numbers))
        for number in numbers:
            self.keys[number, record.job.training] = key
            sizes[number] = sizes.get(number, 0) + share
            self.nbytes[number] = self.nbytes.get(number, 0) + share

    def has(self, candidate: int, training: int) -> bool:
        """Whether the model is held."""
        return (candidate, training) in self.keys

    def keys_of(self, candidates: Iterable[int], trainings: Iterable[int]) -> set[str]:
        """Return the tasks that hold the candidates' models on all these trainings."""
        numbers = list(trainings)
        return {self.keys[c, training] for c in candidates for training in numbers}

    def unwanted_nbytes(self, key: str, wanted: Collection[int]) -> int:
        """Return the bytes that a task holds of other candidates."""
        return sum(n for number, n in self.sizes[key].items() if number not in wanted)

    def release(self, needed: Collection[int]) -> set[str]:
        """Forget tasks that hold no model of a needed candidate, and return them."""
        kept = {key for (number, _), key in self.keys.items() if number in needed}
        dropped = set(self.sizes) - kept
        self.keys = {at: key for at, key in self.keys.items() if key in kept}
        self.sizes = {key: self.sizes[key] for key in kept}
        return dropped


@dataclass
class FitQueue:
    """Jobs that are still to be submitted."""

    table: CountTable
    """Counts so far."""
    best_first: bool
    """Whether candidates may be pruned, so that the order matters."""
    asked: NDArray[np.bool_] = field(init=False)
    members: list[NDArray[np.int64]] = field(init=False)
    group_of: NDArray[np.int64] = field(init=False)
    batch_size: BatchSize = field(default_factory=BatchSize)

    def __post_init__(self) -> None:
        self.asked = np.zeros(self.table.fit_status.shape, bool)
        self.members = [
            np.array([candidate.number for candidate in group.candidates])
            for group in self.table.groups
        ]
        self.group_of = np.empty(self.table.n_candidates, np.int64)
        for group, numbers in enumerate(self.members):
            self.group_of[numbers] = group

    def open_fits(self) -> NDArray[np.bool_]:
        """Return the fits wanted and not asked for, (n_candidates, n_trainings)."""
        unknown = self.table.fit_status == UNKNOWN
        return np.asarray(unknown & ~self.asked & self.table.active[:, np.newaxis])

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
        if not self.table.groups[group].family.fits_trainings_together:
            return [training]
        mine = open_fits[self.members[group]].any(axis=0)
        return [int(number) for number in np.flatnonzero(mine)]

    def _task_size(self, open_fits: NDArray[np.bool_], n_slots: int) -> int:
        n_groups = max(1, len(np.unique(self.group_of[open_fits.any(axis=1)])))
        left = n_groups * max(1, int(open_fits.sum(axis=1).max(initial=0)))
        return self.batch_size.jobs_per_task(left, n_slots)

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
            if training != self.table.scheme.full or self._folds_known(number):
                yield int(self.group_of[number]), training

    def _folds_known(self, number: int) -> bool:
        """Whether the full fit, the largest, is due: the folds may still prune it."""
        folds = self.table.fit_status[number, : self.table.scheme.n_folds]
        return bool((folds != UNKNOWN).all())


logger = logging.getLogger(__name__)

ATTEMPTS: Final = 3  # of one task, before its worker's death is laid at its own door
DEATHS: Final = 12  # of tasks, before those of workers are laid at their own


@dataclass
class Fitting:
    """Tasks that fit, and the models that they leave where they were made."""

    table: CountTable
    """Counts by candidate."""
    executor: Executor
    """Where tasks run."""
    checkpoint: Checkpoint
    """Where counts are written."""
    best_first: bool = True
    """Whether candidates may be pruned, so that the order matters."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    fit_timeout: float | None = None
    """Seconds that one fit may take; None for as long as it takes."""
    queue: FitQueue = field(init=False)
    running: dict[str, list[FitJob]] = field(default_factory=dict)
    """Jobs of each task that has not ended."""
    again: deque[Task] = field(default_factory=deque)
    """Tasks to submit before any other: tries of what failed, and lost models."""
    models: ModelRegistry = field(default_factory=ModelRegistry)
    attempts: dict[FitJob, int] = field(default_factory=dict)
    deaths: list[FitJob] = field(default_factory=list)
    """Jobs that took their workers along, each alone, while none was done."""
    serial: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.queue = FitQueue(self.table, self.best_first)

    @property
    def is_over(self) -> bool:
        """Whether no fit runs and none is wanted."""
        return not (self.running or self.queue.open_fits().any())

    def next_task(self, n_slots: int, lower: NDArray[np.float64]) -> Task | None:
        """Return the next task, if there is one."""
        jobs = self.queue.take(n_slots, lower)
        return self._task(jobs) if jobs else None

    def next_again(self) -> Task | None:
        """Return the next task that was tried before, if there is one."""
        return self.again.popleft() if self.again else None

    def _task(self, jobs: list[FitJob]) -> Task:
        """Return jobs as one task, which runs from now on."""
        key = f"fit-{next(self.serial)}"
        self.running[key] = jobs
        limit = self.fit_timeout
        if limit is None or all(map(self._was_fitted, jobs)):
            return Task(key, fit_jobs, (jobs,), keeps_payload=True)
        return Task(key, fit_jobs_in_time, (jobs, limit), keeps_payload=True)

    def restore_models(self, members: tuple[int, ...]) -> bool:
        """Fit again what is lost of some candidates' models; return whether none is.

        Models are lost with the worker that made them, and are not in the store.
        """
        lost = np.zeros(self.table.fit_status.shape, bool)
        for training in (each.number for each in self.table.scheme.with_models):
            for number in members:
                lost[number, training] = not self.models.has(number, training)
        for job in self.queue.jobs(lost & ~self._running_fits()):
            self.again.append(self._task([job]))
        return not lost.any()

    def fit_one(self, candidate: int, training: int) -> None:
        """Fit one candidate again unless its model is held."""
        if not self.models.has(candidate, training):
            wanted = np.zeros(self.table.fit_status.shape, bool)
            wanted[candidate, training] = True
            self.again.append(self._task(self.queue.jobs(wanted)))

    def fetch(self, candidate: int, training: int) -> Any:
        """Bring a model that is held to this process."""
        key = self.models.keys[candidate, training]
        for models in self.executor.fetch(key).values():
            if training in models.trainings and candidate in models.candidates:
                return models.model(candidate, training)
        raise KeyError(f"no model of candidate {candidate}, training {training}")

    def release(self, needed: set[int]) -> None:
        """Drop the models of all but some candidates."""
        for key in self.models.release(needed):
            self.executor.forget(key)

    def take(self, finished: Finished) -> None:
        """Take what a task counted, or submit it again."""
        jobs = self.running.pop(finished.key)
        if finished.error is None:
            self._note(finished.key, finished.record)
        else:
            self._try_again(jobs, finished.error)

    def _was_fitted(self, job: FitJob) -> bool:
        """Whether all fits of a job ended well before, and only the models are lost."""
        status = self.table.fit_status[list(job.candidates), job.training]
        return bool((status == FIT_DONE).all())

    def _running_fits(self) -> NDArray[np.bool_]:
        """Return the fits that are submitted, (n_candidates, n_trainings)."""
        running = np.zeros(self.table.fit_status.shape, bool)
        for job in (job for jobs in self.running.values() for job in jobs):
            running[list(job.candidates), job.training] = True
        return running

    def _note(self, key: str, records: list[FitRecord]) -> None:
        for record in records:
            self.queue.batch_size.add(float(np.nansum(record.counts.seconds)))
            if self.raise_failures and record.counts.messages:
                raise RuntimeError(next(iter(record.counts.messages.values())))
            log_fit(self.table.scheme, record)
            if not self._was_fitted(record.job):
                self.checkpoint.fit(record)
            self.table.add_fit(record)
            self.models.add(key, record)

    def _try_again(self, jobs: list[FitJob], error: BaseException) -> None:
        """Run jobs again, one by one, then each candidate; who keeps failing fails."""
        if len(jobs) == 1 and died_of_task(error):
            self._note_death(jobs[0], error)
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].split()  # what memory they need, they need for shared work
        for job in jobs:
            tries = self.attempts[job] = self.attempts.get(job, 0) + 1
            if len(jobs) == 1 and (tries >= ATTEMPTS or self.raise_failures):
                self._give_up(job, error)
            else:
                log_retry(f"fit-{job.group}-{job.training}", error)
                self.again.append(self._task([job]))

    def _note_death(self, job: FitJob, error: BaseException) -> None:
        """Raise where workers die of whatever they are given.

        One group may be bad; and where any fit was ever done, so may many be.
        """
        if (self.table.fit_status == FIT_DONE).any():
            return
        self.deaths.append(job)
        groups = {job.group for job in self.deaths}
        if len(self.deaths) >= DEATHS and len(groups) > 1:
            raise ClusterLostError(
                f"workers die of whatever they are given: so ended {len(self.deaths)} "
                f"tasks, with fits of {len(groups)} groups of candidates, and no fit "
                f"was done. "
                f"{MORE_MEMORY}; {GO_ON}"
            ) from error

    def _give_up(self, job: FitJob, error: BaseException) -> None:
        if self.raise_failures:
            raise error
        message = f"{type(error).__name__}: {error}"
        logger.warning("fit given up: %s: %s", job, message)
        for number in job.candidates:
            self.table.fail(number, job.training, message)
