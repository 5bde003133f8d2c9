"""What a loss is: what is counted of models, and how counts become bounds.

A search ranks candidates by a loss and bounds it. The error is one of them, and takes
the same path as all others. What is counted is a `Statistic`, an object of its own, so
that the many losses of a report read one table that was counted once.

The pool is counted after the labeled rows, and what is counted there may depend on
what they showed: a tolerance of regression counts how far two models differ in bins
that the residuals fix.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dsel.arrays import Floats, Integers
from dsel.bounds.cross_validation import BoundTerms, upper_pool_rows

Predictions = NDArray[Any]
"""Of a classifier the class codes of the plan; codes below 0 are no class. Of a
regressor numbers. Of a model that does not exist, or raised, what `no_predictions`
gives."""
NO_PREDICTION = int(np.iinfo(np.int64).min)
Counts = NDArray[np.int64 | np.float64]
"""What is counted of a fold: integers of one shape for any rows; or float64, a number
for each row, such as its residual."""


def no_predictions(shape: tuple[int, ...], dtype: DTypeLike) -> Predictions:
    """Return an array of a model that predicts nothing: `NO_PREDICTION`, or NaN."""
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else NO_PREDICTION, kind)


def stack_folds(counts: Sequence[Counts]) -> Counts:
    """Return what was counted on each fold in one array, (n_folds, ...).

    Numbers by row differ in length, by one row at most where rows are drawn one by one.
    NaN, which no row has, fills up those of shorter folds.

    Examples
    --------
    >>> stack_folds([np.array([0.3, 0.4, 0.5]), np.array([0.1, 0.2])]).tolist()
    [[0.3, 0.4, 0.5], [0.1, 0.2, nan]]
    """
    arrays = [np.asarray(each) for each in counts]
    length = max((len(each) for each in arrays if each.ndim), default=0)
    return np.stack(
        [
            np.pad(each, (0, length - len(each)), constant_values=np.nan)
            if each.ndim == 1 and len(each) < length
            else each
            for each in arrays
        ]
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that models have predicted."""

    X: Any
    """Array, CSR matrix or `Frame`, as the models got it."""
    y: NDArray[Any] | None = None
    """Class codes of labeled rows, or numbers in a regression; None for rows of the
    pool."""
    baseline: NDArray[Any] | None = None
    """What the baseline of the plan predicts for them, as class codes; None where there
    is no baseline, and for rows of the pool."""
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """What statistics have computed of the rows: the models of all folds share it."""


class CubeVariable(NamedTuple):
    """How counts of the last step stand in the results, besides the folds."""

    dims: tuple[str, ...]
    meaning: str
    coords: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Coordinates of dimensions along which they are not the statistic's `labels`."""


@runtime_checkable
class Statistic(Protocol):
    """What is counted of the models of all folds, on their folds and on the pool."""

    @property
    def on_folds(self) -> str:
        """Name in the results of what is counted on labeled rows."""

    @property
    def on_pool(self) -> str:
        """Name of what is counted on the pool."""

    @property
    def on_duplicates(self) -> str:
        """Name of what is counted on pool rows that equal labeled rows."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Coordinate of every dimension of `variables` that has no other one."""

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """Names that `dsel.names` does not list, and what they mean."""

    @property
    def fold_shape(self) -> tuple[int, ...] | None:
        """Shape of what `count` returns; None if that is a number for each row."""

    @property
    def pair_shape(self) -> tuple[int, ...]:
        """Shape of what `count_pair` returns."""

    @property
    def counts_differences(self) -> bool:
        """Whether `count_pair` counts only rows on which both models differ."""

    def count(self, rows: Rows, predictions: Predictions) -> Counts:
        """Count labeled rows that the model did not see.

        In any order of the rows the result is the same: numbers by row are sorted.
        """

    def count_errors(self, n_errors: int) -> Integers | None:
        """Return the counts of rows with so many errors; None if errors do not tell."""

    def count_pair(
        self, rows: Rows, fold_model: Predictions, all_rows: Predictions, fold: Counts
    ) -> Integers:
        """Count pool rows by what two models predict; blocks add up.

        `fold` is what `count` gave for the first model on its fold; where numbers are
        by row, NaN may follow them.
        """


@dataclass(frozen=True)
class FoldCounts:
    """What one statistic counted on the fold of each model."""

    counts: Counts
    """(n_folds, ...), as `stack_folds` makes it."""
    n_rows: Integers
    """Rows of each fold, (n_folds,)."""

    @property
    def integers(self) -> Integers:
        """The counts of a statistic that has no number by row."""
        return np.asarray(self.counts, np.int64)

    def by_row(self) -> list[Floats]:
        """Return the numbers of the rows of each fold, without what fills them up."""
        pairs = zip(self.counts, self.n_rows.tolist(), strict=True)
        return [np.asarray(counts[:n], np.float64) for counts, n in pairs]

    def each(self) -> Iterator["FoldCounts"]:
        """Yield the counts of one fold after the other."""
        for fold in range(len(self.n_rows)):
            one = slice(fold, fold + 1)
            yield FoldCounts(self.counts[one], self.n_rows[one])


