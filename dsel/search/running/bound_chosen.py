"""The bounds of the models that a search has chosen, and the counts behind them.

A nested search fits its chosen candidates without one fold and on all rows, and counts
them there; a search by a hold-out set counts the regressor that was chosen by squared
errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import Any, Final

import numpy as np

from dsel import names
from dsel.checks import listing
from dsel.criteria.base import CandidateCounts
from dsel.losses.calls import naming_loss
from dsel.losses.declared import DeclaredLosses, JointBounds
from dsel.losses.joint import ModelBounds, bound_models
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import Caveat, Effect, make_caveats
from dsel.results.certificate import loss_fields, short_params_text
from dsel.results.choice import FoldForecast
from dsel.results.cube import count_predictions
from dsel.results.loss_reports import ModelReports
from dsel.results.queries import LEAST_GAIN, Queries, QueryForecast
from dsel.results.tables import constant_fields, largest_class
from dsel.rounded_texts import confidence, count_of, name_folds
from dsel.search.design.expected_bounds import Case, one_fold_terms
from dsel.search.engine.counts import SearchCounts
from dsel.search.running.class_checks import (
    caveats_of_missed_classes,
    count_confusion,
    notes_on_found_rows,
)
from dsel.search.running.cube_caveats import caveats_of_choice, caveats_of_counts
from dsel.search.running.cube_of_run import RunDescription
from dsel.search.running.fit_chosen import (
    BoundInputs,
    ChosenModels,
    mean_inner_score,
)
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.procedures import best_params, name_procedure
from dsel.typing import Options

LARGE_EXCESS: Final = 1.2
"""Times the mean of a candidate that was dropped early, from which on it is named."""
ADVISED_QUERIES: Final = 50
"""Rows to label that make the bound of the model of all labels 14% smaller on average.
"""
OTHER_FOLDS: Final = 3, 10
"""Numbers of folds that are compared with the run's."""
MOST_FOLDS_NAMED: Final = 3
"""Most folds that a warning names."""


@dataclass(frozen=True)
class BoundedSearch:
    """A search with all its counts, and the bounds that follow from them."""

    plan: PlannedSearch
    search_counts: SearchCounts
    bound_inputs: BoundInputs
    description: RunDescription
    joint_bounds: JointBounds
    """The bounds of all declared losses, which hold at once."""

    @property
    def chosen(self) -> ChosenModels:
        """The fitted models of the chosen candidates."""
        return self.bound_inputs.chosen


def bound_chosen(
    plan: PlannedSearch,
    search_counts: SearchCounts,
    bound_inputs: BoundInputs,
    description: RunDescription,
) -> Choice:
    """Return the choice of a search, with the bounds of its models.

    Both bounds of a nested search hold at once with probability at least 1 - delta. The
    bound of the model of all rows holds where the limits of all folds and of the pool
    counts do, and the bound of the deployed fold is one of these limits.
    """
    chosen, evidence = bound_inputs.chosen, bound_inputs.evidence
    joint_bounds = plan.context.losses.bound(
        evidence, plan.planned_delta, chosen.deployed_fold
    )
    search = BoundedSearch(plan, search_counts, bound_inputs, description, joint_bounds)
    bounded = {name: make_bounded_model(search, name) for name in chosen.bounded_folds}
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deployed = bounded[plan.deploy if plan.deploy in bounded else ONE_FOLD]
    values, candidates = search_counts.by_name, plan.axes.candidates
    return Choice(
        criterion=plan.criterion.name,
        criterion_value=mean_inner_score(values, deployed.candidate),
        bounded_models=bounded,
        deploy=deployed.name,
        expected_holdout=joint_bounds.expected_holdout,
        caveats=caveats_of_choice(
            description.caveats,
            notes_on_found_rows(
                plan.context,
                chosen.fold_models,
                evidence.fold_counts_of,
                bounded[ONE_FOLD].certificate,
            ),
            notes_of_choice(plan, bounded, deployed),
            notes_on_dropped_candidates(plan, values, bounded.get(ALL_ROWS)),
            caveats_of_counts(
                values | evidence.by_name,
                search_counts.problems,
                search_counts.texts,
                candidates,
            ),
        ),
        queries=make_queries(search),
        forecast=forecast_queries(search),
        fold_forecast=forecast_folds(
            search, bounded[ONE_FOLD].certificate, joint_bounds.expected_holdout
        ),
        n_candidates=len(candidates),
        fold_params=tuple(
            params_of_fold(search, fold) for fold in range(plan.scheme.n_folds)
        ),
        # A grid that sets no parameter has a single candidate: the procedure itself.
        procedure=""
        if candidates[deployed.candidate]
        else name_procedure(chosen.models_by_name[deployed.name]),
        renamings=plan.renamings,
        **largest_class(description.class_rows),
        **constant_fields(description.constant),
    )


