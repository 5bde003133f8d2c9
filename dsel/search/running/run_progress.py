"""The progress of a run, as its user sees it."""

from dataclasses import replace
from typing import Any

import numpy as np

from dsel.option_values import Pruning
from dsel.runtime.progress import FITTING, Phase, Progress
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.run import Run


def show_progress(run: Run, progress: Progress, phase: Phase) -> None:
    """Show the progress of a phase, and the most work that is left."""
    if run.options.on_progress is not None:
        run.options.on_progress(
            replace(
                progress,
                phase=phase.name,
                phase_done=phase.done,
                phase_total=phase.total,
                total_is_exact=phase.is_exact,
                unit=run.plan.fit_unit,
                fits_most=run.plan.fits_range()[1],
            )
        )


def chosen_progress(
    plan: PlannedSearch, n_fits: int = 0, n_slices: int = 0, seconds: float = 0.0
) -> Progress:
    """Return the progress of chosen candidates, whose totals are known in advance."""
    pool, slices_total = plan.pool, len(plan.slices)
    return Progress(
        fits_done=n_fits,
        fits_total=plan.n_chosen_fits,
        slices_done=n_slices,
        slices_total=slices_total,
        pool_rows_done=0 if pool is None else pool.n_rows * n_slices // slices_total,
        seconds=seconds,
    )


def fitting_phase(plan: PlannedSearch, loop: FitLoop[Any]) -> Phase:
    """Return the current round of fits of a search, with their number."""
    table = loop.table
    if not plan.is_halved:
        n_done, n_fits = int(table.ended_fits.sum()), table.fit_status.size
        # A failed candidate, like a pruned one, does not get all fits.
        has_failed = table.failed_candidates.any()
        is_exact = plan.prune == Pruning.NONE and not has_failed
        return Phase(FITTING, n_done, n_fits, is_exact)
    first = list(plan.scheme.first_round)
    is_second = bool(table.ended_fits[:, first].all())
    in_round = np.ones(table.fit_status.shape, bool)
    in_round[:, first] = False
    if not is_second:
        in_round = ~in_round
    else:  # `needed_fits` is fixed when the second round begins
        in_round &= table.needed_fits
    n_done, n_fits = int((table.ended_fits & in_round).sum()), int(in_round.sum())
    return Phase(f"{FITTING}, round {1 + int(is_second)} of 2", n_done, n_fits)
