"""Losses of counts by true class and prediction: recall, precision, costs.

A table has the classes that the plan's losses name, and a last row and column for other
classes and for predictions that are no class. Each loss reads the rows and columns of
its classes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.bounds import binomial_tail_inversion
from dsel.bounds.binomial import mean_outward, sum_outward, upper_limits
from dsel.bounds.class_counts import (
    added_false_predictions,
    added_misses,
    counted_mean_limit,
)
from dsel.bounds.cross_validation import BoundTerms
from dsel.bounds.duplicates import lower_rate_limits
from dsel.bounds.holdout import likely_tables
from dsel.bounds.shares import fold_deltas
from dsel.checks import listing
from dsel.losses.protocols import (
    Counts,
    CubeVariable,
    DeltaDivision,
    FoldCounts,
    Loss,
    PoolCounts,
    Predictions,
    Rows,
    RowSentence,
    SingleLoss,
    Statistic,
    smallest_sum,
)
from dsel.names import NO_CLASS
from dsel.rounded_texts import count_of, floor_percent

USEFUL_CLASS_LIMIT = 0.05
"""A class gets a caveat before the run if even its best possible limit is above
this."""
MOST_FEW_NAMED = 3
"""Most classes with few rows that one caveat names."""
OTHERS = "others"


@dataclass(frozen=True)
class ClassTable(Statistic):
    """Counts rows by true class and prediction, and pool rows by two predictions."""

    classes: tuple[Any, ...]
    """Counted classes, in the order of the table."""
    positions: tuple[int, ...]
    """Row and column of each class code of the plan; the last are for other classes."""
    on_folds: str = names.OUTER_CONFUSION
    on_pool: str = names.OUTER_PREDICTIONS
    on_duplicates: str = names.OUTER_DUPLICATE_PREDICTIONS
    counts_differences: bool = False

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """The three tables of each fold."""
        classes = (*map(str, self.classes), OTHERS)
        pair = {names.PREDICTED_CLASS: classes, names.OTHER_CLASS: classes}
        return {
            self.on_folds: CubeVariable(
                {names.TRUE_CLASS: classes, names.PREDICTED_CLASS: classes},
                "rows of the fold by true class and prediction of its model",
            ),
            self.on_pool: CubeVariable(
                pair, "pool rows by the predictions of its model and that of all rows"
            ),
            self.on_duplicates: CubeVariable(
                pair, "of these, the pool rows that equal labeled rows"
            ),
        }

    @property
    def fold_shape(self) -> tuple[int, ...]:
        """A row and a column for each class, and for all others."""
        size = len(self.classes) + 1
        return size, size

    @property
    def pair_shape(self) -> tuple[int, ...]:
        """The shape of `fold_shape`."""
        return self.fold_shape

    def count(self, rows: Rows, predictions: Predictions) -> Integers:
        """Return the number of rows by true class and prediction, (C + 1, C + 1)."""
        return self._cross(rows.targets, predictions)

    def count_pair(
        self,
        rows: Rows,
        fold_predictions: Predictions,
        all_rows_predictions: Predictions,
        counts_on_fold: Counts,
    ) -> Integers:
        """Return the number of rows by the predictions of both models."""
        return self._cross(fold_predictions, all_rows_predictions)

    def _cross(self, first: Integers, second: Integers) -> Integers:
        """Return the number of rows by two class codes, (C + 1, C + 1)."""
        size = len(self.classes) + 1
        # Any code below 0 is no class. NO_CLASS as an index takes the last entry, that
        # of other classes.
        positions = np.append(self.positions, size - 1)
        row, column = (
            positions[np.maximum(codes, NO_CLASS)] for codes in (first, second)
        )
        return np.bincount(size * row + column, minlength=size**2).reshape(size, size)

    def narrow(self, tables: NDArray[Any], classes: Sequence[object]) -> NDArray[Any]:
        """Return tables of some classes, in this order; all others are joined."""
        n = len(classes)
        # Multiplying by a matrix of 0 and 1 from both sides adds up the rows and
        # columns of joined classes.
        onto = np.zeros((len(self.classes) + 1, n + 1), np.int64)
        for index, label in enumerate((*self.classes, None)):
            is_named = index < len(self.classes) and label in classes
            onto[index, list(classes).index(label) if is_named else n] = 1
        return np.asarray(onto.T @ tables @ onto)


def wrong_rows(tables: Integers, index: int = 0) -> tuple[Integers, Integers]:
    """Return the numbers of a class's rows with another prediction, and of all rows."""
    rows = tables[..., index, :].sum(axis=-1)
    return rows - tables[..., index, index], rows


