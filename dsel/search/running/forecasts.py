"""Queried rows, and the expected bounds of a plan with other queries or folds."""

from dataclasses import replace
from math import nan
from typing import Final

import numpy as np

from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import LossBounds, bound_models
from dsel.losses.protocols import PlannedDelta
from dsel.results import Certificate
from dsel.results.choice_parts import FoldForecast
from dsel.results.queries import LEAST_GAIN, Queries, QueryForecast
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL, CVScheme
from dsel.search.design.expected_bounds import (
    Case,
    five_fold_disagreement,
    one_fold_terms,
)
from dsel.search.running.count_chosen import ChosenModels
from dsel.typing import AnyArray

ADVISED_QUERIES: Final = 50
"""Number of queried rows, which makes the bound of the model of all labels 14% smaller
on average.
"""
OTHER_FOLDS: Final = 3, 10
"""Numbers of folds that are compared with that of the run."""


def make_queries(
    losses: DeclaredLosses,
    classes: AnyArray,
    planned_delta: PlannedDelta,
    chosen: ChosenModels,
    n_queries: int,
) -> Queries:
    """Return the record of queried rows, of which `n_queries` were planned.

    There must be a model of all rows. `classes` are the labels by their codes.
    """
    queried = chosen.on_pool.queried
    order = np.argsort(queried.rows)  # in that of the pool
    rows, one_fold_codes, all_rows_codes = (
        tuple(column[n] for n in order)
        for column in (queried.rows, queried.one_fold_codes, queried.all_rows_codes)
    )
    bounds, without = (
        bounds_with_queries(losses, chosen, planned_delta, has_queries=has_queries)
        for has_queries in (True, False)
    )
    return replace(
        queries_of_counts(losses, classes, chosen, bounds, planned_delta.delta),
        n_planned=n_queries,
        fold_limit_without=without.one_fold_bound,
        rows=rows,
        one_fold_codes=one_fold_codes,
        all_rows_codes=all_rows_codes,
    )


def forecast_queries(
    losses: DeclaredLosses,
    classes: AnyArray,
    planned_delta: PlannedDelta,
    chosen: ChosenModels,
    *,
    in_groups: bool,
) -> QueryForecast | None:
    """Return the expected bounds if rows were queried; None if that is impossible.

    The labels would take a share of delta from all other limits.
    """
    if (
        planned_delta.has_queries
        or in_groups
        or losses != DeclaredLosses()
        or ALL_ROWS_MODEL not in chosen.models
        or not chosen.on_pool.counts_of
    ):
        return None
    bounds = bounds_with_queries(losses, chosen, planned_delta, has_queries=True)
    queries = queries_of_counts(losses, classes, chosen, bounds, planned_delta.delta)
    # Where both models agree, a label would say nothing about their difference.
    n_rows = min(ADVISED_QUERIES, queries.n_differ)
    expected = replace(queries, rows=tuple(range(n_rows))).expected
    return QueryForecast(n_rows, bounds.one_fold_bound, expected)


def forecast_folds(
    losses: DeclaredLosses,
    scheme: CVScheme,
    planned_delta: PlannedDelta,
    n_candidates: int,
    certificate: Certificate,
    holdout: float,
) -> FoldForecast | None:
    """Return the number of folds with the smallest bound of the error on average.

    Return None unless the bound is a percentage point below that of a hold-out set.
    """
    error = certificate.estimate_where_fitted
    is_error = losses.is_about_error and scheme.is_nested
    if planned_delta.has_queries or not (is_error and 0 < error < 1):
        return None
    case = Case(
        certificate.n_groups or certificate.n_labeled,
        certificate.n_unlabeled,
        n_candidates,
        losses.divide_among_losses(planned_delta.delta).main_delta,
        error,
        error,  # the model of all rows plays no role
    )
    n_folds = scheme.n_folds
    # The run's number of folds comes first among equal bounds.
    numbers = [k for k in (n_folds, *OTHER_FOLDS) if k <= case.n_labeled]
    bounds = {k: sum(one_fold_terms(case, k)) for k in numbers}
    best = min(bounds, key=lambda k: bounds[k])
    # A forecast is no bound: a gain within its error is no reason for other folds.
    if not bounds[best] <= holdout - LEAST_GAIN:
        return None
    return FoldForecast(best, bounds[best], best == n_folds)


def estimate_disagreement(chosen: ChosenModels, n_folds: int) -> float:
    """Return how often the model of all rows differs from one without 20% of them.

    It is estimated from the models of all folds; NaN if the errors on a pool are not
    counted.
    """
    pool_counts = chosen.on_pool.counts_of.get(ERROR_RATE.statistic)
    if (
        pool_counts is None
        or not pool_counts.n_rows
        or ALL_ROWS_MODEL not in chosen.models
    ):
        return nan
    rate = float(np.mean(pool_counts.counts)) / pool_counts.n_rows
    return five_fold_disagreement(rate, n_folds)


def bounds_with_queries(
    losses: DeclaredLosses,
    chosen: ChosenModels,
    planned_delta: PlannedDelta,
    *,
    has_queries: bool,
) -> LossBounds:
    """Return the bounds of the error by a plan with queries, or by one without.

    These bounds are for comparison: only the plan that was run has a guarantee.
    """
    division = losses.main_division(replace(planned_delta, has_queries=has_queries))
    fold = chosen.deployed_fold
    return bound_models(losses.main, chosen.evidence, division, fold)


def queries_of_counts(
    losses: DeclaredLosses,
    classes: AnyArray,
    chosen: ChosenModels,
    bounds: LossBounds,
    delta: float,
) -> Queries:
    """Return the record of queries with its bounds and counts, without any row."""
    pool_counts = chosen.on_pool.counts_of[losses.main.statistic]
    fold = chosen.deployed_fold
    n_duplicates_differ = int(pool_counts.duplicates[fold])
    return Queries(
        delta=delta,
        n_planned=0,
        classes=tuple(classes.tolist()),
        fold_limit=bounds.one_fold_bound,
        pool_only=bounds.all_rows_bound,
        n_unlabeled=pool_counts.n_rows,
        n_differ=int(pool_counts.counts[fold]) - n_duplicates_differ,
        n_duplicates=pool_counts.n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
    )
