"""Passes over the pool in a search: when one begins, and for which candidates."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.families.family import FitKey
from dsel.search.engine.count_batch import CountBatch
from dsel.search.engine.counts import CountTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.fits import Fitting
from dsel.search.engine.jobs import CountJob, Keep
from dsel.search.engine.pruning import PRUNING_MARGIN

LEADERS: Final = 4
"""Candidates of the first pass, whose counts then prune the others."""
MODELS_NBYTES: Final = 2**30
"""Most bytes of the models of one pass, on every worker."""


@dataclass
class PoolPasses:
    """Passes over the pool, between which a search fits.

    `lower` are lower bounds of the criterion, one a candidate, by the counts so far.
    """

    engine: Engine
    table: CountTable
    fitting: Fitting

    def next_members(self, lower: NDArray[np.float64]) -> tuple[int, ...]:
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
        active = np.flatnonzero(self.fitting.pruner.find_active(table))
        # Equal bounds are in order of the candidates, so that passes are repeatable.
        order = active[np.lexsort((active, lower[active]))]
        ready = order[table.fitted[order]]
        if not len(ready):
            return ()
        leaders_first = self.fitting.pruner.best_first and not table.complete.any()
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

    def count(
        self, members: tuple[int, ...], on_turn: Callable[[], object]
    ) -> Iterator[int]:
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
            on_turn=on_turn,
        )

    def release_models(self, lower: NDArray[np.float64]) -> None:
        """Drop models that no pass needs and that cannot be deployed."""
        complete = self.table.complete
        least = np.min(lower[complete], initial=np.inf)
        # The best candidate may be deployed, and its model is fetched after the search.
        leads = complete & (lower <= least + PRUNING_MARGIN)
        is_needed = leads | self.fitting.pruner.find_active(self.table)
        self.fitting.release(set(np.flatnonzero(is_needed).tolist()))

    def release_without_pool(self, lower: NDArray[np.float64]) -> None:
        """Drop models where no pass will do so, since there is no pool to count."""
        if self.fitting.keep is Keep.ON_WORKER and not self.table.pool.slices:
            self.release_models(lower)
