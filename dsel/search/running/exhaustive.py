"""A search that counts every candidate, for bounds that hold at once, or estimates."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from dsel import names
from dsel.criteria import Settings
from dsel.criteria.criterion import Criterion
from dsel.losses.protocols import FoldCounts
from dsel.option_values import Pruning
from dsel.results import Choice
from dsel.results.cube import read_counts
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.cv_schemes import CVScheme, model_of_fold
from dsel.search.engine.counts import ExhaustiveCounts
from dsel.search.engine.exact_pruner import ExactPruner, ExhaustiveTable
from dsel.search.engine.exhaustive_search import ExhaustiveLoop
from dsel.search.engine.fit_batch import count_statistics
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.inner_searches import ChosenCandidates
from dsel.search.engine.job_queue import Engine
from dsel.search.engine.jobs import JobContext
from dsel.search.engine.pruning import OnlyCandidate, Pruner
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planned_search import PlannedSearch
from dsel.search.running.bound_chosen import make_choice
from dsel.search.running.count_chosen import ChosenModels
from dsel.search.running.cube_caveats import check_failures
from dsel.search.running.cube_of_run import make_cube_of_run
from dsel.search.running.fit_chosen import FittedModels
from dsel.search.running.pool_check import check_pool
from dsel.search.running.run import (
    RefittedModels,
    Run,
    make_outcome,
    open_engine,
    pair_evidence,
    replay_counts,
)
from dsel.search.running.run_description import (
    RunDescription,
    describe_run,
    make_data_sizes,
)
from dsel.search.running.select import choose
from dsel.typing import Model


def search_exhaustively(run: Run) -> Outcome:
    """Count every candidate that can win, choose one, and fetch its model."""
    search = run.search
    # The check comes first, since its counts are part of the bounds that prune.
    if search.pool is not None:
        run.progress.show_check()
    context, options = search.context, run.options
    pool_findings = check_pool(search, run.store, client=options.client)
    description = describe_run(search, run.plan_facts, pool_findings.pool_facts)
    # Passes compare the sampled rows with the rows that they read.
    context = context.with_sample(pool_findings.sampled_rows)
    with open_engine(
        context, search.pool, run.store, client=options.client, n_jobs=options.n_jobs
    ) as engine:
        pruner = ExactPruner(
            search.criterion,
            Settings(search.candidate_deltas),
            description.data,
            may_prune=search.prune != Pruning.NONE,
        )
        loop = make_loop(
            search,
            engine,
            pruner,
            on_turn=run.progress.show_fits,
            raise_failures=options.raise_failures,
        )
        choose_counted = choose_among_all
        if bounds_only_choice(search.method, search.criterion):
            choose_counted = partial(choose_and_bound, pruner)
        counted = None
        # This is repeated until the model that the counts choose is one that was
        # counted.
        while counted is None:
            loop.fit_and_count()
            search_counts = pruner.final_counts(loop.table)
            check_failures(
                search_counts,
                search.axes.candidates,
                search.labeled,
                unpredicting=loop.table.unpredicting_candidates,
                is_nested=False,
            )
            counted = choose_counted(search, loop, search_counts, description)
    return make_outcome(
        counted.cube,
        counted.choice,
        partial(dict, counted.models),
        labeled=search.labeled,
        loss=search.context.losses.main,
        row_groups=search.row_groups,
        identity=run.identity,
    )


class CountedChoice(NamedTuple):
    """A choice among counted candidates, whose model is the one that was counted."""

    cube: xr.Dataset
    choice: Choice
    models: Mapping[str, Model]


def choose_and_bound(
    pruner: ExactPruner,
    search: PlannedSearch,
    loop: ExhaustiveLoop,
    search_counts: ExhaustiveCounts,
    description: RunDescription,
) -> CountedChoice | None:
    """Choose a candidate, and bound it alone; None if its model is lost.

    Then it is fitted again.
    """
    chosen = count_only_fold(
        search.context, loop, *pruner.choose_candidate(search_counts)
    )
    if chosen is None:
        return None
    choice = make_choice(search, search_counts, chosen, description)
    cube = make_cube_of_run(search, search_counts, description, choice, chosen)
    return CountedChoice(cube, choice, chosen.models_by_name)


def choose_among_all(
    search: PlannedSearch,
    loop: ExhaustiveLoop,
    search_counts: ExhaustiveCounts,
    description: RunDescription,
) -> CountedChoice | None:
    """Choose by the criterion of all candidates; None if the counted model is lost."""
    cube = make_cube_of_run(search, search_counts, description)
    choice = choose(cube, search.criterion.name)
    models = fetch_deployed_model(search.scheme, loop, choice)
    if models is None:
        return None
    cube = cube.assign_attrs({names.CHOICE: choice.to_json()})
    return CountedChoice(cube, choice, models)


def make_loop(
    search: PlannedSearch,
    engine: Engine,
    pruner: Pruner[ExhaustiveTable],
    *,
    on_turn: Callable[[FitLoop[Any]], object],
    raise_failures: bool = False,
) -> ExhaustiveLoop:
    """Return the loop of a search, which starts with the counts of earlier runs."""
    comparisons = search.comparisons
    table = ExhaustiveTable(
        search.scheme,
        search.context.candidate_groups,
        search.n_candidates,
        comparisons,
        search.slices if comparisons else (),
    )
    if engine.store is not None:
        replay_counts(engine.store, table)
    return ExhaustiveLoop(engine, table, pruner, on_turn, raise_failures)


def bounds_only_choice(method: CertificateMethod, criterion: Criterion) -> bool:
    """Return whether only the chosen candidate gets a bound, by counts of its own.

    This is so with a hold-out set if squared errors rank the candidates.
    """
    return method.is_guarantee and not criterion.is_guarantee


def count_only_fold(
    context: JobContext, loop: ExhaustiveLoop, candidate: int, score: float
) -> ChosenModels | None:
    """Count the losses of a model on the only fold; None if the model is lost.

    The bounds of all candidates share delta equally and hold at once, so that the same
    rows may both rank and bound.
    """
    scheme = context.scheme
    [split] = scheme.fold_splits
    fitted_group = loop.fetch_counted_group(candidate, scheme.split_index(0))
    if fitted_group is None:
        return None
    family = context.candidate_group_of(candidate).family
    model = family.join([fitted_group], [candidate])
    counts_on_fold = count_statistics(context, split, model)
    fold_counts_of = {
        statistic: FoldCounts(n[np.newaxis], scheme.fold_rows)
        for statistic, n in zip(context.losses.statistics, counts_on_fold, strict=True)
    }
    fitted = FittedModels(
        # The only candidate is both the one chosen without the fold and the one chosen
        # by all rows.
        chosen_candidates=ChosenCandidates(candidate, (candidate,)),
        models={0: fitted_group.model(candidate, scheme.split_index(0))},
        fold_counts_of=fold_counts_of,
        fold_scores=np.array([score]),
    )
    return ChosenModels(fitted, deployed_fold=0)


def fetch_deployed_model(
    scheme: CVScheme, loop: ExhaustiveLoop, choice: Choice
) -> dict[str, Model] | None:
    """Return the deployed model, by its name; None if the counted model is lost."""
    split_number = scheme.split_index(model_of_fold(choice.fold))
    candidate = choice.candidate
    fitted_group = loop.fetch_counted_group(candidate, split_number)
    if fitted_group is None:
        return None
    return {choice.deploy: fitted_group.model(candidate, split_number)}


def refit_chosen_model(run: Run, cube: xr.Dataset, choice: Choice) -> RefittedModels:
    """Fit the candidate that a run chose again, and repeat all its counts."""
    search, options = run.search, run.options
    candidate, context = choice.candidate, search.context
    counts_of_run = read_counts(cube)
    with open_engine(
        context, search.pool, run.store, client=options.client, n_jobs=options.n_jobs
    ) as engine:
        loop = make_loop(
            search,
            engine,
            OnlyCandidate(candidate),
            on_turn=run.progress.show_fits,
            raise_failures=options.raise_failures,
        )
        models = chosen = None
        while models is None and chosen is None:
            loop.fit_and_count()
            if bounds_only_choice(search.method, search.criterion):
                chosen = count_only_fold(
                    context, loop, candidate, choice.criterion_value
                )
            else:
                models = fetch_deployed_model(search.scheme, loop, choice)
        # The duplicates are left out: counts are compared, and no bound is computed.
        data = make_data_sizes(context.labeled, search.pool, search.row_groups)
        repeated = loop.table.search_counts(data).by_name
        if chosen is not None:
            pairs = pair_evidence(cube, chosen.evidence)
            return RefittedModels(chosen.models_by_name, pairs)
    variables = names.FOLD_ERRORS, names.DISAGREEMENTS, names.BEST_FOLD_DISAGREEMENTS
    pairs = [
        (np.ravel(counts_of_run[name][candidate]), np.ravel(repeated[name][candidate]))
        for name in variables
        if name in counts_of_run
    ]
    return RefittedModels(models or {}, pairs)
