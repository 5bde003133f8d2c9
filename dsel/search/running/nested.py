"""A nested search: fits all candidates without each pair of folds, then chosen ones.

`fit_chosen` fits and counts the chosen candidates, and `last_step` computes both
bounds; its docstring has a map of the calls.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import CandidateCounts
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
from dsel.search.engine.counts import CountTable
from dsel.search.engine.jobs import Keep
from dsel.search.engine.pruning import ChosenCandidates, NestedPruner
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.fit_chosen import NOTHING_DONE, fit_chosen, show_last_step
from dsel.search.running.last_step import LastStep, add_counts, bound_chosen
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
                    phase = run.fitting_phase(search.table)
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
            pool_check, searched = pending.result(), pruner.final_counts(search.table)
            # Before the last step is paid for.
            run.check_failures(searched, search.table.unpredicting)
            return certify_choices(
                run, executor, pruner, search.table, searched, pool_check, before
            )


def certify_choices(
    run: Run,
    executor: Executor,
    pruner: NestedPruner,
    table: CountTable,
    searched: CandidateCounts,
    pool_check: PoolCheck,
    before: Progress = NOTHING_DONE,
) -> Outcome:
    """Choose by the counts of inner searches; fit, count and certify the choice.

    The table may also be filled without fits, such as by a closed form; `searched` are
    its final counts.
    """
    plan = run.plan
    last = fit_chosen(
        run, executor, pruner.choose_candidates(table), pool_check, before
    )
    counts = {
        **add_last_step(plan, searched, last),
        **run.fixed_counts(pool_check.facts),
    }
    cube = add_counts(run.make_cube(counts, pool_check.facts), last)
    choice, models = bound_chosen(plan, cube, last)
    cube = cube.assign_attrs({CHOICE: choice.to_json()})
    return Outcome(
        cube,
        choice,
        pair_results(plan, table),
        partial(dict, models),
        run.read_query_rows(choice),
    )


def add_last_step(
    plan: "Plan", searched: CandidateCounts, last: LastStep
) -> dict[str, NDArray[Any]]:
    """Return the counts of inner searches with those of the last step."""
    counts = {**searched, **last.counts}
    counts[names.OUTER_CANDIDATE] = np.array(last.chosen.by_fold)
    for number, message in last.fitted.messages.items():
        if not counts[names.MESSAGE][number]:
            counts[names.MESSAGE][number] = message.text
            counts[names.FIT_PROBLEM][number] = message.problem.value
    if plan.n_candidates == 1:  # inner searches have counted nothing
        if names.OUTER_ERRORS in last.counts:
            counts[names.FOLD_ERRORS] = last.counts[names.OUTER_ERRORS][np.newaxis]
        counts[names.FOLD_ANSWERS] = plan.scheme.fold_rows[np.newaxis]
        counts[names.FOLD_LOSS_MEAN] = last.fitted.scores[np.newaxis]
    if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
        del counts[names.FOLD_LOSS_MEAN]
    return counts


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
    known = {name: n for name, n in last.counts.items() if name in cube}
    counts = {name: (cube[name].values, n) for name, n in known.items()}
    if choice.queries is not None:
        counts["queries"] = np.array(choice.queries.rows), np.sort(last.drawn.rows)
    return Remade(models, counts)


NESTED: Final = SearchWay(search_nested, remake_nested)
"""The way of the default: inner searches, then a last step."""
