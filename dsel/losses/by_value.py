"""Limits of a loss among the rows with each value of a column of `X`, all at once.

The column is a function of a row's features. Therefore the rows of a fold with a value
are fresh draws of such rows, and each value is bounded like all rows, at its part of
delta. Counts for each value are made in the same pass.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan, prod
from numbers import Integral, Real
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dsel import names
from dsel.arrays import Features, Floats, Integers, as_plain
from dsel.bounds.cross_validation import BoundTerms
from dsel.bounds.shares import fold_deltas
from dsel.bounds.tolerance import minimum_rows
from dsel.checks import listing, nearest_name, show
from dsel.data.duplicate_rows import compared_type
from dsel.data.frames import Frame, numbers_of
from dsel.errors import Correction, UndecidedError
from dsel.losses.calls import rate_beyond
from dsel.losses.joint import Evidence, LossBounds, bound_models
from dsel.losses.protocols import (
    Counts,
    CubeVariable,
    DeltaDivision,
    FoldCounts,
    Loss,
    PlannedDelta,
    PoolCounts,
    Predictions,
    Rows,
    SingleLoss,
    Statistic,
    stack_folds,
)

VALUES_SHARE: Final = 0.5
"""Share of delta that goes to the values of a column; the main bound gets the rest.

It is fixed before the column is inspected, since the main bound must not depend on the
number of values. It is near the optimum, which is flat: both bounds get about 5%
larger.
"""
MOST_VALUES: Final = 100
USEFUL_LIMIT: Final = 0.5
"""A caveat before the run names a value if even its best possible limit is above
this."""
MOST_VALUES_NAMED: Final = 8
"""Most values that one caveat names."""
OTHERS: Final = "others"
GAP: Final = "(missing)"
"""Text of a missing value in tables."""


@dataclass(frozen=True)
class ValueColumn:
    """A column of `X`, and the different values that labeled rows have in it."""

    name: str
    """Name of the column in texts."""
    position: int
    """Position among the columns of `X`."""
    values: tuple[Any, ...]
    """Values in order; None, for a missing one, is last."""
    rows: tuple[int, ...]
    """Labeled rows of each value."""
    dtype: str = ""
    """Type of its numbers, if it is a float of numpy."""
    has_categories: bool = False
    """Whether a pool value that is no category of `X` becomes a missing one."""

    @property
    def plain_values(self) -> tuple[Any, ...]:
        """The values as in JSON and tables; None stands for a missing one."""
        plain_types = (str, bool, int, float, type(None))
        plain = map(as_plain, self.values)
        return tuple(v if isinstance(v, plain_types) else str(v) for v in plain)

    def with_rows(self, X: Features) -> "ValueColumn":
        """Return the column with the number of rows of each value in `X`."""
        counts = np.bincount(self.codes(X), minlength=len(self.values) + 1)
        return replace(self, rows=tuple(counts[: len(self.values)].tolist()))

    def codes(self, X: Features) -> Integers:
        """Return the index of each row's value in `values`; other values come last."""
        values = _read_column(X, self.position)
        n = len(self.values)
        index_of = dict(zip(self.values, range(n), strict=True))
        kind = np.dtype(self.dtype) if self.dtype else None
        stored = getattr(values.dtype, "numpy_dtype", values.dtype)
        if kind is not None and getattr(stored, "kind", "") == "f":
            # Values are compared like rows, in the less precise of both float types.
            # Values that are equal there count as one.
            narrow = compared_type(kind, stored)
            values = numbers_of(pd.Series(values, copy=False), narrow)
            floats = np.array([nan if v is None else v for v in self.values], narrow)
            rounded = floats.tolist()
            index_of = {
                None if listed is None else value: n if rounded.count(value) > 1 else at
                for at, (listed, value) in enumerate(
                    zip(self.values, rounded, strict=True)
                )
            }
        codes, unique = pd.factorize(values)
        at = [index_of.get(value, n) for value in _as_list(unique)]
        # pandas gives missing values the code -1, which is the last index here.
        return np.asarray(np.array([*at, index_of.get(None, n)], np.int64)[codes])


