"""The best bounds that a plan can have, computed as if no model made any error."""

from math import ceil, isnan, log, log1p, nan
from typing import Final

import numpy as np

from dsel.bounds.shares import fold_deltas
from dsel.bounds.tolerance import allowed_exceedances
from dsel.data.frames import take_rows
from dsel.data.splits import random_folds
from dsel.losses.base import FoldCounts, Rows, stack_folds
from dsel.losses.calls import count_rows, limits_of_folds
from dsel.losses.declared import DeclaredLosses, declare_losses
from dsel.losses.makers import MOST_CLASSES
from dsel.losses.regression import ErrorQuantile
from dsel.results.certificate import ONE_OF_EACH
from dsel.rounded_texts import about_percent, count_of, in_percent
from dsel.search.run_parts.planned_search import PlannedSearch

RARE: Final = 0.2
"""Part of the average number of rows of a class, below which a class is rare."""
MOST_OF_POOL: Final = 0.5
"""Ratio of the pool's part of a bound to that of labeled rows, above which the pool is
small; both are those of models that neither err nor differ."""
FEWER_FOLDS: Final = 3
"""Folds of a search that is named where rows are few; its models learn from 67%."""
LARGE_LIMIT: Final = 0.02
"""Smallest limit for which a plan names fewer folds."""
MUCH_SMALLER: Final = 0.8
"""Largest ratio of the limit by fewer folds to that of the plan, to be named."""
NO_BOUND: Final = 0.999
"""A limit above this would be printed as 100.0%."""


def smallest_limit(
    search: PlannedSearch,
    factor: int = 1,
    *,
    declared: DeclaredLosses | None = None,
    n_folds: int | None = None,
) -> float:
    """Return the limit of the best fold if no model makes any error, part of `largest`.

    The number of rows is multiplied by `factor`. The losses `declared` replace those of
    the search, and `n_folds` its folds, which are drawn as that search would draw them.
    NaN if the loss is a tolerance.
    """
    losses, labeled = declared or search.context.losses, search.labeled
    main = losses.main
    # The limit is computed from counts of perfect predictions, not by a formula, so
    # that for any loss it is the one that the run itself will compute.
    folds = [split.test_rows for split in search.scheme.fold_splits]
    if n_folds not in (None, search.scheme.n_folds):
        rows = np.sort(np.concatenate(folds))
        numbers = random_folds(len(rows), n_folds, seed=search.seed)
        folds = [rows[numbers == fold] for fold in range(n_folds)]
    if main.statistic.fold_shape is None:
        return nan
    perfect = stack_folds(
        [
            count_rows(
                main.statistic,
                Rows(take_rows(labeled.X, rows), labeled.y[rows]),
                labeled.y[rows],
            )
            for rows in folds
        ]
    )
    counts = FoldCounts(factor * perfect, factor * np.array([len(f) for f in folds]))
    label_delta = losses.main_division(search.planned_delta).label_delta
    limits = limits_of_folds(main, counts, label_delta)
    return float(np.min(limits)) / main.largest


def describe_possible_bound(search: PlannedSearch) -> str:
    """Return the smallest bound that a nested search can have; "" for another one."""
    losses = search.context.losses
    main = losses.main
    if not (search.method.is_nested and search.scheme.is_plain_random):
        return ""
    if isinstance(main, ErrorQuantile):
        return _describe_tolerance(search, main)
    limit = smallest_limit(search)
    if isnan(limit):
        return ""
    least = in_percent(limit)
    if main.largest != 1.0:  # a cost
        least = f"{limit * main.largest:.3g}"
    title = main.title[:1].lower() + main.title[1:]
    of_loss = "" if losses.is_about_error else f" ({title})"
    fewer = _describe_fewer_folds(search, limit)
    end = f" ({fewer})" if fewer and main.largest == 1.0 else ""
    return f"{least} or more{of_loss}, even if no model errs{end}"


