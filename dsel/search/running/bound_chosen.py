"""The bounds of the models that a search has chosen, and the counts behind them.

A nested search fits and counts its chosen candidates again; a search by a hold-out set
counts the regressor that was chosen by squared errors. The calls, in their order::

    nested.search_nested                exhaustive.search_exhaustively, of a regressor
      NestedPruner.choose_candidates      ExactPruner.choose_candidate
      nested.certify_choices              exhaustive.count_only_fold
        fit_chosen.fit_chosen               fit_batch.count_rows
          Engine.run_jobs (FitBatch)        -> ChosenModels
          fit_chosen.collect_models       bound_chosen
              DeclaredLosses.fold_to_deploy
          fit_chosen.count_on_pool      cube_of_run.make_cube_of_run
            Engine.count_pool (EachFold)
          -> ChosenModels
        add_chosen -> SearchCounts
        bound_chosen
          DeclaredLosses.bound -> JointBounds
          make_bounded_models -> BoundedModel, of each
            loss_reports.ModelReports
            make_certificate -> Certificate
          make_queries -> Queries
          -> Choice, and the models
        cube_of_run.make_cube_of_run
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dsel import names
from dsel.arrays import Floats
from dsel.checks import listing
from dsel.criteria.base import CandidateCounts
from dsel.data.frames import native, take_rows
from dsel.families.answers import predict_codes
from dsel.families.generic import collect_warnings
from dsel.losses.base import FoldCounts, PoolCounts, Statistic
from dsel.losses.calls import naming_loss
from dsel.losses.declared import JointBounds
from dsel.losses.error_rate import ERROR
from dsel.losses.joint import Evidence, ModelBounds
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import Caveat, Effect, make_caveats, texts_of
from dsel.results.fit_messages import FitMessage
from dsel.results.loss_reports import ModelReports
from dsel.results.queries import Queries
from dsel.results.tables import constant_fields, largest_class
from dsel.rounded_texts import confidence, count_of
from dsel.search.design.drawn_rows import DrawnRows
from dsel.search.engine.counts import SearchCounts
from dsel.search.engine.nested_pruner import ChosenCandidates
from dsel.search.running.cube_caveats import caveats_of_search, join_caveats
from dsel.search.running.cube_of_run import RunDescription
from dsel.search.running.evaluate import cv_error
from dsel.search.running.missed_classes import (
    MOST_NAMED,
    note_rarely_found_classes,
    sample_each_class,
    warn_of_missed_classes,
)
from dsel.search.running.procedures import name_procedure
from dsel.typing import Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan


@dataclass(frozen=True)
class ChosenModels:
    """The fitted models of the chosen candidates, with all counts of them."""

    candidates: ChosenCandidates
    """The chosen candidates: one for each fold, and one by all rows."""
    models: Mapping[int, Model]
    """Fitted estimators by fold; that of all rows, if there is one, has the key k."""
    folds: Mapping[Statistic, FoldCounts]
    """Counts of the models without a fold on this fold."""
    scores: Floats
    """The ranking loss of each model on its fold, (n_folds,)."""
    fold: int
    """The fold whose model is deployed: labeled rows decide it, before the pool."""
    failures: tuple[str, ...] = ()
    """Text about the fit on all rows, if it failed."""
    failed_folds: Mapping[int, str] = field(default_factory=dict)
    """Cause by fold, where the fit without it failed, or its model cannot predict it:
    then all of its rows count as errors."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of completed fits by candidate, such as an early stop."""
    pool: Mapping[Statistic, PoolCounts] = field(default_factory=dict)
    """Counts on the pool; empty without a pool, or without a model of all rows."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Pool rows to label."""

    @property
    def evidence(self) -> Evidence:
        """The counts from which losses bound the models."""
        return Evidence(self.folds, self.pool)

    def without_failed_folds(self, statistic: Statistic) -> FoldCounts:
        """Return the counts of the folds that a model has predicted."""
        folds = self.folds[statistic]
        kept = sorted({*range(len(folds.n_rows))} - self.failed_folds.keys())
        return FoldCounts(folds.counts[kept], folds.n_rows[kept])


