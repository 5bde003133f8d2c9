"""From a plan to a cube, a choice and a model: on a cluster or on local threads."""

import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_choice, check_integer
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.models.family import FIT_DONE, FittedGroup
from dsel.results import Choice
from dsel.results.journal import Journal
from dsel.results.store import open_store
from dsel.runtime.clients import count_threads, resolve_client
from dsel.runtime.submission import make_executor
from dsel.runtime.tasks import Executor
from dsel.runtime.threads import single_threaded
from dsel.searches.cube import make_results
from dsel.searches.declarations import account_of, declare
from dsel.searches.engine.checkpoint import Checkpoint, candidate_keys
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.driver import Driver, Progress
from dsel.searches.engine.fit_task import FitJob, Work, fit_jobs
from dsel.searches.engine.pruning import Pruning, final_evidence
from dsel.searches.keeping import (
    Notebook,
    keep_results,
    kept_model,
    kept_records,
    run_journal,
)
from dsel.searches.ledger import declaration_of, settle
from dsel.searches.phases import PHASE_SECONDS, PhaseClock
from dsel.searches.pool_checks import (
    pool_sample,
    resolve_pool,
    with_rows,
    with_shift,
    without_shared,
)
from dsel.searches.select import select
from dsel.searches.spec import SearchSpec


@dataclass(frozen=True)
class Outcome:
    """What a search ends with."""

    results: xr.Dataset
    """The cube."""
    choice: Choice
    """The chosen candidate and its certificate."""
    model: Any
    """The chosen model, fitted; None where it was not asked for."""


