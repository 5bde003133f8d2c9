"""One run of a plan: its options, its executor and store, and its outcome."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dsel.checks import check_choice, check_storage_options
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.losses.joint import Evidence
from dsel.losses.protocols import Loss
from dsel.results import Choice
from dsel.results.run_store import Store
from dsel.runtime.clients import count_threads
from dsel.runtime.progress import Progress
from dsel.runtime.submission import make_executor
from dsel.runtime.versions import installed_versions
from dsel.search.engine.counts import FitTable, PoolTable
from dsel.search.engine.job_queue import Engine
from dsel.search.engine.jobs import JobContext
from dsel.search.outcomes.deployed_model import InputFormat
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planned_search import PlanFacts, PlannedSearch
from dsel.search.running.run_progress import RunProgress
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
    notes: str = ""
    """Lines that are shown before the progress; "" if the plan was printed."""

    def __post_init__(self) -> None:
        check_choice(self.on_failure, "on_failure", ("record", "raise"))
        count_threads(self.n_jobs)
        if self.on_progress is not None and not callable(self.on_progress):
            raise TypeError(
                f"`on_progress` must be a function that takes a Progress, got "
                f"{self.on_progress!r}; verbose=True shows progress without one."
            )
        check_storage_options(self.storage_options)

    @property
    def raise_failures(self) -> bool:
        """Whether a fit that raises ends the run."""
        return self.on_failure == "raise"


@dataclass(frozen=True)
class Run:
    """A planned search with the options, store and progress of its run."""

    search: PlannedSearch
    plan_facts: PlanFacts
    options: RunOptions = RunOptions()
    store: Store | None = None
    """The store that results are written to, or None."""
    on_progress: Callable[[Progress], None] | None = None
    """Function that shows the progress; None if nothing is shown."""

    @property
    def identity(self) -> dict[str, str]:
        """What identifies the outcome; no row is read for it."""
        search = self.search
        tokens = row_tokens(
            search.labeled, search.pool, search.context.fitting_pool, may_read=False
        )
        return {**self.plan_facts.identity, **tokens}

    @cached_property
    def progress(self) -> RunProgress:
        """The progress of the run, which its loops show."""
        return RunProgress(self.search, self.on_progress)


def row_tokens(
    labeled: LabeledRows,
    pool: Pool | None,
    fitting_pool: Pool | None,
    *,
    client: "Client | None" = None,
    may_read: bool = True,
) -> dict[str, str]:
    """Return tokens that change with the rows, which are read if necessary.

    If rows may not be read, tokens that need them are left out.
    """
    pools = {"pool": pool, "fitting_pool": fitting_pool}
    versions = installed_versions().items()
    return {
        "labeled": labeled.token,
        **{
            name: "none" if rows is None else rows.fingerprint(client)
            for name, rows in pools.items()
            if may_read or rows is None or rows.origin.is_content
        },
        **{f"version of {name}": str(version) for name, version in versions},
    }


@contextmanager
def open_engine(
    context: JobContext,
    pool: Pool | None,
    store: Store | None = None,
    *,
    client: "Client | None" = None,
    n_jobs: int | None = None,
) -> Iterator[Engine]:
    """Open the executor of a run, which gets the context of its jobs once.

    `pool` is counted, and results are written to `store`; either may be None. Raises
    MemoryError if a task has too little memory for any fit.
    """
    candidate_groups = context.candidate_groups
    # If fits hold the interpreter lock, processes replace threads. Starting these takes
    # seconds: the executor does so only in a run that has already lasted for some.
    is_lock_held = any(
        candidate_group.family.holds_interpreter for candidate_group in candidate_groups
    )
    processes_since = time.monotonic() if is_lock_held else None
    with closing(make_executor(context, client, n_jobs, processes_since)) as executor:
        # The other half is left for memory that a family does not count, such as pool
        # blocks.
        family_memory = executor.slot_memory // 2
        for candidate_group in candidate_groups:
            candidate_group.family.check_memory(context.labeled.n_rows, family_memory)
        yield Engine(executor, store, pool)


def make_outcome(
    results: xr.Dataset,
    choice: Choice,
    make_models: Callable[[], Mapping[str, Model]],
    *,
    labeled: LabeledRows,
    loss: Loss,
    row_groups: RowGroups | None,
    identity: Mapping[str, str],
    pair_results: xr.Dataset | None = None,
    queried_rows: pd.DataFrame | None = None,
) -> Outcome:
    """Return the outcome of a run, with inputs of the plan that later calls need.

    `identity` is that of the run.
    """
    return Outcome(
        results,
        choice,
        pair_results,
        make_models,
        queried_rows,
        input_format=InputFormat.of(labeled),
        labeled=labeled,
        group_keys=None if row_groups is None else row_groups.group_keys,
        loss=loss,
        group_column=None if row_groups is None else row_groups.column,
        identity=identity,
    )


def replay_counts(store: Store, table: FitTable | PoolTable) -> None:
    """Write the counts of earlier runs into a table."""
    with refuse_unreadable_store(store):
        table.replay(store.records)


@contextmanager
def refuse_unreadable_store(store: Store) -> Iterator[None]:
    """Raise ValueError if a record of the store cannot be read."""
    try:
        yield
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(
            f"`out` {store.place} holds a record that no run of this plan has "
            f"written ({error}); choose another place."
        ) from error


class RefittedModels(NamedTuple):
    """Models that were fitted again, since they were not stored."""

    models: Mapping[str, Model]
    count_pairs: list[tuple[NDArray[Any], NDArray[Any]]]
    """Pairs of counts: those of the run, and the repeated ones."""


def pair_evidence(
    cube: xr.Dataset, evidence: Evidence
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return the counts of a cube, each with the same counts of repeated fits.

    Cubes of 0.2 have no counts of duplicates.
    """
    repeated = evidence.by_name.items()
    return [(cube[name].values, counts) for name, counts in repeated if name in cube]
