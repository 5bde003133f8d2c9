"""From a plan to a cube, a choice and a model: on a cluster or on local threads."""

import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_choice
from dsel.criteria import Criterion, get_criterion
from dsel.data.clients import resolve_client
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.results import Choice, add_criterion, make_cube
from dsel.searches.board import Board, Referee
from dsel.searches.executors import ClusterExecutor, Executor, LocalExecutor
from dsel.searches.journaling import Journaling
from dsel.searches.plan import Plan
from dsel.searches.run import Driver, Progress
from dsel.searches.select import select
from dsel.searches.versions import check_versions, installed_versions

CO_VALIDATION = (
    "disagreement",
    "dis_error",
    "train_error",
    "two_fold_cv",
    "max_dt_e",
    "max_cv_dt_e",
)
"""Criteria that the counts of random halvings answer without another fit."""


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
    plan: Plan,
    client: Any = None,
    *,
    out: Any = None,
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
    on_failure
        ``"record"`` a fit that raises (the candidate can never win), or ``"raise"``.
    on_progress
        Called a few times a second with a `Progress`.
    n_jobs
        Local threads; None means one for each core. A cluster has its own.
    with_model
        Whether to bring the chosen model here.

    Raises
    ------
    AllFitsFailedError
        Where no candidate could be fitted.
    ClusterLostError
        Where the scheduler or all workers are gone.
    VersionMismatchError
        Where a worker has another version of a package that decides results.
    """
    check_choice(on_failure, "on_failure", ("record", "raise"))
    client = resolve_client(client)
    run_id = uuid.uuid4().hex[:12]
    with ExitStack() as stack:
        executor = _executor(plan, client, run_id, n_jobs)
        stack.callback(executor.close)
        board = _empty_board(plan)
        journal = Journaling(None, run_id)
        journal.replay(board)
        driver = Driver(
            board,
            Referee(plan.criterion, plan.settings, plan.prune),
            plan.pool,
            executor,
            journal,
            on_progress=on_progress,
            raise_failures=on_failure == "raise",
        )
        driver.run()
        results = make_results(plan, board)
        _check_failures(plan, board)
        choice = select(results)
        training = plan.scheme.number_of(plan.criterion.deploys)
        model = driver.model(choice.candidate, training) if with_model else None
    return Outcome(results, choice, model)


def make_results(plan: Plan, board: Board) -> xr.Dataset:
    """Return the cube of a board, with what the plan's criteria make of it."""
    evidence = board.evidence()
    values = {
        name: value
        for name, value in evidence.items()
        if name not in {names.POOL_ROWS, names.FOLD_ROWS, names.TRAIN_ROWS}
    }
    text = np.array([board.messages.get(j, "") for j in range(plan.n_candidates)])
    cube = make_cube(
        plan.axes,
        plan.scheme.axes,
        {
            **values,
            names.FOLD_ROWS: evidence[names.FOLD_ROWS],
            names.TRAIN_ROWS: evidence[names.TRAIN_ROWS],
            names.POOL_ROWS: evidence[names.POOL_ROWS],
            names.SCORE_SECONDS: _score_seconds(board, evidence),
            names.MESSAGE: text,
            names.N_LABELED: np.array(len(plan.work.y)),
            names.N_CLASSES: np.array(len(plan.classes)),
        },
        assumptions=plan.assumptions,
        attributes=_provenance(plan),
    )
    for criterion in _read_out(plan):
        terms = criterion.evaluate(evidence, plan.settings)
        cube = add_criterion(
            cube,
            criterion.name,
            terms,
            delta_shares=plan.settings.delta_shares,
            delta=plan.delta,
            label_share=plan.label_share,
        )
    return cube


def _read_out(plan: Plan) -> list[Criterion]:
    """Return the plan's criterion first, then what else costs nothing."""
    free = ("cv_error",) if plan.scheme.halving is None else CO_VALIDATION
    wanted = [plan.criterion, plan.certificate, *map(get_criterion, free)]
    return list({criterion.name: criterion for criterion in wanted}.values())


def _score_seconds(board: Board, evidence: Mapping[str, Any]) -> Any:
    """Divide each candidate's scoring time among folds by the rows they were given."""
    rows = evidence[names.POOL_ROWS].astype(float)
    total = rows.sum(axis=1, keepdims=True)
    share = np.divide(rows, total, out=np.full_like(rows, np.nan), where=total > 0)
    return share * board.score_seconds[:, np.newaxis]


def _provenance(plan: Plan) -> dict[str, Any]:
    return {
        "seed": str(plan.seed),
        "versions": installed_versions(),
        "criterion": plan.criterion.name,
        "certificate": plan.certificate.name,
        "prune": int(plan.prune),
        "fingerprint": dict(plan.fingerprint),
        "remarks": list(plan.remarks),
        "classes": [str(label) for label in plan.classes],
    }


def _executor(plan: Plan, client: Any, run_id: str, n_jobs: int | None) -> Executor:
    if client is None:
        return LocalExecutor(plan.work, n_jobs)
    check_versions(client)
    return ClusterExecutor(plan.work, client, run_id)


def _empty_board(plan: Plan) -> Board:
    return Board(
        plan.scheme,
        plan.work.groups,
        plan.spans,
        0 if plan.pool is None else plan.pool.n_rows,
        plan.n_candidates,
        len(plan.classes),
    )


def _check_failures(plan: Plan, board: Board) -> None:
    failed = np.flatnonzero(board.failed)
    if not len(failed):
        return
    number = int(failed[0])
    first = f"candidate {number} ({plan.axes.params(number)}): {board.messages[number]}"
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
