"""The loop of fits: it prunes, submits the fits that are needed, and takes the results.

`fit_order` says which fits are submitted first, and in which slot each task runs. How
early a candidate is pruned depends on timing; the winner and its counts do not, if
repeated fits give equal models.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Generic, Self

import numpy as np

from dsel.arrays import Bools, Floats
from dsel.data.splits import SplitIndex, SplitKind
from dsel.families.family import FitId
from dsel.results.records import to_record
from dsel.runtime.progress import Progress
from dsel.runtime.tasks import Finished, Task
from dsel.search.engine.fit_batch import FitBatch
from dsel.search.engine.fit_order import (
    TaskSlots,
    order_best_first,
    order_by_group,
)
from dsel.search.engine.job_queue import (
    TASK_SECONDS,
    BatchSize,
    Engine,
    JobLoop,
    JobQueue,
)
from dsel.search.engine.jobs import (
    FitJob,
    FitResult,
    FitStatus,
    FittedJob,
    JobContext,
    join_tests,
)
from dsel.search.engine.pruning import Pruner, TableT

logger = logging.getLogger("dsel.search")

# Shorter tasks, where their results decide what is fitted next.
PRUNED_TASK_SECONDS: Final = 0.05


@dataclass(eq=False)
class FitLoop(JobLoop[FitJob, FittedJob], Generic[TableT]):
    """Fits of all candidates, until none is needed."""

    engine: Engine
    table: TableT
    pruner: Pruner[TableT]
    """The pruner decides which fits are needed."""
    on_turn: Callable[[Self], object]
    """Called with the loop at each turn, at least every half second, such as to show
    the progress; an error in it ends the run."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    batch_type: ClassVar[type[FitBatch]] = FitBatch
    n_stored_fits: int = field(init=False)
    """Fits of an earlier run, read from the store."""
    lower_bounds: Floats = field(init=False)
    """Lower bound of each candidate's criterion by the counts so far."""
    first_bounds: Floats | None = field(init=False, default=None)
    """The lower bounds when best-first fitting began in this run; None before. The
    growth of a bound since then predicts the growth by the next folds."""
    batch_size: BatchSize = field(init=False)
    queue: JobQueue[FitJob, FittedJob] = field(init=False)
    single_tests: dict[FitId[SplitIndex], dict[int, FitResult]] = field(
        init=False, default_factory=dict
    )
    """Results of fits whose two parts are tested one by one, by the tested part."""
    slots: TaskSlots = field(init=False, default_factory=TaskSlots)

    def __post_init__(self) -> None:
        self.n_stored_fits = int(self.table.finished_fits.sum())
        self.lower_bounds = np.zeros(self.table.n_candidates)
        self.batch_size = BatchSize(
            PRUNED_TASK_SECONDS if self.pruner.best_first else TASK_SECONDS
        )
        self.queue = JobQueue(
            self.engine.executor,
            may_give_up=not self.raise_failures,
            any_done=bool((self.table.fit_status == FitStatus.DONE).any()),
        )

    def fit(self) -> None:
        """Fit until no fit is needed."""
        for jobs, task in self.queue.run(self):
            if task.error is None:
                self.add_results(task)
            else:
                self.give_up(jobs, task.error)

    def begin_turn(self) -> None:
        """Prune by the counts that have arrived, and show the progress."""
        self.prune()
        self.on_turn(self)

    def prune(self) -> None:
        """Compare candidates by the counts so far, and mark fits that are needed."""
        decision = self.pruner.decide(self.table)
        self.lower_bounds = decision.lower_bounds
        self.table.apply_pruning(decision.needed_fits, decision.beaten_candidates)

    def next_jobs(self) -> list[FitJob]:
        """Return the best open fits, as the jobs of one task; or none."""
        table, n_slots = self.table, self.engine.executor.n_slots
        waiting_fits = table.waiting_fits
        n_groups = len(np.unique(table.group_of_candidate[waiting_fits.any(axis=1)]))
        # This number is an estimate: one job fits all open candidates of a group on a
        # split.
        n_left = n_groups * int(waiting_fits.sum(axis=1).max(initial=0))
        size = self.batch_size.jobs_per_task(max(1, n_left), n_slots)
        if self.pruner.best_first:
            if self.first_bounds is None:
                self.first_bounds = self.lower_bounds.copy()
            order = order_best_first(
                table, waiting_fits, self.lower_bounds, self.first_bounds
            )
        else:
            order = order_by_group(table, waiting_fits, n_slots)
        jobs: list[FitJob] = []
        for group_number, split_number in order:
            # The fits may be in a job of another candidate of the group already.
            is_open = table.fit_status[:, split_number] == FitStatus.OPEN
            # A pruned candidate still has open fits, which nothing needs.
            jobs += self.claim_fits(
                group_number, split_number, is_open & waiting_fits[:, split_number]
            )
            if len(jobs) >= size:
                break
        return jobs

    def claim_fits(
        self, group_number: int, split_number: SplitIndex, is_claimed: Bools
    ) -> list[FitJob]:
        """Return one job for the needed candidates of a group, or an empty list.

        The fits count as submitted from now on, so that no other job has them.
        """
        candidates = self.table.candidates_of_group[group_number]
        candidates = candidates[is_claimed[candidates]]
        if not len(candidates):
            return []
        job = FitJob(group_number, tuple(candidates.tolist()), split_number)
        self.table.note_submission(job.candidate_numbers, split_number)
        return [job]

    def repeat_fits(self, fits: Bools) -> None:
        """Repeat finished fits whose models are gone, before all others.

        `fits` are flags, (n_candidates, n_splits). Counts of fits that are done stay in
        the table. A fit gets no second job while it has one.
        """
        lost = fits.copy()
        for job in self.queue.unfinished_jobs:
            lost[list(job.candidate_numbers), job.split_number] = False
        for split_number in map(SplitIndex, np.flatnonzero(lost.any(axis=0)).tolist()):
            is_claimed = lost[:, split_number]
            group_numbers = np.unique(self.table.group_of_candidate[is_claimed])
            for group_number in group_numbers.tolist():
                self.queue.submit_first(
                    self.claim_fits(group_number, split_number, is_claimed)
                )

    def make_task(self, jobs: list[FitJob]) -> Task[JobContext, list[FittedJob]]:
        """Return jobs as one task."""
        first = jobs[0]
        table = self.table
        group = table.candidate_groups[first.group_number]
        split = table.scheme.splits[first.split_number]
        key = f"fit-{group.short_name}-{split.short_name}-{next(self.engine.serial)}"
        slot = None
        if not self.queue.attempts[first]:  # a job that failed may run in any slot
            slot = self.slots.choose(
                key,
                first.group_number,
                self.queue.running,
                self.engine.executor.n_slots,
            )
        # A worker may drop the cached data of a group, such as its Gram matrix, when no
        # fit of this group is left to submit. If one is tried again, its data are
        # computed again.
        waits = table.waiting_fits.any(axis=1)
        still_waiting = set(table.group_of_candidate[waits].tolist())
        ending = frozenset({job.group_number for job in jobs} - still_waiting)
        batch = self.batch_type(tuple(jobs), ending)
        return Task(key, batch, keeps_output=batch.keeps_models, affinity=slot)

    def add_results(self, task: Finished[list[FittedJob]]) -> None:
        """Write the results of a task to table and store."""
        table = self.table
        for fitted_job in task.get():
            job, results = fitted_job.job, fitted_job.results
            seconds = float(np.nansum([result.seconds for result in results]))
            n_failed = sum(result.status is FitStatus.FAILED for result in results)
            self.batch_size.recent_seconds.append(seconds)
            logger.info(
                "fit candidates=%s split=%s seconds=%.6f failed=%d",
                job.candidate_numbers,
                table.scheme.splits[job.split_number].name,
                seconds,
                n_failed,
            )
            for candidate, result in zip(job.candidate_numbers, results, strict=True):
                if self.raise_failures and result.status is FitStatus.FAILED:
                    reason = result.message.text if result.message else "the fit failed"
                    trained_on = table.scheme.splits[job.split_number].trained_on
                    raise RuntimeError(
                        f"candidate {candidate}, {trained_on}: {reason}; leave it out "
                        f"of the grid, or leave on_failure='raise' out."
                    )
                self._add_result(job, candidate, result)

    def give_up(self, jobs: list[FitJob], error: BaseException) -> None:
        """Record that jobs failed, or submit both tests of a job one by one.

        Two searches read a fit without two folds. A test that kills its task must not
        fail the candidate in the search that reads the other test: this search must not
        depend on the rows of the fold that it leaves out.
        """
        message = f"{type(error).__name__}: {error}"
        for job in jobs:
            logger.warning("fit given up: %s: %s", job, message)
            kind = self.table.scheme.splits[job.split_number].kind
            if job.part_number is None and kind is SplitKind.PAIR:
                for part_number in (0, 1):
                    self.queue.try_once_more(replace(job, part_number=part_number))
                continue
            for candidate in job.candidate_numbers:
                self._add_result(job, candidate, FitResult.failure(message))

    def _add_result(self, job: FitJob, candidate: int, result: FitResult) -> None:
        """Store a fit and enter it in the table; join its tests once both are done."""
        fit = FitId(candidate, job.split_number)
        is_complete = result.status is FitStatus.DONE
        if job.part_number is not None:
            tests = self.single_tests.setdefault(fit, {})
            tests[job.part_number] = result
            if len(tests) < 2:
                return
            both = tests[0], tests[1]
            is_complete = all(test.status is FitStatus.DONE for test in both)
            result = join_tests(both, self.table.scheme.splits[job.split_number])
        # A failure is not stored: its cause may be gone when the run continues.
        if self.engine.store is not None and is_complete:
            key = self.table.key_of(candidate, job.split_number)
            self.engine.store.append(key, to_record(result))
        self.table.add_fit(candidate, job.split_number, result)

    def progress(self) -> Progress:
        """Return the progress of the fits."""
        table = self.table
        return Progress(
            fits_done=int(table.finished_fits.sum()),
            fits_total=table.fit_status.size,
            fits_dropped=int((~table.finished_fits & ~table.needed_fits).sum()),
            candidates_active=int(table.active_candidates.sum()),
            candidates_pruned=int(table.pruned_candidates.sum()),
            fits_kept=self.n_stored_fits,
        )
