"""The last step of a search: its counts, and the bounds that are computed from them.

A nested search fits and counts its chosen candidates again; a search by a hold-out set
counts the regressor that was chosen by squared errors. The calls, in their order::

    nested.certify_choices              exhaustive.search_all, of a regressor
      NestedPruner.choose_candidates      Search.run
      fit_chosen.fit_chosen               exhaustive.count_only_fold
        Engine.run_jobs (FitBatch)          fit_batch.count_rows
        fit_chosen.collect_models
        fit_chosen.count_chosen
          Engine.count_pool (EachFold)
        -> LastStep                       -> LastStep
      Run.make_cube, add_counts           Run.make_cube, add_counts
      bound_chosen                        bound_chosen
        DeclaredLosses.bound -> JointBounds
        loss_reports.make_reports -> ModelReports
        certify_model -> Certificate, of each model
        make_queries -> Queries
        -> Choice, and the models
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.data.frames import native, take_rows
from dsel.families.answers import predict_codes
from dsel.families.generic import collect_warnings
from dsel.losses.base import FoldCounts, PoolCounts, Statistic
from dsel.losses.joint import Evidence, ModelBounds
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.caveats import Effect, make_caveats
from dsel.results.cube import read_counts
from dsel.results.fit_messages import FitMessage
from dsel.results.loss_reports import make_reports
from dsel.results.queries import Queries
from dsel.results.tables import largest_class, read_constant_prediction
from dsel.search.design.drawn_rows import DrawnRows
from dsel.search.engine.pruning import ChosenCandidates
from dsel.search.running.cube_caveats import caveats_of, voiding_caveats
from dsel.search.running.evaluate import cv_error
from dsel.search.running.procedures import name_procedure
from dsel.search.running.select import certificate_of
from dsel.typing import Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

MOST_PREDICTED: Final = 1_000
"""Labeled rows that are predicted to see whether a model knows only one class."""


@dataclass(frozen=True)
class FittedModels:
    """Models of the chosen candidates, with the counts on their folds."""

    models: Mapping[int, Model]
    """Fitted estimators by fold; that of all rows, if there is one, has the key k."""
    folds: Mapping[Statistic, FoldCounts]
    scores: Floats
    """The ranking loss of each model on its fold, (n_folds,)."""
    failures: tuple[str, ...] = ()
    """Texts about failed fits."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of completed fits by candidate, such as an early stop."""

    @property
    def has_model(self) -> NDArray[np.bool_]:
        """Whether the fit without a fold gave a model, (n_folds,)."""
        return np.isin(np.arange(len(self.scores)), list(self.models))


@dataclass(frozen=True)
class LastStep:
    """All counts from which the bounds of a choice are computed."""

    chosen: ChosenCandidates
    """The chosen candidates: one for each fold, and one by all rows."""
    fitted: FittedModels
    pool: Mapping[Statistic, PoolCounts] = field(default_factory=dict)
    """Counts on the pool; empty without a pool, or without a model of all rows."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Pool rows to label."""

    @property
    def evidence(self) -> Evidence:
        """The counts from which losses bound the models."""
        return Evidence(self.fitted.folds, self.pool, self.fitted.has_model)

    @property
    def counts(self) -> dict[str, NDArray[Any]]:
        """Counts by the names of the cube's variables."""
        counts: dict[str, NDArray[Any]] = {
            s.on_folds: each.counts for s, each in self.evidence.folds.items()
        }
        for statistic, each in self.evidence.pool.items():
            counts[statistic.on_pool] = each.counts
            counts[statistic.on_duplicates] = each.duplicates
        return counts


def add_counts(cube: xr.Dataset, last: LastStep) -> xr.Dataset:
    """Return the cube with the statistics of the last step as variables."""
    for statistic in last.evidence.folds:
        for name, (dims, meaning, given) in statistic.variables.items():
            if name in last.counts:
                attributes = {"long_name": meaning}
                variable = (names.FOLD, *dims), last.counts[name], attributes
                labels = {dim: given.get(dim, statistic.labels) for dim in dims}
                coords = {
                    dim: np.array(each, object) for dim, each in labels.items() if each
                }
                cube = cube.assign(coords | {name: variable})
    return cube


