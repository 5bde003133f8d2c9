"""The fits of a run: submitted best first, taken as they end, repeated if need be."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.errors import ClusterLostError
from dsel.models.family import FIT_DONE
from dsel.runtime.executors import (
    Executor,
    Finished,
    check_alive,
    died_of_task,
)
from dsel.runtime.workers import GO_ON, MORE_MEMORY
from dsel.searches.engine.checkpoint import Journaling
from dsel.searches.engine.counts import Board
from dsel.searches.engine.fit_queue import FitQueue
from dsel.searches.engine.fit_task import FitJob, FitRecord, fit_jobs
from dsel.searches.engine.logs import log_fit, log_retry
from dsel.searches.engine.model_registry import HeldModels
from dsel.searches.engine.time_limits import fit_jobs_in_time

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 3  # of one task, before its worker's death is laid at its own door
DEATHS: Final = 12  # of tasks, before those of workers are laid at their own


@dataclass
class Fitting:
    """Tasks that fit, and the models that they leave where they were made."""

    board: Board
    """Counts by candidate."""
    executor: Executor
    """Where tasks run."""
    journal: Journaling
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
    models: HeldModels = field(default_factory=HeldModels)
    attempts: dict[FitJob, int] = field(default_factory=dict)
    deaths: list[FitJob] = field(default_factory=list)
    """Jobs that took their workers along, each alone, while none was done."""
    serial: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.queue = FitQueue(self.board, self.best_first)

    @property
    def is_over(self) -> bool:
        """Whether no fit runs and none is wanted."""
        return not (self.running or self.queue.open_fits().any())

    def submit_next(self, n_slots: int, lower: NDArray[np.float64]) -> bool:
        """Submit the next task, if there is one."""
        jobs = self.queue.take(n_slots, lower)
        if jobs:
            self.submit(jobs)
        return bool(jobs)

    def submit(self, jobs: list[FitJob]) -> None:
        """Submit jobs as one task."""
        key = f"fit-{next(self.serial)}"
        self.running[key] = jobs
        limit = self.fit_timeout
        if limit is None or all(map(self._was_fitted, jobs)):
            self.executor.submit(key, fit_jobs, jobs, keeps_payload=True)
        else:
            self.executor.submit(key, fit_jobs_in_time, jobs, limit, keeps_payload=True)

    def restore_models(self, members: tuple[int, ...]) -> bool:
        """Fit again what is lost of some candidates' models; return whether none is.

        Models are lost with the worker that made them, and are not in the store.
        """
        lost = np.zeros(self.board.fit_status.shape, bool)
        for training in (each.number for each in self.board.scheme.with_models):
            for number in members:
                lost[number, training] = not self.models.has(number, training)
        for job in self.queue.jobs(lost & ~self._running_fits()):
            self.submit([job])
        return not lost.any()

    def fit_one(self, candidate: int, training: int) -> None:
        """Submit one fit unless its model is held."""
        if not self.models.has(candidate, training):
            wanted = np.zeros(self.board.fit_status.shape, bool)
            wanted[candidate, training] = True
            self.submit(self.queue.jobs(wanted))

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
        status = self.board.fit_status[list(job.candidates), job.training]
        return bool((status == FIT_DONE).all())

    def _running_fits(self) -> NDArray[np.bool_]:
        """Return the fits that are submitted, (n_candidates, n_trainings)."""
        running = np.zeros(self.board.fit_status.shape, bool)
        for job in (job for jobs in self.running.values() for job in jobs):
            running[list(job.candidates), job.training] = True
        return running

    def _note(self, key: str, records: list[FitRecord]) -> None:
        for record in records:
            self.queue.pace.learn(float(np.nansum(record.counts.seconds)))
            if self.raise_failures and record.counts.messages:
                raise RuntimeError(next(iter(record.counts.messages.values())))
            log_fit(self.board.scheme, record)
            if not self._was_fitted(record.job):
                self.journal.fit(record)
            self.board.add_fit(record)
            self.models.add(key, record)

    def _try_again(self, jobs: list[FitJob], error: BaseException) -> None:
        """Run jobs again, one by one, then each candidate; who keeps failing fails."""
        check_alive(error)
        if len(jobs) == 1 and died_of_task(error):
            self._note_death(jobs[0], error)
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].apart()  # what memory they need, they need for shared work
        for job in jobs:
            tries = self.attempts[job] = self.attempts.get(job, 0) + 1
            if len(jobs) == 1 and (tries >= ATTEMPTS or self.raise_failures):
                self._give_up(job, error)
            else:
                log_retry(f"fit-{job.group}-{job.training}", error)
                self.submit([job])

    def _note_death(self, job: FitJob, error: BaseException) -> None:
        """Raise where workers die of whatever they are given.

        One group may be bad; and where any fit was ever done, so may many be.
        """
        if (self.board.fit_status == FIT_DONE).any():
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
            self.board.fail(number, job.training, message)
