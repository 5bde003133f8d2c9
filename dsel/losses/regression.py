"""Losses of regressors: the distance to the target, or the fraction of large distances.

`y` and predictions are numbers. A prediction that is no finite number is infinitely far
off. Candidates are ranked by the mean squared error, whatever loss is bounded: any rule
may rank them, and squares use all rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor
from typing import ClassVar, Final

import numpy as np

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.bounds.binomial import binomial_tail_inversion, sum_outward
from dsel.bounds.cross_validation import BoundTerms, nested_fold_limits
from dsel.bounds.shares import fold_deltas
from dsel.bounds.tolerance import (
    SUM_ROUNDING,
    DividedLevel,
    add_tolerances,
    count_deviations,
    deviation_edges,
    deviation_limit,
    divide_level,
    expected_tolerance,
    minimum_rows,
    tolerance_limit,
)
from dsel.losses.calls import ConstantPrediction
from dsel.losses.protocols import (
    Counts,
    CubeVariable,
    DeltaDivision,
    Exceedance,
    FoldCounts,
    PoolCounts,
    Predictions,
    Rows,
    RowSentence,
    SingleLoss,
    Statistic,
    expect_holdout_rate,
    smallest_sum,
)

RESIDUAL_SHARE_OF_POOL: Final = 0.8
"""Share of the pool's delta for residuals, at another level than that of `limits`.

Pools are large, so that the limits of deviations are tight even at a small part.
"""
APART: Final = 0.2
"""Part of a fixed tolerance for the distance of two models. Fixed before the data."""
LARGEST_SQUARE: Final = 1e300
"""Replaces the square of an infinite residual, so that a mean is a number."""


def absolute_residuals(y: Floats, predictions: Predictions) -> Floats:
    """Return absolute residuals, (n_rows,); infinite if a prediction is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        residuals = np.abs(
            np.asarray(y, np.float64) - np.asarray(predictions, np.float64)
        )
    return np.where(np.isfinite(residuals), residuals, np.inf)


def mean_squared_error(y: Floats, predictions: Predictions) -> float:
    """Return the mean of squared residuals; without rows the largest float."""
    residuals = absolute_residuals(y, predictions)
    with np.errstate(over="ignore"):
        squares = np.minimum(residuals**2, LARGEST_SQUARE)
    return float(np.mean(squares)) if len(squares) else LARGEST_SQUARE


@dataclass(frozen=True)
class Residuals(Statistic):
    """Sorted absolute residuals, and counts of pool rows by the distance of two models.

    Deviations are counted in bins whose edges are multiples of one residual of the
    fold: counts of blocks add up in any order, while sums of floats depend on it.
    """

    level: float
    """Fraction of the rows whose residuals are above the one that scales the bins."""
    on_folds: str = names.OUTER_RESIDUALS
    on_pool: str = names.OUTER_DEVIATIONS
    on_duplicates: str = names.OUTER_DUPLICATE_DEVIATIONS
    counts_differences: bool = True
    fold_shape: ClassVar[None] = None

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """Descriptions of the residuals, and of the counts on the pool."""
        bins: dict[str, tuple[str, ...]] = {names.DEVIATION_BIN: ()}
        return {
            self.on_folds: CubeVariable(
                {names.RANK: ()}, "absolute residuals on the fold of its model, sorted"
            ),
            self.on_pool: CubeVariable(
                bins, "pool rows by how far its model and that of all rows are apart"
            ),
            self.on_duplicates: CubeVariable(
                bins, "of these, the pool rows that equal labeled rows"
            ),
        }

    @property
    def pair_shape(self) -> tuple[int, ...]:
        """Shape with one number for each bin."""
        return deviation_edges(1.0).shape

    def count(self, rows: Rows, predictions: Predictions) -> Floats:
        """Return the sorted residuals, shape (n_rows,)."""
        return np.sort(absolute_residuals(rows.targets, predictions))

    def edges(self, residuals: Counts) -> Floats:
        """Return the edges of the bins, which depend on the residuals of a fold."""
        # Cached, since every block of the pool needs them.
        return _bin_edges(
            np.ascontiguousarray(residuals, np.float64).tobytes(), self.level
        )

    def count_pair(
        self,
        rows: Rows,
        fold_predictions: Predictions,
        all_rows_predictions: Predictions,
        counts_on_fold: Counts,
    ) -> Integers:
        """Count rows by the distance of both models, shape (n_edges,)."""
        return count_deviations(
            absolute_residuals(fold_predictions, all_rows_predictions),
            self.edges(counts_on_fold),
        )


