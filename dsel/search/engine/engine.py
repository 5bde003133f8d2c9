"""The engine: submits jobs, takes their results, prunes, and counts on the pool.

All jobs of all searches go through `Engine.run_jobs`, on every executor. They return
results; only the engine writes those to the table and to the store. `Search.run` is a
loop around it: it fits until a pass over the pool is worth its while, counts, and goes
on; how early it prunes a candidate depends on timing, the winner and its counts do not.
The last step of a nested search has no such loop: it fits and counts once, by an engine
of its own.
"""

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from dsel.data.pool import SLICE_NBYTES, Pool
from dsel.families.family import FittedGroup
from dsel.results.run_store import Store
from dsel.runtime.progress import Progress
from dsel.runtime.submission import Executor, run_tasks
from dsel.runtime.tasks import Task
from dsel.search.design.comparisons import Comparison
from dsel.search.engine.count_batch import CountBatch
from dsel.search.engine.counts import CountTable
from dsel.search.engine.fits import BatchSize, Fitting, logger
from dsel.search.engine.job_results import CountedJob, FitStatus
from dsel.search.engine.jobs import CountJob, Keep
from dsel.search.engine.pool_table import PoolTable
from dsel.search.engine.pruning import ROUNDING, ExactPruner, NestedPruner
from dsel.search.engine.retries import ATTEMPTS, J, Retries

LEADERS: Final = 4  # candidates of the first pass, whose counts then prune the others
MODELS_NBYTES: Final = 2**30  # of one pass at most, on every worker


@dataclass
class Engine:
    """An executor and a store, and the loop that jobs go through."""

    executor: Executor
    store: Store | None
    """The store that results are written to, or None."""
    pool: Pool | None
    """The pool that is counted, or None."""

    def __post_init__(self) -> None:
        self.run_id, self.serial = uuid.uuid4().hex[:12], count(1)
        self.n_slices = self.n_slices_done = 0  # of all passes that have begun

    def run_jobs(
        self,
        batches: Iterable[list[J]],
        task_of: Callable[[list[J]], Task],
        *,
        on_turn: Callable[[], object],
    ) -> Iterator[Any]:
        """Run jobs, each list as a task; yield results as tasks end.

        `batches` is iterated as slots become free. None of these jobs may fail: after
        some attempts the error ends the run.
        """
        running: dict[str, list[J]] = {}
        waiting, again = iter(batches), deque[list[J]]()
        retries: Retries[J] = Retries(may_give_up=False)

        def next_task() -> Task | None:
            # Retries go first: an error that ends the run should end it early.
            jobs = again.popleft() if again else next(waiting, None)
            if jobs is None:
                return None
            task = task_of(jobs)
            running[task.key] = jobs
            return task

        for finished in run_tasks(self.executor, next_task, on_turn=on_turn):
            jobs = running.pop(finished.key)
            if finished.error is None:
                yield from finished.result
                continue
            alone, _ = retries.sort_out(jobs, finished.error, any_done=True)
            again.extend([job] for job in alone)

    def count_pool(
        self,
        table: PoolTable,
        members: Sequence[int],
        comparisons: tuple[Comparison, ...] = (),
        *,
        inputs: tuple[str, ...] = (),
        context: str | None = None,
        on_turn: Callable[[], object],
    ) -> Iterator[int]:
        """Read the pool once; yield members whose models differ from the fitted ones.

        Counts are added to the table. The models are those of the tasks `inputs`,
        compared by `comparisons`; or both are those of the `ChosenPass` in the
        `context` that was sent to the executor.
        """
        pool, numbers = self.pool, np.array(members)
        assert pool is not None  # else there are no slices
        waiting = deque(
            CountJob(
                pool_slice.start, pool_slice.stop, tuple(numbers[missing].tolist())
            )
            for pool_slice, missing in zip(
                table.slices, ~table.counted[numbers].T, strict=True
            )
            if missing.any()
        )
        self.n_slices += len(waiting)
        this_pass = f"{self.run_id}-{next(self.serial)}"
        size = BatchSize()

        def batches() -> Iterator[list[CountJob]]:
            """Yield slices of the same members, few enough to be read at once."""
            while waiting:
                n_left, rows_left = len(waiting), SLICE_NBYTES // pool.row_nbytes
                most = size.jobs_per_task(n_left, self.executor.n_slots)
                jobs: list[CountJob] = []
                while waiting and len(jobs) < most:
                    job = waiting[0]
                    rows_left -= job.stop - job.start
                    # The same members in a task: their models are read once for it.
                    if jobs and (rows_left < 0 or job.members != jobs[0].members):
                        break
                    jobs.append(waiting.popleft())
                yield jobs

        def task_of(jobs: list[CountJob]) -> Task:
            slices = [table.slice_number[job.start, job.stop] for job in jobs]
            # Another pass may have other models of the same members.
            cached = f"{this_pass}-{hash(jobs[0].members)}"
            return Task(
                f"count-rows={jobs[0].start}-{next(self.serial)}",
                CountBatch(tuple(jobs), comparisons, cached),
                lambda client: [pool.sources(table.slices[n], client) for n in slices],
                inputs=inputs,
                context=context,
                priority=10,
            )

        with pool.guard_pass():
            for counted in self.run_jobs(batches(), task_of, on_turn=on_turn):
                size.seconds.append(sum(each.seconds for each in counted.results))
                yield from self._take_slice(table, counted)

    def _take_slice(self, table: PoolTable, counted: CountedJob) -> Iterator[int]:
        """Write counts to the table and the store; yield members with other models."""
        job = counted.job
        logger.info(
            "slice rows=%d-%d candidates=%s seconds=%.6f",
            job.start,
            job.stop,
            job.members,
            sum(each.seconds for each in counted.results),
        )
        for member, result in zip(job.members, counted.results, strict=True):
            # The counts are dropped if Dask made a model again, and it differs from the
            # counted one.
            if not table.add_slice(member, result):
                yield member
            if self.store is not None:
                self.store.append(table.key_of(member, result), result.to_record())
        self.n_slices_done += 1


