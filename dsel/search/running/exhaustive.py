"""A search that counts every candidate: bounds of all at once, or estimates."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from dsel import names
from dsel.criteria import Settings
from dsel.losses.base import FoldCounts
from dsel.option_values import Pruning
from dsel.results import Choice
from dsel.results.certificate import CHOICE
from dsel.results.cube import read_counts
from dsel.runtime.progress import CHECKING, COUNTING, Phase, Progress
from dsel.search.engine.exact_pruner import ExactPruner, ExhaustiveTable
from dsel.search.engine.exhaustive_search import ExhaustiveLoop
from dsel.search.engine.fit_batch import count_statistics
from dsel.search.engine.inner_searches import ChosenCandidates
from dsel.search.engine.job_queue import Engine
from dsel.search.engine.pruning import OnlyCandidate, Pruner
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.bound_chosen import bound_chosen
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import (
    describe_run,
    make_cube_of_run,
    make_data_counts,
)
from dsel.search.running.fit_chosen import ChosenModels, CountedModels
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.pool_check import check_pool
from dsel.search.running.run import (
    Remade,
    Run,
    fitting_phase,
    open_engine,
    replay_counts,
    show_progress,
)
from dsel.search.running.select import choose
from dsel.typing import Model


def search_exhaustively(run: Run) -> Outcome:
    """Count every candidate that can win, choose one, and fetch its model."""
    plan = run.plan
    # The check comes first, since its counts are part of the bounds that prune.
    if plan.pool is not None:
        show_progress(run, Progress(), Phase(CHECKING))
    pool_check = check_pool(run)
    description = describe_run(plan, pool_check.facts)
    with open_engine(run, pool_check.sampled_rows) as engine:
        pruner = ExactPruner(
            plan.criterion,
            Settings(plan.candidate_deltas),
            description.data,
            may_prune=plan.prune != Pruning.NONE,
        )
        loop = make_loop(run, engine, pruner, partial(show_search, run))
        models = None
        # Repeated until the model that the counts choose is one that was counted.
        while models is None:
            loop.fit_and_count()
            counts = pruner.final_counts(loop.table)
            check_failures(plan, counts, loop.table.unpredicting_candidates)
            if bounds_only_choice(plan):
                counted = count_only_fold(plan, loop, *pruner.choose_candidate(counts))
                if counted is None:
                    continue
                counts = replace(counts, evidence=counted.evidence)
                choice, models = bound_chosen(plan, counts, counted, description)
                cube = make_cube_of_run(plan, counts, description, choice)
            else:
                cube = make_cube_of_run(plan, counts, description)
                choice = choose(cube, plan.criterion.name)
                cube = cube.assign_attrs({CHOICE: choice.to_json()})
                models = fetch_deployed_model(plan, loop, choice)
    return Outcome(cube, choice, make_models=partial(dict, models))


def show_search(run: Run, loop: ExhaustiveLoop) -> None:
    """Show the progress of fits, or that of a pass over the pool."""
    if run.options.on_progress is not None:
        progress = loop.progress()
        n_done, n_slices = progress.slices_done, progress.slices_total
        phase = fitting_phase(run.plan, loop)
        if n_done < n_slices:
            phase = Phase(COUNTING, n_done, n_slices)
        show_progress(run, progress, phase)


def make_loop(
    run: Run,
    engine: Engine,
    pruner: Pruner[ExhaustiveTable],
    show: Callable[[ExhaustiveLoop], object],
) -> ExhaustiveLoop:
    """Return the loop of a search, which starts with the counts of earlier runs."""
    plan, comparisons = run.plan, run.plan.comparisons
    table = ExhaustiveTable(
        plan.scheme,
        plan.context.candidate_groups,
        plan.n_candidates,
        comparisons,
        plan.slices if comparisons else (),
    )
    replay_counts(run, table)
    return ExhaustiveLoop(engine, table, pruner, show, run.options.raise_failures)


def bounds_only_choice(plan: PlannedSearch) -> bool:
    """Return whether only the chosen candidate gets a bound, by counts of its own.

    So it is with a hold-out set where squared errors rank candidates.
    """
    return plan.method.is_guarantee and not plan.criterion.is_guarantee


def count_only_fold(
    plan: PlannedSearch, loop: ExhaustiveLoop, number: int, loss: float
) -> CountedModels | None:
    """Count the losses of a candidate's model on the only fold; None if it is gone.

    The bounds of all candidates share delta equally and hold at once, so that the same
    rows may both rank and bound.
    """
    context, scheme = plan.context, plan.scheme
    [split] = scheme.held_out
    fitted_group = loop.fetch_counted_group(number, 0)
    if fitted_group is None:
        return None
    family = context.candidate_group_of(number).family
    counts = count_statistics(context, split, family.join([fitted_group], [number]))
    folds = {
        statistic: FoldCounts(n[np.newaxis], scheme.fold_rows)
        for statistic, n in zip(context.losses.statistics, counts, strict=True)
    }
    chosen = ChosenModels(
        # The only candidate is both the one chosen without the fold and the one chosen
        # by all rows.
        candidates=ChosenCandidates(number, (number,)),
        models={0: fitted_group.model(number, 0)},
        folds=folds,
        limits=context.losses.limit_folds(folds, plan.planned_delta),
        fold_losses=np.array([loss]),
        deployed_fold=0,
    )
    return CountedModels(chosen)


def fetch_deployed_model(
    plan: PlannedSearch, loop: ExhaustiveLoop, choice: Choice
) -> dict[str, Model] | None:
    """Return the deployed model, by its name; None if the counted one is gone."""
    split, number = choice.fold, choice.candidate
    if split is None:  # the split on all rows follows those without a fold
        split = plan.scheme.n_folds
    fitted_group = loop.fetch_counted_group(number, split)
    if fitted_group is None:
        return None
    return {choice.deploy: fitted_group.model(number, split)}


def remake_chosen_model(run: Run, cube: xr.Dataset, choice: Choice) -> Remade:
    """Fit the candidate that a run chose again, and repeat all its counts."""
    plan, number, counts = run.plan, choice.candidate, read_counts(cube)
    with open_engine(run) as engine:
        loop = make_loop(run, engine, OnlyCandidate(number), lambda _: None)
        models = counted = None
        while models is None and counted is None:
            loop.fit_and_count()
            if bounds_only_choice(plan):
                counted = count_only_fold(plan, loop, number, choice.criterion_value)
            else:
                models = fetch_deployed_model(plan, loop, choice)
        repeated = loop.table.counts(make_data_counts(plan)).by_name
        if counted is not None:
            evidence = counted.evidence.by_name
            pairs = {name: (cube[name].values, n) for name, n in evidence.items()}
            return Remade({choice.deploy: counted.chosen.models[0]}, pairs)
    variables = names.FOLD_ERRORS, names.DISAGREEMENTS, names.BEST_FOLD_DISAGREEMENTS
    pairs = {
        name: (np.ravel(counts[name][number]), np.ravel(repeated[name][number]))
        for name in variables
        if name in counts
    }
    return Remade(models or {}, pairs)