@lru_cache(maxsize=256)
def _bin_edges(residual_bytes: bytes, level: float) -> Floats:
    """Return the edges by the residuals of a fold, which are passed as bytes."""
    # Limits that use the fold alone: `deviation_limit` needs edges that no pool row has
    # changed.
    residuals = np.frombuffer(residual_bytes, np.float64)
    # Shorter folds are padded with NaN, and missing predictions are infinitely far off.
    finite = residuals[np.isfinite(residuals)]
    positive = finite[finite > 0.0]
    scale = 1.0
    if len(positive):
        quantile = float(np.quantile(finite, 1.0 - level, method="higher"))
        scale = quantile if quantile > 0.0 else float(positive[0])
    edges = deviation_edges(scale)
    edges.setflags(write=False)
    return edges


class RegressionLoss(SingleLoss):
    """Base of the losses of regressors."""

    is_regression: bool = True
    criterion: str = "mean_squared_error"

    def constant_loss(self, y: Floats) -> float:
        """Return the loss of always predicting the median of `y`; NaN if not known."""
        del y
        return np.nan

    def best_constant(
        self, rows: Rows, classes: Sequence[object]
    ) -> ConstantPrediction | None:
        """Return the median of the targets, with its loss; None if it is not known."""
        y = np.asarray(rows.targets, np.float64)
        best = ConstantPrediction(float(np.median(y)), self.constant_loss(y))
        return best if np.isfinite(best).all() else None

    def score(self, rows: Rows, predictions: Predictions) -> float:
        """Return the mean squared error."""
        return mean_squared_error(rows.targets, predictions)