def _read_column(X: Features, position: int) -> Any:
    """Return a column of rows in the format for estimators."""
    if isinstance(X, Frame):
        return X.given.iloc[:, position]
    if sparse.issparse(X):
        return X[:, [position]].toarray()[:, 0]
    return np.asarray(X)[:, position]


def _as_list(unique: Any) -> list[Any]:
    """Return the unique values of `pandas.factorize` as plain values, or times."""
    return [as_plain(value) for value in unique]


@dataclass(frozen=True)
class CountByValue(Statistic):
    """Counts of a statistic for the rows with each value of a column.

    Counts are a table with a row for each value, and a last one for all others: the
    number of rows, then the counts of the statistic. A statistic that keeps a number
    for each row has one array instead: the number of rows of each value, then the kept
    numbers, value by value. The statistic may use `y` and predictions only.
    """

    column: ValueColumn
    inner: Statistic
    """The statistic that is counted on the rows of each value."""
    on_folds: str = names.OUTER_VALUE_COUNTS
    on_pool: str = names.OUTER_VALUE_DIFFERENCES
    on_duplicates: str = names.OUTER_DUPLICATE_VALUE_DIFFERENCES
    counts_differences: bool = False

    @property
    def n_values(self) -> int:
        """Number of values, with one for all others."""
        return len(self.column.values) + 1

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """Description of the counts of each fold."""

        def table(dim: str, shape: tuple[int, ...], meaning: str) -> CubeVariable:
            n_entries = shape[-1] - 1  # the first one is the number of rows
            entries = ("counted",) if n_entries == 1 else map(str, range(n_entries))
            values = (*map(str, self.column.plain_values), OTHERS)
            dims = {names.COLUMN_VALUE: values, dim: ("rows", *entries)}
            return CubeVariable(dims, meaning)

        if self.fold_shape is None:
            fold_table = CubeVariable(
                {names.COLUMN_RANK: ()},
                "rows of the fold by value, and then, value by value, a number for "
                "each of them",
            )
        else:
            fold_table = table(
                names.COLUMN_COUNT,
                self.fold_shape,
                "rows of the fold by value, and what is wrong among them",
            )
        dim, shape = names.COLUMN_DIFFERENCE, self.pair_shape
        return {
            self.on_folds: fold_table,
            self.on_pool: table(
                dim, shape, "pool rows by value, those on which models differ"
            ),
            self.on_duplicates: table(
                dim, shape, "of these, the pool rows that equal labeled rows"
            ),
        }

    @property
    def fold_shape(self) -> tuple[int, ...] | None:
        """Shape with the number of rows, and their counts, for each value."""
        if (shape := self.inner.fold_shape) is None:
            return None
        return self.n_values, 1 + prod(shape)

    @property
    def pair_shape(self) -> tuple[int, ...]:
        """Shape with the number of rows, and their counts, for each value."""
        return self.n_values, 1 + prod(self.inner.pair_shape)

    def count(self, rows: Rows, predictions: Predictions) -> Counts:
        """Count labeled rows by value."""
        by_value = self._split(rows, rows.targets, predictions)
        counts = [(len(y), self.inner.count(Rows(None, y), z)) for y, z in by_value]
        if self.fold_shape is not None:
            return self._stack(counts)
        # The sizes come first, since they say where the numbers of a value begin.
        n_rows = np.array([n for n, _ in counts], np.float64)
        return np.concatenate([n_rows, *(value_numbers for _, value_numbers in counts)])

    def count_pair(
        self,
        rows: Rows,
        fold_predictions: Predictions,
        all_rows_predictions: Predictions,
        counts_on_fold: Counts,
    ) -> Integers:
        """Count pool rows by value."""
        by_value = self._split(rows, fold_predictions, all_rows_predictions)
        fold_parts = [
            self.counts_at(counts_on_fold, index)[1] for index in range(self.n_values)
        ]
        return self._stack(
            [
                (len(z), self.inner.count_pair(Rows(None), z, w, counts))
                for (z, w), counts in zip(by_value, fold_parts, strict=True)
            ]
        )

    def counts_at(self, counts: Counts, index: int) -> tuple[int, Counts]:
        """Return the number of a fold's rows with a value, and their counts."""
        shape = self.inner.fold_shape
        if shape is not None:
            return int(counts[index, 0]), counts[index, 1:].reshape(shape)
        n = int(counts[index])
        # Numbers of all values are one array, behind the number of rows of each value.
        start = self.n_values + int(counts[:index].sum())
        return n, counts[start : start + n]

    def _split(self, rows: Rows, *arrays: NDArray[Any]) -> Iterator[list[NDArray[Any]]]:
        """Yield the entries of arrays for each value, and for all others."""
        if self.column not in rows.memo:  # as slow as a prediction of a linear model
            codes = self.column.codes(rows.X)
            counts = np.bincount(codes, minlength=self.n_values)
            # Integers of 16 bits are sorted by their digits, in a tenth of the time.
            order = np.argsort(codes.astype(np.int16), kind="stable")
            rows.memo[self.column] = order, [0, *np.cumsum(counts).tolist()]
        order, ends = rows.memo[self.column]
        ordered = [array[order] for array in arrays]
        for start, stop in pairwise(ends):
            yield [array[start:stop] for array in ordered]

    @staticmethod
    def _stack(counts: Sequence[tuple[int, Counts]]) -> Integers:
        return np.stack([np.append(n, last_count) for n, last_count in counts])


