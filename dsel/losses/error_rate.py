"""The error as a loss: the fraction of rows that a model predicts wrongly."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.bounds.cross_validation import BoundTerms, bound_by_folds, nested_fold_limits
from dsel.bounds.duplicates import lower_rate_limits
from dsel.losses.protocols import (
    Counts,
    DeltaDivision,
    FoldCounts,
    PoolCounts,
    Predictions,
    Rows,
    RowSentence,
    SingleLoss,
    Statistic,
    expect_holdout_rate,
)


@dataclass(frozen=True)
class ErrorCount(Statistic):
    """Counts rows that a model predicts wrongly, or that two predict differently."""

    on_folds: str = names.OUTER_ERRORS
    on_pool: str = names.OUTER_DISAGREEMENTS
    on_duplicates: str = names.OUTER_DUPLICATE_DISAGREEMENTS
    counts_differences: bool = True
    fold_shape: ClassVar[tuple[int, ...]] = ()
    pair_shape: ClassVar[tuple[int, ...]] = ()

    def count(self, rows: Rows, predictions: Predictions) -> Integers:
        """Count the errors, shape ()."""
        return np.asarray(np.sum(predictions != rows.targets))

    def counts_from_errors(self, n_errors: int) -> Integers:
        """Return the number of errors, shape ()."""
        return np.asarray(n_errors)

    def count_pair(
        self,
        rows: Rows,
        fold_predictions: Predictions,
        all_rows_predictions: Predictions,
        counts_on_fold: Counts,
    ) -> Integers:
        """Count the rows on which both differ, shape ()."""
        return np.asarray(np.sum(fold_predictions != all_rows_predictions))


@dataclass(frozen=True)
class ErrorRate(SingleLoss):
    """The fraction of rows that are predicted wrongly, or as no class."""

    title: str = "Error"
    largest: float = 1.0
    is_regression: bool = False
    statistic: ErrorCount = ErrorCount()
    criterion: str = "cv_error"
    sentence = RowSentence("Of {rows} {model} gets at most {count} wrong on average.")

    def __repr__(self) -> str:
        return "error"

    def score_from_errors(self, n_errors: int, n_rows: int) -> float:
        """Return the rate of errors."""
        return n_errors / n_rows if n_rows else 1.0

    def score(self, rows: Rows, predictions: Predictions) -> float:
        """Return the rate of errors."""
        n_errors = int(self.statistic.count(rows, predictions))
        return self.score_from_errors(n_errors, len(predictions))

    def estimate(self, folds: FoldCounts) -> float:
        """Return the rate of errors on all folds together."""
        return float(folds.counts.sum() / folds.n_rows.sum())

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return the limits of all folds, which hold at once; see `nested_fold_limits`.

        The smallest is that of :func:`dsel.bounds.nested_one_fold`.
        """
        return nested_fold_limits(folds.integers, folds.n_rows, np.array(delta))

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Return the smallest sum; see :func:`dsel.bounds.nested_all_rows`."""
        rows = pool_counts.upper_rows(pool_counts.duplicates)
        _, terms = bound_by_folds(
            folds.integers,
            folds.n_rows,
            pool_counts.counts,
            rows,
            label_delta=division.label_delta,
            pool_delta=division.pool_delta,
        )
        return terms

    def lower_limits(self, new_counts: PoolCounts, delta: float) -> Floats:
        """Return lower binomial limits of the error rate, from new labeled rows."""
        return lower_rate_limits(
            new_counts.counts, new_counts.duplicates, new_counts.n_rows, delta
        )

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the average of the limits from 20% of the rows."""
        return expect_holdout_rate(self.estimate(folds), folds, delta)


ERROR_RATE: Final = ErrorRate()
