"""One run of a plan: its options, where it computes and writes, and its progress."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dsel.checks import check_choice, check_storage_options
from dsel.data.pool_parts import SampledRows
from dsel.option_values import Pruning
from dsel.results.run_store import Store
from dsel.runtime.clients import count_threads, resolve_client
from dsel.runtime.progress import FITTING, Phase, Progress
from dsel.runtime.submission import make_executor
from dsel.search.engine.counts import FitTable, PoolTable
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.job_queue import Engine
from dsel.search.running.planned_search import PlannedSearch
from dsel.typing import Model, Options, PathLike

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `Plan.run`, which documents each of them."""

    client: "Client | None" = None
    out: PathLike | None = None
    storage_options: Options | None = None
    on_failure: str = "record"
    on_progress: Callable[[Progress], None] | None = None
    verbose: bool | None = None
    n_jobs: int | None = None

    def check_values(self) -> Self:
        """Return them with the current client; raise if one is wrong."""
        check_choice(self.on_failure, "on_failure", ("record", "raise"))
        count_threads(self.n_jobs)
        if self.on_progress is not None and not callable(self.on_progress):
            raise TypeError(
                f"`on_progress` must be a function that takes a Progress, got "
                f"{self.on_progress!r}; verbose=True shows progress without one."
            )
        check_storage_options(self.storage_options)
        return replace(self, client=resolve_client(self.client))

    @property
    def raise_failures(self) -> bool:
        """Whether a fit that raises ends the run."""
        return self.on_failure == "raise"


@dataclass(frozen=True)
class Run:
    """A plan, and how it is run."""

    plan: PlannedSearch
    options: RunOptions = RunOptions()
    store: Store | None = None
    """The store that results are written to, or None."""


@contextmanager
def open_engine(run: Run, sampled_rows: SampledRows | None = None) -> Iterator[Engine]:
    """Open the executor of a run, which gets labeled rows and candidates once.

    Passes over the pool check the sampled rows. Raises MemoryError if a task has too
    little memory for any fit.
    """
    context = run.plan.context
    reading = replace(context.reading, sampled_rows=sampled_rows)
    context = replace(context, reading=reading)
    options, groups = run.options, context.candidate_groups
    # If fits hold the interpreter lock, processes replace threads. Starting these takes
    # seconds: the executor does so only in a run that has already lasted for some.
    is_lock_held = any(group.family.holds_interpreter for group in groups)
    processes_since = time.monotonic() if is_lock_held else None
    with closing(
        make_executor(context, options.client, options.n_jobs, processes_since)
    ) as executor:
        # The other half is for what a family does not count, such as pool blocks.
        family_memory = executor.slot_memory // 2
        for group in groups:
            group.family.check_memory(run.plan.labeled.n_rows, family_memory)
        yield Engine(executor, run.store, run.plan.pool)


def replay_counts(run: Run, table: FitTable | PoolTable) -> None:
    """Write the counts of earlier runs into a table."""
    if run.store is not None:
        with refuse_other_records(run):
            table.replay(run.store.records)


@contextmanager
def refuse_other_records(run: Run) -> Iterator[None]:
    """Raise ValueError if a record of the store cannot be read."""
    try:
        yield
    except (TypeError, ValueError, KeyError) as error:
        assert run.store is not None  # only stores have records
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
