"""Expected tolerances with other numbers of labeled rows, from those of a run.

Residuals, and distances of models on the pool, are assumed to stay as they are; limits
are averaged over draws of labeled rows. See `expected_bounds` for the error.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from dsel import names
from dsel.arrays import Floats
from dsel.bounds.shares import fold_deltas
from dsel.bounds.tolerance import (
    allowed_exceedances,
    expected_tolerance,
    tolerance_distribution,
)
from dsel.losses.protocols import DeltaDivision, FoldCounts, PoolCounts
from dsel.losses.regression import ErrorQuantile
from dsel.search.design.expected_bounds import mean_of_smallest


@dataclass(frozen=True)
class MeasuredDistances:
    """Residuals of the models of all folds, and their distances on the pool."""

    folds: FoldCounts
    """Absolute residuals of the model of each fold, on its fold."""
    pool_counts: PoolCounts | None = None
    """Pool rows by the distance of both models; None without a model of all rows."""

    @classmethod
    def of_cube(cls, results: xr.Dataset) -> "MeasuredDistances":
        """Read residuals and distances from a cube; ValueError without residuals."""
        if names.OUTER_RESIDUALS not in results:
            raise ValueError(
                "`results` have no residuals: those of a nested search of regressors "
                "have, with loss=dsel.losses.error_quantile(0.9) or report=True."
            )
        residuals = results[names.OUTER_RESIDUALS].transpose(names.FOLD, names.RANK)
        # Shorter folds are padded with NaN.
        n_rows = (~np.isnan(residuals.values)).sum(axis=1)
        folds = FoldCounts(residuals.values, n_rows)
        if names.OUTER_DEVIATIONS not in results:
            return cls(folds)
        order = names.FOLD, names.DEVIATION_BIN
        counts, duplicates = (
            np.nan_to_num(results[name].transpose(*order).values).astype(np.int64)
            for name in (names.OUTER_DEVIATIONS, names.OUTER_DUPLICATE_DEVIATIONS)
        )
        n_pool, n_duplicates = (
            int(results[names.N_UNLABELED]),
            int(results[names.N_DUPLICATES]),
        )
        return cls(folds, PoolCounts(counts, duplicates, n_pool, n_duplicates))

    @property
    def residuals(self) -> Floats:
        """The residuals of all folds, shape (n_labeled,)."""
        return np.concatenate(self.folds.numbers_by_row())


def expect_of_one_fold(
    measured: MeasuredDistances,
    loss: ErrorQuantile,
    division: DeltaDivision,
    n_labeled: int,
) -> float:
    """Return the average of the smallest tolerance of all folds; infinite if none is.

    Examples
    --------
    >>> measured = MeasuredDistances(FoldCounts(np.ones((2, 100)), np.array([100] * 2)))
    >>> division = DeltaDivision(0.05, 1.0)
    >>> [expect_of_one_fold(measured, ErrorQuantile(0.9), division, n)
    ...     for n in (20, 200)]
    [inf, 1.0]
    """
    k = len(measured.folds.n_rows)
    deltas = fold_deltas(division.label_delta, k)
    tables = []
    for n_rows, delta in zip(_fold_sizes(n_labeled, k), deltas.tolist(), strict=True):
        allowed = int(allowed_exceedances(n_rows, level=loss.level, delta=delta))
        if allowed >= 0:
            distribution = tolerance_distribution(measured.residuals, n_rows, allowed)
            tables.append((*distribution, 1))
    return mean_of_smallest(tables) if tables else np.inf


def expect_of_all_rows(
    measured: MeasuredDistances,
    loss: ErrorQuantile,
    division: DeltaDivision,
    n_labeled: int,
) -> float:
    """Return the average of the smallest tolerance of all rows; infinite if none is."""
    if measured.pool_counts is None:
        return np.inf
    k, tables = len(measured.folds.n_rows), []
    for fold, n_rows in enumerate(_fold_sizes(n_labeled, k)):
        levels = loss.divide_level_of_fold(n_rows, fold, k, division)
        if levels.n_exceeding < 0:
            continue
        distance = loss.limit_deviation(
            fold, measured.folds, measured.pool_counts, division, levels.deviation_level
        )
        values, probabilities = tolerance_distribution(
            measured.residuals, n_rows, levels.n_exceeding
        )
        if np.isfinite(distance):
            tables.append((values + distance, probabilities, 1))
    return mean_of_smallest(tables) if tables else np.inf


def expect_of_holdout(
    measured: MeasuredDistances, loss: ErrorQuantile, delta: float, n_labeled: int
) -> float:
    """Return the average tolerance of a 20% hold-out set; infinite if it has none."""
    n_rows = max(1, n_labeled // 5)
    return expected_tolerance(measured.residuals, n_rows, level=loss.level, delta=delta)


def _fold_sizes(n_labeled: int, n_folds: int) -> list[int]:
    """Return the rows of each fold, as plain random folds have them."""
    n_each, n_larger = divmod(n_labeled, n_folds)
    return [n_each + (fold < n_larger) for fold in range(n_folds)]
