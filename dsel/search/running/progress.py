"""Progress of a run: the work that is done, and the phase that it is in."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dsel.option_values import Pruning
from dsel.runtime.progress import CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.search.engine.search_loop import Search
from dsel.search.running.run import Run

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan


def show_progress(run: Run, progress: Progress, phase: Phase) -> None:
    """Show the progress of a phase, and the most work that is left."""
    if run.on_progress is not None:
        run.on_progress(
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


def show_nested_progress(
    run: Run,
    before: Progress,
    phase: Phase | None = None,
    *,
    fits: int = 0,
    slices: int = 0,
    seconds: float = 0.0,
) -> None:
    """Show the progress of a nested search.

    `before` is that of its inner searches; `fits`, `slices` and `seconds` are those of
    the chosen candidates since then. Their totals are known before.
    """
    pool, n_slices = run.plan.pool, len(run.plan.slices)
    n_fits = run.plan.n_chosen_fits
    of_chosen = Progress(
        fits_done=fits,
        fits_total=n_fits,
        slices_done=slices,
        slices_total=n_slices,
        pool_rows_done=0 if pool is None else pool.n_rows * slices // n_slices,
        seconds=seconds,
    )
    if phase is None and fits >= n_fits and pool is not None:
        phase = Phase(COUNTING, slices, n_slices)
    elif phase is None:  # of a single candidate nothing is chosen before
        phase = Phase(CHOSEN if run.plan.n_candidates > 1 else FITTING, fits, n_fits)
    show_progress(run, before + of_chosen, phase)


def fitting_phase(plan: "Plan", search: Search[Any]) -> Phase:
    """Return the current round of fits of a search, with their number."""
    table = search.table
    if not plan.is_halved:
        n_done, n_fits = int(table.ended.sum()), table.fit_status.size
        # A failed candidate, like a pruned one, does not get all fits.
        has_failed = search.pruner.failed_candidates(table).any()
        is_exact = plan.prune == Pruning.NONE and not has_failed
        return Phase(FITTING, n_done, n_fits, is_exact)
    first = list(plan.scheme.first)
    is_second = bool(table.ended[:, first].all())
    in_round = np.ones(table.fit_status.shape, bool)
    in_round[:, first] = False
    if not is_second:
        in_round = ~in_round
    else:  # which fits it makes was decided when it began
        in_round &= table.needed
    n_done, n_fits = int((table.ended & in_round).sum()), int(in_round.sum())
    return Phase(f"{FITTING}, round {1 + int(is_second)} of 2", n_done, n_fits)
