"""The fits of a run: what is submitted, tried again, and where their models are.

Models are kept where tasks made them, until no row of the pool is left to predict with
them. Those that are lost with a worker, or a run, are fitted again.
"""

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.errors import ClusterLostError
from dsel.families.family import FIT_DONE
from dsel.runtime.tasks import Executor, Finished, Task, died_of_task
from dsel.runtime.workers import GO_ON, MORE_MEMORY
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fit_queue import FitQueue
from dsel.searches.engine.fit_task import FitJob, FitRecord, fit_jobs
from dsel.searches.engine.records import CountCheckpoint, log_fit, log_retry


@dataclass
class ModelRegistry:
    """Which task keeps which models, and how large they are."""

    keys: dict[tuple[int, int], str] = field(default_factory=dict)
    """Key of the task that keeps a model, by candidate and split number."""
    sizes: dict[str, dict[int, int]] = field(default_factory=dict)
    """Bytes of the models that a task keeps, by task and candidate."""
    nbytes: dict[int, int] = field(default_factory=dict)
    """Bytes of all models that were ever fitted of a candidate, by its number."""
    kept_nbytes: int = 0
    """Bytes of all models that tasks keep."""

    def add(self, key: str, record: FitRecord) -> None:
        """Add the models that a task keeps of one job."""
        numbers, sizes = record.job.candidates, self.sizes.setdefault(key, {})
        share = record.nbytes // max(1, len(numbers))
        for number in numbers:
            self.keys[number, record.job.split] = key
            sizes[number] = sizes.get(number, 0) + share
            self.nbytes[number] = self.nbytes.get(number, 0) + share
            self.kept_nbytes += share

    def has(self, candidate: int, split: int) -> bool:
        """Whether the model is kept."""
        return (candidate, split) in self.keys

    def keys_of(self, candidates: Iterable[int], splits: Iterable[int]) -> set[str]:
        """Return the tasks that keep the candidates' models on all these splits."""
        numbers = list(splits)
        return {self.keys[c, split] for c in candidates for split in numbers}

    def unwanted_nbytes(self, key: str, wanted: Collection[int]) -> int:
        """Return the bytes of models that a task keeps of other candidates."""
        return sum(n for number, n in self.sizes[key].items() if number not in wanted)

    def release(self, needed: Collection[int]) -> set[str]:
        """Remove tasks that keep no model of a needed candidate, and return them."""
        kept = {key for (number, _), key in self.keys.items() if number in needed}
        dropped = set(self.sizes) - kept
        self.keys = {at: key for at, key in self.keys.items() if key in kept}
        self.sizes = {key: self.sizes[key] for key in kept}
        self.kept_nbytes = sum(sum(each.values()) for each in self.sizes.values())
        return dropped


logger = logging.getLogger(__name__)

ATTEMPTS: Final = 3  # of one task, before an error counts as a failure of its fits
DEATHS: Final = 12  # of workers without any fit done, before the run ends