@dataclass(frozen=True)
class LossAtValue(SingleLoss):
    """A loss among the rows with one value of a column."""

    loss: Loss
    statistic: CountByValue
    index: int
    """Index of the value."""
    criterion: ClassVar[str] = "mean_loss"

    def __repr__(self) -> str:
        column = self.statistic.column
        return (
            f"{self.loss!r} where {column.name} is {column.plain_values[self.index]!r}"
        )

    @property
    def title(self) -> str:
        """Name of the bounded value."""
        column = self.statistic.column
        value = column.plain_values[self.index]
        return f"{self.loss.title} where {column.name} is {value}"

    @property
    def largest(self) -> float:
        """The largest value of the loss."""
        return self.loss.largest

    @property
    def is_regression(self) -> bool:
        """Whether the loss is for regressors."""
        return self.loss.is_regression

    def score(self, rows: Rows, predictions: Predictions) -> float:
        """Return the loss of rows with the value; the largest if there are none."""
        n_rows = len(predictions)
        counts = self.statistic.count(rows, predictions)[np.newaxis]
        estimate = self.estimate(FoldCounts(counts, np.array([n_rows])))
        return self.largest if np.isnan(estimate) else estimate

    def estimate(self, folds: FoldCounts) -> float:
        """Return the loss of all folds together; NaN if no row has the value."""
        part = self.folds_of_value(folds)
        return self.loss.estimate(part) if part.n_rows.any() else nan

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return the limits of the loss, by the rows with the value."""
        return self.loss.limits(self.folds_of_value(folds), delta)

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Bound the loss by pool rows with the value."""
        return self.loss.bound_all_rows(
            self.folds_of_value(folds), self.pool_of_value(pool_counts), division
        )

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return NaN: it is not reported by value."""
        return nan

    def folds_of_value(self, folds: FoldCounts) -> FoldCounts:
        """Return the counts of the folds' rows with the value."""
        n_rows, counts = zip(
            *(self.statistic.counts_at(fold, self.index) for fold in folds.counts),
            strict=True,
        )
        return FoldCounts(stack_folds(counts), np.array(n_rows))

    def pool_of_value(self, pool_counts: PoolCounts) -> PoolCounts:
        """Return the counts of the pool rows with the value."""
        shape = -1, *self.statistic.inner.pair_shape
        counts = pool_counts.counts[:, self.index]
        duplicates = pool_counts.duplicates[:, self.index]
        # The first count is that of the rows, the same for all folds. Limits are of the
        # pool rows with the value alone.
        n_rows, n_duplicates = int(counts[0, 0]), int(duplicates[0, 0])
        counts = counts[:, 1:].reshape(shape)
        duplicates = duplicates[:, 1:]
        return PoolCounts(counts, duplicates.reshape(shape), n_rows, n_duplicates)


