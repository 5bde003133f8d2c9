"""The fits of a run: their order of submission, retries, and the places of models.

If counts decide which fits are needed, candidates with the smallest lower bound are
fitted first. Otherwise as many groups as there are slots are fitted side by side, then
the next ones. Models stay where tasks made them until all pool rows are predicted.
Models that are lost with a worker, or a run, are fitted again.
"""

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.splits import SplitKind
from dsel.families.family import FitKey, FittedGroup
from dsel.results.run_store import Store
from dsel.runtime.submission import Executor
from dsel.runtime.tasks import Finished, Task
from dsel.search.engine.counts import CountTable
from dsel.search.engine.fit_batch import FitBatch
from dsel.search.engine.jobs import FitJob, FitStatus, FittedJob, Keep, Kept
from dsel.search.engine.pruning import Pruner
from dsel.search.engine.retries import ATTEMPTS, Retries

logger = logging.getLogger("dsel.search")

TASK_SECONDS: Final = 0.25  # work of one task: fifty times the overhead of Dask
PRUNED_TASK_SECONDS: Final = 0.05  # less, where what comes back decides what is next


@dataclass
class BatchSize:
    """Number of jobs of a task, by the time of recent jobs.

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
        """Return the number of jobs, of `n_left`, to submit as one task; at least one.

        Tasks get smaller towards the end, so that all slots end at about the same time.
        """
        if not self.seconds:
            return 1
        # The mean of the last 64 jobs: later fits of a grid often take longer.
        wanted = int(self.task_seconds / max(1e-5, fmean(self.seconds)))
        return max(1, min(wanted, n_left // (2 * n_slots)))


@dataclass
class Fitting:
    """Tasks that fit, and the models that they keep on their workers."""

    table: CountTable
    executor: Executor
    store: Store | None
    """The store that finished fits are written to, or None."""
    pruner: Pruner
    """It decides which candidates need more fits, and whether by counts."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    keep: Keep = Keep.NOWHERE
    """The place of models after a fit."""

    def __post_init__(self) -> None:
        # By candidate and split: the task that keeps a model.
        self.model_keys: dict[FitKey, str] = {}
        self.keeping: set[str] = set()  # tasks that keep models
        # Bytes of all models that were ever fitted of a candidate.
        self.model_nbytes: Counter[int] = Counter()
        self.batch_size = BatchSize(
            PRUNED_TASK_SECONDS if self.pruner.best_first else TASK_SECONDS
        )
        # Lower bounds of all candidates before anything was counted. How far a bound
        # has grown since predicts by how much the next folds will raise it.
        self.floor: NDArray[np.float64] | None = None
        self.running: dict[str, list[FitJob]] = {}  # jobs by task
        # To be submitted before anything else: what failed once, and lost models.
        self.again: deque[list[FitJob]] = deque()
        # Messages of jobs that were given up, by the job that fits without testing.
        self.given_up: dict[FitJob, str] = {}
        # Messages of fits that failed only when two folds were tested, too.
        self.failed_tests: dict[FitKey, str] = {}
        self.retries: Retries[FitJob] = Retries(may_give_up=not self.raise_failures)
        # The slot of each running task, and the slots that have the data of a group.
        # A slot is a number, which the executor maps to a thread or a worker.
        self.slots: dict[str, int] = {}
        self.group_slots: dict[int, list[int]] = {}
        self.serial = count(1)
        self.members = [
            np.array([candidate.number for candidate in group.candidates])
            for group in self.table.candidate_groups
        ]
        self.group_numbers = np.empty(self.table.n_candidates, np.int64)
        for group, numbers in enumerate(self.members):
            self.group_numbers[numbers] = group

    @property
    def open_fits(self) -> NDArray[np.bool_]:
        """Whether each fit is needed and not submitted, (n_candidates, n_splits)."""
        is_open = (self.table.fit_status == FitStatus.OPEN) & self.table.needed
        is_active = self.pruner.active_candidates(self.table)
        return np.asarray(is_open & is_active[:, np.newaxis])

    @property
    def is_over(self) -> bool:
        """Whether no fit is running and none is needed."""
        return not (self.running or self.again or self.open_fits.any())

    def next_task(self, lower: NDArray[np.float64]) -> Task[list[FittedJob]] | None:
        """Return the next task, with the best open fits; None if there is none."""
        if self.again:
            return self._make_task(self.again.popleft())
        open_fits, n_slots = self.open_fits, self.executor.n_slots
        n_groups = len(np.unique(self.group_numbers[open_fits.any(axis=1)]))
        # An estimate: one job fits all open candidates of a group on a split.
        left = n_groups * int(open_fits.sum(axis=1).max(initial=0))
        size = self.batch_size.jobs_per_task(max(1, left), n_slots)
        jobs: list[FitJob] = []
        for group, split in self._order_fits(open_fits, lower, n_slots):
            # They may be in a job of another candidate of the group already.
            wanted = self.table.fit_status[:, split] == FitStatus.OPEN
            # A pruned candidate has fits that are open still, and that nothing needs.
            wanted &= open_fits[:, split]
            jobs += self._claim_fits(group, split, wanted)
            if len(jobs) >= size:
                break
        return (
            self._make_task(jobs, self._choose_slot(jobs[0].candidate_group, n_slots))
            if jobs
            else None
        )

    def _claim_fits(
        self, group: int, split: int, wanted: NDArray[np.bool_]
    ) -> list[FitJob]:
        """Return the job of a group's wanted fits in a list, or no job.

        Open ones count as submitted from now on, so that no other job has them.
        """
        members, status = self.members[group], self.table.fit_status
        numbers = members[wanted[members]]
        # Counts of lost models are known: the status of such a fit stays done.
        status[numbers[status[numbers, split] == FitStatus.OPEN], split] = (
            FitStatus.SUBMITTED
        )
        return [FitJob(group, tuple(numbers.tolist()), split)] if len(numbers) else []

    def _order_fits(
        self, open_fits: NDArray[np.bool_], lower: NDArray[np.float64], n_slots: int
    ) -> Iterator[tuple[int, int]]:
        """Yield group and split of the open fits, in the order of submission."""
        numbers = np.flatnonzero(open_fits.any(axis=1))
        unknown = ~self.table.ended
        waiting = (self.table.fit_status == FitStatus.SUBMITTED).sum(axis=1)
        if not self.pruner.best_first:
            groups = list(dict.fromkeys(self.group_numbers[numbers].tolist()))
            # Slots work at different groups: none waits for what another one makes.
            groups[:n_slots] = sorted(
                groups[:n_slots], key=lambda group: waiting[self.members[group]].sum()
            )
            for group in groups:
                open_splits = open_fits[self.members[group]].any(axis=0)
                yield from (
                    (group, int(split)) for split in np.flatnonzero(open_splits)
                )
            return
        if self.floor is None:
            self.floor = lower.copy()
        # Extrapolation: each submitted fold is expected to add the mean of the
        # known ones. Candidates without a known fold are in order of those submitted.
        n_known = np.maximum((~unknown).sum(axis=1), 1)
        # A failed candidate has an infinite limit, and waits for no fold.
        growth = np.subtract(
            lower, self.floor, out=np.zeros_like(lower), where=np.isfinite(lower)
        )
        likely = lower + waiting * growth / n_known
        order = np.lexsort((numbers, waiting[numbers], likely[numbers]))
        all_rows, k = self.table.scheme.all_rows_number, self.table.scheme.n_folds
        for number in numbers[order]:
            split = int(np.argmax(open_fits[number]))
            # Before all folds have ended they may still prune the fit on all rows.
            if split != all_rows or not unknown[number, :k].any():
                yield int(self.group_numbers[number]), split

    def _choose_slot(self, group: int, n_slots: int) -> int:
        """Return the slot of a task: that of its group's tasks, unless it is busy.

        Data that a group shares, such as its kernel matrix, is there already.
        """
        load = Counter(dict.fromkeys(range(n_slots), 0))
        load.update(self.slots[key] for key in self.running if key in self.slots)
        best = min(range(n_slots), key=load.__getitem__)
        # A Gram matrix takes longer to make than a small fit, and stays in one process.
        warm = self.group_slots.setdefault(group, [best])
        nearest = min(warm, key=load.__getitem__)
        # Waiting for one more task is faster than making the shared data again.
        if load[nearest] > load[best] + 1:
            warm.append(best)
            nearest = best
        return nearest

    def _make_task(
        self, jobs: list[FitJob], slot: int | None = None
    ) -> Task[list[FittedJob]]:
        """Return jobs as one task, and count them as running."""
        first, scheme = jobs[0], self.table.scheme
        label = self.table.candidate_groups[first.candidate_group].label
        name = scheme.splits[first.split].label
        key = f"fit-{label}-{name}-{next(self.serial)}"
        self.running[key] = jobs
        if slot is not None:
            self.slots[key] = slot
        # A worker may drop the cached data of a group, such as its Gram matrix, when no
        # fit of this group is left to submit.
        still_open = set(self.group_numbers[self.open_fits.any(axis=1)].tolist())
        ending = frozenset({job.candidate_group for job in jobs} - still_open)
        # If a job of such a group is tried again later, its data are computed again.
        batch = FitBatch(tuple(jobs), self.keep, ending)
        is_kept = self.keep is Keep.ON_WORKER
        return Task(key, batch, keeps_output=is_kept, affinity=slot)

    def restore_models(self, members: Iterable[int]) -> bool:
        """Fit missing models of some candidates again; return whether none is missing.

        Models are lost with their worker, or with the run.
        """
        # Only models: the counts of these fits are in the table, and stay.
        lost = np.zeros(self.table.fit_status.shape, bool)
        for split in self.table.scheme.with_models:
            for number in members:
                lost[number, split] = FitKey(number, split) not in self.model_keys
        # Those that are being fitted again need no other job, but are not there yet.
        none_missing = not lost.any()
        for jobs in (*self.running.values(), *self.again):
            for job in jobs:
                lost[list(job.candidates), job.split] = False
        for split in np.flatnonzero(lost.any(axis=0)).tolist():
            for group in np.unique(self.group_numbers[lost[:, split]]).tolist():
                self.again.append(self._claim_fits(group, split, lost[:, split]))
        return none_missing

    def fetch(self, candidate: int, split: int) -> FittedGroup | None:
        """Return the group with a kept model, transferred to this process.

        None if Dask made the model again, and it differs from the counted one.
        """
        # Only deployed models are transferred: passes use them where they were fitted.
        fit = FitKey(candidate, split)
        of_task: Kept = self.executor.fetch(self.model_keys[fit])
        token = self.table.tokens.get(fit, "")
        # Dask repeats a lost task by itself; the token shows whether its model is the
        # counted one.
        for kept in of_task.values():
            if kept.tokens.get(fit) == token:
                return kept.models
        return None

    def forget(self, number: int) -> None:
        """Fit a candidate again, whose models are lost or not the counted ones."""
        kept = self.model_keys.items()
        self.model_keys = {fit: key for fit, key in kept if fit.candidate != number}

    def release(self, needed: Collection[int]) -> None:
        """Drop tasks that keep no model of the `needed` candidates."""
        wanted = {
            key for fit, key in self.model_keys.items() if fit.candidate in needed
        }
        # Models of one task are dropped together, when the last of them is not needed.
        for key in self.keeping - wanted:
            self.executor.forget(key)
        self.keeping &= wanted
        kept = self.model_keys.items()
        self.model_keys = {fit: key for fit, key in kept if key in wanted}

    def _give_up(self, job: FitJob, message: str) -> None:
        """Record that a job failed, or first see whether its fit alone succeeds.

        Two searches read a fit without two folds, and each must not depend on the rows
        of one of them. Whether the fit fails depends on other rows only; whether a test
        fails does not.
        """
        if job.is_tested and self.table.scheme.splits[job.split].kind is SplitKind.PAIR:
            alone = replace(job, is_tested=False)
            self.given_up[alone] = message
            self.retries.tries[alone] = ATTEMPTS - 1  # the job had the others
            self.again.append([alone])
            return
        for number in job.candidates:
            self.table.fail(number, job.split, message)

    def finish_task(self, finished: Finished[list[FittedJob]]) -> None:
        """Write the counts of a task to the table, or submit its jobs again."""
        jobs, table = self.running.pop(finished.key), self.table
        self.slots.pop(finished.key, None)
        if finished.error is not None:
            any_done = bool((table.fit_status == FitStatus.DONE).any())
            again, given_up = self.retries.sort_out(
                jobs, finished.error, any_done=any_done
            )
            self.again.extend([job] for job in again)
            for job in given_up:
                message = f"{type(finished.error).__name__}: {finished.error}"
                logger.warning("fit given up: %s: %s", job, message)
                self._give_up(job, message)
            return
        for fitted in finished.get():
            job, results = fitted.job, fitted.results
            seconds = float(np.nansum([each.seconds for each in results]))
            failed = [r.message for r in results if r.status is FitStatus.FAILED]
            self.batch_size.seconds.append(seconds)
            logger.info(
                "fit candidates=%s split=%s seconds=%.6f failed=%d",
                job.candidates,
                table.scheme.splits[job.split].name,
                seconds,
                len(failed),
            )
            if self.raise_failures and failed:
                raise RuntimeError(failed[0].text if failed[0] else "the fit failed")
            for number, result in zip(job.candidates, results, strict=True):
                if not job.is_tested and result.status is FitStatus.DONE:
                    message = self.given_up[job]
                    table.fail(number, job.split, message)
                    self.failed_tests[FitKey(number, job.split)] = message
                    continue
                # A failure is not stored: its cause may be gone when the run continues.
                if self.store is not None and result.status is FitStatus.DONE:
                    key = table.key_of(number, job.split)
                    self.store.append(key, result.to_record())
                table.add_fit(number, job.split, result)
            if self.keep is Keep.ON_WORKER:
                self.keeping.add(finished.key)
                for number in job.candidates:
                    self.model_keys[FitKey(number, job.split)] = finished.key
                    # Models of a job are measured together; each gets an equal part.
                    nbytes = fitted.nbytes // len(job.candidates)
                    self.model_nbytes[number] += nbytes