def bound_chosen(
    plan: "Plan", cube: xr.Dataset, last: LastStep
) -> tuple[Choice, dict[str, Model]]:
    """Return the choice of a search by its last step: bounds, and their models.

    Both bounds of a nested search hold at once: the one of a fold is part of the event
    of the other.
    """
    losses, fitted = plan.context.losses, last.fitted
    bounds = losses.bound(
        last.evidence,
        plan.delta,
        # It was planned; where no model of all rows could be fitted, its part is lost.
        has_pool=plan.pool is not None and plan.method.bounds_two_models,
        has_queries=plan.n_queries > 0,
        n_compared=plan.n_compared,
    )
    reports = make_reports(losses, last.evidence, bounds, plan.delta)
    k, read = plan.scheme.n_folds, bounds.main
    splits = {ONE_FOLD: read.fold} | ({ALL_ROWS: k} if k in fitted.models else {})
    bounded: dict[str, BoundedModel] = {}
    for name, split in splits.items():
        number = last.chosen.by_split[split]
        bounded[name] = BoundedModel(
            name,
            number,
            plan.axes.candidates[number],
            certify_model(plan, cube, read, name),
            report_by_value=reports[name].by_value,
            baseline=reports[name].baseline,
        ).with_report(reports[name].report)
    # The fit of all rows may have failed; the bound of a fold holds all the same.
    deploy = plan.deploy if plan.deploy in bounded else ONE_FOLD
    notes = note_one_class(plan, deploy, fitted.models.get(splits[deploy]))
    if losses.shares(1.0)[0] < 1.0:
        notes.append(
            f"the report and the bounds above hold jointly, and the bounds have "
            f"{losses.shares(1.0)[0]:.0%} of delta: without a report they are smaller"
        )
    choice = Choice(
        plan.criterion.name,
        inner_estimate(cube, bounded[deploy].candidate),
        bounded,
        deploy,
        # One that is a hold-out set already is compared with none.
        np.nan if plan.scheme.is_holdout else read.expected_holdout,
        caveats_of(
            cube,
            make_caveats(Effect.INFO, [*notes, *fitted.failures]),
        ),
        make_queries(plan, last, read) if ALL_ROWS in bounded else None,
        **largest_class(cube),
        **read_constant_prediction(cube),
    ).note_useless_bound()
    models = {name: fitted.models[split] for name, split in splits.items()}
    of_folds = {fold: model for fold, model in fitted.models.items() if fold < k}
    return name_procedure(choice, models, of_folds), models


def note_one_class(plan: "Plan", name: str, model: Any) -> list[str]:
    """Return a note if a model predicts the same class for all labeled rows.

    The fold with the smallest limit may be one with few rows of a rare class, and its
    search may have chosen a model that never predicts this class. The bound holds, but
    nobody wants this model.
    """
    labeled = plan.labeled
    if model is None or len(labeled.classes) < 2:
        return []
    n = min(labeled.n_rows, MOST_PREDICTED)
    rows = np.linspace(0, labeled.n_rows - 1, n).astype(np.int64)  # they may be sorted
    with collect_warnings(), suppress(Exception):  # one that raises is noted elsewhere
        X = native(take_rows(labeled.X, rows))
        codes = np.unique(predict_codes(model, X, labeled.classes))
        if len(codes) == 1 and codes[0] >= 0:
            return [
                f"the model of {name} predicts {labeled.classes[codes[0]]} for all "
                f"of {n:,} labeled rows; deploy= (--deploy) takes the other model, "
                "report=True (--loss report) has the recall of each class"
            ]
    return []


def certify_model(
    plan: "Plan", cube: xr.Dataset, read: ModelBounds, name: str
) -> Certificate:
    """Return the certificate of one model, by its name."""
    k, loss = plan.scheme.n_folds, plan.context.losses.main
    fields: dict[str, Any] = {"label_term": read.one_fold, "fold": read.fold}
    if name == ONE_FOLD:
        n_train = len(plan.scheme.held_out[read.fold].train_rows)
        seen = 1 - 1 / k if k > 1 else n_train / plan.labeled.n_rows
        fields["share"] = f"{seen:.0%} of the labels"
    else:
        fields = {"label_term": read.label_term, "disagreement_term": read.pool_term}
    return certificate_of(
        cube,
        read.of(name),
        plan.delta,
        plan.method.name,
        name,
        estimate=read.estimate,
        loss=repr(loss),
        says=f"{loss.label} at most",
        largest=loss.largest,
        is_cost=loss.is_cost,
        divides_delta=plan.method.divides_delta,
        caveats=tuple(voiding_caveats(cube)),
        **fields,
    )


def inner_estimate(cube: xr.Dataset, candidate: int) -> float:
    """Return the mean over folds of what inner searches ranked a candidate by."""
    counts = read_counts(cube)
    rates = counts.get(names.FOLD_LOSS_MEAN)
    if rates is None:
        return cv_error(counts, candidate)
    return float(rates[candidate].mean())


def make_queries(plan: "Plan", last: LastStep, read: ModelBounds) -> Queries | None:
    """Return the record of queried rows; None if no queries were planned."""
    if not plan.n_queries:
        return None
    pool = last.evidence.pool[plan.context.losses.main.statistic]
    n_duplicates_differ = int(pool.duplicates[read.fold])
    order = np.argsort(last.drawn.rows)  # as they stand in the pool
    rows, one_fold, all_rows = (
        tuple(drawn[place] for place in order)
        for drawn in (last.drawn.rows, last.drawn.one_fold, last.drawn.all_rows)
    )
    return Queries(
        plan.delta,
        plan.n_queries,
        classes=tuple(plan.classes.tolist()),
        fold_limit=read.one_fold,
        pool_only=read.all_rows,
        n_unlabeled=pool.n_rows,
        n_differ=int(pool.counts[read.fold]) - n_duplicates_differ,
        n_duplicates=pool.n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
        rows=rows,
        one_fold=one_fold,
        all_rows=all_rows,
    )
