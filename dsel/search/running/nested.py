"""A nested search: fits all candidates without each pair of folds, then chosen ones.

`fit_chosen` fits and counts the chosen candidates, and `bound_chosen` computes both
bounds; its docstring has a map of the calls.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from dsel import names
from dsel.data.query_rows import read_pool_rows
from dsel.families.family import FitKey
from dsel.option_values import ALL_ROWS
from dsel.results import Choice
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import short_params_text
from dsel.results.cube import make_pair_cube, read_counts
from dsel.runtime.progress import CHECKING, Phase, Progress
from dsel.search.design.assumptions import PoolCheck, PoolFacts
from dsel.search.engine.counts import CountTable, SearchCounts
from dsel.search.engine.engine import Engine
from dsel.search.engine.jobs import Keep
from dsel.search.engine.nested_pruner import ChosenCandidates, NestedPruner
from dsel.search.engine.search_loop import Search
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.bound_chosen import add_chosen, bound_chosen
from dsel.search.running.check_pool import start_pool_check
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import (
    RunDescription,
    describe_run,
    make_cube_of_run,
)
from dsel.search.running.fit_chosen import NOTHING_DONE, fit_chosen
from dsel.search.running.progress import fitting_phase, show_nested_progress
from dsel.search.running.run import Remade, Run, make_search, open_engine

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan


def search_nested(run: Run) -> Outcome:
    """Search without each fold, then fit and count the chosen candidates.

    The pool is checked at the same time as the inner searches are made.
    """
    plan = run.plan
    with open_engine(run) as engine, start_pool_check(run) as pending:

        def show(search: Search) -> None:
            if pending.done():  # raise what is wrong with the pool while fits run
                pending.result()
            # A single candidate has no fits before it is chosen.
            if run.on_progress is not None and search.table.fit_status.size:
                phase = fitting_phase(plan, search)
                show_nested_progress(run, search.progress(), phase)

        pruner = NestedPruner(plan.scheme, plan.prune)
        search = make_search(run, engine, pruner, Keep.NOWHERE, show)
        # Only what is chosen has a model of all rows to be compared with, so this loop
        # counts nothing on the pool, and no model need stay where it is made.
        assert not search.table.pool.slices
        search.run()
        # What follows goes on with these totals, so that no bar begins again at 0.
        before = search.progress()
        if not pending.done():
            show_nested_progress(run, before, Phase(CHECKING))
        description = describe_run(plan, pending.result())
        reasons = failed_test_caveats(plan, search.fitting.failed_tests)
        description = replace(
            description, caveats=collect_caveats(description.caveats, reasons)
        )
        counts = pruner.final_counts(search.table, description.known)
        # Before fits of the chosen candidates are paid for.
        check_failures(plan, counts, search.table.unpredicting)
        candidates = pruner.choose_candidates(search.table)
        outcome = certify_choices(run, engine, candidates, counts, description, before)
    return replace(outcome, pair_results=pair_results(plan, search.table))


def failed_test_caveats(plan: "Plan", failed: Mapping[FitKey, str]) -> list[Caveat]:
    """Return why no bound is certified if a test of two folds failed with its task.

    Both searches that read the fit have lost the candidate, though each of them must
    not depend on the rows of one of the folds.
    """
    if not failed:
        return []
    (number, split), message = next(iter(failed.items()))
    one, other = plan.scheme.splits[split].key
    text = (
        f"{short_params_text(plan.axes.candidates[number])} could be fitted without "
        f"folds {one} and {other}, but not tested on them ({message}): the search "
        f"without one of these folds then depends on its rows. Give each worker more "
        f"memory, or leave out the candidates that fail"
    )
    return make_caveats(Effect.VOIDS, [text])


def certify_choices(
    run: Run,
    engine: Engine,
    candidates: ChosenCandidates,
    counts: SearchCounts,
    description: RunDescription,
    before: Progress = NOTHING_DONE,
) -> Outcome:
    """Fit, count and certify the choices of inner searches, which have these counts.

    They may have been made without fits, such as by a closed form.
    """
    plan = run.plan
    chosen = fit_chosen(
        run, engine, candidates, counts.by_name, description.pool_check, before
    )
    counts = add_chosen(plan, counts, chosen)
    choice, models = bound_chosen(plan, counts, chosen, description)
    return Outcome(
        make_cube_of_run(plan, counts, description, choice),
        choice,
        make_models=partial(dict, models),
        pool_rows=read_queried_rows(run, choice),
    )


def read_queried_rows(run: Run, choice: Choice) -> pd.DataFrame | None:
    """Read the queried pool rows again; None if there are none.

    They have all columns: a person may need some that no model reads.
    """
    source = run.plan.source
    if choice.queries is None or not choice.queries.rows or source is None:
        return None
    with source.guard_pass():
        rows = read_pool_rows(source, choice.queries.rows, client=run.client)
    # The index has this name.
    return rows.drop(columns=rows.index.name, errors="ignore")


def pair_results(plan: "Plan", table: CountTable) -> xr.Dataset:
    """Return the Dataset with the counts of inner searches."""
    splits = plan.scheme.splits
    # With two folds a split has one part of test rows, and no second count.
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
    candidates = ChosenCandidates(
        choice.candidates.get(ALL_ROWS, outer[0]), tuple(outer)
    )
    pool_check = PoolCheck(PoolFacts(int(cube[names.EQUAL_ROWS])))
    with open_engine(run) as engine:
        remade = fit_chosen(run, engine, candidates, read_counts(cube), pool_check)
    models = {
        name: remade.models[run.plan.scheme.n_folds if c.fold is None else c.fold]
        for name, c in choice.certificates.items()
    }
    # Runs of 0.2 have no counts of duplicates.
    known = {name: n for name, n in remade.evidence.by_name.items() if name in cube}
    counts = {name: (cube[name].values, n) for name, n in known.items()}
    if choice.queries is not None:
        counts["queries"] = np.array(choice.queries.rows), np.sort(remade.drawn.rows)
    return Remade(models, counts)