def params_of_fold(search: BoundedSearch, fold: int) -> Options | None:
    """Return what was chosen without a fold; None if its model is not there.

    A search of the user's own, such as a GridSearchCV, has chosen them in its fit.
    """
    chosen = search.chosen
    model = search.chosen.fold_models.get(fold)
    params = search.plan.axes.candidates[chosen.candidates.by_fold[fold]]
    return params or (None if model is None else best_params(model))


def make_bounded_model(search: BoundedSearch, name: str) -> BoundedModel:
    """Return the certificate and the reports of one model, by its name."""
    plan, chosen, context = search.plan, search.chosen, search.plan.context
    fold = chosen.bounded_folds[name]
    candidate = chosen.candidates.candidate_of(fold)
    model = chosen.fitted_estimator(fold)
    certificate = certify_model(search, name)
    caveats = [
        *caveats_of_failed_folds(search),
        *caveats_of_failed_all_rows(plan.deploy, chosen.all_rows_failure, certificate),
        *caveats_of_missed_classes(context, certificate, model),
    ]
    reports = ModelReports(
        losses=context.losses,
        evidence=search.bound_inputs.evidence,
        joint_bounds=search.joint_bounds,
        deployed_fold=chosen.deployed_fold,
        delta=plan.delta,
        name=name,
    )
    return BoundedModel(
        name=name,
        candidate=candidate,
        # A grid may set no parameter: its only candidate may choose some in its fit.
        params=plan.axes.candidates[candidate] or best_params(model),
        certificate=certificate,
        report=reports.report_by_class(),
        report_by_value=reports.report_by_value(),
        tolerances=reports.tolerances(),
        baseline=reports.comparison(),
        confusion=count_confusion(context, fold, model),
    ).with_caveats(*caveats)


def certify_model(search: BoundedSearch, name: str) -> Certificate:
    """Return the certificate of one model, by its name."""
    plan, chosen, model_bounds = search.plan, search.chosen, search.joint_bounds.main
    k, loss = plan.scheme.n_folds, plan.context.losses.main
    estimate_of_models = np.nan
    if chosen.failed_folds:
        with naming_loss(loss, "estimate"):
            estimate_of_models = loss.estimate(
                chosen.without_failed_folds(loss.statistic)
            )
    n_train = len(plan.scheme.held_out[chosen.deployed_fold].train_rows)
    fraction = 1 - 1 / k if k > 1 else n_train / plan.labeled.n_rows
    fields_of_model: dict[str, Any] = {
        ONE_FOLD: {
            "label_term": model_bounds.one_fold_bound,
            "fold": chosen.deployed_fold,
            "trained_on": f"{fraction:.0%} of the labels",
        },
        ALL_ROWS: {
            "label_term": model_bounds.label_term,
            "disagreement_term": model_bounds.disagreement_term,
        },
    }
    return search.description.make_certificate(
        model_bounds.of(name),
        plan.delta,
        plan.method_name,
        name,
        estimate=model_bounds.estimate,
        estimate_of_models=estimate_of_models,
        divides_delta=plan.method.divides_delta,
        is_holdout=plan.scheme.is_holdout,
        **fields_of_model[name],
        **loss_fields(loss),
    )


