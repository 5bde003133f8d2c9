"""Comparison of models with a baseline, by the rows that only one predicts correctly.

The baseline is an existing model, or the constant that predicts the largest class. Both
are compared on the rows of each fold, on which neither was trained, so that no new
label is needed. `Rows` have its predictions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import ClassVar

import numpy as np

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.bounds import baseline_limits, binomial_tail_inversion
from dsel.bounds.binomial import sum_outward
from dsel.losses.error_rate import ErrorCount
from dsel.losses.joint import Evidence
from dsel.losses.protocols import (
    CubeVariable,
    DeltaDivision,
    FoldCounts,
    PlannedDelta,
    PoolCounts,
    Predictions,
    Rows,
)


@dataclass(frozen=True)
class RightAloneCount(ErrorCount):
    """Counts rows that only the model predicts correctly, and only the baseline.

    On the pool it counts rows on which two models differ, under the same names as the
    error.
    """

    on_folds: str = names.OUTER_RIGHT_ALONE
    fold_shape: ClassVar[tuple[int, ...]] = (2,)
    """One number for the model, and one for the baseline."""

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """Description of the two counts of each fold."""
        meaning = "rows of the fold that only its model or the baseline predicts right"
        return {
            self.on_folds: CubeVariable(
                {names.RIGHT_ALONE: ("model", "baseline")}, meaning
            )
        }

    def count(self, rows: Rows, predictions: Predictions) -> Integers:
        """Count the rows on which exactly one is right, shape (2,)."""
        if rows.baseline is None:
            raise ValueError("the rows have no predictions of a baseline")
        model, baseline = predictions == rows.targets, rows.baseline == rows.targets
        return np.array([np.sum(model & ~baseline), np.sum(baseline & ~model)])

    def counts_from_errors(self, n_errors: int) -> None:  # type: ignore[override]
        """Return None: errors do not show which of both is right."""


@dataclass(frozen=True)
class BaselineDifference:
    """The error of a model less that of the baseline, as a plan compares them.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the comparisons of both deployed
    models hold at once.
    Assumes: what the certificate of the search lists; a baseline that was fixed before
    the labeled rows were inspected, or is a function of the rows outside of each fold.
    Source: :func:`dsel.bounds.baseline_limits`; for the model of all rows, the
    disagreement with a fold's model on the pool is added, as for the error.
    """

    described: tuple[str, ...]
    """Description of the baseline of each fold."""
    largest_classes: tuple[str, ...] = ()
    """Class that the baseline of each fold always predicts; empty for a model."""
    statistic: RightAloneCount = RightAloneCount()

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return upper limits of the models of all folds, (n_folds,), all at once."""
        model, baseline = folds.counts.T
        return baseline_limits(baseline, model, folds.n_rows, delta=delta)

    def all_rows_limits(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> Floats:
        """Return limits of the model of all rows through each fold's, all at once."""
        differ = binomial_tail_inversion(
            pool_counts.counts,
            pool_counts.upper_rows(pool_counts.duplicates),
            delta=division.pool_delta / len(folds.n_rows),
        )
        return sum_outward(self.limits(folds, division.label_delta), differ)

    def bounds(
        self, evidence: Evidence, planned_delta: PlannedDelta, fold: int
    ) -> tuple["BaselineBound", ...]:
        """Bound the difference of the model of this fold, then of that of all rows.

        These bounds share nothing of delta with other bounds.
        """
        folds = evidence.fold_counts_of[self.statistic]
        pool_counts = evidence.pool_counts_of.get(self.statistic)
        # Labels of queried rows do not make these bounds smaller.
        division = DeltaDivision.of_plan(
            planned_delta.delta, has_pool=planned_delta.has_pool
        )
        limits = self.limits(folds, division.label_delta)
        one_fold = BaselineBound(fold, float(limits[fold]))
        if pool_counts is None:
            return (one_fold,)
        sums = self.all_rows_limits(folds, pool_counts, division)
        # All sums hold at once, so the smallest may be taken.
        best = int(np.argmin(sums))
        return one_fold, BaselineBound(best, float(sums[best]), float(limits[best]))


@dataclass(frozen=True)
class BaselineBound:
    """Upper bound of the error of a model less that of the baseline."""

    fold: int
    """The fold whose rows it is computed from."""
    upper: float
    label_term: float = nan
    """Part of the limit from labeled rows, for the model of all rows."""
