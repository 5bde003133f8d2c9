"""The loop of a search: it fits, counts on the pool and prunes, until nothing is left.

It fits until a pass over the pool is worth its while, counts, and goes on. How early it
prunes a candidate depends on timing; the winner and its counts do not.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from dsel.families.family import FitKey, FittedGroup
from dsel.runtime.progress import Progress
from dsel.runtime.submission import run_tasks
from dsel.runtime.tasks import Task
from dsel.search.engine.count_batch import CountBatch
from dsel.search.engine.counts import CountTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.fits import Fitting
from dsel.search.engine.jobs import CountJob, FittedJob, Keep
from dsel.search.engine.pruning import Pruner, margin_above
from dsel.search.engine.retries import ATTEMPTS

LEADERS: Final = 4
"""Candidates of the first pass, whose counts then prune the others."""
MODELS_NBYTES: Final = 2**30
"""Most bytes of the models of one pass, on every worker."""


@dataclass
class Search:
    """A search over candidates: fits, pruning, and passes over the pool."""

    engine: Engine
    table: CountTable
    pruner: Pruner
    fitting: Fitting
    on_turn: Callable[["Search"], None]
    """Called with the search before tasks are submitted, to report; an error in it ends
    the run."""

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        # How often models of a candidate were others than those that were counted.
        self.changed: Counter[int] = Counter()
        # Lower bounds of every candidate's criterion, by the counts so far.
        self.lower = np.zeros(self.table.n_candidates)

    def run(self) -> None:
        """Run until every candidate is complete, pruned or failed."""
        while True:
            # Fits and passes alternate: a pass needs all models of its members, and its
            # counts decide which fits are still needed.
            turns = run_tasks(
                self.engine.executor, self._next_fit, on_turn=self._begin_turn
            )
            for finished in turns:
                self.fitting.finish_task(finished)
            members = self.next_members()
            if not members:
                return
            # Models may have been lost with a worker; then they are fitted first.
            if self.fitting.restore_models(members):
                for number in self.count_members(members):
                    self.forget(number)
                self.prune()
                self.release_models()

    def prune(self) -> None:
        """Write to the table which fits are still needed, by the counts so far."""
        standing = self.pruner.compare(self.table)
        self.lower, self.table.needed = standing.lower_bounds, standing.needed_fits

    def _begin_turn(self) -> None:
        self.prune()
        # Without a pass no other place drops the models of candidates that have lost.
        if self.fitting.keep is Keep.ON_WORKER and not self.table.pool.slices:
            self.release_models()
        self.on_turn(self)

    def _next_fit(self) -> Task[list[FittedJob]] | None:
        # What is running ends before the pool is read, but lost models come first: a
        # pass cannot begin without them.
        if not self.fitting.again and self.next_members():
            return None
        return self.fitting.next_task(self.lower)

    def next_members(self) -> tuple[int, ...]:
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
        active = np.flatnonzero(self.pruner.active_candidates(table))
        # Equal bounds are in order of the candidates, so that passes are repeatable.
        order = active[np.lexsort((active, self.lower[active]))]
        ready = order[table.fitted[order]]
        if not len(ready):
            return ()
        leaders_first = self.pruner.best_first and not table.complete.any()
        leads = leaders_first and order[0] == ready[0]
        # Joining copies the models, and a block needs memory too.
        budget = min(MODELS_NBYTES, self.engine.executor.slot_memory // 4)
        sizes = np.cumsum([self.fitting.model_nbytes[int(n)] for n in ready])
        if not (self.fitting.is_over or leads or sizes[-1] >= budget):
            return ()
        # A candidate whose models alone exceed the budget has a pass of its own.
        n_fitting = max(1, int(np.searchsorted(sizes, budget, side="right")))
        most = LEADERS if leaders_first else n_fitting
        return tuple(ready[: min(n_fitting, most)].tolist())

    def count_members(self, members: tuple[int, ...]) -> Iterator[int]:
        """Read the pool once for some candidates, all of whose models are available.

        Yields candidates whose models are no longer those that were fitted.
        """
        # Dask keeps a task's output on its worker only while its key is needed, so that
        # models are named by the tasks that have fitted them.
        splits, keys = self.table.scheme.with_models, self.fitting.model_keys
        comparisons = self.table.current_comparisons()
        # Another pass may have other models of the same members.
        this_pass = f"{self.engine.run_id}-{next(self.engine.serial)}"

        def batch_of(jobs: tuple[CountJob, ...]) -> CountBatch:
            return CountBatch(jobs, comparisons, f"{this_pass}-{hash(jobs[0].members)}")

        return self.engine.count_pool(
            self.table.pool,
            members,
            batch_of,
            inputs=tuple(sorted({keys[FitKey(c, s)] for c in members for s in splits})),
            on_turn=partial(self.on_turn, self),
        )

    def release_models(self) -> None:
        """Drop models that no pass needs and that cannot be deployed."""
        complete = self.table.complete
        least = np.min(self.lower[complete], initial=np.inf)
        # The best candidate may be deployed, and its model is fetched after the search.
        leads = complete & (self.lower <= margin_above(least))
        is_needed = leads | self.pruner.active_candidates(self.table)
        self.fitting.release(set(np.flatnonzero(is_needed).tolist()))

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

    def progress(self) -> Progress:
        """Return the progress of fits and passes."""
        table = self.table
        rows = [total.sum(axis=1).max(initial=0) for total in table.pool.pool_rows]
        return Progress(
            fits_done=int(table.ended.sum()),
            fits_total=table.fit_status.size,
            fits_dropped=int((~table.ended & ~table.needed).sum()),
            candidates_active=int(self.pruner.active_candidates(table).sum()),
            candidates_pruned=int(table.pruned.sum()),
            slices_done=self.engine.n_slices_done,
            slices_total=self.engine.n_slices,
            pool_rows_done=int(max(rows, default=0)),
            seconds=time.perf_counter() - self.started,
        )