@dataclass(frozen=True)
class PoolCounts:
    """What one statistic counted on the pool of each fold's model and that of all rows.

    Duplicates are pool rows that equal labeled rows. They may be the same records,
    which is why a limit needs to know how many of them are among the rows that it
    reads: see :func:`dsel.bounds.upper_pool_rows`.
    """

    counts: Integers
    """(n_folds, ...)."""
    duplicates: Integers
    """The part of the counts that is of duplicates, in the same shape."""
    n_rows: int
    """Rows of the pool."""
    n_duplicates: int

    def upper_rows(self, duplicates: Integers) -> Integers:
        """Return the rows by which an upper limit reads a count with `duplicates`."""
        return upper_pool_rows(self.n_rows, self.n_duplicates, duplicates)


@dataclass(frozen=True)
class Shares:
    """How a loss divides its delta between labeled rows and pool, before any count."""

    delta: float
    label_share: float
    """1 where no pool was planned."""
    query_share: float = 0.0
    """What is kept for labels of queried rows, and the pool's counts behind them."""

    @property
    def labels(self) -> float:
        """Probability with which limits on labeled rows may fail."""
        return self.label_share * self.delta

    @property
    def pool(self) -> float:
        """Probability with which limits on the pool may fail."""
        return (1.0 - self.label_share - self.query_share) * self.delta


@runtime_checkable
class Loss(Protocol):
    """What is bounded, and how counts become a bound.

    A loss is fixed before the labels are looked at, and equal losses have equal
    `repr`: by it a store knows its plan.
    """

    @property
    def label(self) -> str:
        """Words for the value that is bounded: ``Error``, ``Misses of 'fraud'``."""

    @property
    def largest(self) -> float:
        """The largest value that it can have: 1 of a rate, infinity of a tolerance."""

    @property
    def of_numbers(self) -> bool:
        """Whether it is about regressors: `y` and predictions are numbers."""

    @property
    def statistic(self) -> Statistic:
        """What is counted for it."""

    @property
    def parts(self) -> Sequence["Loss"]:
        """The losses whose limits it is read from: itself, unless it is their mean.

        A report bounds each part once, however many losses are read from it.
        """

    @property
    def criterion(self) -> str:
        """Name of the criterion that ranks candidates by it."""

    def named_classes(self, known: Sequence[Any]) -> tuple[Any, ...]:
        """Return the classes that it reads, of those of `y`; none of other losses."""

    def of_table(self, classes: tuple[Any, ...], table: Any) -> "Loss":
        """Return the loss that reads these classes in a table that a plan counts."""

    def score_errors(self, n_errors: int, n_rows: int) -> float | None:
        """Return the loss of rows of which so many are errors; None if that depends.

        Families count errors while they fit. Where that is enough, no row is predicted
        twice.
        """

    def score(self, rows: Rows, predictions: Predictions) -> float:
        """Return what ranks candidates, smaller is better; `largest` if undefined.

        It may be another number than what is bounded: candidates may be ranked by
        anything.
        """

    def estimate(self, folds: FoldCounts) -> float:
        """Return the loss of all folds together: no guarantee."""

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return upper limits of the models of all folds, (n_folds,).

        They hold all at once with probability at least ``1 - delta``.
        """

    def all_rows(
        self, folds: FoldCounts, pool: PoolCounts, shares: Shares
    ) -> BoundTerms:
        """Return the bound of the model of all rows, through the best of the folds.

        It holds together with `limits` at ``shares.labels``, with probability at least
        ``1 - shares.delta``.
        """

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the limit that a 20% hold-out set would give on average."""

    def caveats(self, y: NDArray[Any], n_folds: int, delta: float) -> list[str]:
        """Return what to expect of few labeled rows, before anything is counted.

        `y` are class codes or numbers, `delta` is what limits on labeled rows may
        spend.
        """


class SingleLoss:
    """A loss that reads no named classes, and is the mean of no others.

    Its label tells all that there is to tell before a row is counted.
    """

    @property
    def parts(self) -> Sequence[Loss]:
        """The loss itself."""
        return (cast(Loss, self),)

    def named_classes(self, known: Sequence[Any]) -> tuple[Any, ...]:
        """Return none."""
        return ()

    def of_table(self, classes: tuple[Any, ...], table: Any) -> Loss:
        """Return the loss."""
        return cast(Loss, self)

    def score_errors(self, n_errors: int, n_rows: int) -> float | None:
        """Return None: it depends on more than the number of errors."""
        return None

    def caveats(self, y: NDArray[Any], n_folds: int, delta: float) -> list[str]:
        """Return none."""
        return []


@runtime_checkable
class RefutableLoss(Protocol):
    """A loss whose bound new rows with labels can refute; not all losses are."""

    def lower_limits(self, rows: PoolCounts, delta: float) -> Floats:
        """Return lower limits of the loss of each model, (n_models,).

        `rows` are labeled rows that no model was trained on, which `Statistic.count`
        has counted; duplicates among them may be other records, so that limits hold
        whichever of them are. Each holds with probability at least ``1 - delta``. NaN
        where nothing was seen.
        """


def smallest_sum(label_terms: Floats, sums: Floats) -> BoundTerms:
    """Return the smallest of the sums over folds, and the terms that it is made of."""
    fold = int(np.argmin(sums))
    bound, label_term = float(sums[fold]), float(label_terms[fold])
    rest = np.inf if np.isinf(bound) else bound - label_term
    terms = bound, label_term, rest
    return BoundTerms(*map(np.asarray, terms))
