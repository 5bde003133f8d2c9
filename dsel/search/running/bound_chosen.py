"""The bounds of the models that a search has chosen, and the counts behind them.

A nested search fits its chosen candidates without one fold and on all rows, and counts
them there; a search by a hold-out set counts the regressor that was chosen by squared
errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsel.losses.calls import naming_loss
from dsel.losses.joint import ModelBounds
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import OF_NUMBER, Caveat, Effect, make_caveats, texts_of
from dsel.results.loss_reports import ModelReports
from dsel.results.queries import Queries
from dsel.results.tables import constant_fields, largest_class
from dsel.rounded_texts import confidence
from dsel.search.engine.counts import SearchCounts
from dsel.search.running.cube_caveats import (
    caveats_of_failed_folds,
    caveats_of_missed_classes,
    caveats_of_search,
    join_caveats,
)
from dsel.search.running.cube_of_run import RunDescription
from dsel.search.running.fit_chosen import (
    ChosenModels,
    mean_inner_loss,
)
from dsel.search.running.procedures import name_procedure
from dsel.typing import Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan


def bound_chosen(
    plan: "Plan",
    counts: SearchCounts,
    chosen: ChosenModels,
    description: RunDescription,
) -> tuple[Choice, dict[str, Model]]:
    """Return the choice of a search, with the bounds of its models; and the models.

    Both bounds of a nested search hold at once with probability at least 1 - delta. The
    bound of the model of all rows holds where the limits of all folds and of the pool
    counts do, and the bound of the deployed fold is one of these limits.
    """
    losses = plan.context.losses
    bounds = losses.bound(
        chosen.evidence,
        plan.delta,
        chosen.deployed_fold,
        # Fixed by the plan: without a model of all rows its share stays unused.
        has_pool=plan.pool is not None and plan.method.is_nested,
        has_queries=plan.n_queries > 0,
        n_compared=plan.method.n_compared(plan.n_candidates),
    )
    k, main = plan.scheme.n_folds, bounds.main
    splits = {ONE_FOLD: chosen.deployed_fold} | (
        {ALL_ROWS: k} if k in chosen.models else {}
    )
    bounded: dict[str, BoundedModel] = {}
    for name, split in splits.items():
        number = chosen.candidates.by_split[split]
        reports = ModelReports(
            losses, chosen.evidence, bounds, chosen.deployed_fold, plan.delta, name
        )
        bounded[name] = BoundedModel(
            name,
            number,
            plan.axes.candidates[number],
            make_certificate(plan, chosen, description, main, name),
            report_by_value=reports.report_by_value(),
            baseline=reports.comparison(),
        ).with_report(reports.report())
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deploy = plan.deploy if plan.deploy in bounded else ONE_FOLD
    models = {name: chosen.models[split] for name, split in splits.items()}
    certificates = {name: model.certificate for name, model in bounded.items()}
    failed = caveats_of_failed_folds(plan, chosen.failed_folds, main)
    failed += caveats_of_failed_all_rows(plan, chosen.failures, certificates[ONE_FOLD])
    missed = caveats_of_missed_classes(plan, certificates, models)
    for name in bounded:
        bounded[name] = bounded[name].with_caveats(*failed, *missed.get(name, ()))
    choice = Choice(
        plan.criterion.name,
        mean_inner_loss(counts.by_name, bounded[deploy].candidate),
        bounded,
        deploy,
        # One that is a hold-out set already is compared with none.
        np.nan if plan.scheme.is_holdout else main.expected_holdout,
        join_caveats(
            description.caveats,
            notes_of_choice(plan, bounded, missed, deploy),
            caveats_of_search(counts),
        ),
        make_queries(plan, chosen, main) if ALL_ROWS in bounded else None,
        fold_params=tuple(
            plan.axes.candidates[number] for number in chosen.candidates.by_fold
        ),
        **largest_class(description.class_rows),
        **constant_fields(description.constant or ()),
    ).note_useless_bound()
    # A grid has set no parameter: its only candidate may have chosen some in its fit.
    if not choice.params:
        of_folds = [chosen.models.get(fold) for fold in range(k)]
        choice = name_procedure(choice, models, of_folds)
    return choice, models


def caveats_of_failed_all_rows(
    plan: "Plan", failures: Sequence[str], one_fold: Certificate
) -> list[Caveat]:
    """Return the caveat of a fit on all labels that failed, if it did."""
    text, effect = "", Effect.INFO
    if plan.deploy == ALL_ROWS:
        text = f"; the {one_fold.model_text} is deployed in its place"
        effect = Effect.WARNS
    return make_caveats(
        effect,
        (
            f"the fit on all labels failed ({why}), so it has no model and no bound"
            f"{text}"
            for why in failures
        ),
    )


def notes_of_choice(
    plan: "Plan",
    bounded: Mapping[str, BoundedModel],
    missed: Mapping[str, Sequence[Caveat]],
    deploy: str,
) -> list[Caveat]:
    """Return notes about what another choice of options would give.

    `missed` has caveats about classes that each model misses; `deploy` is the name of
    the deployed model.
    """
    notes = []
    never = {name for name, some in missed.items() if texts_of(some, Effect.WARNS)}
    if deploy in never and never != bounded.keys():
        [other] = bounded.keys() - never
        notes.append(
            f"the {bounded[other].certificate.model_text} finds some rows of each "
            f"class: deploy={other!r} deploys it"
        )
    share = plan.context.losses.divide_delta(plan.delta)[0]
    if share < plan.delta:
        made = bounded[deploy]
        reports = {
            "certified_report()": made.report or made.tolerances,
            "report_by_value()": made.report_by_value,
        }
        names = " and ".join(name for name, report in reports.items() if report)
        notes.append(
            f"the bounds and {names} hold jointly with "
            f"{confidence(plan.delta)}% confidence, so the bounds alone have "
            f"{confidence(share)}%: without a report they are smaller"
        )
    return make_caveats(Effect.INFO, notes)


def make_certificate(
    plan: "Plan",
    chosen: ChosenModels,
    description: RunDescription,
    bounds: ModelBounds,
    name: str,
) -> Certificate:
    """Return the certificate of one model, by its name."""
    k, loss, known = plan.scheme.n_folds, plan.context.losses.main, description.known
    estimate = np.nan
    if chosen.failed_folds:
        with naming_loss(loss, "estimate"):
            estimate = loss.estimate(chosen.without_failed_folds(loss.statistic))
    certificate = Certificate(
        bounds.of(name),
        plan.delta,
        plan.method.name,
        name,
        description.assumptions,
        tuple(c for c in description.caveats if c.effect in OF_NUMBER),
        estimate=bounds.estimate,
        estimate_of_models=estimate,
        n_labeled=known.n_labeled,
        n_unlabeled=known.n_unlabeled,
        equal_rows=known.equal_rows,
        n_groups=known.n_groups or 0,
        loss=repr(loss),
        says=f"{loss.label} at most",
        largest=loss.largest,
        is_cost=loss.is_cost,
        divides_delta=plan.method.divides_delta,
        is_holdout=plan.scheme.is_holdout,
    )
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


def make_queries(
    plan: "Plan", chosen: ChosenModels, bounds: ModelBounds
) -> Queries | None:
    """Return the record of queried rows; None if no queries were planned."""
    if not plan.n_queries:
        return None
    pool = chosen.pool[plan.context.losses.main.statistic]
    n_duplicates_differ = int(pool.duplicates[chosen.deployed_fold])
    order = np.argsort(chosen.drawn.rows)  # as they stand in the pool
    rows, one_fold, all_rows = (
        tuple(drawn[n] for n in order)
        for drawn in (
            chosen.drawn.rows,
            chosen.drawn.one_fold_codes,
            chosen.drawn.all_rows_codes,
        )
    )
    return Queries(
        plan.delta,
        plan.n_queries,
        classes=tuple(plan.classes.tolist()),
        fold_limit=bounds.one_fold_bound,
        pool_only=bounds.all_rows_bound,
        n_unlabeled=pool.n_rows,
        n_differ=int(pool.counts[chosen.deployed_fold]) - n_duplicates_differ,
        n_duplicates=pool.n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
        rows=rows,
        one_fold=one_fold,
        all_rows=all_rows,
    )