def execute(
    plan: SearchSpec,
    client: Any = None,
    *,
    out: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    on_failure: str = "record",
    on_progress: Callable[[Progress], None] | None = None,
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
        Directory or URL of the results store: what is finished is written there as
        it comes, and a run of the same plan goes on from it.
    storage_options
        Passed to fsspec where `out` is a URL; never stored.
    on_failure
        ``"record"`` a fit that raises (the candidate can never win), or ``"raise"``.
    on_progress
        Called a few times a second with a `Progress`.
    n_jobs
        Local threads; None and -1 mean one for each core. A cluster has its own.
    with_model
        Whether to bring the chosen model here.

    Raises
    ------
    AllFitsFailedError
        Where no candidate could be fitted.
    MemoryError
        Where a task has not enough for any fit.
    ClusterLostError
        Where the scheduler or all workers are gone.
    VersionMismatchError
        Where a worker has another version of a package that decides results.
    """
    check_choice(on_failure, "on_failure", ("record", "raise"))
    count_threads(n_jobs)  # refused before the pool is read
    client = resolve_client(client)
    place = None if out is None else open_store(out, storage_options=storage_options)
    run_id = uuid.uuid4().hex[:12]
    clock = PhaseClock()
    with ExitStack() as stack:
        with clock.phase("prepare"):
            plan = with_rows(plan, client, is_kept=place is not None)
            # Only read: a place is begun when nothing can be refused any more.
            known = kept_records(place, plan.fingerprint)
            resolved = resolve_pool(plan, known, client)
            plan = without_shared(plan, resolved)
            executor = make_executor(plan.work, client, n_jobs, run_id=run_id)
            stack.callback(executor.close)
            _check_memory(plan, executor)
        with clock.phase("resume"):
            journal = stack.enter_context(run_journal(place, plan.fingerprint))
            declared = _declare(plan, journal)
            if resolved is not None:
                resolved.note(journal)
            driver = _driver(
                plan, executor, journal, run_id, raise_failures=on_failure == "raise"
            )
            if journal is not None and journal.is_read_only and not driver.has_ended():
                journal.check_writable()  # now, not when the first task has ended
        driver.on_progress = on_progress
        with clock.phase("search"):
            driver.run()
        with clock.phase("evaluate"):
            evidence = final_evidence(driver.table, driver.pruning)
            _check_failures(plan, evidence)
            compared = with_shift(plan, driver.sample, Notebook(journal), client)
            results = _results(compared, evidence, driver.checkpoint, declared)
            choice = select(results, certificate=plan.certificate.name)
        results.attrs[PHASE_SECONDS] = clock.as_json(evidence, executor.n_slots)
        if place is not None:
            with clock.phase("save"):
                keep_results(results, place, journal)
        with clock.phase("model"):
            model = (
                _model(plan, driver, choice.candidate, place) if with_model else None
            )
        # The kept cube cannot know how long it took to be kept.
        results.attrs[PHASE_SECONDS] = clock.as_json(evidence, executor.n_slots)
    return Outcome(results, choice, model)


def _check_memory(plan: SearchSpec, executor: Executor) -> None:
    """Raise where a task has not enough memory for any fit of the plan."""
    # Tasks keep half of their share of the memory for what they cannot see.
    budget = executor.slot_memory // 2
    for group in plan.work.groups:
        group.family.check_budget(len(plan.work.y), budget)


def _declare(plan: SearchSpec, journal: Journal | None) -> str:
    """Write what the plan may read before anything is counted; return where it is."""
    if journal is None:
        return ""
    return declare(journal, declaration_of(plan, candidate_keys(plan.work.groups)))


def _driver(
    plan: SearchSpec,
    executor: Executor,
    journal: Journal | None,
    run_id: str,
    *,
    raise_failures: bool,
) -> Driver:
    """Return the driver of a plan; it knows what the journal holds."""
    table = _empty_table(plan)
    keys = candidate_keys(plan.work.groups)
    checkpoint = Checkpoint(journal, keys, plan.scheme, plan.fit_timeout)
    checkpoint.replay(table)
    return Driver(
        table,
        Pruning(plan.criterion, plan.settings, plan.prune),
        executor,
        checkpoint,
        run_id,
        raise_failures=raise_failures,
        fit_timeout=plan.fit_timeout,
        sample=pool_sample(plan),
    )


def _model(plan: SearchSpec, driver: Driver, candidate: int, place: Any) -> Any:
    """Return the model that the certificate is about, kept or fitted."""
    name = plan.certificate.deploys
    path = f"{driver.checkpoint.keys[candidate]}/{name}"
    fit = partial(driver.model, candidate, plan.scheme.number_of(name))
    return kept_model(driver.checkpoint.journal, place, path, fit)


def _results(
    plan: SearchSpec, evidence: Mapping[str, Any], checkpoint: Checkpoint, declared: str
) -> xr.Dataset:
    """Return the cube, with what the runs of its place have paid for so far."""
    results = make_results(plan, evidence)
    if checkpoint.journal is None:
        return results
    account = account_of(checkpoint.journal.read())
    return settle(results, account, declared, checkpoint.keys)


def _empty_table(plan: SearchSpec) -> CountTable:
    return CountTable(
        plan.scheme,
        plan.work.groups,
        plan.stages,
        plan.n_candidates,
        len(plan.classes),
        len(plan.work.y),
    )


def _check_failures(plan: SearchSpec, evidence: Mapping[str, Any]) -> None:
    failed = np.flatnonzero(evidence[names.STATUS] == names.STATUS_FAILED)
    if not len(failed):
        return
    number = int(failed[0])
    message = str(evidence[names.MESSAGE][number]).rstrip(".")
    first = f"candidate {number} ({plan.axes.params(number)}): {message}"
    if len(failed) == plan.n_candidates:
        raise AllFitsFailedError(
            f"all {len(failed)} candidates failed; the first was {first}. Run with "
            f"on_failure='raise' to see where it comes from."
        )
    warn(
        f"{len(failed)} of {plan.n_candidates} candidates failed and cannot be chosen; "
        f"the first was {first}. `results.message` has all.",
        FitFailedWarning,
    )


def refit(work: Work, candidate: int, training: int) -> FittedGroup:
    """Fit a candidate on one training as a run does: the model that it has counted."""
    job = FitJob(work.group_of(candidate).number, (candidate,), training)
    with single_threaded():
        _, fitted = fit_jobs(work, (), [job])
    return fitted[job]


def fit_model(plan: SearchSpec, candidate: int, fold: int | None) -> Any:
    """Fit one model of a plan and return the estimator; see `Plan.model`."""
    number = check_integer(
        candidate, "candidate", at_least=0, at_most=plan.n_candidates - 1
    )
    training = _training(plan, fold)
    fitted = refit(plan.work, number, training)
    if fitted.counts.status[fitted.candidates.index(number), 0] != FIT_DONE:
        message = fitted.counts.messages[number, training]
        raise RuntimeError(
            f"candidate {number} ({plan.axes.params(number)}) cannot be fitted on "
            f"{plan.work.trainings[training].name}: {message}"
        )
    return fitted.model(number, training)


def _training(plan: SearchSpec, fold: int | None) -> int:
    """Return the number of the training that leaves out a fold, or nothing."""
    if fold is not None:
        last = plan.scheme.n_folds - 1
        return check_integer(fold, "fold", at_least=0, at_most=last)
    if plan.scheme.full is None:
        raise ValueError(
            f"`fold` must be given: {plan.certificate.name!r} trains nothing on all "
            f"labeled rows; its model is that of fold 0."
        )
    return plan.scheme.full
