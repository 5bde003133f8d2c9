"""A nested search: fits all candidates without each pair of folds, then chosen ones.

`fit_chosen` fits the chosen candidates, `count_chosen` counts them on the pool, and
`bound_chosen` computes both bounds.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.data.pool import Pool
from dsel.data.pool_parts import SampledRows
from dsel.data.query_rows import read_pool_rows, with_pool_index
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import Choice
from dsel.results.cube import GridAxes, make_pair_cube
from dsel.results.queries import Queries
from dsel.search.design.cv_schemes import model_of_fold
from dsel.search.engine.counts import FitTable, NestedCounts
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.inner_searches import ChosenCandidates, InnerSearches
from dsel.search.engine.job_queue import Engine
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.bound_chosen import make_choice
from dsel.search.running.count_chosen import count_chosen
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import make_cube_of_run
from dsel.search.running.fit_chosen import (
    add_chosen,
    choose_deployed_fold,
    fit_chosen,
)
from dsel.search.running.pool_check import check_pool, start_pool_check
from dsel.search.running.procedures import unwrap_model
from dsel.search.running.run import (
    RefittedModels,
    Run,
    make_outcome,
    open_engine,
    pair_evidence,
    replay_counts,
)
from dsel.search.running.run_description import RunDescription, describe_run

if TYPE_CHECKING:
    from distributed import Client


def search_nested(run: Run) -> Outcome:
    """Search without each fold, then fit and count the chosen candidates.

    The pool is checked while the inner searches run.
    """
    search, options = run.search, run.options
    context, pool, store = search.context, search.pool, run.store
    table = FitTable(search.scheme, context.candidate_groups, search.n_candidates)
    if store is not None:
        replay_counts(store, table)
    check = partial(check_pool, search, store, client=options.client)
    with (
        open_engine(
            context, pool, store, client=options.client, n_jobs=options.n_jobs
        ) as engine,
        start_pool_check(check) as pool_check,
    ):
        inner = InnerSearches(search.scheme, search.prune)

        def raise_or_show_fits(loop: FitLoop[FitTable]) -> None:
            """Raise what the check of the pool has raised, or show the fits."""
            if pool_check.done():
                pool_check.result()
            run.progress.show_fits(loop)

        # Only chosen candidates get a model of all rows to compare with, so this loop
        # counts nothing on the pool, and drops models once they are tested.
        FitLoop(engine, table, inner, raise_or_show_fits, options.raise_failures).fit()
        if not pool_check.done():
            run.progress.show_check()
        pool_findings = pool_check.result()
        description = describe_run(search, run.plan_facts, pool_findings.pool_facts)
        inner_counts = inner.final_counts(table, description.data)
        # This check comes before the fits of the chosen candidates, which take time.
        check_failures(
            inner_counts,
            search.axes.candidates,
            context.labeled,
            unpredicting=table.unpredicting_candidates,
            is_nested=True,
        )
        chosen_candidates = inner.choose_candidates(table)
        return certify_choices(
            run,
            engine,
            chosen_candidates,
            inner_counts,
            description,
            sampled_rows=pool_findings.sampled_rows,
            pair_results=make_pair_results(
                search.axes, table, is_regression=search.is_regression
            ),
        )


def certify_choices(
    run: Run,
    engine: Engine,
    chosen_candidates: ChosenCandidates,
    inner_counts: NestedCounts,
    description: RunDescription,
    *,
    sampled_rows: SampledRows | None,
    pair_results: xr.Dataset,
) -> Outcome:
    """Fit, count and certify the choices of inner searches, which have these counts.

    The choices may have been made without fits, such as by a closed form. The pass over
    the pool compares `sampled_rows`, those of its check, with the rows that it reads.
    """
    search = run.search
    context = search.context
    fitted = fit_chosen(
        context,
        engine,
        chosen_candidates,
        models_to_fit=search.models_to_fit,
        on_turn=run.progress.show_chosen,
        raise_failures=run.options.raise_failures,
    )
    search_counts = add_chosen(inner_counts, fitted, search.criterion)
    # The pool must not decide which model is deployed, nor where it is queried.
    by_fold = list(chosen_candidates.by_fold)
    # (n_candidates, n_folds) becomes one score of the candidate without each fold.
    inner_scores = inner_counts.fold_scores[by_fold].mean(axis=1)
    deployed_fold = choose_deployed_fold(
        context.losses, search.planned_delta, fitted, inner_scores
    )
    # The counts on the folds are complete here. From now on only the pool is random,
    # which is the order in which the proof conditions (docs/theory/nested.md).
    chosen = count_chosen(
        context.with_sample(sampled_rows),
        engine,
        fitted,
        deployed_fold,
        slices=search.slices,
        n_duplicates=description.data.n_duplicates,
        query_draw=search.query_draw,
        on_turn=run.progress.show_chosen,
    )
    choice = make_choice(search, search_counts, chosen, description)
    queried_rows = None
    if choice.queries is not None and search.queried_pool is not None:
        queried_rows = read_queried_rows(
            choice.queries, search.queried_pool, run.options.client
        )
    return make_outcome(
        make_cube_of_run(search, search_counts, description, choice, chosen),
        choice,
        partial(dict, chosen.models_by_name),
        labeled=context.labeled,
        loss=context.losses.main,
        row_groups=search.row_groups,
        identity=run.identity,
        pair_results=pair_results,
        queried_rows=queried_rows,
    )


def read_queried_rows(
    queries: Queries, pool: Pool, client: "Client | None"
) -> pd.DataFrame | None:
    """Read the queried pool rows again; None if there are none.

    `pool` has all columns: a person may need some that no model reads.
    """
    if not queries.rows:
        return None
    with pool.guard_pass():
        rows = read_pool_rows(pool, queries.rows, client=client)
    # A column of the pool with the name of the index would be there twice.
    rows = with_pool_index(rows, pool)
    return rows.drop(columns=rows.index.name, errors="ignore")


def make_pair_results(
    axes: GridAxes, table: FitTable, *, is_regression: bool
) -> xr.Dataset:
    """Return the Dataset with the counts of inner searches."""
    splits = table.scheme.splits
    # With two folds a split has one part of test rows, and no second count.
    n_rows = [
        (len(s.test_rows), 0 if s.second_part is None else len(s.second_part))
        for s in splits
    ]
    by_name: dict[str, Integers | Floats] = {names.FOLD_ERRORS: table.errors}
    if is_regression:
        by_name = {names.FOLD_LOSS_MEAN: table.scores}
    return make_pair_cube(
        axes,
        [(split.numbers[0], split.numbers[-1]) for split in splits],
        by_name,
        np.array(n_rows),
        table.fit_seconds,
    )


def refit_nested_models(run: Run, cube: xr.Dataset, choice: Choice) -> RefittedModels:
    """Fit the chosen candidates of a run again, and repeat all their counts."""
    search = run.search
    # Inner searches are not made again: which candidates they chose stands in the cube.
    outer = cube[names.OUTER_CANDIDATE].values.astype(int).tolist()
    # The cube has no candidate of all rows. Where no bound names it, its model is not
    # returned, so that any candidate may stand there.
    chosen_candidates = ChosenCandidates(
        choice.by_model("candidate").get(ALL_ROWS, outer[0]), tuple(outer)
    )
    # The plan repeats what was declared of the pool, so the count is that of the run.
    n_duplicates = int(cube[names.N_DUPLICATES])
    # The fold of the choice, since another version may choose another one.
    deployed_fold = choice.certificates[ONE_FOLD].fold
    assert deployed_fold is not None  # its model left a fold out
    context, options = search.context, run.options
    with open_engine(
        context, search.pool, run.store, client=options.client, n_jobs=options.n_jobs
    ) as engine:
        refitted = fit_chosen(
            context,
            engine,
            chosen_candidates,
            models_to_fit=search.models_to_fit,
            on_turn=run.progress.show_chosen,
            raise_failures=options.raise_failures,
        )
        chosen = count_chosen(
            context,
            engine,
            refitted,
            deployed_fold,
            slices=search.slices,
            n_duplicates=n_duplicates,
            query_draw=search.query_draw,
            on_turn=run.progress.show_chosen,
        )
    repeated = pair_evidence(cube, chosen.evidence)
    if choice.queries is not None:
        queried_rows = np.sort(chosen.on_pool.queried.rows)
        repeated.append((np.array(choice.queries.rows), queried_rows))
    models = {
        name: unwrap_model(chosen.models[model_of_fold(certificate.fold)])
        for name, certificate in choice.certificates.items()
    }
    return RefittedModels(models, repeated)
