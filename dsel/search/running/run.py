"""One run of a plan: its options, and where it computes and writes."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from numpy.typing import NDArray

from dsel.checks import check_choice, check_storage_options
from dsel.data.sampled_rows import SampledRows
from dsel.results.run_store import Store
from dsel.runtime.clients import count_threads, resolve_client
from dsel.runtime.progress import Progress, check_verbose
from dsel.runtime.submission import make_executor
from dsel.search.engine.counts import FitTable, PoolTable
from dsel.search.engine.engine import Engine
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
