"""A nested search: fits all candidates without each pair of folds, then chosen ones.

`fit_chosen` fits the chosen candidates, `count_chosen` counts them on the pool, and
`bound_chosen` computes both bounds.
"""

from concurrent.futures import Future
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.data.query_rows import read_pool_rows
from dsel.option_values import ALL_ROWS
from dsel.results import Choice
from dsel.results.cube import make_pair_cube, read_counts
from dsel.runtime.progress import CHECKING, Phase, Progress
from dsel.search.design.assumptions import PoolFacts, PoolFindings
from dsel.search.engine.counts import FitTable, SearchCounts
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.inner_searches import ChosenCandidates, InnerSearches
from dsel.search.engine.job_queue import Engine
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.bound_chosen import bound_chosen
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import (
    RunDescription,
    describe_run,
    make_cube_of_run,
)
from dsel.search.running.fit_chosen import (
    NOTHING_DONE,
    ChosenProgress,
    add_chosen,
    count_chosen,
    fit_chosen,
)
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.pool_check import start_pool_check
from dsel.search.running.run import (
    Remade,
    Run,
    chosen_progress,
    fitting_phase,
    open_engine,
    replay_counts,
    show_progress,
)


def search_nested(run: Run) -> Outcome:
    """Search without each fold, then fit and count the chosen candidates.

    The pool is checked at the same time as the inner searches are made.
    """
    plan = run.plan
    table = FitTable(plan.scheme, plan.context.candidate_groups, plan.n_candidates)
    replay_counts(run, table)
    with open_engine(run) as engine, start_pool_check(run) as pending:
        inner = InnerSearches(plan.scheme, plan.prune)
        # Only what is chosen has a model of all rows to be compared with, so this loop
        # counts nothing on the pool, and drops models once they are tested.
        show_fits = partial(check_pool_and_show, run, pending)
        raise_failures = run.options.raise_failures
        loop = FitLoop(engine, table, inner, show_fits, raise_failures)
        loop.fit()
        # What follows adds to these totals, so that no bar begins again at 0.
        before = loop.progress()
        if not pending.done():
            show_progress(run, before + chosen_progress(plan), Phase(CHECKING))
        pool_check = pending.result()
        description = describe_run(plan, pool_check.facts)
        counts = inner.final_counts(table, description.data)
        # Before fits of the chosen candidates are paid for.
        check_failures(plan, counts, table.unpredicting_candidates)
        candidates = inner.choose_candidates(table)
        return certify_choices(
            run,
            engine,
            candidates,
            counts,
            description,
            pool_check,
            before,
            pair_results=make_pair_results(plan, table),
        )


def check_pool_and_show(
    run: Run, pending: "Future[PoolFindings]", loop: FitLoop[FitTable]
) -> None:
    """Show the progress of inner searches; raise what is wrong with the pool."""
    if pending.done():
        pending.result()
    # A single candidate has no fits before it is chosen.
    if run.options.on_progress is not None and loop.table.fit_status.size:
        progress = loop.progress() + chosen_progress(run.plan)
        show_progress(run, progress, fitting_phase(run.plan, loop))


def certify_choices(
    run: Run,
    engine: Engine,
    candidates: ChosenCandidates,
    inner_counts: SearchCounts,
    description: RunDescription,
    pool_check: PoolFindings,
    before: Progress = NOTHING_DONE,
    *,
    pair_results: xr.Dataset,
) -> Outcome:
    """Fit, count and certify the choices of inner searches, which have these counts.

    They may have been made without fits, such as by a closed form.
    """
    plan = run.plan
    progress = ChosenProgress(run, before)
    chosen = fit_chosen(run, engine, candidates, inner_counts.by_name, progress)
    # The counts on the folds are complete here. From now on only the pool is random,
    # which is the order in which the proof conditions (docs/theory/nested.md).
    counted = count_chosen(run, engine, chosen, pool_check, progress)
    counts = add_chosen(plan, inner_counts, counted)
    choice, models = bound_chosen(plan, counts, counted, description)
    return Outcome(
        make_cube_of_run(plan, counts, description, choice),
        choice,
        make_models=partial(dict, models),
        pool_rows=read_queried_rows(run, choice),
        pair_results=pair_results,
    )


def read_queried_rows(run: Run, choice: Choice) -> pd.DataFrame | None:
    """Read the queried pool rows again; None if there are none.

    They have all columns: a person may need some that no model reads.
    """
    source = run.plan.source
    if choice.queries is None or not choice.queries.rows or source is None:
        return None
    with source.guard_pass():
        rows = read_pool_rows(source, choice.queries.rows, client=run.options.client)
    # A column of the pool with the name of the index would be there twice.
    return rows.drop(columns=rows.index.name, errors="ignore")


def make_pair_results(plan: PlannedSearch, table: FitTable) -> xr.Dataset:
    """Return the Dataset with the counts of inner searches."""
    splits = plan.scheme.splits
    # With two folds a split has one part of test rows, and no second count.
    n_rows = [
        (len(s.test_rows), 0 if s.second_part is None else len(s.second_part))
        for s in splits
    ]
    counts: dict[str, Integers | Floats] = {names.FOLD_ERRORS: table.errors}
    if plan.is_regression:
        counts = {names.FOLD_LOSS_MEAN: table.losses}
    return make_pair_cube(
        plan.axes,
        [(split.numbers[0], split.numbers[-1]) for split in splits],
        counts,
        np.array(n_rows),
        table.fit_seconds,
    )


def remake_nested_models(run: Run, cube: xr.Dataset, choice: Choice) -> Remade:
    """Fit the chosen candidates of a run again, and repeat all their counts."""
    # Inner searches are not made again: which candidates they chose stands in the cube.
    outer = cube[names.OUTER_CANDIDATE].values.astype(int).tolist()
    candidates = ChosenCandidates(
        choice.candidates.get(ALL_ROWS, outer[0]), tuple(outer)
    )
    pool_check = PoolFindings(PoolFacts(int(cube[names.EQUAL_ROWS])))
    with open_engine(run) as engine:
        progress = ChosenProgress(run)
        remade = fit_chosen(run, engine, candidates, read_counts(cube), progress)
        counted = count_chosen(run, engine, remade, pool_check, progress)
    models = {
        name: remade.models[remade.all_rows_number if c.fold is None else c.fold]
        for name, c in choice.certificates.items()
    }
    # Runs of 0.2 have no counts of duplicates.
    repeated = {name: n for name, n in counted.evidence.by_name.items() if name in cube}
    counts = {name: (cube[name].values, n) for name, n in repeated.items()}
    if choice.queries is not None:
        counts["queries"] = np.array(choice.queries.rows), np.sort(counted.drawn.rows)
    return Remade(models, counts)
