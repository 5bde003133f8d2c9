"""The bounds of the models that a search has chosen, and the counts behind them.

A nested search fits its chosen candidates without one fold and on all rows, and counts
them there; a search by a hold-out set counts the regressor that was chosen by squared
errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dsel.checks import listing
from dsel.losses.calls import naming_loss
from dsel.losses.declared import DeclaredLosses, JointBounds
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import ModelBounds
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import Caveat, Effect, make_caveats, texts_of
from dsel.results.loss_reports import ModelReports
from dsel.results.queries import Queries
from dsel.results.tables import constant_fields, largest_class
from dsel.rounded_texts import confidence, count_of, name_folds
from dsel.search.engine.counts import SearchCounts
from dsel.search.engine.jobs import JobContext
from dsel.search.running.class_checks import (
    caveats_of_missed_classes,
    notes_on_found_rows,
)
from dsel.search.running.cube_caveats import caveats_of_choice, caveats_of_counts
from dsel.search.running.cube_of_run import RunDescription
from dsel.search.running.fit_chosen import (
    ChosenModels,
    CountedModels,
    mean_inner_loss,
)
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.procedures import name_procedure
from dsel.typing import Model

MOST_FOLDS_NAMED: Final = 3
"""Most folds that a warning names."""


def bound_chosen(
    plan: PlannedSearch,
    counts: SearchCounts,
    counted: CountedModels,
    description: RunDescription,
) -> tuple[Choice, dict[str, Model]]:
    """Return the choice of a search, with the bounds of its models; and the models.

    Both bounds of a nested search hold at once with probability at least 1 - delta. The
    bound of the model of all rows holds where the limits of all folds and of the pool
    counts do, and the bound of the deployed fold is one of these limits.
    """
    chosen = counted.chosen
    bounds = plan.context.losses.bound(
        counted.evidence, plan.planned_delta, chosen.limits, chosen.deployed_fold
    )
    models = {name: chosen.models[n] for name, n in chosen.split_of_model.items()}
    made = {
        name: make_bounded_model(plan, counted, description, bounds, name)
        for name in models
    }
    unit = "row" if plan.groups is None else "group"
    one_fold = made[ONE_FOLD].certificate
    failed = [
        *caveats_of_failed_folds(plan.context, chosen.failed_folds, bounds, unit),
        *caveats_of_failed_all_rows(plan.deploy, chosen.all_rows_failure, one_fold),
    ]
    missed = caveats_of_missed_classes(plan.context, made, models)
    bounded_models = {
        name: model.with_caveats(*failed, *missed.get(name, ()))
        for name, model in made.items()
    }
    choice = make_choice(
        plan, counts, counted, description, bounds, bounded_models, missed
    )
    if choice.params:
        return choice, models
    # A grid has set no parameter: its only candidate may have chosen some in its fit.
    fold_models = [chosen.models.get(fold) for fold in range(plan.scheme.n_folds)]
    return name_procedure(choice, models, fold_models), models


def make_choice(
    plan: PlannedSearch,
    counts: SearchCounts,
    counted: CountedModels,
    description: RunDescription,
    bounds: JointBounds,
    bounded_models: Mapping[str, BoundedModel],
    missed: Mapping[str, Sequence[Caveat]],
) -> Choice:
    """Return the choice of bounded models.

    `missed` has caveats about classes that each model misses, by its name.
    """
    chosen, context = counted.chosen, plan.context
    values, candidates = counts.by_name, plan.axes.candidates
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deploy = plan.deploy if plan.deploy in bounded_models else ONE_FOLD
    return Choice(
        criterion=plan.criterion.name,
        criterion_value=mean_inner_loss(values, bounded_models[deploy].candidate),
        bounded_models=bounded_models,
        deploy=deploy,
        expected_holdout=bounds.expected_holdout,
        caveats=caveats_of_choice(
            description.caveats,
            notes_on_found_rows(context, chosen.models, chosen.folds),
            notes_of_choice(context.losses, plan.delta, bounded_models, missed, deploy),
            caveats_of_counts(values, counts.problems, counts.texts, candidates),
        ),
        queries=make_queries(plan, counted, bounds.main),
        fold_params=tuple(candidates[number] for number in chosen.candidates.by_fold),
        **largest_class(description.class_rows),
        **constant_fields(description.constant),
    )


def make_bounded_model(
    plan: PlannedSearch,
    counted: CountedModels,
    description: RunDescription,
    bounds: JointBounds,
    name: str,
) -> BoundedModel:
    """Return the certificate and the reports of one model, by its name."""
    chosen = counted.chosen
    candidate = chosen.candidates.by_split[chosen.split_of_model[name]]
    reports = ModelReports(
        losses=plan.context.losses,
        evidence=counted.evidence,
        bounds=bounds,
        deployed_fold=chosen.deployed_fold,
        delta=plan.delta,
        name=name,
    )
    return BoundedModel(
        name=name,
        candidate=candidate,
        params=plan.axes.candidates[candidate],
        certificate=make_certificate(plan, chosen, description, bounds.main, name),
        report_by_value=reports.report_by_value(),
        baseline=reports.comparison(),
    ).with_report(reports.report())


def make_certificate(
    plan: PlannedSearch,
    chosen: ChosenModels,
    description: RunDescription,
    bounds: ModelBounds,
    name: str,
) -> Certificate:
    """Return the certificate of one model, by its name."""
    k, loss = plan.scheme.n_folds, plan.context.losses.main
    estimate = np.nan
    if chosen.failed_folds:
        with naming_loss(loss, "estimate"):
            estimate = loss.estimate(chosen.without_failed_folds(loss.statistic))
    certificate = replace(
        description.certificate(bounds.of(name), plan.delta, plan.method.name, name),
        estimate=bounds.estimate,
        estimate_of_models=estimate,
        divides_delta=plan.method.divides_delta,
        is_holdout=plan.scheme.is_holdout,
    ).with_loss(loss)
    if name == ALL_ROWS:
        return replace(
            certificate,
            label_term=bounds.label_term,
            disagreement_term=bounds.disagreement_term,
        )
    n_train = len(plan.scheme.held_out[chosen.deployed_fold].train_rows)
    fraction = 1 - 1 / k if k > 1 else n_train / plan.labeled.n_rows
    return replace(
        certificate,
        label_term=bounds.one_fold_bound,
        fold=chosen.deployed_fold,
        trained_on=f"{fraction:.0%} of the labels",
    )


def caveats_of_failed_folds(
    context: JobContext, failed: Mapping[int, str], bounds: JointBounds, unit: str
) -> list[Caveat]:
    """Return a warning if fits without a fold, or predictions of it, have failed.

    `failed` has the cause by fold; `unit` is what is counted, ``row`` or ``group``.
    """
    if not failed:
        return []
    # A failed fit keeps its share of delta: leaving its fold out would divide delta
    # after the fits.
    rows = count_of(int(context.scheme.fold_rows[list(failed)].sum()), unit)
    causes = [f"{name_folds(fold)}: {why}" for fold, why in failed.items()]
    is_too_large = "is"
    if np.isfinite(bounds.expected_holdout):
        is_too_large = "and the comparison with a hold-out set are"
    is_error = context.losses.main == ERROR_RATE
    end = f"the estimate {is_too_large} too large"
    if np.isinf(bounds.main.estimate):
        end = "the estimate is without them"
    text = (
        f"{len(failed)} of {context.scheme.n_folds} fits failed "
        f"({listing(causes, MOST_FOLDS_NAMED)}); "
        f"{'its' if len(failed) == 1 else 'their'} {rows} count as "
        f"{'errors' if is_error else 'the largest loss'}, so {end}"
    )
    return [Caveat(Effect.WARNS, text)]


def caveats_of_failed_all_rows(
    wanted: str, failure: str, one_fold: Certificate
) -> list[Caveat]:
    """Return the caveat of a fit on all labels that failed, if it did.

    `wanted` is the name of the model that was to be deployed.
    """
    if not failure:
        return []
    text = f"the fit on all labels failed ({failure}), so it has no model and no bound"
    if wanted != ALL_ROWS:
        return [Caveat(Effect.INFO, text)]
    end = f"; the {one_fold.model_text} is deployed in its place"
    return [Caveat(Effect.WARNS, text + end)]


def notes_of_choice(
    losses: DeclaredLosses,
    delta: float,
    bounded_models: Mapping[str, BoundedModel],
    missed: Mapping[str, Sequence[Caveat]],
    deploy: str,
) -> list[Caveat]:
    """Return notes about what another choice of options would give.

    `delta` is that of the plan; `missed` has caveats about classes that each model
    misses, by its name; `deploy` is the name of the deployed model.
    """
    notes = []
    warned = {name for name, some in missed.items() if texts_of(some, Effect.WARNS)}
    if deploy in warned and warned != bounded_models.keys():
        [other] = bounded_models.keys() - warned
        model = bounded_models[other].certificate.model_text
        notes.append(
            f"the {model} finds some rows of each class: deploy={other!r} deploys it"
        )
    main_delta = losses.divide_delta(delta).main
    if main_delta < delta:
        deployed = bounded_models[deploy]
        reports = {
            "certified_report()": deployed.report or deployed.tolerances,
            "report_by_value()": deployed.report_by_value,
        }
        shown = " and ".join(name for name, report in reports.items() if report)
        notes.append(
            f"{confidence(delta)}% is the confidence that the bounds and all numbers "
            f"of {shown} hold; therefore the bounds alone are made for "
            f"{confidence(main_delta, decimals=2)}%, and are smaller without a report"
        )
    return make_caveats(Effect.INFO, notes)


def make_queries(
    plan: PlannedSearch, counted: CountedModels, bounds: ModelBounds
) -> Queries | None:
    """Return the record of queried rows.

    None if no queries were planned, or there is no model of all rows.
    """
    chosen = counted.chosen
    if not plan.n_queries or ALL_ROWS not in chosen.split_of_model:
        return None
    pool = counted.pool_counts[plan.context.losses.main.statistic]
    n_duplicates_differ = int(pool.duplicates[chosen.deployed_fold])
    order = np.argsort(counted.drawn.rows)  # in the order of the pool
    rows, one_fold_codes, all_rows_codes = (
        tuple(drawn[n] for n in order)
        for drawn in (
            counted.drawn.rows,
            counted.drawn.one_fold_codes,
            counted.drawn.all_rows_codes,
        )
    )
    return Queries(
        delta=plan.delta,
        n_planned=plan.n_queries,
        classes=tuple(plan.classes.tolist()),
        fold_limit=bounds.one_fold_bound,
        pool_only=bounds.all_rows_bound,
        n_unlabeled=pool.n_rows,
        n_differ=int(pool.counts[chosen.deployed_fold]) - n_duplicates_differ,
        n_duplicates=pool.n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
        rows=rows,
        one_fold_codes=one_fold_codes,
        all_rows_codes=all_rows_codes,
    )
