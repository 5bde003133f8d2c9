"""Bounds of both models of a nested search, by one loss or by all numbers of a report.

Both models are bounded at once: that of the best fold by the counts on its fold, and
that of all rows through a fold's model and the pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats
from dsel.losses.base import (
    Counts,
    FoldCounts,
    Loss,
    PoolCounts,
    Shares,
    Statistic,
)


@dataclass(frozen=True)
class Evidence:
    """The counts from which losses bound the bounded models, by statistic."""

    folds: Mapping[Statistic, FoldCounts]
    pool: Mapping[Statistic, PoolCounts]
    """Counts on the pool; empty without a pool, or without a model of all rows."""
    has_model: NDArray[np.bool_] | None = None
    """Whether the fit without a fold gave a model, (n_folds,); None if all did."""

    @property
    def by_name(self) -> dict[str, Counts]:
        """The counts by the names of their variables in a cube."""
        counts: dict[str, Counts] = {
            statistic.on_folds: fold.counts for statistic, fold in self.folds.items()
        }
        for statistic, pool in self.pool.items():
            counts[statistic.on_pool] = pool.counts
            counts[statistic.on_duplicates] = pool.duplicates
        return counts


@dataclass(frozen=True)
class ModelBounds:
    """Bounds of the model of one fold and of that of all rows, by one loss."""

    fold: int
    """The fold whose model is deployed, by the smallest limit of the main loss."""
    one_fold: float
    """The bound of the model of the fold."""
    estimate: float
    """The loss of all folds together."""
    expected_holdout: float
    """The bound to expect of a 20% hold-out set."""
    all_rows: float = nan
    """The bound of the model of all rows; NaN without one."""
    label_term: float = nan
    """Part of `all_rows` from labeled rows."""
    pool_term: float = nan
    """Part of `all_rows` from the pool."""

    def of(self, model_name: str) -> float:
        """Return the bound of a model: ``one_fold`` or ``all_rows``."""
        return {"one_fold": self.one_fold, "all_rows": self.all_rows}[model_name]


def fold_to_deploy(limits: Floats, has_model: NDArray[np.bool_] | None) -> int:
    """Return the fold with the smallest limit among those whose model can be deployed.

    A fold whose fit failed counts as wrong on all rows, so its limit is the largest
    possible one. Other limits may be as large, such as those of a class with too few
    rows, and then a fold with a model is preferred.
    """
    lacks_model = np.zeros(len(limits), bool) if has_model is None else ~has_model
    return int(np.lexsort((limits, lacks_model))[0])


def bound_models(
    loss: Loss,
    evidence: Evidence,
    shares: Shares,
    fold: int | None = None,
    *,
    holdout_delta: float | None = None,
) -> ModelBounds:
    """Bound both models by one loss.

    The fold is the one with the smallest limit, unless another loss has chosen it. All
    limits hold at once, so the counts may choose. `holdout_delta` is the delta of the
    hold-out set in the comparison, by default that of the bound.
    """
    folds = evidence.folds[loss.statistic]
    limits = loss.limits(folds, shares.labels)
    if fold is None:
        fold = fold_to_deploy(limits, evidence.has_model)
    one_fold, estimate = float(limits[fold]), loss.estimate(folds)
    expected = loss.expected_holdout(
        folds, shares.delta if holdout_delta is None else holdout_delta
    )
    pool = evidence.pool.get(loss.statistic)
    if pool is None:
        return ModelBounds(fold, one_fold, estimate, expected)
    terms = map(float, loss.all_rows(folds, pool, shares))
    return ModelBounds(fold, one_fold, estimate, expected, *terms)