@dataclass
class Fitting:
    """Tasks that fit, and the models that they keep where they were made."""

    table: CountTable
    executor: Executor
    checkpoint: CountCheckpoint
    best_first: bool = True
    """Whether candidates may be pruned, so that the order matters."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    keeps_models: bool = field(init=False)
    """Whether tasks keep the models that they fit: where no pool is read nothing will
    score them, and only the chosen one is fitted again, when the search is over."""
    queue: FitQueue = field(init=False)
    running: dict[str, list[FitJob]] = field(default_factory=dict)
    """Jobs of each task that has not ended."""
    again: deque[Task] = field(default_factory=deque)
    """Tasks to submit before any other: what failed once, and lost models."""
    models: ModelRegistry = field(default_factory=ModelRegistry)
    places: dict[str, int] = field(default_factory=dict)
    """To which place each task was sent."""
    warm: dict[int, list[int]] = field(default_factory=dict)
    """Places that tasks of each group were sent to."""
    attempts: dict[FitJob, int] = field(default_factory=dict)
    deaths: list[FitJob] = field(default_factory=list)
    """Jobs whose workers died, each alone in its task, while no fit was done."""
    serial: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.keeps_models = bool(self.table.spans)
        self.queue = FitQueue(self.table, self.best_first)

    @property
    def is_over(self) -> bool:
        """Whether no fit is running and none is needed."""
        return not (self.running or self.queue.open_fits().any())

    def next_task(self, n_slots: int, lower: NDArray[np.float64]) -> Task | None:
        """Return the next task, if there is one."""
        jobs = self.queue.take(n_slots, lower)
        return self._task(jobs, self._place(jobs[0].group, n_slots)) if jobs else None

    def _place(self, group: int, n_slots: int) -> int:
        """Return where a task goes: where its group's tasks went, unless that is busy.

        What a group shares, such as its kernel matrix, is there already.
        """
        load = Counter(dict.fromkeys(range(n_slots), 0))
        load.update(self.places[key] for key in self.running if key in self.places)
        best = min(range(n_slots), key=load.__getitem__)
        warm = self.warm.setdefault(group, [best])
        nearest = min(warm, key=load.__getitem__)
        if load[nearest] > load[best] + 1:
            warm.append(best)
            nearest = best
        return nearest

    def next_again(self) -> Task | None:
        """Return the next task that repeats fits, if there is one."""
        return self.again.popleft() if self.again else None

    def _task(self, jobs: list[FitJob], place: int | None = None) -> Task:
        """Return jobs as one task, and count them as running."""
        key = f"fit-{next(self.serial)}"
        self.running[key] = jobs
        if place is not None:
            self.places[key] = place
        keeps = self.keeps_models
        arguments = (jobs, keeps, self.queue.without_fits(jobs))
        return Task(key, fit_jobs, arguments, keeps_payload=keeps, place=place)

    def restore_models(self, members: tuple[int, ...]) -> bool:
        """Fit missing models of some candidates again; return whether none is missing.

        Models are lost with the worker that kept them, or with the run.
        """
        lost = np.zeros(self.table.fit_status.shape, bool)
        for split in (each.number for each in self.table.scheme.with_models):
            for number in members:
                lost[number, split] = not self.models.has(number, split)
        for job in self.queue.jobs(lost & ~self._running_fits()):
            self.again.append(self._task([job]))
        return not lost.any()

    def fit_one(self, candidate: int, split: int) -> None:
        """Fit one candidate again unless its model is kept."""
        if not self.models.has(candidate, split):
            self.keeps_models = True
            wanted = np.zeros(self.table.fit_status.shape, bool)
            wanted[candidate, split] = True
            self.again.append(self._task(self.queue.jobs(wanted)))

    def fetch(self, candidate: int, split: int) -> Any:
        """Return a kept model, brought to this process.

        Raises RuntimeError where it was fitted again, and that failed.
        """
        if self.table.fit_status[candidate, split] != FIT_DONE:
            message = self.table.messages.get((candidate, split), "the fit failed")
            raise RuntimeError(
                f"the model of candidate {candidate} was counted, but it could not be "
                f"fitted again: {message}"
            )
        key = self.models.keys[candidate, split]
        for models in self.executor.fetch(key).values():
            if split in models.splits and candidate in models.candidates:
                return models.model(candidate, split)
        raise KeyError(f"no model of candidate {candidate}, split {split}")

    def release(self, needed: set[int]) -> None:
        """Drop the models of all but some candidates."""
        dropped = self.models.release(needed)
        for key in dropped:
            self.executor.forget(key)

    def has(self, key: str) -> bool:
        """Whether a task was submitted here and has not ended."""
        return key in self.running

    def take(self, finished: Finished) -> None:
        """Write the counts of a task to the table, or submit it again."""
        jobs = self.running.pop(finished.key)
        self.places.pop(finished.key, None)
        if finished.error is None:
            self._add(finished.key, finished.record)
        else:
            self._try_again(jobs, finished.error)

    def _was_fitted(self, job: FitJob) -> bool:
        """Whether all fits of a job were done before, and only the models are lost."""
        status = self.table.fit_status[list(job.candidates), job.split]
        return bool((status == FIT_DONE).all())

    def _running_fits(self) -> NDArray[np.bool_]:
        """Return the fits that are submitted, (n_candidates, n_splits)."""
        running = np.zeros(self.table.fit_status.shape, bool)
        for job in (job for jobs in self.running.values() for job in jobs):
            running[list(job.candidates), job.split] = True
        return running

    def _add(self, key: str, records: list[FitRecord]) -> None:
        for record in records:
            self.queue.batch_size.add(float(np.nansum(record.counts.seconds)))
            log_fit(self.table.scheme, record)
            if self.raise_failures and (record.counts.status != FIT_DONE).any():
                raise RuntimeError(next(iter(record.counts.messages.values())))
            if not self._was_fitted(record.job):
                self.checkpoint.fit(record)
            self.table.add_fit(record)
            if self.keeps_models:
                self.models.add(key, record)

    def _try_again(self, jobs: list[FitJob], error: BaseException) -> None:
        """Run jobs again, one by one, then each candidate; the last try may fail it."""
        if len(jobs) == 1 and died_of_task(error):
            self._count_death(jobs[0], error)
        # Memory is needed for the work that candidates share, alone no less.
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].one_by_one()
        for job in jobs:
            tries = self.attempts[job] = self.attempts.get(job, 0) + 1
            if len(jobs) == 1 and (tries >= ATTEMPTS or self.raise_failures):
                self._give_up(job, error)
            else:
                log_retry(f"fit-{job.group}-{job.split}", error)
                self.again.append(self._task([job]))

    def _count_death(self, job: FitJob, error: BaseException) -> None:
        """Raise where workers die whatever they run.

        They do not where only one group kills them, or where any fit was ever done:
        then the candidates fail, and the run continues.
        """
        if (self.table.fit_status == FIT_DONE).any():
            return
        self.deaths.append(job)
        groups = {job.group for job in self.deaths}
        if len(self.deaths) >= DEATHS and len(groups) > 1:
            raise ClusterLostError(
                f"workers die whatever they run: {len(self.deaths)} tasks ended so, "
                f"with fits of {len(groups)} groups of candidates, and none was done. "
                f"{MORE_MEMORY}; {GO_ON}"
            ) from error

    def _give_up(self, job: FitJob, error: BaseException) -> None:
        if self.raise_failures:
            raise error
        message = f"{type(error).__name__}: {error}"
        logger.warning("fit given up: %s: %s", job, message)
        for number in job.candidates:
            self.table.fail(number, job.split, message)