@dataclass(frozen=True, repr=False)
class ErrorQuantile(RegressionLoss):
    """The distance to the target that a fraction of predictions does not exceed.

    Notes
    -----
    Guarantee: `limits` and `bound_all_rows` hold at once with probability at least
    ``1 - delta``: at most ``1 - fraction`` of new rows are off by more.
    Assumes: what the certificate of the search lists; nothing about the target.
    Source: :func:`dsel.bounds.tolerance_limit` for each fold at its share of delta. A
    row is off by more than :math:`t + u` only if the fold's model is off by more than
    :math:`t`, or both models are more than :math:`u` apart:
    :func:`dsel.bounds.deviation_limit`, at levels that add up. Both tolerances of one
    fold hold at once by `dsel.bounds.tolerance.divide_level`.
    """

    fraction: float
    """Fraction of the predictions that keep the tolerance, in (0, 1)."""
    largest: float = np.inf
    shared_statistic: Residuals | None = field(default=None, compare=False)
    """The statistic that several such losses use; None if it is this one's own."""

    def __repr__(self) -> str:
        return f"error_quantile({self.fraction!r})"

    def constant_loss(self, y: Floats) -> float:
        """Return the distance to their median that this fraction of targets keeps."""
        off = np.abs(y - np.median(y))
        return float(np.quantile(off, self.fraction, method="inverted_cdf"))

    def exceedance(self, bound: float) -> Exceedance:
        """Return the bound as tolerance, and the fraction that may be off by more."""
        return Exceedance(bound, self.level)

    @property
    def level(self) -> float:
        """Fraction of the predictions that may be off by more."""
        return 1.0 - self.fraction

    @property
    def title(self) -> str:
        """Name of the bounded value."""
        return f"{100 * self.fraction:.6g}% of predictions are off by"

    @property
    def sentence(self) -> RowSentence:  # type: ignore[override]
        """Number of rows whose prediction keeps the tolerance."""
        return RowSentence(
            f"Of {{rows}} {{model}} predicts at least {floor(1000 * self.fraction):,} "
            f"to within {{bound}} of the true value on average."
        )

    @property
    def statistic(self) -> Residuals:
        """The statistic of residuals, and of deviations of models."""
        return self.shared_statistic or Residuals(self.level)

    def estimate(self, folds: FoldCounts) -> float:
        """Return the quantile of all residuals."""
        residuals = np.concatenate(folds.numbers_by_row())
        return float(np.quantile(residuals, self.fraction, method="inverted_cdf"))

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return the tolerance of each fold, at its share of delta."""
        by_fold = folds.numbers_by_row()
        deltas = fold_deltas(delta, len(by_fold)).tolist()
        return np.array(
            [
                # A fold may lack rows of a value of `report_by`.
                tolerance_limit(residuals, level=self.level, delta=fold_delta)
                if len(residuals)
                else np.inf
                for residuals, fold_delta in zip(by_fold, deltas, strict=True)
            ]
        )

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Return the smallest sum of a fold's tolerance and a deviation from it."""
        by_fold = folds.numbers_by_row()
        k = len(folds.n_rows)
        tolerances, deviations = np.full((2, k), np.inf)
        for fold, n_rows in enumerate(folds.n_rows.tolist()):
            levels = self.divide_level_of_fold(n_rows, fold, k, division)
            # Too few rows for any finite tolerance at this level.
            if levels.n_exceeding < 0:
                continue
            # This is at the smaller level, so it is no smaller than the tolerance of
            # `limits`.
            tolerances[fold] = np.sort(by_fold[fold])[n_rows - 1 - levels.n_exceeding]
            deviations[fold] = self.limit_deviation(
                fold, folds, pool_counts, division, levels.deviation_level
            )
        return smallest_sum(tolerances, add_tolerances(tolerances, deviations))

    def divide_level_of_fold(
        self, n_rows: int, fold: int, n_folds: int, division: DeltaDivision
    ) -> DividedLevel:
        """Return the levels of residuals of a fold with these rows, and of the pool."""
        extra_delta = RESIDUAL_SHARE_OF_POOL * division.pool_delta
        return divide_level(
            n_rows,
            level=self.level,
            delta=float(fold_deltas(division.label_delta, n_folds)[fold]),
            extra_delta=float(fold_deltas(extra_delta, n_folds)[fold]),
        )

    def limit_deviation(
        self,
        fold: int,
        folds: FoldCounts,
        pool_counts: PoolCounts,
        division: DeltaDivision,
        level: float,
    ) -> float:
        """Return a limit of how far a fold's model and that of all rows are apart."""
        # Limits are of all deviations above an edge, and so are duplicates.
        duplicates = np.cumsum(pool_counts.duplicates[fold][::-1])[::-1]
        return deviation_limit(
            pool_counts.counts[fold],
            self.statistic.edges(folds.counts[fold]),
            pool_counts.upper_rows(duplicates),
            level=level,
            delta=(1.0 - RESIDUAL_SHARE_OF_POOL)
            * division.pool_delta
            / len(folds.n_rows),
        )

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the average tolerance from 20% of the rows; NaN if infinite."""
        residuals = np.concatenate(folds.numbers_by_row())
        n_rows = max(1, len(residuals) // 5)
        expected = expected_tolerance(residuals, n_rows, level=self.level, delta=delta)
        return expected if np.isfinite(expected) else np.nan

    def caveats(self, y: Floats, n_folds: int, delta: float) -> list[str]:
        """Return a caveat with the needed rows if the first fold has too few.

        This loss chooses the fold that is deployed, so it is one with a finite
        tolerance if there is any; the first fold needs the fewest rows.
        """
        possible = ""
        if fraction := largest_fraction(len(y), n_folds, delta):
            possible = (
                f"; for {100 * fraction:.0f}% of them these are enough "
                f"(loss='error_quantile={fraction:g}')"
            )
        return self._few_rows(len(y), n_folds, delta, _fewest_rows, possible)

    def report_caveats(self, n_rows: int, n_folds: int, delta: float) -> list[str]:
        """Return a caveat with the needed rows if any fold has too few.

        Another loss chooses the fold that is deployed: it may be one that has a
        smaller share of delta than the first, and needs more rows.
        """
        possible = ""
        if fraction := largest_fraction(n_rows, n_folds, delta, _rows_of_any_fold):
            possible = f"; for {100 * fraction:.0f}% of them these are enough"
        return self._few_rows(n_rows, n_folds, delta, _rows_of_any_fold, possible)

    def _few_rows(
        self,
        n_rows: int,
        n_folds: int,
        delta: float,
        needed_rows: Callable[[int, float, float], int],
        possible: str,
    ) -> list[str]:
        """Return a caveat if there are fewer rows than `needed_rows` returns."""
        if n_rows >= needed_rows(n_folds, self.level, delta):
            return []

        def range_of_rows(k: int) -> str:
            """Return the rows that the first fold needs, and those of a later one."""
            fewest = _fewest_rows(k, self.level, delta)
            most = needed_rows(k, self.level, delta)
            return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"

        fewer = "".join(f", {range_of_rows(k)} with {k}" for k in (3, 2) if k < n_folds)
        folds = f" with {n_folds} folds" if n_folds > 1 else ""
        by_fold = some_folds = then = ""
        if needed_rows is not _fewest_rows and n_folds > 1:
            by_fold = ", by the deployed fold"
        if n_rows >= _fewest_rows(n_folds, self.level, delta):
            some_folds, then = " in some folds", " there"
        return [
            f"{n_rows:,} labeled rows are too few{some_folds} for a bound of how far "
            f"{100 * self.fraction:.6g}% of the predictions are off, which is "
            f"infinite{then}: it needs {range_of_rows(n_folds)}{folds}{fewer}{by_fold}"
            f"{possible}. "
            f"This depends on their number alone, so a second run may choose by it"
        ]


def _fewest_rows(n_folds: int, level: float, delta: float) -> int:
    """Return the rows with which the first fold gives a finite tolerance."""
    fold_delta = float(fold_deltas(delta, n_folds)[0])  # the largest one
    return n_folds * (minimum_rows(level=level, delta=fold_delta) - 1) + 1


def _rows_of_any_fold(n_folds: int, level: float, delta: float) -> int:
    """Return the rows with which every fold gives a finite tolerance."""
    # The last fold has the smallest share of delta, and no row more than the others.
    fold_delta = float(fold_deltas(delta, n_folds)[-1])
    return n_folds * minimum_rows(level=level, delta=fold_delta)


def largest_fraction(
    n_rows: int,
    n_folds: int,
    delta: float,
    needed_rows: Callable[[int, float, float], int] = _fewest_rows,
) -> float | None:
    """Return the largest whole percentage that has a finite tolerance, as a fraction.

    `delta` is that of limits on labeled rows. None if no percentage has one.
    """
    fractions = (percent / 100 for percent in range(99, 0, -1))
    return next(
        (f for f in fractions if n_rows >= needed_rows(n_folds, 1.0 - f, delta)), None
    )


@dataclass(frozen=True)
class ExceedanceCount(Statistic):
    """Counts rows that are off by more than a tolerance, and by more than 4/5 of it.

    On the pool it counts rows on which two models differ by more than 1/5 of it.
    """

    tolerance: float
    on_folds: str = names.OUTER_EXCEEDANCES
    on_pool: str = names.OUTER_APART
    on_duplicates: str = names.OUTER_DUPLICATE_APART
    counts_differences: bool = True
    fold_shape: ClassVar[tuple[int, ...]] = (2,)
    pair_shape: ClassVar[tuple[int, ...]] = ()

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """Descriptions of two numbers of a fold, and of one of the pool."""
        return {
            self.on_folds: CubeVariable(
                {names.EXCEEDED: ("tolerance", "4/5 of it")},
                "rows of the fold that are off by more, of its model",
            ),
            self.on_pool: CubeVariable(
                {},
                "pool rows on which its model and that of all rows are 1/5 of it apart",
            ),
            self.on_duplicates: CubeVariable(
                {}, "of these, the pool rows that equal labeled rows"
            ),
        }

    @property
    def _divided_tolerance(self) -> tuple[float, float]:
        """Return 4/5 and 1/5 of the tolerance, rounded down: the sum is no larger."""
        whole = self.tolerance * (1.0 - SUM_ROUNDING)
        return whole * (1.0 - APART), whole * APART

    def count(self, rows: Rows, predictions: Predictions) -> Integers:
        """Count the rows that are off by more, shape (2,)."""
        residuals = absolute_residuals(rows.targets, predictions)
        near, _ = self._divided_tolerance
        return np.array([np.sum(residuals > self.tolerance), np.sum(residuals > near)])

    def count_pair(
        self,
        rows: Rows,
        fold_predictions: Predictions,
        all_rows_predictions: Predictions,
        counts_on_fold: Counts,
    ) -> Integers:
        """Count the rows on which both models are further apart, shape ()."""
        _, distance = self._divided_tolerance
        return np.asarray(
            np.sum(
                absolute_residuals(fold_predictions, all_rows_predictions) > distance
            )
        )


@dataclass(frozen=True, repr=False)
class Beyond(RegressionLoss):
    """The fraction of predictions that are off by more than a tolerance.

    Notes
    -----
    Guarantee: `limits` and `bound_all_rows` hold at once with probability at least
    ``1 - delta``.
    Assumes: what the certificate of the search lists; a tolerance that is fixed before
    the labels are inspected.
    Source: being off by more is a 0/1 loss, bounded as an error is. The model of all
    rows is off by more than :math:`t` only if the fold's model is off by more than
    :math:`4t/5`, or both are more than :math:`t/5` apart; limits of both fractions add
    up, and are read at the pool's delta.
    """

    tolerance: float
    """Tolerance in the units of the target, > 0."""
    largest: float = 1.0

    def __repr__(self) -> str:
        return f"beyond({self.tolerance!r})"

    def constant_loss(self, y: Floats) -> float:
        """Return the fraction of targets that are farther from their median."""
        return float(np.mean(np.abs(y - np.median(y)) > self.tolerance))

    def exceedance(self, bound: float) -> Exceedance:
        """Return the fixed tolerance, and the bound of the fraction beyond it."""
        return Exceedance(self.tolerance, bound)

    @property
    def title(self) -> str:
        """Name of the bounded value."""
        return f"Share of bad predictions (off by more than {self.tolerance:.12g})"

    @property
    def sentence(self) -> RowSentence:  # type: ignore[override]
        """Number of rows that are off by more."""
        return RowSentence(
            f"Of {{rows}} {{model}} predicts at most {{count}} with an error above "
            f"{self.tolerance:.12g} on average."
        )

    @property
    def statistic(self) -> ExceedanceCount:
        """The statistic of rows that are off by more."""
        return ExceedanceCount(self.tolerance)

    def estimate(self, folds: FoldCounts) -> float:
        """Return the fraction of all folds together."""
        return float(folds.counts[:, 0].sum() / folds.n_rows.sum())

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return binomial limits, at the shares of the folds."""
        return nested_fold_limits(folds.integers[:, 0], folds.n_rows, np.array(delta))

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Return the smallest sum of a limit of a fold and one of the distance."""
        # `label_delta` is spent on limits at the whole tolerance. Limits at 4/5 of it
        # are other events, on which a part of the pool's delta is spent.
        near_delta = RESIDUAL_SHARE_OF_POOL * division.pool_delta
        limits = nested_fold_limits(
            folds.integers[:, 1], folds.n_rows, np.array(near_delta)
        )
        differ = binomial_tail_inversion(
            pool_counts.counts,
            pool_counts.upper_rows(pool_counts.duplicates),
            delta=(division.pool_delta - near_delta) / len(folds.n_rows),
        )
        return smallest_sum(limits, sum_outward(limits, differ))

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the limit that a 20% hold-out set would give on average."""
        return expect_holdout_rate(self.estimate(folds), folds, delta)


DEFAULT: Final = ErrorQuantile(0.9)
"""The default loss of regressors."""