def add_chosen(
    plan: "Plan", counts: SearchCounts, chosen: ChosenModels
) -> SearchCounts:
    """Return the counts of inner searches, completed by those of the chosen models."""
    if plan.n_candidates == 1:  # inner searches have counted nothing
        errors, n_rows = chosen.folds.get(ERROR.statistic), counts.fold_rows
        counts = replace(
            counts,
            fold_errors=None if errors is None else errors.integers[np.newaxis],
            fold_answers=n_rows[np.newaxis],
            fold_loss_mean=chosen.scores[np.newaxis],
        )
    if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
        counts = replace(counts, fold_loss_mean=None)
    return replace(
        counts,
        messages={**chosen.messages, **counts.messages},
        outer_candidate=np.array(chosen.candidates.by_fold),
        evidence=chosen.evidence,
    )


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
        chosen.fold,
        # Fixed by the plan: without a model of all rows its share stays unused.
        has_pool=plan.pool is not None and plan.method.bounds_two_models,
        has_queries=plan.n_queries > 0,
        n_compared=plan.n_compared,
    )
    k, main = plan.scheme.n_folds, bounds.main
    splits = {ONE_FOLD: main.fold} | ({ALL_ROWS: k} if k in chosen.models else {})
    bounded = make_bounded_models(plan, chosen, description, bounds, splits)
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deploy = plan.deploy if plan.deploy in bounded else ONE_FOLD
    models = {name: chosen.models[split] for name, split in splits.items()}
    certificates = {name: model.certificate for name, model in bounded.items()}
    failed = warn_of_failed_folds(plan, chosen, description, main)
    notes, missed = [], find_missed_classes(plan, certificates, models)
    for name in bounded:
        bounded[name] = bounded[name].with_caveats(*failed, *missed.get(name, ()))
    never = {n for n, some in missed.items() if texts_of(some, Effect.WARNS)}
    if deploy in never and never != models.keys():
        [other] = models.keys() - never
        notes.append(
            f"the {certificates[other].model} finds some rows of each class: "
            f"deploy={other!r} (--deploy {other}) deploys it"
        )
    if (part := losses.shares(plan.delta)[0]) < plan.delta:
        notes.append(
            f"the report and the bounds above hold jointly with "
            f"{confidence(plan.delta)}% confidence, so the bounds alone have "
            f"{confidence(part)}%: without a report they are smaller"
        )
    choice = Choice(
        plan.criterion.name,
        mean_inner_loss(counts.by_name, bounded[deploy].candidate),
        bounded,
        deploy,
        # One that is a hold-out set already is compared with none.
        np.nan if plan.scheme.is_holdout else main.expected_holdout,
        join_caveats(
            description.caveats,
            make_caveats(Effect.INFO, [*notes, *chosen.failures]),
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


def mean_inner_loss(counts: CandidateCounts, candidate: int) -> float:
    """Return the mean over folds of the loss by which inner searches ranked it."""
    means = counts.get(names.FOLD_LOSS_MEAN)
    if means is None:
        return cv_error(counts, candidate)
    return float(means[candidate].mean())


def make_bounded_models(
    plan: "Plan",
    chosen: ChosenModels,
    description: RunDescription,
    bounds: JointBounds,
    splits: Mapping[str, int],
) -> dict[str, BoundedModel]:
    """Return the models of these splits, with certificates and reports."""
    losses = plan.context.losses
    bounded: dict[str, BoundedModel] = {}
    for name, split in splits.items():
        number = chosen.candidates.by_split[split]
        reports = ModelReports(losses, chosen.evidence, bounds, plan.delta, name)
        bounded[name] = BoundedModel(
            name,
            number,
            plan.axes.candidates[number],
            make_certificate(plan, chosen, description, bounds.main, name),
            report_by_value=reports.report_by_value(),
            baseline=reports.comparison(),
        ).with_report(reports.report())
    return bounded


def warn_of_failed_folds(
    plan: "Plan",
    chosen: ChosenModels,
    description: RunDescription,
    bounds: ModelBounds,
) -> list[Caveat]:
    """Return a warning if fits without a fold, or predictions of it, have failed."""
    failed = chosen.failed_folds
    if not failed:
        return []
    n_rows = int(plan.scheme.fold_rows[list(failed)].sum())
    rows = count_of(n_rows, "group" if description.known.n_groups else "row")
    causes = [f"fold {fold}: {why}" for fold, why in failed.items()]
    is_too_large = "is"
    if np.isfinite(bounds.expected_holdout) and not plan.scheme.is_holdout:
        is_too_large = "and the comparison with a hold-out set are"
    is_error = repr(plan.context.losses.main) == "error"
    text = (
        f"{len(failed)} of {plan.scheme.n_folds} fits failed "
        f"({listing(causes, MOST_NAMED)}); {'its' if len(failed) == 1 else 'their'} "
        f"{rows} count as {'errors' if is_error else 'the largest loss'}, so the "
        f"estimate {is_too_large} too large"
    )
    return [Caveat(Effect.WARNS, text)]


def find_missed_classes(
    plan: "Plan", certificates: Mapping[str, Certificate], models: Mapping[str, Model]
) -> dict[str, list[Caveat]]:
    """Return caveats about classes that each model misses, by its name.

    The deployed model's fold may be one with few rows of a rare class, and its search
    may have chosen a model that never predicts this class.
    """
    labeled = plan.labeled
    if len(labeled.classes) < 2:
        return {}
    rows, warnings = sample_each_class(labeled.y), {}
    # Of a class with its full part of the rows, the error itself shows misses.
    n_rows = np.bincount(labeled.y, minlength=len(labeled.classes))
    rare = np.flatnonzero(2 * len(labeled.classes) * n_rows < len(labeled.y))
    # A search inside of a model ranks by its own `scoring`, whatever `loss` is.
    way_out = "loss='balanced' or 'recall:{label}' chooses for it"
    if plan.n_candidates == 1:
        way_out = (
            "scoring='balanced_accuracy' of a search inside of the model chooses for it"
        )
    X, y = native(take_rows(labeled.X, rows)), labeled.y[rows]
    for name, model in models.items():
        bound, unseen = certificates[name], np.zeros(len(rows), bool)
        if bound.fold is not None:
            unseen = np.isin(rows, plan.scheme.held_out[bound.fold].test_rows)
        with collect_warnings(), suppress(Exception):  # what raises is noted elsewhere
            codes = predict_codes(model, X, labeled.classes)
            warnings[name] = warn_of_missed_classes(
                bound.model, y, codes, labeled.classes, unseen
            )
            if not warnings[name] and plan.context.losses.main == ERROR:
                is_rare = unseen & np.isin(y, rare)
                warnings[name] = note_rarely_found_classes(
                    bound.model, y, codes, labeled.classes, is_rare, way_out
                )
    return {name: texts for name, texts in warnings.items() if texts}


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
        tuple(c for c in description.caveats if c.effect is Effect.VOIDS),
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
            disagreement_term=bounds.pool_term,
        )
    n_train = len(plan.scheme.held_out[bounds.fold].train_rows)
    part = 1 - 1 / k if k > 1 else n_train / plan.labeled.n_rows
    return replace(
        certificate,
        label_term=bounds.one_fold,
        fold=bounds.fold,
        share=f"{part:.0%} of the labels",
    )


def make_queries(
    plan: "Plan", chosen: ChosenModels, bounds: ModelBounds
) -> Queries | None:
    """Return the record of queried rows; None if no queries were planned."""
    if not plan.n_queries:
        return None
    pool = chosen.pool[plan.context.losses.main.statistic]
    n_duplicates_differ = int(pool.duplicates[bounds.fold])
    order = np.argsort(chosen.drawn.rows)  # as they stand in the pool
    rows, one_fold, all_rows = (
        tuple(drawn[place] for place in order)
        for drawn in (chosen.drawn.rows, chosen.drawn.one_fold, chosen.drawn.all_rows)
    )
    return Queries(
        plan.delta,
        plan.n_queries,
        classes=tuple(plan.classes.tolist()),
        fold_limit=bounds.one_fold,
        pool_only=bounds.all_rows,
        n_unlabeled=pool.n_rows,
        n_differ=int(pool.counts[bounds.fold]) - n_duplicates_differ,
        n_duplicates=pool.n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
        rows=rows,
        one_fold=one_fold,
        all_rows=all_rows,
    )
