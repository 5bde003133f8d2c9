"""One run of a plan: where it computes and writes, its progress, its check of the pool.

The check counts rows that equal labeled ones, and makes a two-sample test.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dsel.checks import check_choice, check_storage_options
from dsel.data.equal_rows import duplicate_finder
from dsel.data.sampled_rows import SampledRows
from dsel.families.generic import collect_warnings
from dsel.option_values import Pruning
from dsel.results.run_store import Store
from dsel.runtime.clients import count_threads, current_worker, resolve_client
from dsel.runtime.progress import FITTING, Phase, Progress, check_verbose
from dsel.runtime.submission import make_executor
from dsel.runtime.tasks import is_task
from dsel.search.design.assumptions import (
    PoolCheck,
    PoolFacts,
    compare_pool,
)
from dsel.search.engine.counts import FitTable, PoolTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.search_loop import SearchLoop
from dsel.search.running.planned_search import PlannedSearch
from dsel.typing import Model, Options, PathLike

if TYPE_CHECKING:
    from distributed import Client

POOL_FACTS_KEY: Final = "pool/facts"
"""Key of the record of the pass that checks the pool."""
STOP_SECONDS: Final = 1.0
"""Longest wait for the check to end, after the search has failed."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `Plan.run`, which documents each of them."""

    client: "Client | None" = None
    out: PathLike | None = None
    storage_options: Options | None = None
    on_failure: str = "record"
    on_progress: Callable[[Progress], None] | None = None
    verbose: bool | int | None = None
    n_jobs: int | None = None

    def check_values(self) -> Self:
        """Return them with the current client; raise if one is wrong."""
        check_choice(self.on_failure, "on_failure", ("record", "raise"))
        count_threads(self.n_jobs)
        check_verbose(self.verbose)
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
    holds = any(group.family.holds_interpreter for group in groups)
    began = time.monotonic() if holds else None
    with closing(
        make_executor(context, options.client, options.n_jobs, began)
    ) as executor:
        # The other half is for what a family does not count, such as pool blocks.
        family_memory = executor.slot_memory // 2
        for group in groups:
            group.family.check_memory(run.plan.labeled.n_rows, family_memory)
        yield Engine(executor, run.store, run.plan.pool)


def replay_counts(run: Run, table: FitTable | PoolTable) -> None:
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


def fitting_phase(plan: PlannedSearch, loop: SearchLoop[Any]) -> Phase:
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
    else:  # which fits it makes was decided when it began
        in_round &= table.needed_fits
    n_done, n_fits = int((table.ended_fits & in_round).sum()), int(in_round.sum())
    return Phase(f"{FITTING}, round {1 + int(is_second)} of 2", n_done, n_fits)


def check_pool(run: Run, on_turn: Callable[[], object] | None = None) -> PoolCheck:
    """Compare the pool with the labeled rows, unless an earlier run has done it.

    `on_turn` is called at least every half second; an exception of it ends this.
    """
    plan, store = run.plan, run.store
    fitting, allow_nan = plan.context.fitting_pool, plan.context.reading.allow_nan
    if plan.pool is None or not (plan.method.is_guarantee or fitting):
        return PoolCheck()
    record = store.records.get(POOL_FACTS_KEY) if store is not None else None
    # The record of an older version lacks a field: then the pool is checked again.
    if record is not None and record.keys() == vars(PoolFacts()).keys():
        return PoolCheck(PoolFacts(**record))
    check = PoolCheck()
    if plan.method.is_guarantee:
        check = compare_pool(
            plan.pool,
            plan.labeled,
            seed=plan.seed,
            allow_nan=allow_nan,
            client=run.options.client,
            on_turn=on_turn,
        )
    if fitting is not None and fitting.n_rows:
        find = duplicate_finder(fitting, plan.labeled)
        n_duplicates = fitting.reduce(
            lambda X, rows: int(find(X).sum()),
            add,
            client=run.options.client,
            allow_nan=allow_nan,
            on_turn=on_turn,
        )
        check = replace(
            check, facts=replace(check.facts, fitting_equal_rows=n_duplicates)
        )
    if on_turn is not None:
        on_turn()  # the store may be closed by now
    if store is not None:
        store.append(POOL_FACTS_KEY, vars(check.facts))
    return check


@contextmanager
def start_pool_check(run: Run) -> "Iterator[Future[PoolCheck]]":
    """Check the pool in a thread next to the fits, which do not depend on the result.

    If the search fails or is interrupted, the check stops. Its error, or Ctrl-C, does
    not wait for slices of the pool that are being read.
    """
    if is_task() or current_worker() is not None:
        # A thread of its own would not know that it is part of a task.
        done: Future[PoolCheck] = Future()
        done.set_result(check_pool(run))
        yield done
        return
    is_over = threading.Event()

    def stop() -> None:
        if is_over.is_set():
            raise CancelledError

    def make_check() -> PoolCheck:
        # Warning filters belong to the process. The code that is called here may set
        # and restore them; fits, which set them as well, must not end in between.
        with collect_warnings():
            return check_pool(run, stop)

    # Made before the fits, the check took a third of the time of a small search.
    thread = ThreadPoolExecutor(1)
    pending = thread.submit(make_check)
    try:
        yield pending
    except BaseException:
        is_over.set()
        # Most often it ends, and restores warning filters.
        wait([pending], STOP_SECONDS)
        raise
    finally:
        thread.shutdown(wait=not is_over.is_set(), cancel_futures=True)
