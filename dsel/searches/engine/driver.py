"""The driver: submits fits and spans, takes what ends, prunes, records, goes on.

One loop for every kind of search and every executor. The driver alone writes to the
table and to the journal; tasks return counts. Nothing here decides a number: which
losers are pruned depends on timing, the winner and its counts do not.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.models.family import FIT_DONE
from dsel.runtime.submission import run_tasks
from dsel.runtime.tasks import Executor, Finished, Task
from dsel.searches.engine.checkpoint import Checkpoint
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fits import Fitting
from dsel.searches.engine.pool_rounds import Scoring
from dsel.searches.engine.pool_sample import PoolSample
from dsel.searches.engine.pruning import Pruning


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    fits_done: int
    """Fits counted."""
    fits_total: int
    """Fits of the exhaustive search."""
    fits_dropped: int
    """Fits that pruning made unnecessary."""
    candidates_active: int
    """Candidates that may still win and are not complete."""
    candidates_pruned: int
    """Candidates that were shown not to win."""
    spans_done: int
    """Spans of the pool counted in all rounds."""
    spans_total: int
    """Spans of all rounds begun so far."""
    pool_rows_done: int
    """Rows of the pool compared, over all rounds."""
    seconds: float
    """Time since the run began."""


@dataclass
class Driver:
    """One run: its loop, and who does its fits and its passes."""

    table: CountTable
    """Counts by candidate."""
    pruning: Pruning
    """Who may still win."""
    executor: Executor
    """Where tasks run."""
    checkpoint: Checkpoint
    """Where finished tasks are written."""
    run_id: str
    """Tells this run's cached models from those of others."""
    on_progress: Callable[[Progress], None] | None = None
    """Called a few times a second."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    fit_timeout: float | None = None
    """Seconds that one fit may take; None for as long as it takes."""
    sample: PoolSample | None = None
    """Pool rows that spans bring along; None for none."""
    fitting: Fitting = field(init=False)
    scoring: Scoring = field(init=False)
    lower: NDArray[np.float64] = field(init=False)
    """Lower bound of every candidate's criterion, by the counts so far."""

    def __post_init__(self) -> None:
        table, executor, checkpoint = self.table, self.executor, self.checkpoint
        self.fitting = Fitting(
            table,
            executor,
            checkpoint,
            self.pruning.prunes,
            self.raise_failures,
            self.fit_timeout,
        )
        models = self.fitting.models
        self.scoring = Scoring(
            table, executor, checkpoint, models, self.run_id, self.sample
        )
        self.started = time.perf_counter()

    def run(self) -> CountTable:
        """Go on until every candidate is complete, pruned or failed."""
        try:
            for finished in run_tasks(
                self.executor, self._next_task, on_turn=self._look_around
            ):
                self._take(finished)
            return self.table
        finally:
            self.checkpoint.flush()

    def has_ended(self) -> bool:
        """Prune by what is known, and return whether nothing is left to count."""
        self.pruning.prune(self.table)
        return not self.table.active.any()

    def model(self, candidate: int, training: int) -> Any:
        """Return one fitted model, fitted again if it is no longer there."""
        self.fitting.fit_one(candidate, training)
        for finished in run_tasks(self.executor, self.fitting.next_again):
            self._take(finished)
        return self.fitting.fetch(candidate, training)

    def _look_around(self) -> None:
        """Drop what is done with, report, prune, and begin a round if one is due."""
        if not self.table.spans:
            self._release()  # nothing is compared: counted is done with
        self.checkpoint.check()
        self._report()
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
        """Begin the next reading of the pool, or fit again what it lacks."""
        members = self.scoring.next_members(
            lower,
            leaders_first=self.pruning.prunes and not self.table.complete.any(),
            fits_are_over=self.fitting.is_over,
        )
        if members and self.fitting.restore_models(members):
            self.scoring.begin(members)

    def _take(self, finished: Finished) -> None:
        if finished.key in self.fitting.running:
            self.fitting.take(finished)
        elif finished.key in self.scoring.running and self.scoring.take(finished):
            self._release()

    def _release(self) -> None:
        """Drop models that nothing needs any more, and keep the winner's."""
        estimate = self.pruning.criterion.evaluate(
            self.table.evidence(), self.pruning.settings
        ).estimate
        best = int(np.nanargmin(np.where(np.isnan(estimate), np.inf, estimate)))
        needed = self.table.active
        if not self.table.spans:  # none to be counted with, but any may win
            name, trainings = (
                self.pruning.criterion.deploys,
                self.table.scheme.trainings,
            )
            deployed = [each.number for each in trainings if each.name == name]
            is_fitted = self.table.fit_status[:, deployed] == FIT_DONE
            needed = needed & is_fitted.any(axis=1)
        self.fitting.release({best, *map(int, np.flatnonzero(needed))})

    def _report(self) -> None:
        if self.on_progress is None:
            return
        table = self.table
        self.on_progress(
            Progress(
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
        )
