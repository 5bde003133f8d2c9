"""The bounds of the models that a search has chosen, and the counts behind them.

A nested search fits its chosen candidates without one fold and on all rows, and counts
their errors. A search by a hold-out set counts the regressor that was chosen by squared
errors.
"""

from collections.abc import Sequence

import numpy as np

from dsel.bounds.shares import fold_deltas
from dsel.losses.calls import count_not_finite, estimate_of_folds
from dsel.losses.declared import JointBounds
from dsel.losses.joint import ModelBounds
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.candidate_tables import constant_fields, largest_class
from dsel.results.certificate import OriginFields, loss_fields
from dsel.results.loss_reports import ModelReports
from dsel.rounded_texts import part_in_percent
from dsel.search.engine.counts import SearchCounts
from dsel.search.running.chosen_caveats import (
    caveats_of_failed_all_rows,
    caveats_of_failed_folds,
    caveats_of_infinite_predictions,
    caveats_of_unpredicted_rows,
    caveats_of_unranked_searches,
    notes_of_choice,
    notes_on_dropped_candidates,
)
from dsel.search.running.class_checks import (
    caveats_of_missed_classes,
    count_confusion,
    notes_on_found_rows,
)
from dsel.search.running.cube_caveats import (
    Advice,
    caveats_of_choice,
    caveats_of_evidence,
    caveats_of_fits,
)
from dsel.search.running.fit_chosen import (
    ChosenModels,
    CountedModels,
)
from dsel.search.running.forecasts import (
    forecast_folds,
    forecast_queries,
    make_queries,
)
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.procedures import best_params, name_procedure
from dsel.search.running.run_description import RunDescription
from dsel.typing import Options


def bound_chosen(
    search: PlannedSearch,
    search_counts: SearchCounts,
    counted_models: CountedModels,
    description: RunDescription,
) -> Choice:
    """Return the choice of a search, with the bounds of its models.

    Both bounds of a nested search hold at once with probability at least 1 - delta. The
    bound of the model of all rows holds if the limits of all folds and of the pool
    counts hold, and the bound of the deployed fold is one of these limits.
    """
    chosen, evidence = counted_models.chosen, counted_models.evidence
    joint_bounds = search.context.losses.bound(
        evidence, search.planned_delta, chosen.deployed_fold
    )
    bounded = {
        name: make_bounded_model(
            search, counted_models, description, joint_bounds, name
        )
        for name in chosen.ref_by_name
    }
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deployed = bounded[search.deploy if search.deploy in bounded else ONE_FOLD]
    candidate_params = search.axes.candidates
    advice = Advice()
    advice.add(
        notes_on_found_rows,
        search.context,
        chosen.models,
        evidence.fold_counts_of,
        bounded[ONE_FOLD].certificate,
    )
    advice.add(notes_of_choice, search.context.losses, search.delta, bounded, deployed)
    if search.is_halved and ALL_ROWS in bounded:
        advice.add(
            notes_on_dropped_candidates,
            search_counts,
            candidate_params,
            bounded[ALL_ROWS].candidate,
        )
    advice.add(
        caveats_of_fits,
        search_counts.status,
        search_counts.problems,
        search_counts.texts,
        candidate_params,
    )
    advice.add(caveats_of_evidence, evidence)
    forecast = advice.call_safely(forecast_queries, search, counted_models)
    fold_forecast = advice.call_safely(
        forecast_folds,
        search,
        bounded[ONE_FOLD].certificate,
        joint_bounds.expected_holdout,
    )
    return Choice(
        criterion=search.criterion.name,
        criterion_value=float(search_counts.fold_scores[deployed.candidate].mean()),
        bounded_models=bounded,
        deploy=deployed.name,
        expected_holdout=joint_bounds.expected_holdout,
        caveats=caveats_of_choice(description.caveats, advice.caveats),
        queries=make_queries(search, counted_models, joint_bounds.main_bounds),
        forecast=forecast,
        fold_forecast=fold_forecast,
        n_candidates=len(candidate_params),
        fold_params=tuple(
            params_of_fold(chosen, candidate_params, fold)
            for fold in range(search.scheme.n_folds)
        ),
        # A grid that sets no parameter has a single candidate: the procedure itself.
        procedure=""
        if candidate_params[deployed.candidate]
        else name_procedure(chosen.models_by_name[deployed.name]),
        renamings=search.renamings,
        **largest_class(description.counted_classes),
        **constant_fields(description.constant),
    )


def params_of_fold(
    chosen: ChosenModels, candidate_params: Sequence[Options], fold: int
) -> Options | None:
    """Return the parameters chosen without a fold; None if its model is missing.

    If the model is itself a search, such as a GridSearchCV, its fit has chosen them.
    """
    model = chosen.models.get(fold)
    params = candidate_params[chosen.chosen_candidates.by_fold[fold]]
    return params or (None if model is None else best_params(model))


