"""The fits of a run: which are submitted next, tried again, and where models are.

If counts decide what is needed, candidates of smallest lower bound are fitted first;
else as many groups as there are slots side by side, one after another. Models are kept
where tasks made them, until no row of the pool is left to predict with them. Those that
are lost with a worker, or a run, are fitted again.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.errors import ClusterLostError
from dsel.families.family import FIT_DONE, FittedGroup
from dsel.runtime.submission import Executor, run_tasks
from dsel.runtime.tasks import Finished, Task, died_of_task
from dsel.runtime.workers import GO_ON, MORE_MEMORY
from dsel.search.counts import UNKNOWN, CountTable, fit_key
from dsel.search.tasks import Call, FitJob, Payload, fit_jobs

logger = logging.getLogger("dsel.search")

TASK_SECONDS: Final = 0.25  # work of one task: fifty times the overhead of Dask
PRUNED_TASK_SECONDS: Final = 0.05  # less, where what comes back decides what is next
ATTEMPTS: Final = 3  # of one task, before an error counts as a failure of its fits
DEATHS: Final = 12  # of workers without any fit done, before the run ends


@dataclass
class BatchSize:
    """How many jobs make a task, by how long recent jobs took.

    Examples
    --------
    >>> size = BatchSize()
    >>> size.seconds.append(0.1)
    >>> size.jobs_per_task(n_left=100, n_slots=2), size.jobs_per_task(3, 2)
    (2, 1)
    """

    task_seconds: float = TASK_SECONDS
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=64))

    def jobs_per_task(self, n_left: int, n_slots: int) -> int:
        """Return how many of `n_left` jobs to submit as one task, at least one.

        Tasks get smaller towards the end, so that all slots end at about the same time.
        """
        if not self.seconds:
            return 1
        wanted = int(self.task_seconds / max(1e-5, fmean(self.seconds)))
        return max(1, min(wanted, n_left // (2 * n_slots)))


def attempts(
    executor: Executor,
    jobs_of_tasks: Iterator[list[Any]],
    task_of: Callable[[list[Any]], Task],
    *,
    on_turn: Callable[[], object] | None = None,
) -> Iterator[tuple[list[Any], Any]]:
    """Run jobs in tasks; yield the jobs of each task that ends, and its record.

    `jobs_of_tasks` is read as slots get free. The jobs of a task that failed are tried
    again one by one, unless the rows or the code are to blame.
    """
    running: dict[str, list[Any]] = {}
    again: deque[Any] = deque()
    tries: Counter[Any] = Counter()

    def next_task() -> Task | None:
        jobs = [again.popleft()] if again else next(jobs_of_tasks, None)
        if jobs is None:
            return None
        task = task_of(jobs)
        running[task.key] = jobs
        return task

    for finished in run_tasks(executor, next_task, on_turn=on_turn):
        jobs, error = running.pop(finished.key), finished.error
        if error is None:
            yield jobs, finished.result
            continue
        tries.update(jobs)
        is_final = isinstance(error, ValueError | TypeError | KeyError)
        if is_final or max(tries[job] for job in jobs) >= ATTEMPTS:
            raise error
        logger.warning("retry %s: %s", jobs, type(error).__name__)
        again.extend(jobs)


@dataclass
class Fitting:
    """Tasks that fit, and the models that they keep where they were made."""

    table: CountTable
    executor: Executor
    store: Any
    """Where finished fits are written, or None."""
    best_first: bool
    """Whether counts decide what is fitted next, so that the order matters."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    keeps_models: bool = False
    """Whether tasks keep the models that they fit."""

    def __post_init__(self) -> None:
        # By candidate and split: the task that keeps a model.
        self.model_keys: dict[tuple[int, int], str] = {}
        self.keeping: set[str] = set()  # tasks that keep models
        # Bytes of all models that were ever fitted of a candidate.
        self.model_nbytes: Counter[int] = Counter()
        self.batch_size = BatchSize(
            PRUNED_TASK_SECONDS if self.best_first else TASK_SECONDS
        )
        # Lower bounds of all candidates before anything was counted.
        self.floor: NDArray[np.float64] | None = None
        self.running: dict[str, list[FitJob]] = {}  # jobs by task
        # To be submitted before anything else: what failed once, and lost models.
        self.again: deque[list[FitJob]] = deque()
        self.attempts: Counter[FitJob] = Counter()
        # Alone in a task whose worker died, while no fit was done.
        self.deaths: list[FitJob] = []
        # To which place each task was sent, and where those of each group went.
        self.places: dict[str, int] = {}
        self.warm: dict[int, list[int]] = {}
        self.serial = count(1)
        self.members = [
            np.array([candidate.number for candidate in group.candidates])
            for group in self.table.groups
        ]
        self.group_of = np.empty(self.table.n_candidates, np.int64)
        for group, numbers in enumerate(self.members):
            self.group_of[numbers] = group

    @property
    def is_over(self) -> bool:
        """Whether no fit is running and none is needed."""
        return not (self.running or self.again or self.table.open_fits.any())

    def next_task(self, lower: NDArray[np.float64]) -> Task | None:
        """Return the next task, of the best open fits; None where there is none."""
        if self.again:
            return self._task(self.again.popleft())
        open_fits, n_slots = self.table.open_fits, self.executor.n_slots
        n_groups = len(np.unique(self.group_of[open_fits.any(axis=1)]))
        left = n_groups * int(open_fits.sum(axis=1).max(initial=0))
        size = self.batch_size.jobs_per_task(max(1, left), n_slots)
        jobs: list[FitJob] = []
        for group, split in self._in_order(open_fits, lower, n_slots):
            # They may be in a job of another candidate of the group already.
            wanted = open_fits[:, split] & ~self.table.submitted[:, split]
            jobs += self._jobs_of_group(group, split, wanted)
            if len(jobs) >= size:
                break
        return self._task(jobs, self._place(jobs[0].group, n_slots)) if jobs else None

    def _jobs_of_group(
        self, group: int, split: int, wanted: NDArray[np.bool_]
    ) -> list[FitJob]:
        """Return the job of a group's wanted candidates; none where it has none."""
        members = self.members[group]
        mine = members[wanted[members]]
        self.table.submitted[mine, split] = True
        return [FitJob(group, tuple(mine.tolist()), split)] if len(mine) else []

    def _in_order(
        self, open_fits: NDArray[np.bool_], lower: NDArray[np.float64], n_slots: int
    ) -> Iterator[tuple[int, int]]:
        """Yield group and split of the open fits, in the order of submission."""
        numbers = np.flatnonzero(open_fits.any(axis=1))
        unknown = self.table.fit_status == UNKNOWN
        waiting = (self.table.submitted & unknown).sum(axis=1)
        if not self.best_first:
            groups = list(dict.fromkeys(self.group_of[numbers].tolist()))
            # Slots work at different groups: none waits for what another one makes.
            groups[:n_slots] = sorted(
                groups[:n_slots], key=lambda group: waiting[self.members[group]].sum()
            )
            for group in groups:
                mine = open_fits[self.members[group]].any(axis=0)
                yield from ((group, int(split)) for split in np.flatnonzero(mine))
            return
        if self.floor is None:
            self.floor = lower.copy()
        # Each fold that is not back yet is expected to add what each known one added.
        # Of those of which nothing is known, who waits for fewer folds comes first.
        n_known = np.maximum((~unknown).sum(axis=1), 1)
        # Of failed ones the limit is infinite, and nothing is waited for.
        growth = np.subtract(
            lower, self.floor, out=np.zeros_like(lower), where=np.isfinite(lower)
        )
        likely = lower + waiting * growth / n_known
        order = np.lexsort((numbers, waiting[numbers], likely[numbers]))
        full, k = self.table.layout.full, self.table.layout.n_folds
        for number in numbers[order]:
            split = int(np.argmax(open_fits[number]))
            # Before all folds have ended they may still prune the full fit.
            if split != full or not unknown[number, :k].any():
                yield int(self.group_of[number]), split

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

    def _task(self, jobs: list[FitJob], place: int | None = None) -> Task:
        """Return jobs as one task, and count them as running."""
        first, layout = jobs[0], self.table.layout
        label = self.table.groups[first.group].label
        name = layout.splits[first.split].label
        key = f"fit-{label}-{name}-{next(self.serial)}"
        self.running[key] = jobs
        if place is not None:
            self.places[key] = place
        still_open = set(self.group_of[self.table.open_fits.any(axis=1)].tolist())
        ending = {job.group for job in jobs} - still_open
        arguments = (jobs, self.keeps_models, ending)
        return Task(
            key, Call(fit_jobs, arguments), keeps_output=self.keeps_models, place=place
        )

    def restore_models(self, members: Iterable[int]) -> bool:
        """Fit missing models of some candidates again; return whether none is missing.

        Models are lost with the worker that kept them, or with the run.
        """
        lost = np.zeros(self.table.fit_status.shape, bool)
        for split in self.table.layout.with_models:
            for number in members:
                lost[number, split] = (number, split) not in self.model_keys
        none_missing = not lost.any()
        for jobs in (*self.running.values(), *self.again):
            for job in jobs:
                lost[list(job.candidates), job.split] = False
        for split in np.flatnonzero(lost.any(axis=0)).tolist():
            for group in np.unique(self.group_of[lost[:, split]]).tolist():
                self.again.append(self._jobs_of_group(group, split, lost[:, split]))
        return none_missing

    def fetch(self, candidate: int, split: int) -> FittedGroup | None:
        """Return the group that holds a kept model, brought to this process.

        None where it was made again on the way, and is another one than was counted.
        """
        payload: Payload = self.executor.fetch(self.model_keys[candidate, split])
        token = self.table.tokens.get((candidate, split), "")
        for kept in payload.values():
            if kept.tokens.get((candidate, split)) == token:
                return kept.models
        return None

    def forget(self, number: int) -> None:
        """Fit a candidate again: its models are lost, or were others than counted."""
        self.table.submitted[number] = False
        kept = self.model_keys.items()
        self.model_keys = {at: key for at, key in kept if at[0] != number}

    def release(self, needed: Collection[int]) -> None:
        """Drop the tasks that keep no model of some candidates."""
        wanted = {
            key for (number, _), key in self.model_keys.items() if number in needed
        }
        for key in self.keeping - wanted:
            self.executor.forget(key)
        self.keeping &= wanted
        kept = self.model_keys.items()
        self.model_keys = {at: key for at, key in kept if key in wanted}

    def take(self, finished: Finished) -> None:
        """Write the counts of a task to the table, or submit it again."""
        jobs = self.running.pop(finished.key)
        self.places.pop(finished.key, None)
        if finished.error is not None:
            self._try_again(jobs, finished.error)
            return
        for record in finished.result:
            job, table = record.job, self.table
            seconds = float(np.nansum([entry["seconds"] for entry in record.entries]))
            failed = [e["message"] for e in record.entries if "errors" not in e]
            self.batch_size.seconds.append(seconds)
            logger.info(
                "fit candidates=%s split=%s seconds=%.6f failed=%d",
                job.candidates, table.layout.splits[job.split].name, seconds,
                len(failed),
            )  # fmt: skip
            if self.raise_failures and failed:
                raise RuntimeError(failed[0])
            for number, entry in zip(job.candidates, record.entries, strict=True):
                # Why a fit failed may be gone when the run goes on.
                if self.store is not None and "errors" in entry:
                    self.store.append(fit_key(table, number, job.split), entry)
                table.add_fit(number, job.split, entry)
            if self.keeps_models:
                self.keeping.add(finished.key)
                for number in job.candidates:
                    self.model_keys[number, job.split] = finished.key
                    share = record.nbytes // len(job.candidates)
                    self.model_nbytes[number] += share

    def _try_again(self, jobs: list[FitJob], error: BaseException) -> None:
        """Run jobs again, one by one, then each candidate; the last try may fail it."""
        # Workers may die whatever they run. They do not where only one group kills
        # them, or any fit was ever done: then the candidates fail, and the run goes on.
        any_done = (self.table.fit_status == FIT_DONE).any()
        if len(jobs) == 1 and died_of_task(error) and not any_done:
            self.deaths.append(jobs[0])
            groups = {job.group for job in self.deaths}
            if len(self.deaths) >= DEATHS and len(groups) > 1:
                raise ClusterLostError(
                    f"workers die whatever they run: {len(self.deaths)} tasks ended "
                    f"so, with fits of {len(groups)} groups of candidates, and none "
                    f"was done. {MORE_MEMORY}; {GO_ON}"
                ) from error
        # Memory is needed for the work that candidates share, alone no less.
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = [replace(jobs[0], candidates=(n,)) for n in jobs[0].candidates]
        for job in jobs:
            self.attempts[job] += 1
            if len(jobs) > 1 or (
                self.attempts[job] < ATTEMPTS and not self.raise_failures
            ):
                logger.warning("retry %s: %s", job, type(error).__name__)
                self.again.append([job])
                continue
            if self.raise_failures:
                raise error
            message = f"{type(error).__name__}: {error}"
            logger.warning("fit given up: %s: %s", job, message)
            for number in job.candidates:
                self.table.fail(number, job.split, message)
