"""The bounds of the models that a search has chosen, and the counts behind them.

A nested search fits its chosen candidates without one fold and on all rows, and counts
their errors. A search by a hold-out set counts the regressor that was chosen by squared
errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isclose

import numpy as np

from dsel.bounds.shares import fold_deltas
from dsel.losses.by_class import Recall, wrong_rows
from dsel.losses.calls import count_not_finite, estimate_of_folds
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import LossBounds, bound_models
from dsel.losses.protocols import (
    DeltaDivision,
    Loss,
    PlannedDelta,
    PoolCounts,
    Statistic,
)
from dsel.losses.regression import Residuals
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.candidate_tables import constant_fields, largest_class
from dsel.results.caveats import Caveat
from dsel.results.certificate import BinomialLimit, NumberFields, loss_fields
from dsel.results.loss_reports import ModelReports
from dsel.rounded_texts import fraction_in_percent
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL, CVScheme
from dsel.search.engine.counts import DataSizes, SearchCounts
from dsel.search.engine.jobs import JobContext
from dsel.search.planned_search import PlannedSearch
from dsel.search.running.chosen_caveats import (
    caveats_of_failed_all_rows,
    caveats_of_failed_folds,
    caveats_of_infinite_predictions,
    caveats_of_missed_classes,
    caveats_of_unpredicted_rows,
    caveats_of_unranked_searches,
    count_confusion,
    notes_of_choice,
    notes_on_found_rows,
)
from dsel.search.running.count_chosen import ChosenModels
from dsel.search.running.cube_caveats import (
    Advice,
    caveats_of_choice,
    caveats_of_disagreements,
    caveats_of_fits,
)
from dsel.search.running.fit_chosen import FittedModels
from dsel.search.running.forecasts import (
    estimate_disagreement,
    forecast_folds,
    forecast_queries,
    make_queries,
)
from dsel.search.running.procedures import best_params, name_procedure
from dsel.search.running.run_description import RunDescription
from dsel.typing import Model, Options


def make_choice(
    search: PlannedSearch,
    search_counts: SearchCounts,
    chosen: ChosenModels,
    description: RunDescription,
) -> Choice:
    """Bound the chosen models, and return the choice of them, with advice about it."""
    context, planned_delta = search.context, search.planned_delta
    losses, candidate_params = context.losses, search.axes.candidates
    bounded = bound_chosen(
        context,
        chosen,
        description,
        method=search.method,
        planned_delta=planned_delta,
        candidate_params=candidate_params,
        deploy=search.deploy,
    )
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deployed = bounded[search.deploy if search.deploy in bounded else ONE_FOLD]
    expected_holdout = losses.expected_holdout(
        chosen.fitted.fold_counts_of[losses.main.statistic], planned_delta.delta
    )
    if any(assumption.is_violated for assumption in deployed.certificate.assumptions):
        expected_holdout = np.nan  # what refutes this bound refutes that of such a set
    advice = advise_on_choice(
        context,
        search_counts,
        chosen,
        bounded,
        deployed,
        delta=search.delta,
        candidate_params=candidate_params,
    )
    procedure, queries = "", None
    # A grid that sets no parameter has a single candidate: the procedure itself.
    if not candidate_params[deployed.candidate]:
        model = chosen.models_by_name[deployed.name]
        procedure = advice.call_safely(name_procedure, model) or ""
    if search.n_queries and ALL_ROWS in bounded:
        queries = make_queries(
            losses, search.classes, planned_delta, chosen, search.n_queries
        )
    query_forecast = advice.call_safely(
        forecast_queries,
        losses,
        search.classes,
        planned_delta,
        chosen,
        in_groups=search.row_groups is not None,
    )
    fold_params = advice.call_safely(params_of_folds, chosen.fitted, candidate_params)
    fold_forecast = advice.call_safely(
        forecast_folds,
        losses,
        search.scheme,
        planned_delta,
        len(candidate_params),
        bounded[ONE_FOLD].certificate,
        expected_holdout,
    )
    return Choice(
        criterion=search.criterion.name,
        criterion_value=float(search_counts.fold_scores[deployed.candidate].mean()),
        bounded_models=bounded,
        deploy=deployed.name,
        expected_holdout=expected_holdout,
        caveats=caveats_of_choice(
            drop_finite_tolerances(description.caveats, losses, bounded), advice.caveats
        ),
        queries=queries,
        forecast=query_forecast,
        fold_forecast=fold_forecast,
        n_candidates=len(candidate_params),
        n_folds=context.scheme.n_folds,
        five_fold_disagreement=estimate_disagreement(chosen, context.scheme.n_folds),
        fold_params=fold_params or (),
        procedure=procedure,
        renamings=search.renamings,
        **largest_class(description.counted_classes),
        **constant_fields(description.constant),
    )


def bound_chosen(
    context: JobContext,
    chosen: ChosenModels,
    description: RunDescription,
    *,
    method: CertificateMethod,
    planned_delta: PlannedDelta,
    candidate_params: Sequence[Options],
    deploy: str,
) -> dict[str, BoundedModel]:
    """Return the bounded models by name, each with its certificate and its reports.

    Both bounds of a nested search hold at once with probability at least 1 - delta. The
    bound of the model of all rows holds if the limits of all folds and of the pool
    counts hold, and the bound of the deployed fold is one of these limits. `deploy` is
    the name of the model that the plan deploys.
    """
    certificates = certify_models(
        context.losses,
        context.scheme,
        chosen,
        description,
        method=method,
        planned_delta=planned_delta,
    )
    fitted = chosen.fitted
    bounded = {}
    for name, ref in chosen.ref_by_name.items():
        candidate = fitted.chosen_candidates.candidate_of(ref)
        model, certificate = chosen.models[ref], certificates[name]
        advice = advise_on_model(
            context,
            chosen,
            model,
            planned_delta,
            certificate,
            deploy=deploy,
            in_groups=description.data.n_groups is not None,
        )
        confusion = advice.call_safely(
            count_confusion, context.labeled, context.losses, context.scheme, ref, model
        )
        reports = ModelReports(
            losses=context.losses,
            evidence=chosen.evidence,
            planned_delta=planned_delta,
            deployed_fold=chosen.deployed_fold,
            name=name,
        )
        bounded[name] = BoundedModel(
            name=name,
            candidate=candidate,
            # A grid may set no parameter: its only candidate may choose some in its
            # fit.
            params=candidate_params[candidate] or best_params(model),
            certificate=certificate,
            report=reports.report_by_class(),
            report_by_value=reports.report_by_value(),
            tolerances=reports.tolerances(),
            baseline=reports.comparison(),
            confusion=confusion or (),
        ).with_caveats(*advice.caveats)
    return bounded


def advise_on_model(
    context: JobContext,
    chosen: ChosenModels,
    model: Model,
    planned_delta: PlannedDelta,
    certificate: Certificate,
    *,
    deploy: str,
    in_groups: bool,
) -> Advice:
    """Return the caveats of the model with this certificate."""
    losses, fitted, on_pool = context.losses, chosen.fitted, chosen.on_pool
    advice = Advice()
    # Both models get these caveats: rows of a failed fold count as errors in either
    # estimate.
    if fitted.failed_folds:
        folds = fitted.fold_counts_of[losses.main.statistic]
        advice.add(
            caveats_of_failed_folds,
            losses,
            context.scheme,
            fitted.failed_folds,
            estimate=certificate.estimate,
            expected_holdout=losses.expected_holdout(folds, planned_delta.delta),
            unit="group" if in_groups else "row",
        )
    failure = fitted.failures.get(ALL_ROWS_MODEL)
    if failure is not None:
        advice.add(caveats_of_failed_all_rows, deploy, failure, certificate)
    if certificate.n_not_finite:
        advice.add(caveats_of_infinite_predictions, certificate)
    if on_pool.refusal or on_pool.unpredicted.n_rows:
        advice.add(caveats_of_unpredicted_rows, deploy, on_pool, certificate)
    advice.add(
        caveats_of_missed_classes, context.labeled, context.scheme, certificate, model
    )
    advice.add(caveats_of_unranked_searches, context.labeled, model)
    return advice


def params_of_folds(
    fitted: FittedModels, candidate_params: Sequence[Options]
) -> tuple[Options | None, ...]:
    """Return the parameters of the model without each fold; None where a fit failed.

    If the model is itself a search, such as a GridSearchCV, its fit has chosen them.
    """
    params = list[Options | None]()
    for fold, candidate in enumerate(fitted.chosen_candidates.by_fold):
        model = fitted.models.get(fold)
        searched = None if model is None else best_params(model)
        params.append(candidate_params[candidate] or searched)
    return tuple(params)


def advise_on_choice(
    context: JobContext,
    search_counts: SearchCounts,
    chosen: ChosenModels,
    bounded: Mapping[str, BoundedModel],
    deployed: BoundedModel,
    *,
    delta: float,
    candidate_params: Sequence[Options],
) -> Advice:
    """Return the caveats of a choice that are not about one model alone."""
    fold_counts_of = chosen.fitted.fold_counts_of
    advice = Advice()
    advice.add(
        notes_on_found_rows,
        context,
        chosen.models,
        fold_counts_of,
        bounded[ONE_FOLD].certificate,
    )
    advice.add(notes_of_choice, context.losses, delta, bounded, deployed)
    advice.add(
        caveats_of_fits,
        search_counts.status,
        search_counts.problems,
        search_counts.texts,
        candidate_params,
    )
    errors_on_pool = chosen.on_pool.counts_of.get(ERROR_RATE.statistic)
    if errors_on_pool is not None:
        folds = fold_counts_of[ERROR_RATE.statistic]
        advice.add(
            caveats_of_disagreements,
            folds.integers,
            folds.n_rows,
            errors_on_pool.counts - errors_on_pool.duplicates,
            errors_on_pool.n_rows,
        )
    return advice


def drop_finite_tolerances(
    caveats: Sequence[Caveat],
    losses: DeclaredLosses,
    bounded: Mapping[str, BoundedModel],
) -> list[Caveat]:
    """Return the caveats, without those of tolerances that turned out to be finite.

    Rows that are too few in some folds may be enough in the fold that is deployed.
    """
    reports = [model.tolerances for model in bounded.values() if model.tolerances]
    finite_losses = {
        repr(loss)
        for number, loss in enumerate(losses.tolerances)
        if not any(np.isinf(report.off_by_at_most[number]) for report in reports)
    }
    return [c for c in caveats if c.infinite_loss not in finite_losses]


def _training_text(fraction_of_rows: float, n_folds: int, *, in_groups: bool) -> str:
    """Return what the model of a fold was trained on: some of the labels, or groups.

    Folds differ in size by a row, or by a group of any number of rows, so that the
    fraction of what they count is known from their number alone. A single fold is a
    hold-out set.
    """
    percent = fraction_in_percent(1 - 1 / n_folds if n_folds > 1 else fraction_of_rows)
    of_rows = fraction_in_percent(fraction_of_rows)
    if in_groups and of_rows != percent:
        return f"{percent} of the groups ({of_rows} of the labels)"
    return f"{percent} of the labels"


def certify_models(
    losses: DeclaredLosses,
    scheme: CVScheme,
    chosen: ChosenModels,
    description: RunDescription,
    *,
    method: CertificateMethod,
    planned_delta: PlannedDelta,
) -> dict[str, Certificate]:
    """Return the certificates of the bounded models by name, by the main loss."""
    loss, fitted = losses.main, chosen.fitted
    fold, division = chosen.deployed_fold, losses.main_division(planned_delta)
    bounds = bound_models(loss, chosen.evidence, division, fold)
    limits_by_name = {
        ONE_FOLD: limits_of_one_fold(loss, chosen, division),
        ALL_ROWS: limits_of_all_rows(loss, chosen, division),
    }
    fields_by_name = {
        ONE_FOLD: fields_of_one_fold(
            scheme, fold, bounds, division.label_delta, description.data
        ),
        ALL_ROWS: fields_of_all_rows(loss, chosen.on_pool.counts_of, bounds),
    }
    common_fields: NumberFields = {
        **loss_fields(loss),
        **fields_of_failed_folds(loss, fitted),
        "estimate": bounds.estimate,
        "divides_delta": method.bounds_all_candidates,
        "is_holdout": scheme.is_holdout,
    }
    certificates = {}
    for name, ref in chosen.ref_by_name.items():
        fields: NumberFields = {**common_fields, **fields_by_name[name]}
        fields["fold"] = None if ref is ALL_ROWS_MODEL else ref
        fields["limits"] = next(
            (
                limits
                for limits in limits_by_name[name]
                if isclose(sum(limit.rate for limit in limits), bounds.of(name))
            ),
            (),
        )
        certificates[name] = description.make_certificate(
            bounds.of(name),
            planned_delta.delta,
            method.name or method.ranks_by,
            name,
            **fields,
        )
    return certificates


def limits_of_one_fold(
    loss: Loss, chosen: ChosenModels, division: DeltaDivision
) -> Iterator[tuple[BinomialLimit]]:
    """Yield the limit of each fold, if errors of the main loss are binomial."""
    folds = chosen.fitted.fold_counts_of[loss.statistic]
    if loss == ERROR_RATE:
        errors, n_rows = folds.integers, folds.n_rows
    elif isinstance(loss, Recall) and len(loss.classes) == 1:
        errors, n_rows = wrong_rows(loss.narrow_tables(folds.integers))
    else:
        return
    for counts in zip(
        errors.tolist(),
        n_rows.tolist(),
        fold_deltas(division.label_delta, len(errors)).tolist(),
        strict=True,
    ):
        if counts[1]:
            yield (BinomialLimit(*counts),)


def limits_of_all_rows(
    loss: Loss, chosen: ChosenModels, division: DeltaDivision
) -> Iterator[tuple[BinomialLimit, ...]]:
    """Yield the limits whose sum may be the bound of the error, for each fold.

    Where pool rows equal labeled ones, the bound is no such sum.
    """
    pool_counts = chosen.on_pool.counts_of.get(ERROR_RATE.statistic)
    if loss != ERROR_RATE or pool_counts is None:
        return
    differ = pool_counts.counts.tolist()
    pool_delta = division.pool_delta / len(differ)
    by_fold = limits_of_one_fold(loss, chosen, division)
    for (of_fold,), n_differ in zip(by_fold, differ, strict=True):
        yield of_fold, BinomialLimit(n_differ, pool_counts.n_rows, pool_delta)


def fields_of_one_fold(
    scheme: CVScheme, fold: int, bounds: LossBounds, label_delta: float, data: DataSizes
) -> NumberFields:
    """Return the fields of the certificate of the model without a fold.

    One limit bounds it; only the other bound is a sum of terms. `label_delta` is that
    of all limits on labeled rows.
    """
    split = scheme.fold_splits[fold]
    fold_delta = np.nan  # of a hold-out set, which shares delta with no fold
    if scheme.is_nested:
        fold_delta = float(fold_deltas(label_delta, scheme.n_folds)[fold])
    return NumberFields(
        label_term=bounds.one_fold_bound,
        n_fold_rows=len(split.test_rows),
        fold_delta=fold_delta,
        trained_on=_training_text(
            len(split.train_rows) / data.n_labeled,
            scheme.n_folds,
            in_groups=data.n_groups is not None,
        ),
    )


def fields_of_all_rows(
    loss: Loss, pool_counts_of: Mapping[Statistic, PoolCounts], bounds: LossBounds
) -> NumberFields:
    """Return the fields of the certificate of the model of all rows."""
    n_far_apart = 0
    pool_counts = pool_counts_of.get(loss.statistic)
    if isinstance(loss.statistic, Residuals) and pool_counts is not None:
        # Above the last edge; the fold with the fewest has the best bound.
        n_far_apart = int(pool_counts.counts[:, -1].min())
    return NumberFields(
        label_term=bounds.label_term,
        disagreement_term=bounds.disagreement_term,
        n_far_apart=n_far_apart,
    )


def fields_of_failed_folds(loss: Loss, fitted: FittedModels) -> NumberFields:
    """Return the fields of both certificates about folds that no model predicts."""
    predicted = fitted.without_failed_folds(loss.statistic)
    estimate = estimate_of_folds(loss, predicted) if fitted.failed_folds else None
    return NumberFields(
        estimate_of_models=estimate, n_not_finite=count_not_finite(loss, predicted)
    )
