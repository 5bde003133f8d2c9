"""The loop of a search: it fits, counts on the pool and prunes, until nothing is left.

It fits until a pass over the pool is worth its while, counts, and goes on. How early it
prunes a candidate depends on timing; the winner and its counts do not.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dsel.families.family import FittedGroup
from dsel.runtime.progress import Progress
from dsel.runtime.submission import run_tasks
from dsel.runtime.tasks import Task
from dsel.search.engine.counts import CountTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.fits import Fitting
from dsel.search.engine.job_results import FitStatus, FittedJob
from dsel.search.engine.pool_passes import PoolPasses
from dsel.search.engine.pruning import Pruner
from dsel.search.engine.retries import ATTEMPTS


@dataclass
class Search:
    """A search over candidates: fits, pruning, and passes over the pool."""

    engine: Engine
    table: CountTable
    pruner: Pruner
    fitting: Fitting
    on_turn: Callable[[], None] | None = None
    """Called before tasks are submitted, to report; an error in it ends the run."""

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.passes = PoolPasses(self.engine, self.table, self.fitting)
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
            members = self.passes.next_members(self.lower)
            if not members:
                return
            # Models may have been lost with a worker; then they are fitted first.
            if self.fitting.restore_models(members):
                for number in self.passes.count(members, self._show_progress):
                    self.forget(number)
                self.lower = self.pruner.prune(self.table)
                self.passes.release_models(self.lower)

    def _begin_turn(self) -> None:
        self.lower = self.pruner.prune(self.table)
        self.passes.release_without_pool(self.lower)
        self._show_progress()

    def _next_fit(self) -> Task[list[FittedJob]] | None:
        # What is running ends before the pool is read, but lost models come first: a
        # pass cannot begin without them.
        if not self.fitting.again and self.passes.next_members(self.lower):
            return None
        return self.fitting.next_task(self.lower)

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

    def _show_progress(self) -> None:
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
            candidates_active=int(self.pruner.find_active(table).sum()),
            candidates_pruned=int(table.pruned.sum()),
            slices_done=self.engine.n_slices_done,
            slices_total=self.engine.n_slices,
            pool_rows_done=int(max(rows, default=0)),
            seconds=time.perf_counter() - self.started,
        )
