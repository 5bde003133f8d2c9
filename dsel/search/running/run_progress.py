"""The progress of a run: the sum of the progress of its parts, which is shown.

How long the fits that are left will take is estimated from those that are done.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from dsel.arrays import Bools, Integers
from dsel.option_values import Pruning
from dsel.runtime.progress import (
    CHECKING,
    CHOSEN,
    COUNTING,
    FITTING,
    FitTime,
    Phase,
    Progress,
)
from dsel.search.engine.counts import FitTable
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.planned_search import PlannedSearch
from dsel.typing import Options


@dataclass(frozen=True, eq=False)
class FitTimes:
    """The candidates by their kind of model.

    A forest takes a hundred times as long as a logistic regression, while the
    candidates of one kind differ much less.
    """

    kind_of_candidate: Integers
    """Number of each candidate's kind, (n_candidates,)."""

    @classmethod
    def of(cls, candidates: Sequence[Options]) -> Self:
        """Return the kinds of candidates, by the estimators among their parameters."""
        kinds = [
            " ".join(type(v).__name__ for v in params.values() if hasattr(v, "fit"))
            for params in candidates
        ]
        return cls(pd.factorize(np.array(kinds, object))[0].astype(np.int64))

    def expect(
        self, table: FitTable, in_phase: Bools, n_more: int = 0
    ) -> FitTime | None:
        """Return the seconds of fits that are done or left; None before one is done.

        `in_phase` are flags of the fits that may be left, (n_candidates, n_splits), and
        `n_more` fits of any candidates follow. A kind that was not fitted yet takes no
        longer than the slowest one of the others, and perhaps no time.
        """
        is_done = table.finished_fits & np.isfinite(table.fit_seconds)
        if not is_done.any():
            return None
        is_left = in_phase & ~table.finished_fits & table.needed_fits
        kinds = np.arange(self.kind_of_candidate.max() + 1)
        of_kind = self.kind_of_candidate == kinds[:, np.newaxis]
        seconds = np.where(is_done, table.fit_seconds, 0.0).sum(axis=1)
        n_done, n_left = of_kind @ is_done.sum(axis=1), of_kind @ is_left.sum(axis=1)
        means = np.divide(
            of_kind @ seconds, n_done, out=np.full(len(kinds), np.nan), where=n_done > 0
        )
        least = np.nan_to_num(means)
        most = np.where(n_done > 0, means, np.nanmax(means))
        return FitTime(
            float(seconds.sum()),
            float(n_left @ least + n_more * least.min()),
            float(n_left @ most + n_more * most.max()),
        )