def _describe_fewer_folds(
    search: PlannedSearch, limit: float, declared: DeclaredLosses | None = None
) -> str:
    """Return the limit of larger folds where it is much smaller than `limit`, or ""."""
    if limit < LARGE_LIMIT or search.scheme.n_folds <= FEWER_FOLDS:
        return ""
    fewer = smallest_limit(search, declared=declared, n_folds=FEWER_FOLDS)
    if fewer > MUCH_SMALLER * limit:
        return ""
    return f"{in_percent(fewer)} with cv={FEWER_FOLDS}"


def _describe_tolerance(search: PlannedSearch, main: ErrorQuantile) -> str:
    """Return which residual of a fold a tolerance is at best."""
    division = search.context.losses.main_division(search.planned_delta)
    # The first fold has the largest share of delta.
    delta = float(fold_deltas(division.label_delta, search.scheme.n_folds)[0])
    n_rows = int(search.scheme.fold_rows[0])
    n_beyond = int(allowed_exceedances(n_rows, level=main.level, delta=delta))
    if n_beyond < 0:
        return ""  # a caveat says how many rows are needed
    rows = "rows" if search.row_groups is None else "groups"
    return (
        f"a distance that {n_beyond:,} of the {n_rows:,} {rows} of a fold exceed, so "
        f"that {100 * main.fraction:g}% of all others keep it"
    )


def describe_small_pool(search: PlannedSearch) -> str:
    """Return that a pool is too small to help, and how many rows would; or ""."""
    losses, pool = search.context.losses, search.pool
    if pool is None or not (search.method.is_nested and losses.is_about_error):
        return ""
    fold_delta = losses.main_division(search.planned_delta).pool_delta
    fold_delta /= search.scheme.n_folds
    limit = smallest_limit(search)
    # Rows on which no model differs have this limit: delta ** (1 / n_rows) = 1 - limit.
    n_needed = ceil(log(fold_delta) / log1p(-MOST_OF_POOL * limit))
    if pool.n_rows >= n_needed:
        return ""
    of_pool = 1.0 - fold_delta ** (1.0 / max(1, pool.n_rows))
    least = "no bound below 100%"
    if (whole := limit + of_pool) < NO_BOUND:
        least = f"{in_percent(whole)} or more"
    return (
        f"too few to help: the bound of the model trained on all labels is {least}, "
        f"even if no model errs or differs; from about {n_needed:,} rows on they help"
    )


def describe_rare_class(search: PlannedSearch) -> str:
    """Return that the error hardly shows a rare class, and what bounds it; or ""."""
    losses, classes = search.context.losses, search.classes.tolist()
    is_of_error = losses.is_about_error and not losses.report_classes
    if search.is_regression or not (search.method.is_nested and is_of_error):
        return ""
    labeled = search.labeled
    of_groups = "" if search.row_groups is None else f" ({ONE_OF_EACH})"
    rows = search.scheme.independent_rows(np.arange(labeled.n_rows))
    n_rows = np.bincount(labeled.y[rows], minlength=len(classes))
    n_rarest = int(n_rows.min())
    if n_rarest >= RARE * n_rows.mean():
        return ""
    label = classes[int(n_rows.argmin())]
    text = (
        f"{label!r}, {count_of(n_rarest, 'row')} of {n_rows.sum():,}{of_groups}: never "
        f"to find it adds only {about_percent(n_rarest / n_rows.sum())} to the error"
    )
    if search.n_queries or not search.scheme.is_plain_random:
        return text  # bounds of classes are not for such a search
    least = _describe_least(search, f"recall:{label}")
    text += f"; loss='recall:{label}' bounds its misses ({least})"
    if len(classes) <= MOST_CLASSES:
        least = _describe_least(search, "balanced")
        text += f", loss='balanced' the mean misses of all classes ({least})"
    return text


def _describe_least(search: PlannedSearch, loss: str) -> str:
    """Return the smallest bound that the same search has with another loss."""
    declared = declare_losses(loss, None, search.classes)
    limit = smallest_limit(search, declared=declared)
    if limit > NO_BOUND:
        return "its rows are too few"
    fewer = _describe_fewer_folds(search, limit, declared)
    return f"{in_percent(limit)} or more{'; ' if fewer else ''}{fewer}"
