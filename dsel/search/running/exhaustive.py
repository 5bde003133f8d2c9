"""A search that counts every candidate: bounds of all at once, or estimates."""

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

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
from dsel.search.engine.counts import KnownCounts
from dsel.search.engine.fit_batch import count_rows
from dsel.search.engine.jobs import Keep
from dsel.search.engine.pruning import ChosenCandidates, ExactPruner
from dsel.search.engine.search_loop import Search
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import (
    count_known,
    describe_run,
    make_cube_of_run,
)
from dsel.search.running.last_step import FittedModels, LastStep, bound_chosen
from dsel.search.running.run import Remade, Run, SearchWay
from dsel.search.running.select import choose
from dsel.typing import Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan


def search_all(run: Run) -> Outcome:
    """Count every candidate that can win, choose one, and fetch its model."""
    plan = run.plan
    # The check comes first, since its counts are part of the bounds that prune.
    if plan.pool is not None:
        run.show_progress(Progress(), Phase(CHECKING))
    pool_check = run.ensure_pool_check()

    def show_progress() -> None:
        if run.on_progress is not None:
            progress = search.progress()
            n_done, n_slices = progress.slices_done, progress.slices_total
            phase = run.fitting_phase(search)
            if n_done < n_slices:
                phase = Phase(COUNTING, n_done, n_slices)
            run.show_progress(progress, phase)

    description = describe_run(plan, pool_check.facts)
    with closing(run.open_executor(pool_check.sampled_rows)) as executor:
        run.check_memory(executor)
        may_prune = plan.prune != Pruning.NONE
        pruner = exact_pruner(plan, description.known, may_prune=may_prune)
        search = run.search(executor, pruner, Keep.ON_WORKER, show_progress)
        search.run()
        counts = pruner.final_counts(search.table)
        check_failures(plan, counts, search.table.unpredicting)
        if plan.certificate and not plan.criterion.is_guarantee:
            number, score = pruner.choose_candidate(counts)
            last = count_only_fold(run, search, number, score)
            counts = replace(counts, evidence=last.evidence)
            choice, models = bound_chosen(plan, counts, last, description)
            cube = make_cube_of_run(plan, counts, description)
        else:
            cube = make_cube_of_run(plan, counts, description)
            choice = choose(cube, plan.criterion.name)
            models = deployed_model(plan, search, choice)
    cube = cube.assign_attrs({CHOICE: choice.to_json()})
    return Outcome(cube, choice, None, partial(dict, models))


def count_only_fold(run: Run, search: Search, number: int, score: float) -> LastStep:
    """Count the losses of the model of a candidate on the only fold.

    The bounds of all candidates share delta equally and hold at once, so that the same
    rows may both rank and bound.
    """
    context, scheme = run.plan.context, run.plan.scheme
    [split] = scheme.held_out
    fitted, family = search.model(number, 0), context.candidate_group_of(number).family
    counts = count_rows(context, split, family.join([fitted], [number]))
    folds = {
        statistic: FoldCounts(each[np.newaxis], scheme.fold_rows)
        for statistic, each in zip(context.losses.statistics, counts, strict=True)
    }
    # One fold has read one model, so that this candidate is the choice of both
    # searches.
    chosen, models = ChosenCandidates(number, (number,)), {0: fitted.model(number, 0)}
    return LastStep(chosen, FittedModels(models, folds, np.array([score])))


def exact_pruner(plan: "Plan", known: KnownCounts, *, may_prune: bool) -> ExactPruner:
    """Return the pruner of candidates that cannot win by the plan's criterion."""
    return ExactPruner(plan.criterion, Settings(plan.delta_shares), known, may_prune)


def deployed_model(plan: "Plan", search: Search, choice: Choice) -> dict[str, Model]:
    """Return the deployed model, by its name."""
    split, number = choice.fold, choice.candidate
    if split is None:
        split = plan.scheme.all_rows_number
    assert split is not None  # else the choice says its fold
    return {choice.deploy: search.model(number, split).model(number, split)}


def remake_chosen(run: Run, cube: xr.Dataset, choice: Choice) -> Remade:
    """Fit the candidate that a run chose again, and repeat all its counts."""
    pruner = exact_pruner(run.plan, count_known(run.plan), may_prune=False)
    number, counts = choice.candidate, read_counts(cube)
    with closing(run.open_executor()) as executor:
        search = run.search(executor, pruner, Keep.ON_WORKER, None)
        # Only the chosen candidate is fitted again.
        search.table.pruned[:] = np.arange(run.plan.n_candidates) != number
        search.run()
        again = pruner.counts(search.table).by_name
        models = deployed_model(run.plan, search, choice)
        last = None
        if run.plan.certificate and not run.plan.criterion.is_guarantee:
            last = count_only_fold(run, search, number, choice.estimate)
    if last is not None:
        remade = last.evidence.by_name
        return Remade(models, {k: (cube[k].values, n) for k, n in remade.items()})
    counted = names.FOLD_ERRORS, names.DISAGREEMENTS, names.BEST_FOLD_DISAGREEMENTS
    pairs = {
        name: (np.ravel(counts[name][number]), np.ravel(again[name][number]))
        for name in counted
        if name in counts
    }
    return Remade(models, pairs)


EXHAUSTIVE: Final = SearchWay(search_all, remake_chosen)
"""The way of other certificates and of estimates: every candidate is counted."""