@dataclass
class Search:
    """A search over candidates: fits, pruning, and passes over the pool."""

    engine: Engine
    table: CountTable
    pruner: ExactPruner | NestedPruner
    fitting: Fitting
    on_turn: Callable[[], None] | None = None
    """Called before tasks are submitted, to report; an error in it ends the run."""

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        # How often models of a candidate were others than those that were counted.
        self.changed: Counter[int] = Counter()
        # Lower bounds of every candidate's criterion, by the counts so far.
        self.lower = np.zeros(self.table.n_candidates)

    def run(self) -> None:
        """Run until every candidate is complete, pruned or failed."""
        executor = self.engine.executor
        while True:
            # Fits and passes alternate: a pass needs all models of its members, and its
            # counts decide which fits are still needed.
            turns = run_tasks(executor, self._next_fit, on_turn=self._begin_turn)
            for finished in turns:
                self.fitting.take(finished)
            members = self._next_members()
            if not members:
                return
            if self.fitting.restore_models(members):
                self._count(members)

    def _begin_turn(self) -> None:
        self.lower = self.pruner.prune(self.table)
        if self.fitting.keep is Keep.ON_WORKER and not self.table.pool.slices:
            self._release()  # else what reads the pool does
        self._report()

    def _next_fit(self) -> Task | None:
        if not self.fitting.again and self._next_members():
            return None  # what is running ends, then the pool is read
        return self.fitting.next_task(self.lower)

    def _count(self, members: tuple[int, ...]) -> None:
        """Read the pool once for some candidates, all of whose models are available."""
        splits, keys = self.table.scheme.with_models, self.fitting.model_keys
        changed = self.engine.count_pool(
            self.table.pool,
            members,
            self.table.current_comparisons(),
            inputs=tuple(sorted({keys[c, s] for c in members for s in splits})),
            on_turn=self._report,
        )
        for number in changed:
            self.forget(number)
        self.lower = self.pruner.prune(self.table)
        self._release()

    def model(self, candidate: int, split: int) -> FittedGroup:
        """Return the group with the counted model, which is fitted again if lost."""
        for _ in range(ATTEMPTS):
            # A worker may die between the fit and the fetch, and takes the model with
            # it.
            if self.fitting.restore_models([candidate]):
                models = self.fitting.fetch(candidate, split)
                if models is not None:
                    return models
                self.forget(candidate)
            self.run()
        raise RuntimeError(f"the model of candidate {candidate} was lost several times")

    def forget(self, number: int) -> None:
        """Drop all counts of a candidate whose models have changed."""
        self.table.forget_fits(number)
        self.fitting.forget(number)
        self.changed[number] += 1
        # A learner that draws without a seed differs each time, so counts never end.
        if self.changed[number] >= ATTEMPTS:
            why = "its models were lost and made again several times, never the same"
            self.table.fail(number, self.table.scheme.with_models[0], why)

    def _next_members(self) -> tuple[int, ...]:
        """Return the candidates of the next pass, smallest lower bound first; or none.

        With pruning, a first pass for a few leaders begins as soon as the candidate
        with the smallest lower bound is fitted: its estimate prunes others. All other
        passes wait until no fit is left, or their models use the memory of a pass, so
        that the pool is read as few times as possible. The models of a pass must fit
        into the memory of every worker.
        """
        table = self.table
        if not table.pool.slices:
            return ()
        active = np.flatnonzero(table.active)
        order = active[np.lexsort((active, self.lower[active]))]
        ready = order[table.fitted[order]]
        if not len(ready):
            return ()
        leaders_first = self.pruner.best_first and not table.complete.any()
        leads = leaders_first and order[0] == ready[0]
        is_over = self.fitting.is_over
        # Joining copies the models, and a block needs memory too.
        budget = min(MODELS_NBYTES, self.engine.executor.slot_memory // 4)
        sizes = np.cumsum([self.fitting.model_nbytes[int(n)] for n in ready])
        if not (is_over or leads or sizes[-1] >= budget):
            return ()
        n_fitting = max(1, int(np.searchsorted(sizes, budget, side="right")))
        most = LEADERS if leaders_first else n_fitting
        return tuple(ready[: min(n_fitting, most)].tolist())

    def _release(self) -> None:
        """Drop models that are not needed; the best candidate may be deployed."""
        complete = self.table.complete
        least = np.min(self.lower[complete], initial=np.inf)
        leads = complete & (self.lower <= least + ROUNDING)
        self.fitting.release(set(np.flatnonzero(self.table.active | leads).tolist()))

    def _report(self) -> None:
        if self.on_turn is not None:
            self.on_turn()

    def progress(self) -> Progress:
        """Return the progress of fits and passes."""
        table = self.table
        # A held fit is one that the second round of halving may open again.
        is_dropped = table.pruned[:, np.newaxis] | (table.fit_status == FitStatus.HELD)
        rows = [total.sum(axis=1).max(initial=0) for total in table.pool.pool_rows]
        return Progress(
            fits_done=int(table.ended.sum()),
            fits_total=table.fit_status.size,
            fits_dropped=int((~table.ended & is_dropped).sum()),
            candidates_active=int(table.active.sum()),
            candidates_pruned=int(table.pruned.sum()),
            slices_done=self.engine.n_slices_done,
            slices_total=self.engine.n_slices,
            pool_rows_done=int(max(rows, default=0)),
            seconds=time.perf_counter() - self.started,
        )