def caveats_of_failed_folds(search: BoundedSearch) -> list[Caveat]:
    """Return a warning if fits without a fold, or predictions of it, have failed."""
    context, failed = search.plan.context, search.chosen.failed_folds
    if not failed:
        return []
    # A failed fit keeps its share of delta: leaving its fold out would divide delta
    # after the fits.
    unit = "row" if search.plan.row_groups is None else "group"
    rows = count_of(int(context.scheme.fold_rows[list(failed)].sum()), unit)
    causes = [f"{name_folds(fold)}: {why}" for fold, why in failed.items()]
    is_too_large = "is"
    if np.isfinite(search.joint_bounds.expected_holdout):
        is_too_large = "and the comparison with a hold-out set are"
    end = f"the estimate {is_too_large} too large"
    if np.isinf(search.joint_bounds.main.estimate):
        end = "the estimate is without them"
    text = (
        f"{len(failed)} of {context.scheme.n_folds} fits failed "
        f"({listing(causes, MOST_FOLDS_NAMED)}); "
        f"{'its' if len(failed) == 1 else 'their'} {rows} count as "
        f"{context.losses.unpredicted_text}, so {end}"
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


def notes_on_dropped_candidates(
    plan: PlannedSearch, counts: CandidateCounts, of_all_rows: BoundedModel | None
) -> list[Caveat]:
    """Return a note if a candidate that was dropped early seems better than the chosen.

    Rankings by few rows of a class differ from fold to fold, and the searches then drop
    candidates that others keep.
    """
    if of_all_rows is None or not plan.is_halved:
        return []
    scores = counts.get(names.FOLD_LOSS_MEAN)
    if scores is None:
        errors = counts[names.FOLD_ERRORS]  # negative where a fold has none
        scores = np.where(errors < 0, nan, errors / count_predictions(counts))
    # Over the folds that a candidate has; one that failed has none.
    is_known = ~np.isnan(scores)
    means = np.full(len(scores), np.inf)
    np.divide(np.nansum(scores, 1), is_known.sum(1), means, where=is_known.any(1))
    best = int(np.argmin(means))
    chosen = of_all_rows.candidate
    if not means[chosen] > LARGE_EXCESS * means[best]:
        return []
    params = short_params_text(plan.axes.candidates[best])
    less = 100 * (1 - means[best] / means[chosen])
    text = (
        f"{params} was dropped early by some searches, and where it was not, its mean "
        f"loss is {less:.0f}% below that of the choice on all labels: prune=False "
        f"compares all candidates"
    )
    return [Caveat(Effect.INFO, text)]


def notes_of_choice(
    plan: PlannedSearch, bounded: Mapping[str, BoundedModel], deployed: BoundedModel
) -> list[Caveat]:
    """Return notes about what another choice of options would give."""
    notes = []
    delta = plan.delta
    losses = plan.context.losses
    names_with_misses = {
        name
        for name, model in bounded.items()
        if any(c.model and c.effect is Effect.WARNS for c in model.certificate.caveats)
    }
    if deployed.name in names_with_misses and names_with_misses != bounded.keys():
        [other] = bounded.keys() - names_with_misses
        text = bounded[other].certificate.model_text
        of_training = ", which it was trained on" * (other == ALL_ROWS)
        notes.append(
            f"the warning above is about the deployed model alone: the {text} found "
            f"rows of each class{of_training}; deploy={other!r} deploys it"
        )
    main_delta = losses.divide_delta(delta).main
    if main_delta < delta:
        reports = {
            "certified_report()": deployed.report or deployed.tolerances,
            "report_by_value()": deployed.report_by_value,
        }
        shown = " and ".join(name for name, report in reports.items() if report)
        notes.append(
            f"the bounds and all numbers of {shown} share the "
            f"{confidence(delta)}% confidence: the bounds are computed with "
            f"{confidence(main_delta, decimals=2)}%, and would be smaller without a "
            f"report"
        )
    return make_caveats(Effect.INFO, notes)


def make_queries(search: BoundedSearch) -> Queries | None:
    """Return the record of queried rows.

    None if no queries were planned, or there is no model of all rows.
    """
    plan, chosen = search.plan, search.chosen
    if not plan.n_queries or chosen.all_rows_model is None:
        return None
    queried = search.bound_inputs.queried
    order = np.argsort(queried.rows)  # in that of the pool
    rows, one_fold_codes, all_rows_codes = (
        tuple(values[n] for n in order)
        for values in (queried.rows, queried.one_fold_codes, queried.all_rows_codes)
    )
    without = bounds_with_queries(search, has_queries=False)
    return replace(
        queries_of_counts(search, search.joint_bounds.main),
        n_planned=plan.n_queries,
        fold_limit_without=without.one_fold_bound,
        rows=rows,
        one_fold_codes=one_fold_codes,
        all_rows_codes=all_rows_codes,
    )


def forecast_queries(search: BoundedSearch) -> QueryForecast | None:
    """Return the bounds to expect if rows were queried; None if that is impossible.

    A share of the confidence would go to their labels, from all other limits.
    """
    plan = search.plan
    if (
        plan.n_queries
        or plan.row_groups is not None
        or not plan.method.is_nested
        or plan.context.losses != DeclaredLosses()
        or search.chosen.all_rows_model is None
        or not search.bound_inputs.pool_counts_of
    ):
        return None
    bounds = bounds_with_queries(search, has_queries=True)
    queries = queries_of_counts(search, bounds)
    n_rows = min(ADVISED_QUERIES, queries.n_differ)
    expected = replace(queries, rows=tuple(range(n_rows))).expected
    return QueryForecast(n_rows, bounds.one_fold_bound, expected)


def forecast_folds(
    search: BoundedSearch, certificate: Certificate, holdout: float
) -> FoldForecast | None:
    """Return the number of folds with the smallest bound of the error on average.

    None if it is not smaller, by a percentage point, than that of a hold-out set.
    """
    plan, losses = search.plan, search.plan.context.losses
    error = certificate.estimate_where_fitted
    is_error = losses.is_about_error and plan.method.is_nested
    if plan.n_queries or not (is_error and 0 < error < 1):
        return None
    case = Case(
        certificate.n_groups or certificate.n_labeled,
        certificate.n_unlabeled,
        len(plan.axes.candidates),
        losses.divide_delta(plan.delta).main,
        error,
        error,  # the model of all rows plays no role
    )
    n_folds = plan.scheme.n_folds
    # Of equal bounds the run's number of folds is the first.
    numbers = [k for k in (n_folds, *OTHER_FOLDS) if k <= case.n_labeled]
    bounds = {k: sum(one_fold_terms(case, k)) for k in numbers}
    best = min(bounds, key=lambda k: bounds[k])
    if not bounds[best] <= holdout - LEAST_GAIN:
        return None
    return FoldForecast(best, bounds[best], best == n_folds)


def bounds_with_queries(search: BoundedSearch, *, has_queries: bool) -> ModelBounds:
    """Return the bounds of the error by a plan with queries, or by one without.

    They are for comparison: the plan that was run is the only one with a guarantee.
    """
    planned = replace(search.plan.planned_delta, has_queries=has_queries)
    losses, evidence = search.plan.context.losses, search.bound_inputs.evidence
    division = losses.main_division(planned)
    return bound_models(losses.main, evidence, division, search.chosen.deployed_fold)


def queries_of_counts(search: BoundedSearch, bounds: ModelBounds) -> Queries:
    """Return the record of queries with its bounds and counts, without any row."""
    plan, fold = search.plan, search.chosen.deployed_fold
    pool_counts = search.bound_inputs.pool_counts_of[plan.context.losses.main.statistic]
    n_duplicates_differ = int(pool_counts.duplicates[fold])
    return Queries(
        delta=plan.delta,
        n_planned=0,
        classes=tuple(plan.classes.tolist()),
        fold_limit=bounds.one_fold_bound,
        pool_only=bounds.all_rows_bound,
        n_unlabeled=pool_counts.n_rows,
        n_differ=int(pool_counts.counts[fold]) - n_duplicates_differ,
        n_duplicates=pool_counts.n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
    )