@dataclass(frozen=True)
class LossByValue:
    """A loss for the rows with each value of a column, for the report of a plan.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` all limits of `bounds` at a
    `delta` hold at once, of both models and of all values.
    Assumes: what the certificate of the search lists; a column that is a function of a
    row's features, chosen before labeled rows were inspected.
    Source: given the column of the labeled rows, those of a fold that have a value are
    independent draws of such rows, and so are the pool's; then the bound of the loss at
    equal parts of `delta`, which depend on the column alone, and the union bound.

    Examples
    --------
    >>> from dsel.losses.error_rate import ERROR_RATE
    >>> column = ValueColumn("site", 0, ("A", "B"), (300, 20))
    >>> LossByValue(ERROR_RATE, column).caveats(5, 0.95 * 0.05 / 2)
    ["too few labeled rows to say anything about 'B' (20) of 'site': even without an \
error the limit would be above 50%; a value needs about 40 to 55 rows, by the deployed \
fold"]
    """

    loss: Loss
    column: ValueColumn

    @property
    def statistic(self) -> CountByValue:
        """The statistic that counts by value."""
        return CountByValue(self.column, self.loss.statistic)

    @property
    def losses(self) -> tuple[LossAtValue, ...]:
        """The loss on the rows of each value of the column."""
        statistic = self.statistic
        n = len(self.column.values)
        return tuple(LossAtValue(self.loss, statistic, index) for index in range(n))

    def bounds(
        self, evidence: Evidence, planned_delta: PlannedDelta, fold: int
    ) -> tuple[LossBounds, ...]:
        """Bound the model of this fold, and that of all rows, for each value."""
        # Equal parts depend on the column alone. Parts that depend on the counts would
        # be chosen by the same counts from which the bounds are computed.
        value_delta = planned_delta.model_delta * VALUES_SHARE / len(self.losses)
        division = planned_delta.division_of(value_delta)
        return tuple(
            bound_models(loss, evidence, division, fold) for loss in self.losses
        )

    def caveats(self, n_folds: int, delta: float) -> list[str]:
        """Name values of which too few rows are labeled, before anything is counted.

        `delta` is that of all limits on labeled rows. At equal counts the first
        fold, whose share is the largest, has the best limit; but all rows together
        choose the fold that is deployed.
        """
        value_delta = delta / len(self.column.values)
        deltas = fold_deltas(value_delta, n_folds).tolist()
        level, way_out = USEFUL_LIMIT, ""
        reason = f"even without an error the limit would be above {USEFUL_LIMIT:.0%}"
        if (beyond := rate_beyond(self.loss)) is not None:
            level, reason = beyond, "the tolerance would be infinite"
            way_out = f", fewer for a smaller share than {100 * (1.0 - beyond):.6g}%"
        needed, of_last_fold = (
            n_folds * minimum_rows(level=level, delta=fold_delta)
            for fold_delta in (deltas[0], deltas[-1])
        )
        rows_text = f"{needed:,} rows"
        if needed < of_last_fold:
            rows_text = f"{needed:,} to {of_last_fold:,} rows, by the deployed fold"
        few = [
            f"{GAP if value is None else repr(value)} ({n:,})"
            for value, n in zip(self.column.plain_values, self.column.rows, strict=True)
            if n < needed
        ]
        if not few:
            return []
        return [
            f"too few labeled rows to say anything about "
            f"{listing(few, MOST_VALUES_NAMED)} of {self.column.name!r}: {reason}; a "
            f"value needs about {rows_text}{way_out}"
        ]


