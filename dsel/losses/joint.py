"""Bounds of both models of a nested search, by one loss or by all numbers of a report.

Both models are bounded at once: that of the best fold by the counts on its fold, and
that of all rows through a fold's model and the pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np

from dsel.losses.base import FoldCounts, Loss, PoolCounts, Shares, Statistic


@dataclass(frozen=True)
class Evidence:
    """What the last step of a nested search has counted, by statistic."""

    folds: Mapping[Statistic, FoldCounts]
    pool: Mapping[Statistic, PoolCounts]
    """Empty where there is no pool, or no model of all rows."""


@dataclass(frozen=True)
class ModelBounds:
    """Bounds of the model of one fold and of that of all rows, by one loss."""

    fold: int
    """The fold whose model is deployed: that of the smallest limit of the main loss."""
    one_fold: float
    """The bound of its model."""
    estimate: float
    """The loss of all folds together."""
    expected_holdout: float
    """What a 20% hold-out set would give on average."""
    all_rows: float = nan
    """The bound of the model of all rows; NaN where there is none."""
    label_term: float = nan
    """Its part from labeled rows."""
    pool_term: float = nan
    """Its part from the pool."""


def bound_models(
    loss: Loss, evidence: Evidence, shares: Shares, fold: int | None = None
) -> ModelBounds:
    """Bound both models by one loss.

    The fold is that of the smallest limit, unless another loss has picked it: all
    limits hold at once, so that it may be picked by the counts.
    """
    folds = evidence.folds[loss.statistic]
    limits = loss.limits(folds, shares.labels)
    picked = int(np.argmin(limits)) if fold is None else fold
    one_fold, estimate = float(limits[picked]), loss.estimate(folds)
    expected = loss.expected_holdout(folds, shares.delta)
    pool = evidence.pool.get(loss.statistic)
    if pool is None:
        return ModelBounds(picked, one_fold, estimate, expected)
    terms = map(float, loss.all_rows(folds, pool, shares))
    return ModelBounds(picked, one_fold, estimate, expected, *terms)