@dataclass(eq=False)
class RunProgress:
    """The display of the progress of a run, which every loop calls at each turn.

    The fits of chosen candidates and their counts are added to those of inner searches,
    so that no bar begins again at 0.
    """

    search: PlannedSearch
    on_progress: Callable[[Progress], None] | None
    """Function that shows the progress; None if nothing is shown."""
    loop_progress: Progress = field(init=False, default=Progress())
    """Progress of the loop of all candidates so far."""
    table: FitTable | None = field(init=False, default=None)
    """The fits of that loop; None before it has begun."""
    in_phase: Bools | None = field(init=False, default=None)
    """Flags of the fits of the current phase, (n_candidates, n_splits); None where the
    phase has others."""
    started: float = field(init=False, default_factory=time.perf_counter)

    @cached_property
    def times(self) -> FitTimes:
        """The kinds of candidates, whose fits may take very different times."""
        return FitTimes.of(self.search.axes.candidates)

    def show_check(self) -> None:
        """Show that the run waits for the check of the pool."""
        self._show(Phase(CHECKING))

    def show_fits(self, loop: FitLoop[Any]) -> None:
        """Show the fits of a loop of all candidates, or its pass over the pool."""
        if self.on_progress is None:
            return
        progress = self.loop_progress = loop.progress()
        self.table, self.in_phase = loop.table, None
        n_slices, n_counted = progress.slices_total, progress.slices_done
        if n_counted < n_slices:
            self._show(Phase(COUNTING, n_counted, n_slices))
        # A single candidate of a nested search has no fits before it is chosen.
        elif loop.table.fit_status.size:
            phase, self.in_phase = fitting_phase(
                loop.table, self.search.prune, is_halved=self.search.is_halved
            )
            self._show(phase)

    def show_chosen(self, n_fits: int, n_slices: int = 0) -> None:
        """Show the fits of chosen candidates, then their pass over the pool."""
        search, self.in_phase = self.search, None
        # A single candidate needs no choice before.
        name = CHOSEN if search.n_candidates > 1 else FITTING
        n_most = len(search.models_to_fit)
        phase = Phase(name, n_fits, n_most)
        if n_fits == n_most and search.pool is not None:
            phase = Phase(COUNTING, n_slices, len(search.slices))
        self._show(phase, n_fits, n_slices)

    def _show(self, phase: Phase, n_fits: int = 0, n_slices: int = 0) -> None:
        """Show a phase; the numbers are those of chosen candidates."""
        if self.on_progress is None:
            return
        search, progress = self.search, self.loop_progress
        fits_least, fits_most = search.fits_range()
        if search.method.is_nested:
            progress += progress_of_chosen(
                n_fits,
                n_slices,
                fits_total=len(search.models_to_fit),
                slices_total=len(search.slices),
                n_pool_rows=0 if search.pool is None else search.pool.n_rows,
            )
        phase_time, whole_time = self._expect_times(progress, fits_least, fits_most)
        self.on_progress(
            replace(
                progress,
                seconds=time.perf_counter() - self.started,
                phase=phase.name,
                phase_done=phase.done,
                phase_total=phase.total,
                total_is_exact=phase.is_exact,
                unit=search.fit_unit,
                fits_least=fits_least,
                fits_most=fits_most,
                phase_time=phase_time,
                whole_time=whole_time,
            )
        )

    def _expect_times(
        self, progress: Progress, fits_least: int, fits_most: int
    ) -> tuple[FitTime | None, FitTime | None]:
        """Return the seconds of the fits of this phase, and of the whole run."""
        table, in_phase = self.table, self.in_phase
        if table is None or not table.fit_status.size:
            return None, None
        n_fits = progress.fits_total - progress.fits_dropped
        if not fits_least <= n_fits <= fits_most:  # pruning will drop more of them
            n_fits = fits_most
        n_more = max(0, n_fits - progress.fits_done)
        if in_phase is None:
            none = np.zeros(table.fit_status.shape, np.bool_)
            return None, self.times.expect(table, none, n_more)
        n_more -= int((in_phase & table.needed_fits & ~table.finished_fits).sum())
        return (
            self.times.expect(table, in_phase),
            self.times.expect(table, in_phase, max(0, n_more)),
        )


def progress_of_chosen(
    n_fits: int,
    n_slices: int,
    *,
    fits_total: int,
    slices_total: int,
    n_pool_rows: int,
) -> Progress:
    """Return the progress of chosen candidates, whose totals are known in advance."""
    return Progress(
        fits_done=n_fits,
        fits_total=fits_total,
        slices_done=n_slices,
        slices_total=slices_total,
        pool_rows_done=n_pool_rows * n_slices // max(1, slices_total),
    )


def fitting_phase(
    table: FitTable, prune: Pruning, *, is_halved: bool
) -> tuple[Phase, Bools]:
    """Return the current round of fits of a search, and flags of these fits."""
    if not is_halved:
        n_done = int(table.finished_fits.sum())
        n_fits = table.fit_status.size
        # A failed candidate, like a pruned one, does not get all fits.
        has_failed = table.failed_candidates.any()
        is_exact = prune == Pruning.NONE and not has_failed
        all_fits = np.ones(table.fit_status.shape, np.bool_)
        return Phase(FITTING, n_done, n_fits, is_exact), all_fits
    first = list(table.scheme.first_round)
    is_second = bool(table.finished_fits[:, first].all())
    in_round = np.ones(table.fit_status.shape, bool)
    in_round[:, first] = False
    if not is_second:
        in_round = ~in_round
    else:  # `needed_fits` is fixed when the second round begins
        in_round &= table.needed_fits
    # The bar shows fits of one round only: a bar whose total grows would show no time
    # left.
    n_done, n_fits = int((table.finished_fits & in_round).sum()), int(in_round.sum())
    name = f"{FITTING}, round {1 + int(is_second)} of 2"
    return Phase(name, n_done, n_fits), in_round
