"""The driver: submits fits and spans, takes their counts, prunes, until all is done.

There is one loop for every kind of search and every executor. Tasks return counts; only
the driver writes them to the table and to the journal. How early a candidate is pruned
depends on timing; the winner and its counts do not.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.runtime.progress import Progress
from dsel.runtime.submission import run_tasks
from dsel.runtime.tasks import Executor, Finished, Task
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fits import Fitting
from dsel.searches.engine.pool_rounds import Scoring
from dsel.searches.engine.pool_sample import PoolSample
from dsel.searches.engine.pruning import Race
from dsel.searches.engine.records import CountCheckpoint


@dataclass
class Driver:
    """One run: its loop, its fits and its rounds over the pool."""

    table: CountTable
    pruning: Race
    executor: Executor
    checkpoint: CountCheckpoint
    on_progress: Callable[[Progress], None] | None = None
    sample: PoolSample | None = None
    """Pool rows that span tasks return with their counts; None for none."""
    fitting: Fitting = field(init=False)
    scoring: Scoring = field(init=False)
    lower: NDArray[np.float64] = field(init=False)
    """Lower bound of every candidate's criterion, by the counts so far."""

    def __post_init__(self) -> None:
        table, executor, checkpoint = self.table, self.executor, self.checkpoint
        self.fitting = Fitting(table, executor, checkpoint, self.pruning.prunes)
        models = self.fitting.models
        self.scoring = Scoring(table, executor, checkpoint, models, self.sample)
        self.started = time.perf_counter()

    def run(self) -> CountTable:
        """Run until every candidate is complete, pruned or failed."""
        try:
            for finished in run_tasks(
                self.executor, self._next_task, on_turn=self._begin_turn
            ):
                self._take(finished)
            return self.table
        finally:
            self.checkpoint.store.flush()

    def has_ended(self) -> bool:
        """Prune with the counts so far, and return whether nothing is left to count."""
        self.pruning.prune(self.table)
        return not self.table.active.any()

    def model(self, candidate: int, split: int) -> Any:
        """Return one fitted model, fitted again if it is not kept."""
        self.fitting.fit_one(candidate, split)
        for finished in run_tasks(self.executor, self.fitting.next_again):
            self._take(finished)
        return self.fitting.fetch(candidate, split)

    def _begin_turn(self) -> None:
        """Report, prune, and begin a round if one is due."""
        self.checkpoint.store.check()
        if self.on_progress is not None:
            self.on_progress(self.progress())
        self.lower = self.pruning.prune(self.table)
        if self.scoring.is_due:
            self._begin_round(self.lower)

    def _next_task(self) -> Task | None:
        slots = self.executor.n_slots
        return (
            self.fitting.next_again()
            or self.scoring.next_task(slots)
            or self.fitting.next_task(slots, self.lower)
        )

    def _begin_round(self, lower: NDArray[np.float64]) -> None:
        """Begin the next round over the pool, or fit its missing models again."""
        members = self.scoring.next_members(
            lower,
            leaders_first=self.pruning.prunes and not self.table.complete.any(),
            fits_are_over=self.fitting.is_over,
        )
        if members and self.fitting.restore_models(members):
            self.scoring.begin(members)

    def _take(self, finished: Finished) -> None:
        if self.fitting.has(finished.key):
            self.fitting.take(finished)
        elif finished.key in self.scoring.running and self.scoring.take(finished):
            self._release()

    def _release(self) -> None:
        """Drop models of candidates that are decided, except those of the best."""
        active = map(int, np.flatnonzero(self.table.active))
        self.fitting.release({self.pruning.leader(self.table), *active})

    def progress(self) -> Progress:
        """Return how much is done."""
        table = self.table
        return Progress(
            fits_done=int((table.fit_status >= 0).sum()),
            fits_total=table.fit_status.size,
            fits_dropped=int((table.fit_status[table.pruned] < 0).sum()),
            candidates_active=int(table.active.sum()),
            candidates_pruned=int(table.pruned.sum()),
            spans_done=self.scoring.n_spans_done,
            spans_total=self.scoring.n_spans,
            pool_rows_done=table.pool_rows_done,
            seconds=time.perf_counter() - self.started,
        )
