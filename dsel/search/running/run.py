"""One run of a plan: where it computes and writes, and the progress that it shows."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel.data.sampled_rows import SampledRows
from dsel.option_values import Pruning
from dsel.results.run_store import Store
from dsel.runtime.progress import CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.runtime.submission import make_executor
from dsel.search.engine.counts import CountTable, PoolTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.search_loop import Search
from dsel.typing import Model

if TYPE_CHECKING:
    from distributed import Client

    from dsel.search.planning.plan import Plan


@dataclass(frozen=True)
class Run:
    """A plan, and how it is run."""

    plan: "Plan"
    client: "Client | None" = None
    """The cluster; None for this computer."""
    n_jobs: int | None = None
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    store: Store | None = None
    """The store that results are written to, or None."""
    on_progress: Callable[[Progress], None] | None = None


@contextmanager
def open_engine(run: Run, sampled_rows: SampledRows | None = None) -> Iterator[Engine]:
    """Open the executor of a run, which gets labeled rows and candidates once.

    Passes over the pool check the sampled rows. Raises MemoryError if a task has too
    little memory for any fit.
    """
    context = replace(run.plan.context, sampled_rows=sampled_rows)
    groups = context.candidate_groups
    # If fits hold the interpreter lock, processes replace threads. Starting these takes
    # seconds: the executor does so only in a run that has already lasted for some.
    holds = any(group.family.holds_interpreter for group in groups)
    began = time.monotonic() if holds else None
    with closing(make_executor(context, run.client, run.n_jobs, began)) as executor:
        # The other half is for what a family does not count, such as pool blocks.
        limit, n_rows = executor.slot_memory // 2, run.plan.labeled.n_rows
        for group in groups:
            group.family.check_budget(n_rows, limit)
        yield Engine(executor, run.store, run.plan.pool)


def replay_counts(run: Run, table: CountTable | PoolTable) -> None:
    """Write the counts of earlier runs into a table."""
    if run.store is None:
        return
    try:
        table.replay(run.store.records)
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(
            f"`out` {run.store.place} holds a record that no run of this plan has "
            f"written ({error}); choose another place."
        ) from error


class Remade(NamedTuple):
    """Models that were fitted again, since they were not stored."""

    models: Mapping[str, Model]
    counts: dict[str, tuple[NDArray[Any], NDArray[Any]]]
    """Counts by variable: those of the run, and the repeated ones."""


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
    first = list(plan.scheme.first_round)
    is_second = bool(table.ended[:, first].all())
    in_round = np.ones(table.fit_status.shape, bool)
    in_round[:, first] = False
    if not is_second:
        in_round = ~in_round
    else:  # which fits it makes was decided when it began
        in_round &= table.needed
    n_done, n_fits = int((table.ended & in_round).sum()), int(in_round.sum())
    return Phase(f"{FITTING}, round {1 + int(is_second)} of 2", n_done, n_fits)
