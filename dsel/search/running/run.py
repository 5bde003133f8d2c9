"""One run of a plan: where it computes and writes, and the search that it makes."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from dsel.data.sampled_rows import SampledRows
from dsel.results.run_store import Store
from dsel.runtime.progress import Progress
from dsel.runtime.submission import make_executor
from dsel.search.engine.counts import CountTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.pool_table import PoolTable
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
