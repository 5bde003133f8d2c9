"""A nested search: fits all candidates without each pair of folds, then chosen ones.

`fit_chosen` fits and counts the chosen candidates, and `last_step` computes both
bounds; its docstring has a map of the calls.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.families.generic import collect_warnings
from dsel.option_values import ALL_ROWS
from dsel.results import Choice
from dsel.results.certificate import CHOICE
from dsel.results.cube import make_pair_cube
from dsel.runtime.clients import current_worker
from dsel.runtime.progress import CHECKING, Phase, Progress
from dsel.runtime.submission import Executor
from dsel.runtime.tasks import is_task
from dsel.search.design.assumptions import PoolCheck, PoolFacts
from dsel.search.engine.counts import CountTable, SearchCounts
from dsel.search.engine.jobs import Keep
from dsel.search.engine.pruning import ChosenCandidates, NestedPruner
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import (
    RunDescription,
    describe_run,
    make_cube_of_run,
)
from dsel.search.running.fit_chosen import NOTHING_DONE, fit_chosen, show_last_step
from dsel.search.running.last_step import add_last_step, bound_chosen
from dsel.search.running.run import Remade, Run, SearchWay

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

STOP_SECONDS: Final = 1.0
"""Longest wait for the check of the pool to end, after the search has failed."""


def search_nested(run: Run) -> Outcome:
    """Search without each fold, then fit and count the chosen candidates.

    The pool is compared with the labeled rows at the same time as the fits, which do
    not depend on the result.
    """
    plan = run.plan
    # One executor for the search and its last step: workers get the labeled rows once.
    with closing(run.open_executor()) as executor:
        run.check_memory(executor)
        with _start_pool_check(run) as pending:

            def show_progress() -> None:
                if pending.done():  # raise what is wrong with the pool while fits run
                    pending.result()
                # A single candidate has no fits before the last step.
                if run.on_progress is not None and search.table.fit_status.size:
                    phase = run.fitting_phase(search)
                    show_last_step(run, search.progress(), phase)

            pruner = NestedPruner(plan.scheme, plan.prune)
            search = run.search(executor, pruner, Keep.NOWHERE, show_progress)
            # Only what is chosen has a model of all rows to be compared with, so this
            # loop counts nothing on the pool, and no model need stay where it is made.
            assert not search.table.pool.slices
            search.run()
            # The last step goes on with these totals, so that no bar begins again at 0.
            before = search.progress()
            if not pending.done():
                show_last_step(run, before, Phase(CHECKING))
            pool_check = pending.result()
            description = describe_run(plan, pool_check.facts)
            counts = pruner.final_counts(search.table, description.known)
            # Before the last step is paid for.
            check_failures(plan, counts, search.table.unpredicting)
            return certify_choices(
                run,
                executor,
                pruner,
                search.table,
                counts,
                description,
                pool_check,
                before,
            )


def certify_choices(
    run: Run,
    executor: Executor,
    pruner: NestedPruner,
    table: CountTable,
    counts: SearchCounts,
    description: RunDescription,
    pool_check: PoolCheck,
    before: Progress = NOTHING_DONE,
) -> Outcome:
    """Choose by the counts of inner searches; fit, count and certify the choice.

    The table may also be filled without fits, such as by a closed form; `counts` are
    its final ones.
    """
    plan = run.plan
    candidates = pruner.choose_candidates(table)
    last = fit_chosen(run, executor, candidates, pool_check, before)
    counts = add_last_step(plan, counts, last)
    choice, models = bound_chosen(plan, counts, last, description)
    cube = make_cube_of_run(plan, counts, description)
    return Outcome(
        cube.assign_attrs({CHOICE: choice.to_json()}),
        choice,
        pair_results(plan, table),
        partial(dict, models),
        run.read_query_rows(choice),
    )


@contextmanager
def _start_pool_check(run: Run) -> "Iterator[Future[PoolCheck]]":
    """Compare the pool with the labeled rows, in a thread next to the fits.

    If the search fails or is interrupted, the check stops. Its error, or Ctrl-C, does
    not wait for slices of the pool that are being read.
    """
    if is_task() or current_worker() is not None:
        # A thread of its own would not know that it is part of a task.
        done: Future[PoolCheck] = Future()
        done.set_result(run.ensure_pool_check())
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
            return run.ensure_pool_check(stop)

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


def pair_results(plan: "Plan", table: CountTable) -> xr.Dataset:
    """Return the Dataset with the counts of inner searches."""
    splits = plan.scheme.splits
    # A quarter has one number, and one part of rows.
    n_rows = [
        (len(s.test_rows), 0 if s.second_part is None else len(s.second_part))
        for s in splits
    ]
    counted, values = names.FOLD_ERRORS, table.errors
    if plan.is_regression:
        counted, values = names.FOLD_LOSS_MEAN, table.scores
    return make_pair_cube(
        plan.axes,
        [(each.key[0], each.key[-1]) for each in splits],
        {counted: values},
        np.array(n_rows),
        table.fit_seconds,
    )


def remake_nested(run: Run, cube: xr.Dataset, choice: Choice) -> Remade:
    """Fit the chosen candidates of a run again, and repeat all their counts."""
    # Inner searches are not made again: which candidates they chose stands in the cube.
    outer = cube[names.OUTER_CANDIDATE].values.astype(int).tolist()
    chosen = ChosenCandidates(choice.candidates.get(ALL_ROWS, outer[0]), tuple(outer))
    pool_check = PoolCheck(PoolFacts(int(cube[names.EQUAL_ROWS])))
    with closing(run.open_executor()) as executor:
        last = fit_chosen(run, executor, chosen, pool_check)
    models = {
        name: last.fitted.models[run.plan.scheme.n_folds if c.fold is None else c.fold]
        for name, c in choice.certificates.items()
    }
    # Runs of 0.2 have no counts of duplicates.
    known = {name: n for name, n in last.evidence.by_name.items() if name in cube}
    counts = {name: (cube[name].values, n) for name, n in known.items()}
    if choice.queries is not None:
        counts["queries"] = np.array(choice.queries.rows), np.sort(last.drawn.rows)
    return Remade(models, counts)


NESTED: Final = SearchWay(search_nested, remake_nested)
"""The way of the default: inner searches, then a last step."""