def make_bounded_model(
    search: PlannedSearch,
    counted_models: CountedModels,
    description: RunDescription,
    joint_bounds: JointBounds,
    name: str,
) -> BoundedModel:
    """Return the certificate and the reports of one model, by its name."""
    chosen, context = counted_models.chosen, search.context
    ref = chosen.ref_by_name[name]
    candidate, model = chosen.chosen_candidates.candidate_of(ref), chosen.models[ref]
    certificate = certify_model(
        search, chosen, description, joint_bounds.main_bounds, name
    )
    # Both models get these caveats: rows of a failed fold count as errors in either
    # estimate.
    advice = Advice()
    advice.add(
        caveats_of_failed_folds,
        context.losses,
        context.scheme,
        chosen.failed_folds,
        joint_bounds,
        unit="row" if search.row_groups is None else "group",
    )
    advice.add(caveats_of_failed_all_rows, search.deploy, chosen.failures, certificate)
    advice.add(caveats_of_infinite_predictions, certificate)
    advice.add(caveats_of_unpredicted_rows, search.deploy, counted_models, certificate)
    advice.add(
        caveats_of_missed_classes, context.labeled, context.scheme, certificate, model
    )
    advice.add(caveats_of_unranked_searches, search.labeled, model)
    confusion = advice.call_safely(count_confusion, context, ref, model)
    reports = ModelReports(
        losses=context.losses,
        evidence=counted_models.evidence,
        joint_bounds=joint_bounds,
        deployed_fold=chosen.deployed_fold,
        delta=search.delta,
        name=name,
    )
    return BoundedModel(
        name=name,
        candidate=candidate,
        # A grid may set no parameter: its only candidate may choose some in its fit.
        params=search.axes.candidates[candidate] or best_params(model),
        certificate=certificate,
        report=reports.report_by_class(),
        report_by_value=reports.report_by_value(),
        tolerances=reports.tolerances(),
        baseline=reports.comparison(),
        confusion=confusion or (),
    ).with_caveats(*advice.caveats)


def _delta_of_fold(search: PlannedSearch, fold: int) -> float:
    """Return the delta at which a fold bounds its model; NaN if it is all of delta."""
    if not search.method.is_nested:
        return np.nan
    label_delta = search.context.losses.main_division(search.planned_delta).label_delta
    return float(fold_deltas(label_delta, search.scheme.n_folds)[fold])


def _training_text(part_of_rows: float, n_folds: int, *, in_groups: bool) -> str:
    """Return what the model of a fold was trained on: a part of labels, or of groups.

    Folds differ in size by a row, or by a group of any number of rows, so that the part
    of what they count is known from their number alone. A single fold is a hold-out
    set.
    """
    part = part_in_percent(1 - 1 / n_folds if n_folds > 1 else part_of_rows)
    of_rows = part_in_percent(part_of_rows)
    if in_groups and of_rows != part:
        return f"{part} of the groups ({of_rows} of the labels)"
    return f"{part} of the labels"


def certify_model(
    search: PlannedSearch,
    chosen: ChosenModels,
    description: RunDescription,
    model_bounds: ModelBounds,
    name: str,
) -> Certificate:
    """Return the certificate of one model, by its name."""
    k, loss = search.scheme.n_folds, search.context.losses.main
    estimate_of_models: float | None = None
    predicted = chosen.without_failed_folds(loss.statistic)
    if chosen.failed_folds:
        estimate_of_models = estimate_of_folds(loss, predicted)
    fold_split = search.scheme.fold_splits[chosen.deployed_fold]
    if name == ONE_FOLD:  # one limit bounds it; only the other bound is a sum of terms
        origin: OriginFields = {
            "label_term": model_bounds.one_fold_bound,
            "fold_rows": len(fold_split.test_rows),
            "fold_delta": _delta_of_fold(search, chosen.deployed_fold),
            "trained_on": _training_text(
                len(fold_split.train_rows) / search.labeled.n_rows,
                k,
                in_groups=search.row_groups is not None,
            ),
        }
    else:
        origin = {
            "label_term": model_bounds.label_term,
            "disagreement_term": model_bounds.disagreement_term,
        }
    return description.make_certificate(
        model_bounds.of(name),
        search.delta,
        search.method_name or search.criterion.name,
        name,
        estimate=model_bounds.estimate,
        estimate_of_models=estimate_of_models,
        n_not_finite=count_not_finite(loss, predicted),
        divides_delta=search.method.bounds_all_candidates,
        is_holdout=search.scheme.is_holdout,
        fold=chosen.ref_by_name[name],
        **origin,
        **loss_fields(loss),
    )
