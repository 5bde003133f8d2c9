"""One run of a plan: data and methods that nested and other searches share."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dsel.data.query_rows import read_pool_rows
from dsel.data.sampled_rows import SampledRows
from dsel.option_values import Pruning
from dsel.results import Choice
from dsel.results.run_store import Store
from dsel.runtime.progress import FITTING, Phase, Progress
from dsel.runtime.submission import Executor, make_executor
from dsel.runtime.versions import installed_versions
from dsel.search.design.assumptions import (
    PoolCheck,
    PoolFacts,
    compare_pool,
    count_fitting_rows,
)
from dsel.search.engine.counts import CountTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.fits import Fitting
from dsel.search.engine.job_results import FitStatus
from dsel.search.engine.jobs import Keep
from dsel.search.engine.pool_table import PoolTable
from dsel.search.engine.pruning import ExactPruner, NestedPruner
from dsel.search.engine.search_loop import Search
from dsel.search.outcomes.outcome import Outcome
from dsel.search.outcomes.predict_table import InputFormat
from dsel.typing import Model

if TYPE_CHECKING:
    from distributed import Client

    from dsel.search.planning.plan import Plan

FACTS: Final = "pool/facts"
"""Key of the record of the pass that checks the pool."""


@dataclass(frozen=True)
class Run:
    """A running plan, with its executor and its store."""

    plan: "Plan"
    client: "Client | None"
    n_jobs: int | None
    raise_failures: bool = False
    store: Store | None = None
    """The store that results are written to, or None."""
    on_progress: Callable[[Progress], None] | None = None
    not_kept: str = ""
    """Reason why models cannot be stored, if known before the first fit."""

    @cached_property
    def input_format(self) -> InputFormat:
        """Format of the rows for the models."""
        return InputFormat.of(self.plan.labeled)

    @property
    def estimators(self) -> list[Any]:
        """The candidates, unfitted."""
        groups = self.plan.context.candidate_groups
        return [each.estimator for group in groups for each in group.candidates]

    def add_inputs(self, outcome: Outcome) -> Outcome:
        """Return an outcome with what later calls need of the plan's inputs."""
        plan = self.plan
        return replace(
            outcome,
            input_format=self.input_format,
            labeled=plan.labeled,
            group_keys=None if plan.groups is None else plan.groups.keys,
            loss=plan.context.losses.main,
        )

    def show_progress(self, progress: Progress, phase: Phase) -> None:
        """Show the progress of a phase, and the most work that is left."""
        if self.on_progress is not None:
            self.on_progress(
                replace(
                    progress,
                    phase=phase.name,
                    phase_done=phase.done,
                    phase_total=phase.total,
                    total_is_exact=phase.is_exact,
                    unit=self.plan.fit_unit,
                    fits_most=self.plan.fits_range()[1],
                )
            )

    def fitting_phase(self, search: Search) -> Phase:
        """Return the current round of fits of a search, with their number."""
        table = search.table
        if not self.plan.is_halved:
            n_done, n_fits = int(table.ended.sum()), table.fit_status.size
            # A failed candidate, like a pruned one, does not get all fits.
            has_failed = search.pruner.find_failed(table).any()
            is_exact = self.plan.prune == Pruning.NONE and not has_failed
            return Phase(FITTING, n_done, n_fits, is_exact)
        first = list(self.plan.scheme.first)
        is_second = bool(table.ended[:, first].all())
        in_round = np.ones(table.fit_status.shape, bool)
        in_round[:, first] = False
        if not is_second:
            in_round = ~in_round
        else:  # which fits it makes was decided when it began
            in_round &= table.fit_status != FitStatus.HELD
        n_done, n_fits = int((table.ended & in_round).sum()), int(in_round.sum())
        return Phase(f"{FITTING}, round {1 + int(is_second)} of 2", n_done, n_fits)

    def open_executor(self, sampled_rows: SampledRows | None = None) -> Executor:
        """Return the executor of tasks, with the context of all jobs.

        Passes over the pool check the sampled rows. If fits hold the interpreter lock,
        processes replace threads.
        """
        context = replace(self.plan.context, sampled_rows=sampled_rows)
        holds = any(each.family.holds_interpreter for each in context.candidate_groups)
        # Starting processes takes seconds: the executor does so only in a run that has
        # already lasted for some.
        began = time.monotonic() if holds else None
        return make_executor(context, self.client, self.n_jobs, began)

    def check_memory(self, executor: Executor) -> None:
        """Raise MemoryError if a task has too little memory for any fit."""
        # The other half is for what a family does not count, such as pool blocks.
        limit, n_rows = executor.slot_memory // 2, self.plan.labeled.n_rows
        for group in self.plan.context.candidate_groups:
            group.family.check_budget(n_rows, limit)

    def tokens_of_rows(self, *, may_read: bool = True) -> dict[str, str]:
        """Return tokens that change with the rows, which are read if necessary.

        If they may not be read, tokens that need it are left out.
        """
        plan, versions = self.plan, installed_versions()
        pools = {"pool": plan.pool, "fitting_pool": plan.context.fitting_pool}
        return {
            "labeled": plan.labeled.token,
            **{
                name: "none" if pool is None else pool.fingerprint(self.client)
                for name, pool in pools.items()
                if may_read or pool is None or pool.origin.is_content
            },
            **{f"version of {name}": str(found) for name, found in versions.items()},
        }

    def ensure_pool_check(
        self, on_turn: Callable[[], object] | None = None
    ) -> PoolCheck:
        """Return the check of the pool by an earlier run, or compare it now.

        `on_turn` is called at least every half second; an exception of it ends this.
        """
        plan = self.plan
        fitting, allow_nan = plan.context.fitting_pool, plan.context.allow_nan
        if plan.pool is None or not (plan.certificate or fitting):
            return PoolCheck()
        known = self.store.records.get(FACTS) if self.store is not None else None
        # The record of an older version lacks a field: then the pool is checked again.
        if known is not None and known.keys() == vars(PoolFacts()).keys():
            return PoolCheck(PoolFacts(**known))
        check = PoolCheck()
        if plan.certificate:
            check = compare_pool(
                plan.pool,
                plan.labeled,
                seed=plan.seed,
                allow_nan=allow_nan,
                client=self.client,
                on_turn=on_turn,
            )
        if fitting is not None and fitting.n_rows:
            n_duplicates = count_fitting_rows(
                fitting,
                plan.labeled,
                allow_nan=allow_nan,
                client=self.client,
                on_turn=on_turn,
            )
            check = replace(
                check, facts=replace(check.facts, fitting_equal_rows=n_duplicates)
            )
        if on_turn is not None:
            on_turn()  # the store may be closed by now
        if self.store is not None:
            self.store.append(FACTS, vars(check.facts))
        return check

    def read_query_rows(self, choice: Choice) -> pd.DataFrame | None:
        """Read the queried pool rows again; None if there are none.

        They have all columns: a person may need some that no model reads.
        """
        source = self.plan.source
        if choice.queries is None or not choice.queries.rows or source is None:
            return None
        with source.guard_pass():
            rows = read_pool_rows(source, choice.queries.rows, client=self.client)
        # The index has this name.
        return rows.drop(columns=rows.index.name, errors="ignore")

    def search(
        self,
        executor: Executor,
        pruner: ExactPruner | NestedPruner,
        keep: Keep,
        on_turn: Callable[[], None] | None,
    ) -> Search:
        """Return a search that starts with the counts of earlier runs."""
        plan, comparisons = self.plan, self.plan.comparisons
        table = CountTable(
            plan.scheme,
            plan.context.candidate_groups,
            comparisons,
            plan.slices if comparisons else (),
            plan.n_candidates,
        )
        self.replay(table)
        engine = Engine(executor, self.store, plan.pool)
        fitting = Fitting(
            table, executor, self.store, pruner, self.raise_failures, keep
        )
        return Search(engine, table, pruner, fitting, on_turn)

    def replay(self, table: CountTable | PoolTable) -> None:
        """Write the counts of earlier runs into a table."""
        if self.store is None:
            return
        try:
            table.replay(self.store.records)
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(
                f"`out` {self.store.place} holds a record that no run of this plan has "
                f"written ({error}); choose another place."
            ) from error


class SearchWay(NamedTuple):
    """One way from a plan to an outcome, and back from the outcome to its models."""

    search: Callable[[Run], Outcome]
    remake: Callable[[Run, xr.Dataset, Choice], "Remade"]
    """Function that fits the models of a choice again, and repeats their counts."""


class Remade(NamedTuple):
    """Models that were fitted again, since they were not stored."""

    models: Mapping[str, Model]
    counts: dict[str, tuple[NDArray[Any], NDArray[Any]]]
    """Counts by variable: those of the run, and the repeated ones."""