def find_column(
    report_by: Any, X: Features, columns: Sequence[str] | None, target: Any = None
) -> ValueColumn | None:
    """Return the column that ``report_by=`` names, or None if it names none.

    `X` are the counted labeled rows, before conversion: if rows come in groups, one row
    of each. The values of other rows of a group would reveal something about the
    counted row, which would then be no fresh draw. `columns` are the names of the
    columns, if any, and `target` is the name of the labels.

    Raises
    ------
    TypeError, ValueError
        If it is no column, or its values cannot have limits.
    """
    if report_by is None or report_by is False:
        return None
    position = _find_position(report_by, X.shape[1], columns, target)
    name = str(position) if columns is None else columns[position]
    name = f"column {name}" if name.isdigit() else name  # a number alone says nothing
    values = _read_column(X, position)
    try:
        codes, unique = pd.factorize(values)
    except TypeError as error:
        bad = (value for value in values if not isinstance(value, Hashable))
        raise TypeError(
            f"`report_by` {report_by!r} must be a column of texts, numbers or other "
            f"single values, but holds {show(next(bad, None))}; make texts of them."
        ) from error
    distinct = _as_list(unique)
    n_rows = len(codes)
    n_values = len(distinct)
    counts = np.bincount(codes[codes >= 0], minlength=n_values)
    most = min(MOST_VALUES, max(2, n_rows // 2))
    if n_values > most:
        per = "" if most == MOST_VALUES else f" in {n_rows:,} rows"
        advice = "name a column of fewer values, or group them in advance"
        if isinstance(distinct[0], Real):
            advice = (
                "make a column of bins whose edges are fixed before you see the data, "
                "such as pandas.cut(column, [0, 18, 65, 120])"
            )
        raise ValueError(
            f"`report_by` {report_by!r} must have at most {most} different values"
            f"{per}, got {n_values:,}, such as {show(distinct[0])}; {advice}."
        )
    order = list(range(len(distinct)))
    if isinstance(values.dtype, pd.CategoricalDtype):
        rank = {value: n for n, value in enumerate(values.cat.categories.tolist())}
        order = sorted(order, key=lambda at: rank[distinct[at]])
    else:
        with suppress(TypeError):  # values of several types stay in order of appearance
            order = sorted(order, key=lambda at: distinct[at])
    gap = int((codes < 0).sum())
    kind = getattr(values.dtype, "numpy_dtype", values.dtype)
    return ValueColumn(
        name,
        position,
        (*(distinct[at] for at in order), *[None] * (gap > 0)),
        (*counts[order].tolist(), *[gap] * (gap > 0)),
        str(kind) if getattr(kind, "kind", "") == "f" else "",
        isinstance(values.dtype, pd.CategoricalDtype),
    )


def _find_position(
    report_by: Any, n_columns: int, columns: Sequence[str] | None, target: Any
) -> int:
    """Return the position of a column by its name or position."""
    is_number = isinstance(report_by, Integral) and not isinstance(report_by, bool)
    if np.ndim(report_by) == 1 and not isinstance(report_by, str | list | tuple):
        name = getattr(report_by, "name", None)
        name = name if isinstance(name, str) and name.isidentifier() else "site"
        # The bound is about rows that have the value, and models may read it.
        make = f"give X and the pool a column of the values, X.assign({name}=values), "
        if columns is not None and name in columns:
            make = ""
        raise TypeError(
            f"`report_by` must be the name of one column of `X`, got "
            f"{type(report_by).__name__}; {make}{'and ' if make else ''}write "
            f"report_by={name!r}."
        )
    if not (is_number or isinstance(report_by, str)):
        raise TypeError(
            f"`report_by` must be the name of one column of `X`, or its position where "
            f"columns have no names, got {show(report_by)}; make one column of several."
        )
    if columns is not None and str(report_by) in columns:
        return list(columns).index(str(report_by))
    if columns is None and is_number and 0 <= report_by < n_columns:
        return int(report_by)
    if columns is None:
        raise ValueError(
            f"`report_by` must be the position of a column of `X`, which has no names "
            f"of columns, from 0 to {n_columns - 1}, got {show(report_by)}; or pass a "
            f"data frame and a name."
        )
    if report_by == target:
        raise ValueError(
            f"`report_by` {report_by!r} is the column of the labels; report=True has "
            f"recall and precision of each class."
        )
    near = nearest_name(report_by, columns)
    if is_number and 0 <= report_by < n_columns:
        near = columns[int(report_by)]
    end, ways = ".", []
    if near is not None:
        end = f"; did you mean {near!r}?"
        ways = [[Correction("--report-by", str(report_by), str(near))]]
    raise UndecidedError(
        f"`report_by` must name one of the {n_columns} columns of `X` "
        f"({listing(list(columns), 5)}), got {show(report_by)}{end}",
        *ways,
    )
