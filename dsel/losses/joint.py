"""Bounds of both models of a nested search, by one loss or by all numbers of a report.

Both models are bounded at once: that of one fold by the counts on its fold, and that
of all rows through a fold's model and the pool. The limits of the models of all folds
hold at once, so any rule may decide which of these models is deployed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Bools, Floats
from dsel.errors import LossError
from dsel.losses.calls import bound_of_all_rows, estimate_of_folds, limits_of_folds
from dsel.losses.protocols import (
    Counts,
    DeltaDivision,
    FoldCounts,
    Loss,
    PoolCounts,
    Statistic,
)
from dsel.option_values import ONE_FOLD

NEAR_LIMITS: Final = 0.05
"""Limits up to 5% above the smallest one are near it: see `fold_to_deploy`."""


@dataclass(frozen=True)
class Evidence:
    """The counts from which losses bound the bounded models, by statistic."""

    fold_counts_of: Mapping[Statistic, FoldCounts]
    pool_counts_of: Mapping[Statistic, PoolCounts]
    """Counts on the pool; empty without a pool, or without a model of all rows."""

    @property
    def by_name(self) -> dict[str, Counts]:
        """The counts by the names of their variables in a cube."""
        counts: dict[str, Counts] = {
            statistic.on_folds: folds.counts
            for statistic, folds in self.fold_counts_of.items()
        }
        for statistic, pool_counts in self.pool_counts_of.items():
            counts[statistic.on_pool] = pool_counts.counts
            counts[statistic.on_duplicates] = pool_counts.duplicates
        return counts


@dataclass(frozen=True)
class LossBounds:
    """Bounds of the model of one fold and of that of all rows, by one loss."""

    one_fold_bound: float
    """The bound of the model of the deployed fold."""
    estimate: float
    """The loss of all folds together."""
    all_rows_bound: float = nan
    """The bound of the model of all rows; NaN without one."""
    label_term: float = nan
    """Part of `all_rows_bound` from labeled rows."""
    disagreement_term: float = nan
    """Part of `all_rows_bound` from the pool."""

    def of(self, model_name: str) -> float:
        """Return the bound of a model: ``one_fold`` or ``all_rows``."""
        return self.one_fold_bound if model_name == ONE_FOLD else self.all_rows_bound


def fold_to_deploy(limits: Floats, has_model: Bools, ranks: NDArray[np.intp]) -> int:
    """Return the fold whose model is deployed.

    Among the models whose limit is at most 5% above the smallest, it is the one whose
    candidate has the smallest loss in cross-validation; then the smallest limit
    decides, then the number of the fold. All arguments are of shape (n_folds,).

    `has_model` says whether the fit without a fold gave a model. A fold whose fit
    failed counts as wrong on all rows, so its limit is the largest possible one; others
    may be as large, such as those of a class with too few rows. `ranks` are those of
    the candidate of each fold by its loss in cross-validation; equal losses share one.

    Notes
    -----
    Guarantee: the limit of this fold holds, with the probability with which all limits
    hold at once.
    Assumes: limits of all folds that hold at once, whatever chooses one of them.
    Source: a fold's limit comes from few rows, and the smallest of several is partly
    luck, most of all if a class is rare. The loss of its candidate comes from all
    labeled rows. See docs/theory/nested.md for proof and measurements.

    Examples
    --------
    >>> limits = np.array([0.100, 0.104, 0.102, 0.160])
    >>> fold_to_deploy(limits, np.full(4, True), np.array([2, 1, 1, 0]))
    2
    """
    # A fold without a model may have the smallest limit: all limits can be the largest.
    folds = np.flatnonzero(has_model)
    # Limits that are this near differ by chance if rows are few; ranks come from all
    # rows.
    near = folds[limits[folds] <= (1.0 + NEAR_LIMITS) * limits[folds].min()]
    return int(near[np.lexsort((limits[near], ranks[near]))[0]])


def bound_models(
    loss: Loss, evidence: Evidence, division: DeltaDivision, fold: int
) -> LossBounds:
    """Bound the model of a fold, and that of all rows, by one loss.

    The limits of all folds hold at once, so counts may have chosen the fold.
    """
    folds = evidence.fold_counts_of[loss.statistic]
    limits = limits_of_folds(loss, folds, division.label_delta)
    one_fold = float(limits[fold])
    estimate = estimate_of_folds(loss, folds)
    # A value of a column may have no row. Then no limit says anything either.
    if np.isnan(estimate) and (limits < loss.largest).any():
        raise LossError(
            f"`loss` {loss!r} must return a number from `estimate`, got {estimate} for "
            f"rows of which `limits` knows {limits.tolist()}; dsel.losses.check_loss "
            f"tests it."
        )
    pool_counts = evidence.pool_counts_of.get(loss.statistic)
    # The pool's share stays unused then: moving it to the labeled rows after the fit of
    # all rows failed would make the shares depend on data.
    if pool_counts is None:
        return LossBounds(one_fold, estimate)
    # The bound is computed from counts, not from limits: a loss has it in one formula,
    # with one proof. Its limits are at the same part of delta, so both bounds hold at
    # once.
    terms = bound_of_all_rows(loss, folds, pool_counts, division, limits)
    return LossBounds(one_fold, estimate, *map(float, terms))