def miss_rate(table: NDArray[Any], index: int = 0) -> float:
    """Return the fraction of a class that is missed; 1 for a class without rows."""
    wrong, rows = wrong_rows(table, index)
    return float(wrong / rows) if rows else 1.0


def miss_limits(tables: Integers, deltas: Floats, index: int = 0) -> Floats:
    """Return upper limits of the miss rate of a class, each at its delta."""
    return upper_limits(*wrong_rows(tables, index), deltas)


def lower_miss_limits(
    tables: Integers, duplicates: Integers, delta: float, index: int = 0
) -> Floats:
    """Return lower limits of the miss rate of a class; NaN without a row of it."""
    wrong, rows = wrong_rows(tables, index)
    return lower_rate_limits(wrong, wrong_rows(duplicates, index)[0], rows, delta)


def few_rows_caveat(
    rates: "Iterable[ClassRate]", y: Integers, n_folds: int, delta: float
) -> list[str]:
    """Return a caveat with the recalls to expect without any miss, if some are small.

    Each rate has its own delta. At equal counts the first fold, whose share is the
    largest, has the best limit. Folds are random, so that one may have more rows of a
    class, and another bound than this one.
    """
    fold_delta = float(fold_deltas(delta, n_folds)[0])
    few = []
    for rate in rates:
        [label] = rate.classes
        n_rows = rate.n_rows(y, label)
        least = float(binomial_tail_inversion(0, n_rows // n_folds, delta=fold_delta))
        if least > USEFUL_CLASS_LIMIT:
            few.append((n_rows, label, floor_percent(1 - least)))
    if len(few) == 1:
        [(n_rows, label, recall)] = few
        return [
            f"class {label!r} has {n_rows:,} labeled rows, about {n_rows // n_folds} a "
            f"fold: even with no miss, expect a certified recall of about {recall}"
        ]
    if not few:
        return []
    few.sort(key=lambda entry: entry[0])
    texts = [
        f"{recall} of {label!r} ({count_of(n, 'row')})" for n, label, recall in few
    ]
    return [
        f"{len(few)} classes have few labeled rows: even with no miss, expect "
        f"certified recalls of about {listing(texts, MOST_FEW_NAMED)}"
    ]


@dataclass(frozen=True)
class TableLoss(SingleLoss):
    """Base of losses by class, which use the tables of their classes."""

    classes: tuple[Any, ...] = ()
    """The named classes, in the order of the narrowed tables."""
    table: ClassTable | None = field(default=None, repr=False, compare=False)
    """The table that the plan counts; None for one with these classes only."""
    criterion: ClassVar[str] = "mean_loss"
    is_regression: ClassVar[bool] = False

    @property
    def largest(self) -> float:
        """The largest rate."""
        return 1.0

    def named_classes(self, classes: Sequence[object]) -> tuple[Any, ...]:
        """Return the named classes; all if it names none."""
        return self.classes or tuple(classes)

    def of_table(self, classes: tuple[object, ...], table: ClassTable) -> Loss:
        """Return the loss of these classes, with this table."""
        return replace(self, classes=classes, table=table)  # type: ignore[return-value]

    @property
    def statistic(self) -> ClassTable:
        """The table."""
        positions = tuple(range(len(self.classes)))
        return self.table or ClassTable(self.classes, positions)

    def narrow_tables(self, tables: Integers) -> Integers:
        """Return counted tables, narrowed to the classes of the loss."""
        return self.statistic.narrow(tables, self.classes)

    def score(self, rows: Rows, predictions: Predictions) -> float:
        """Return the loss of some rows; the largest if it is not defined."""
        return self.rate(self.narrow_tables(self.statistic.count(rows, predictions)))

    def estimate(self, folds: FoldCounts) -> float:
        """Return the loss of all folds together."""
        return self.rate(self.narrow_tables(folds.integers).sum(axis=0))

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return limits of each fold, which hold at once."""
        tables = self.narrow_tables(folds.integers)
        return self.table_limits(tables, fold_deltas(delta, len(folds.counts)))

    def lower_limits(self, new_counts: PoolCounts, delta: float) -> Floats:
        """Return lower limits from new rows, one for each model."""
        tables, duplicates = map(
            self.narrow_tables, (new_counts.counts, new_counts.duplicates)
        )
        return self.table_lower_limits(tables, duplicates, delta)

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the average of the limits from 20% of the rows."""
        pooled = self.join_cells(self.narrow_tables(folds.integers).sum(axis=0))
        tables = likely_tables(pooled, max(1, int(pooled.sum()) // 5))
        return float(self.table_limits(tables, np.full(len(tables), delta)).mean())

    def join_cells(self, table: Integers) -> NDArray[Any]:
        """Return a table of the same loss with fewer counts that are not 0."""
        return table

    def rate(self, table: NDArray[Any]) -> float:
        """Return the loss of rows of one narrowed table, counts or probabilities."""
        raise NotImplementedError

    def table_limits(self, tables: Integers, deltas: Floats) -> Floats:
        """Return upper limits, one for each narrowed table, at its delta."""
        raise NotImplementedError

    def table_lower_limits(
        self, tables: Integers, duplicates: Integers, delta: float
    ) -> Floats:
        """Return lower limits, one for each narrowed table."""
        raise NotImplementedError

    def n_rows(self, y: Integers, label: object) -> int:
        """Return the number of rows of a class among class codes."""
        positions = np.array(self.statistic.positions)
        return int((positions[y] == self.statistic.classes.index(label)).sum())


class ClassRate(TableLoss):
    """Base of the rates of one class: a fraction of its rows, or of its predictions."""

    complement: ClassVar[str]
    """Name of 1 minus the rate, which reports have."""
    kind_of_rows: ClassVar[str]
    """The labeled rows that the rate is about, with a place for the class."""

    @property
    def kind_of_rows_text(self) -> str:
        """The labeled rows that the rate is about."""
        return self.kind_of_rows.format(repr(self.classes[0]))

    def count_wrong(self, tables: Integers) -> tuple[Integers, Integers]:
        """Return the numbers of wrong rows, and of rows that the rate is about."""
        return wrong_rows(self.orient_tables(self.narrow_tables(tables)))

    @staticmethod
    def orient_tables(tables: NDArray[Any]) -> NDArray[Any]:
        """Return tables whose first row has the rows that the rate is about."""
        return tables

    def rate(self, table: NDArray[Any]) -> float:
        """Return the fraction of these rows that is not on the diagonal."""
        return miss_rate(self.orient_tables(table))

    def table_limits(self, tables: Integers, deltas: Floats) -> Floats:
        """Return binomial limits of these rows."""
        return miss_limits(self.orient_tables(tables), deltas)

    def table_lower_limits(
        self, tables: Integers, duplicates: Integers, delta: float
    ) -> Floats:
        """Return binomial limits of these rows."""
        counts = self.orient_tables(tables), self.orient_tables(duplicates)
        return lower_miss_limits(*counts, delta)

    def best_constant(self, rows: Rows, classes: Sequence[object]) -> None:
        """Return None: always predicting the class misses no row of it.

        Any other constant misses all, and a comparison with this one, whose loss is 0,
        would call every model useless.
        """


class Recall(ClassRate):
    """The fraction of one class that is missed: 1 - recall."""

    complement = "recall"
    kind_of_rows = "rows of {} with a label"

    @property
    def title(self) -> str:
        """Name of the bounded value."""
        return f"Misses of {self.classes[0]!r}"

    @property
    def sentence(self) -> RowSentence:  # type: ignore[override]
        """Number of missed rows of the class."""
        text = "Of {rows} {model} misses at most {count} on average."
        return RowSentence(text, f"rows of {self.classes[0]!r}", 100)

    def __repr__(self) -> str:
        return f"recall({self.classes[0]!r})"

    def disagreement_terms(
        self, folds: FoldCounts, pool_counts: PoolCounts, delta: float
    ) -> Floats:
        """Return how much more the model of all rows may miss, for each fold."""
        # Pool rows have no class. The rows that leave the class are divided by the
        # fraction of the class, which all labeled rows may estimate:
        # docs/theory/by_class.md.
        left, _ = wrong_rows(self.narrow_tables(pool_counts.counts))
        duplicates, _ = wrong_rows(self.narrow_tables(pool_counts.duplicates))
        n_rows = self.narrow_tables(folds.integers)[:, 0].sum()
        return added_misses(
            left,
            pool_counts.upper_rows(duplicates),
            n_rows,
            folds.n_rows.sum(),
            delta=delta,
        )

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Add the pool rows that only the fold's model predicts as the class."""
        limits = self.limits(folds, division.label_delta)
        added = self.disagreement_terms(folds, pool_counts, division.pool_delta)
        return smallest_sum(limits, sum_outward(limits, added))

    def caveats(self, y: Integers, n_folds: int, delta: float) -> list[str]:
        """Return a caveat if the class has too few rows for a small bound."""
        return few_rows_caveat([self], y, n_folds, delta)


class Precision(ClassRate):
    """The fraction of one prediction that is wrong: 1 - precision."""

    complement = "precision"
    kind_of_rows = "rows with a label that are predicted {}"

    @property
    def title(self) -> str:
        """Name of the bounded value."""
        return f"False among predictions {self.classes[0]!r}"

    @property
    def sentence(self) -> RowSentence:  # type: ignore[override]
        """Number of wrong predictions of the class."""
        # It is about rows even where these come in groups: one of each group.
        return RowSentence(
            f"Of 100 times that {{model}} predicts {self.classes[0]!r}, it is wrong at "
            f"most {{count}} times on average.",
            n_rows=100,
        )

    def __repr__(self) -> str:
        return f"precision({self.classes[0]!r})"

    @staticmethod
    def orient_tables(tables: NDArray[Any]) -> NDArray[Any]:
        """Return transposed tables: precision is the recall of these."""
        return tables.swapaxes(-1, -2)

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Bound it by the rates at which both models predict the class."""
        limits = self.limits(folds, division.label_delta)
        pairs = [
            self.narrow_tables(tables)
            for tables in (pool_counts.counts, pool_counts.duplicates)
        ]
        first, first_duplicates = (pair[:, 0].sum(axis=-1) for pair in pairs)
        # Each fold compares with the same model of all rows, so the first entry has the
        # counts of that model.
        (joined, [second, *_]), (joined_duplicates, [duplicates, *_]) = (
            wrong_rows(self.orient_tables(pair)) for pair in pairs
        )
        fresh = int(second - duplicates)
        sums = added_false_predictions(
            limits,
            first,
            pool_counts.upper_rows(first_duplicates),
            fresh,
            pool_counts.n_rows - int(duplicates),
            joined,
            fresh + joined_duplicates,
            delta=division.pool_delta,
        )
        return smallest_sum(limits, sums)


class Balanced(TableLoss):
    """The mean over classes of the fraction that is missed: 1 - balanced accuracy."""

    title = "Balanced error"

    def __repr__(self) -> str:
        return f"balanced({list(self.classes)!r})" if self.classes else "balanced()"

    @property
    def components(self) -> Sequence[Recall]:
        """The miss rates whose mean it is."""
        return [Recall((label,), self.statistic) for label in self.classes]

    def rate(self, table: NDArray[Any]) -> float:
        """Return the mean of the miss rates."""
        return float(np.mean([miss_rate(table, c) for c in range(len(self.classes))]))

    def table_limits(self, tables: Integers, deltas: Floats) -> Floats:
        """Return the means of the limits of each class, at equal shares."""
        # The limits of all classes hold at once, by the union bound, so their mean is a
        # limit of the mean.
        n = len(self.classes)
        limits = [miss_limits(tables, deltas / n, index) for index in range(n)]
        return mean_outward(np.array(limits), 0)

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the mean of the averages of all classes, at equal shares."""
        delta /= len(self.classes)
        parts = [part.expected_holdout(folds, delta) for part in self.components]
        return float(np.mean(parts))

    def table_lower_limits(
        self, tables: Integers, duplicates: Integers, delta: float
    ) -> Floats:
        """Return the means of the limits of each class; 0 for one without rows."""
        n = len(self.classes)
        limits = [
            lower_miss_limits(tables, duplicates, delta / n, index)
            for index in range(n)
        ]
        has_rows = tables.sum(axis=(1, 2)) > 0
        means = -mean_outward(-np.nan_to_num(limits), 0)
        return np.where(has_rows, means, np.nan)

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Add the mean of the pool terms of all classes, at equal shares."""
        delta = division.pool_delta / len(self.classes)
        added = [
            component.disagreement_terms(folds, pool_counts, delta)
            for component in self.components
        ]
        limits = self.limits(folds, division.label_delta)
        return smallest_sum(
            limits, sum_outward(limits, mean_outward(np.array(added), 0))
        )

    def caveats(self, y: Integers, n_folds: int, delta: float) -> list[str]:
        """Return a caveat about its classes with few rows."""
        return few_rows_caveat(self.components, y, n_folds, delta / len(self.classes))


@dataclass(frozen=True, repr=False)
class Cost(TableLoss):
    """The mean cost of predictions."""

    matrix: tuple[tuple[float, ...], ...] = ()
    """Costs by true class and prediction; all other pairs have the largest cost."""
    title: ClassVar[str] = "Mean cost"
    is_cost = True

    def __repr__(self) -> str:
        pairs = product(enumerate(self.classes), repeat=2)
        costs = {
            (true_class, predicted): self.matrix[y][z]
            for (y, true_class), (z, predicted) in pairs
            if y != z or self.matrix[y][z]
        }
        return f"cost({costs!r})"

    @property
    def largest(self) -> float:
        """The largest cost."""
        return max(max(row) for row in self.matrix)

    @property
    def costs(self) -> Floats:
        """Costs by true class and prediction, other classes and predictions last."""
        n = len(self.classes)
        costs = np.full((n + 1, n + 1), self.largest)
        costs[:n, :n] = self.matrix
        return costs

    def rate(self, table: NDArray[Any]) -> float:
        """Return the mean cost."""
        total = table.sum()
        return float((table * self.costs).sum() / total) if total else self.largest

    def join_cells(self, table: Integers) -> NDArray[Any]:
        """Return a table in which one pair has the counts of all of the same cost."""
        # Each cell is a dimension of the quasi-random points, which are more even in
        # fewer dimensions.
        _, first, value_of = np.unique(
            self.costs, return_index=True, return_inverse=True
        )
        joined = np.bincount(first[value_of.ravel()], table.ravel(), table.size)
        return joined.reshape(table.shape)

    def table_limits(self, tables: Integers, deltas: Floats) -> Floats:
        """Return upper limits of the mean cost, whose possible values are known."""
        # Labeled rows are the draws themselves, so none is counted as a duplicate.
        return self._mean_limits(tables, self.costs, deltas, np.zeros_like(tables))

    def table_lower_limits(
        self, tables: Integers, duplicates: Integers, delta: float
    ) -> Floats:
        """Return lower limits of the mean, from upper limits of the largest less it."""
        less = self.largest - self.costs
        deltas = np.full(len(tables), delta)
        limits = self.largest - self._mean_limits(tables, less, deltas, duplicates)
        limits = np.nextafter(limits, -np.inf)  # the subtraction may round up
        return np.where(tables.sum(axis=(1, 2)) > 0, limits, np.nan)

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Add the largest additional cost of the other prediction."""
        costs = self.costs
        k = len(folds.n_rows)
        # Pool rows have no true class, so it is taken to be the most expensive one.
        more = np.maximum(costs[:, np.newaxis] - costs[:, :, np.newaxis], 0).max(axis=0)
        # A duplicate that is in no cell would pass for a fresh row.
        if (pool_counts.duplicates.sum(axis=(1, 2)) != pool_counts.n_duplicates).any():
            raise ValueError("tables of duplicates must count each duplicate once")
        limits = self.limits(folds, division.label_delta)
        added = self._mean_limits(
            self.narrow_tables(pool_counts.counts),
            more,
            np.full(k, division.pool_delta / k),
            self.narrow_tables(pool_counts.duplicates),
        )
        return smallest_sum(limits, sum_outward(limits, added))

    def _mean_limits(
        self, tables: Integers, costs: Floats, deltas: Floats, duplicates: Integers
    ) -> Floats:
        """Return upper limits of the mean cost of rows, table by table."""
        # The limit needs only the count of each value, so equal costs are one value.
        values, value_of = np.unique(costs, return_inverse=True)
        by_value = value_of.ravel() == np.arange(len(values))[:, np.newaxis]
        counts, n_duplicates = (
            counts.reshape(len(tables), -1) @ by_value.T
            for counts in (tables, duplicates)
        )
        if len(values) == 2 and values[0] == 0.0:  # the binomial limit is smaller here
            rows = counts.sum(axis=1) - n_duplicates[:, 0]
            limits = values[1] * upper_limits(counts[:, 1], rows, deltas)
        else:
            limits = self.largest * counted_mean_limit(
                counts, values / self.largest, duplicates=n_duplicates, delta=deltas
            )
        return np.asarray(np.nextafter(limits, np.inf))
