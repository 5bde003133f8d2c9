"""From a plan to a cube, a choice and a model: on a cluster or on local threads."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_choice
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.results import Choice
from dsel.results.store import open_store
from dsel.runtime.clients import count_threads, resolve_client
from dsel.runtime.progress import Progress, run_progress
from dsel.runtime.submission import make_executor
from dsel.runtime.tasks import Executor
from dsel.searches.checkpoint import Checkpoint, open_checkpoint, stored_records
from dsel.searches.chosen import chosen_evidence, chosen_model, of_chosen, without_pool
from dsel.searches.cube import make_results
from dsel.searches.declarations import account_of, declare
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.driver import Driver
from dsel.searches.engine.fit_task import Work
from dsel.searches.engine.nested import NestedPruning, choices
from dsel.searches.engine.pruning import Pruning, Race
from dsel.searches.engine.records import CountCheckpoint, candidate_keys
from dsel.searches.ledger import declaration_of, settle, with_first_leaders
from dsel.searches.phases import PHASE_SECONDS, PhaseClock
from dsel.searches.pool_checks import (
    Resolved,
    pool_sample,
    resolve_pool,
    with_rows,
    with_shift,
    without_shared,
)
from dsel.searches.refits import split_of
from dsel.searches.select import select
from dsel.searches.spec import SearchSpec


@dataclass(frozen=True)
class Outcome:
    """The result of a search."""

    results: xr.Dataset
    """The cube."""
    choice: Choice
    """The chosen candidate and its certificate."""
    model: Any
    """The chosen model, fitted; None without `with_model`."""


def execute(
    plan: SearchSpec,
    client: Any = None,
    *,
    out: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    on_failure: str = "record",
    on_progress: Callable[[Progress], None] | None = None,
    verbose: bool | None = None,
    n_jobs: int | None = None,
    with_model: bool = False,
) -> Outcome:
    """Run a plan.

    Parameters
    ----------
    plan
        From `plan_search`.
    client
        A `distributed.Client`; None means the current one, else local threads.
    out
        Directory or URL of the results store: finished tasks are written there, and
        a later run of the same plan continues from them.
    storage_options
        Passed to fsspec where `out` is a URL; never stored.
    on_failure
        ``"record"`` a fit that raises (the candidate cannot win), or ``"raise"``.
    on_progress
        Called a few times a second with a `Progress`; nothing is shown then.
    verbose
        Whether progress is shown on standard error: fits, spans of the pool, time left.
        None shows it where a terminal or a notebook (with ipywidgets) is there.
    n_jobs
        Local threads; None and -1 mean one for each core. Ignored on a cluster.
    with_model
        Whether to return the chosen model, fitted.

    Raises
    ------
    AllFitsFailedError
        Where no candidate could be fitted.
    MemoryError
        Where a task has not enough memory for any fit.
    ClusterLostError
        Where the scheduler or all workers are gone.
    VersionMismatchError
        Where a worker has another version of a package that decides results.
    """
    check_choice(on_failure, "on_failure", ("record", "raise"))
    count_threads(n_jobs)  # refused before the pool is read
    client = resolve_client(client)
    place = None if out is None else open_store(out, storage_options=storage_options)
    clock = PhaseClock()
    with ExitStack() as stack:
        with clock.phase("prepare"):
            plan, resolved = _with_pool_as_it_is(plan, place, client)
            executor = make_executor(plan.work, client, n_jobs)
            stack.callback(executor.close)
            _check_memory(plan, executor)
        with clock.phase("resume"):
            store = stack.enter_context(open_checkpoint(place, plan.fingerprint))
            declared = _declare(plan, store)
            if resolved is not None:
                resolved.keep(store)
            nested = plan.scheme.is_nested
            driver = _driver(without_pool(plan) if nested else plan, executor, store)
        driver.on_progress = on_progress or stack.enter_context(run_progress(verbose))
        driver.fitting.raise_failures = on_failure == "raise"
        with clock.phase("search"):
            evidence = driver.pruning.evidence(driver.run())
            if nested:
                make = partial(make_executor, client=client, n_jobs=n_jobs)
                driver, evidence = _run_chosen(plan, driver, evidence, make, stack)
        with clock.phase("evaluate"):
            results = _results(plan, evidence, driver, declared, client)
            choice = select(results, certificate=plan.certificate.name)
        results.attrs[PHASE_SECONDS] = clock.as_json(evidence, executor.n_slots)
        if place is not None:
            with clock.phase("save"):
                store.save_results(results)
        with clock.phase("model"):
            model = _model(plan, driver, choice) if with_model else None
        # The stored cube cannot contain how long it took to store it.
        results.attrs[PHASE_SECONDS] = clock.as_json(evidence, executor.n_slots)
    return Outcome(results, choice, model)


def _with_pool_as_it_is(
    plan: SearchSpec, place: Any, client: Any
) -> tuple[SearchSpec, Resolved | None]:
    """Return the plan without pool rows that are labeled ones, and what was found.

    The store is only read: nothing is written before every check has passed.
    """
    plan = with_rows(plan, client, is_kept=place is not None)
    resolved = resolve_pool(plan, stored_records(place, plan.fingerprint), client)
    return without_shared(plan, resolved), resolved


def _run_chosen(
    plan: SearchSpec,
    searched: Driver,
    evidence: Mapping[str, Any],
    make: Callable[[Work], Executor],
    stack: ExitStack,
) -> tuple[Driver, dict[str, Any]]:
    """Count what a nested search chose; return its driver, and all evidence."""
    chosen = choices(searched.table)
    last = of_chosen(plan, chosen)
    executor = make(last.work)
    stack.callback(executor.close)
    driver = _driver(last, executor, searched.checkpoint.store)
    if show := searched.on_progress:
        earlier = searched.progress()
        driver.on_progress = lambda progress: show(earlier + progress)
    return driver, chosen_evidence(evidence, driver.run(), chosen)


def _check_memory(plan: SearchSpec, executor: Executor) -> None:
    """Raise where a task has not enough memory for any fit of the plan."""
    # The other half is for what a family does not count, such as pool blocks.
    budget = executor.slot_memory // 2
    for group in plan.work.groups:
        group.family.check_budget(len(plan.work.y), budget)


def _declare(plan: SearchSpec, store: Checkpoint) -> str:
    """Write what the plan may read, before anything is counted; return the key."""
    if store.journal is None:
        return ""
    keys = candidate_keys(plan.work.groups)
    return declare(store.journal, declaration_of(plan, keys))


def _driver(plan: SearchSpec, executor: Executor, store: Checkpoint) -> Driver:
    """Return the driver of a plan, with the counts of earlier runs.

    Raises OSError where something is left to count and the store cannot be written to.
    """
    table = CountTable(
        plan.scheme,
        plan.work.groups,
        plan.stages,
        plan.n_candidates,
        len(plan.classes),
        len(plan.work.y),
    )
    keys = candidate_keys(plan.work.groups)
    checkpoint = CountCheckpoint(store, keys, plan.scheme)
    checkpoint.replay(table)
    race: Race = Pruning(plan.criterion, plan.settings, plan.prune)
    if plan.scheme.is_nested:
        race = NestedPruning(plan.prune)
    driver = Driver(
        table,
        race,
        executor,
        checkpoint,
        sample=pool_sample(plan),
    )
    if store.is_read_only and not driver.has_ended():
        store.check_writable()  # now, not when the first task has ended
    return driver


def _model(plan: SearchSpec, driver: Driver, choice: Choice) -> Any:
    """Return the model that the certificate is about, stored or fitted."""
    if plan.scheme.is_nested:
        (key,) = driver.checkpoint.keys.values()
        path = f"{key}/{plan.certificate.name}"
        fit = partial(chosen_model, driver, choice, plan.classes)
        return driver.checkpoint.store.model(path, fit)
    number = split_of(plan, choice.fold)
    keys, store = driver.checkpoint.keys, driver.checkpoint.store
    path = f"{keys[choice.candidate]}/{plan.scheme.splits[number].name}"
    return store.model(path, partial(driver.model, choice.candidate, number))


def _results(
    plan: SearchSpec,
    evidence: Mapping[str, Any],
    driver: Driver,
    declared: str,
    client: Any,
) -> xr.Dataset:
    """Return the cube, with the delta that all runs in its store have spent so far."""
    _check_failures(plan, evidence)
    store, keys = driver.checkpoint.store, candidate_keys(plan.work.groups)
    results = make_results(with_shift(plan, driver.sample, store, client), evidence)
    if store.journal is None:
        return results
    results = settle(results, account_of(store.read()), declared, keys)
    return with_first_leaders(results, plan, keys, store)


def _check_failures(plan: SearchSpec, evidence: Mapping[str, Any]) -> None:
    failed = np.flatnonzero(evidence[names.STATUS] == names.STATUS_FAILED)
    if not len(failed):
        return
    number = int(failed[0])
    message = str(evidence[names.MESSAGE][number]).rstrip(".")
    first = f"candidate {number} ({plan.axes.params(number)}): {message}"
    if len(failed) == plan.n_candidates:
        several = f"all {len(failed)} candidates failed; the first was {first}"
        alone = f"the only candidate failed: {message}"
        raise AllFitsFailedError(f"{alone if len(failed) == 1 else several}.")
    warn(
        f"{len(failed)} of {plan.n_candidates} candidates failed and cannot be chosen; "
        f"the first was {first}. `results.message` has all.",
        FitFailedWarning,
    )
