"""Comparisons of models on pool rows, and the bins that count their disagreements.

For each pool row a comparison has the splits whose models predict the row, mostly two,
and the bin of the cube in which their disagreement is counted. In a search with
*queries* a person labels some rows after the run: `count_and_draw` draws these rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from dsel import names
from dsel.arrays import Integers
from dsel.data.duplicate_rows import FindDuplicates
from dsel.data.pool import Block
from dsel.data.query_rows import merge_smallest, query_words, smallest_rows
from dsel.data.row_random import (
    RANDOM_FOLD_STREAM,
    row_random,
    row_random_at,
    uniform_integers,
)
from dsel.data.splits import OuterNumber
from dsel.losses.calls import count_pair
from dsel.losses.protocols import FoldCounts, PoolCounts, Predictions, Rows, Statistic
from dsel.results.records import older_name
from dsel.typing import AnyArray, BinCounts, FoldNumbers, RowNumbers, SplitNumbers

UNKNOWN_FOLD: Final = -1
"""Number in the place of a fold that is not known yet."""


@dataclass(frozen=True)
class QueriedRows:
    """Rows with the smallest random words so far, with the predictions of both models.

    Examples
    --------
    >>> rows, codes = np.arange(100), np.zeros(100, np.int64)
    >>> whole = QueriedRows.draw(7, rows, codes, codes + 1, 5)
    >>> later, earlier = (QueriedRows.draw(7, some, some * 0, some * 0 + 1, 5)
    ...                   for some in (rows[60:], rows[:60]))
    >>> later.merge(earlier, 5) == whole
    True
    """

    record_kind: ClassVar[str] = "DrawnRows"  # its older name, in records
    random_words: tuple[int, ...] = field(default=(), metadata=older_name("words"))
    """Random words of the rows, ascending."""
    rows: tuple[int, ...] = ()
    """Global row numbers."""
    one_fold_codes: tuple[int, ...] = field(default=(), metadata=older_name("one_fold"))
    """Class codes that the model of the deployed fold predicts."""
    all_rows_codes: tuple[int, ...] = field(default=(), metadata=older_name("all_rows"))
    """Class codes that the model of all rows predicts."""

    @classmethod
    def draw(
        cls,
        seed: int,
        row_numbers: Integers,
        one_fold_codes: Integers,
        all_rows_codes: Integers,
        n_queries: int,
    ) -> Self:
        """Draw some of the rows, in ascending order, with their predictions."""
        columns = (
            query_words(seed, row_numbers),
            row_numbers,
            one_fold_codes,
            all_rows_codes,
        )
        return cls(*(tuple(c.tolist()) for c in smallest_rows(columns, n_queries)))

    def merge(self, other: "QueriedRows", n_queries: int) -> "QueriedRows":
        """Return the rows with the smallest random words among those of both."""
        if not other.rows:
            return self
        columns = merge_smallest(self._columns(), other._columns(), n_queries)
        return QueriedRows(*(tuple(column.tolist()) for column in columns))

    def _columns(self) -> list[AnyArray]:
        types = (np.uint64, np.int64, np.int64, np.int64)
        columns = self.random_words, self.rows, self.one_fold_codes, self.all_rows_codes
        return list(map(np.array, columns, types))


@dataclass(frozen=True)
class QueryDraw:
    """How many pool rows are drawn to be labeled, and the seed of the draw."""

    n_queries: int = 0
    seed: int = 0


class Comparison:
    """The models that predict each pool row, and the bins of their differences."""

    key: str
    """Name of the counts; those of all candidates are a variable of the cube."""
    n_bins: int
    """Bins of a model set; one for each pair of models in most comparisons."""
    n_queries: int = 0
    """Number of rows that are drawn for labeling."""

    def compared_splits(
        self, row_numbers: RowNumbers, model_sets: Sequence[int]
    ) -> list[SplitNumbers]:
        """Return the splits whose predictions `count` reads, in its order.

        The shape of an item is () for one split for all rows and model sets, (n_rows,)
        for one for each row, and (n_model_sets, 1) for one for each model set.
        """
        raise NotImplementedError

    def count(self, predictions: Predictions, block: Block) -> BinCounts:
        """Count rows whose predictions differ, shape (n_model_sets, n_bins)."""
        differs = predictions[0::2] != predictions[1::2]
        return np.asarray(np.count_nonzero(differs, axis=2).T)

    def count_and_draw(
        self, predictions: Predictions, block: Block
    ) -> tuple[BinCounts, QueriedRows]:
        """Return the counts of `count`, and rows drawn for labeling."""
        return self.count(predictions, block), QueriedRows()

    def rows_by_bin(self, row_numbers: RowNumbers) -> BinCounts:
        """Count the rows of each bin, (n_bins,), or (1,) if the counts are equal."""
        return np.full(self.n_bins, len(row_numbers))

    def with_best_folds(self, best_folds: FoldNumbers) -> "Comparison":
        """Return the comparison for these folds, which have the fewest errors."""
        return self


@dataclass(frozen=True)
class RandomFold(Comparison):
    """Compares the model of all rows with that of a fold drawn for each row."""

    seed: int
    n_bins: int
    """Folds, each of which is a bin."""
    all_rows_number: OuterNumber
    """Number of the split on all rows."""
    key: str = names.DISAGREEMENTS

    def draw_folds(self, row_numbers: RowNumbers) -> FoldNumbers:
        """Return the random fold of each row, a function of the row's number."""
        # Blocks of a whole pool are consecutive, and all candidates share the draws of
        # a block.
        first, stop = (
            (int(row_numbers[0]), int(row_numbers[-1]) + 1)
            if len(row_numbers)
            else (0, 0)
        )
        if stop - first == len(row_numbers):
            return _fold_of_rows(self.seed, self.n_bins, first, stop)
        random_words = row_random_at(self.seed, RANDOM_FOLD_STREAM, row_numbers)
        return uniform_integers(random_words, self.n_bins)

    def compared_splits(
        self, row_numbers: RowNumbers, model_sets: Sequence[int]
    ) -> list[SplitNumbers]:
        """Return the split of all rows, and the fold that is drawn for each row."""
        del model_sets  # all candidates are compared with the same drawn folds
        return [np.array(self.all_rows_number), self.draw_folds(row_numbers)]

    def count(self, predictions: Predictions, block: Block) -> BinCounts:
        """Count by the drawn fold."""
        folds = self.draw_folds(block.row_numbers)
        n = self.n_bins
        differs = predictions[0] != predictions[1]
        return np.stack([np.bincount(folds[rows], minlength=n) for rows in differs])

    def rows_by_bin(self, row_numbers: RowNumbers) -> BinCounts:
        """Count the rows of each fold."""
        return np.bincount(self.draw_folds(row_numbers), minlength=self.n_bins)


@lru_cache(maxsize=8)
def _fold_of_rows(seed: int, n_folds: int, first: int, stop: int) -> FoldNumbers:
    """Draw the folds of consecutive rows; cached, since each block needs them often."""
    folds = uniform_integers(row_random(seed, RANDOM_FOLD_STREAM, first, stop), n_folds)
    folds.setflags(write=False)
    return folds


@dataclass(frozen=True)
class BestFold(Comparison):
    """Compares the model of all rows with that of the best fold."""

    all_rows_number: OuterNumber
    """Number of the split on all rows."""
    best_folds: FoldNumbers
    """Best fold of each model set, shape (n_model_sets,); `UNKNOWN_FOLD` until all of
    its folds are fitted, before which no pool row is predicted."""
    key: str = names.BEST_FOLD_DISAGREEMENTS
    n_bins: int = 1

    def with_best_folds(self, best_folds: FoldNumbers) -> "BestFold":
        """Return the comparison for these folds."""
        return replace(self, best_folds=best_folds)

    def compared_splits(
        self, row_numbers: RowNumbers, model_sets: Sequence[int]
    ) -> list[SplitNumbers]:
        """Return the split of all rows, and the best fold of each model set."""
        del row_numbers
        best_folds = self.best_folds[np.asarray(model_sets), np.newaxis]
        return [np.array(self.all_rows_number), best_folds]


@dataclass(frozen=True)
class Halves(Comparison):
    """Compares the two models of each random halving, splits 2r and 2r + 1."""

    n_bins: int
    """Halvings, each of which is a bin."""
    key: str = names.DISAGREEMENTS

    def compared_splits(
        self, row_numbers: RowNumbers, model_sets: Sequence[int]
    ) -> list[SplitNumbers]:
        """Return all halves."""
        del row_numbers, model_sets
        return [np.array(half_number) for half_number in range(2 * self.n_bins)]


class PairCounts(NamedTuple):
    """Counts of one statistic where the model of a fold differs from that of all rows.

    Both have the shape (n_folds, *pair_shape).
    """

    of_all_rows: Integers
    """Counts on all rows."""
    of_duplicates: Integers
    """Counts on those of them that equal labeled rows."""


class StatisticBins(NamedTuple):
    """The bins of `AllFolds` that count one statistic, which follow each other."""

    statistic: Statistic
    start: int
    """Position of the first one."""
    n_folds: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes: all rows or duplicates, fold, cells of the statistic."""
        return len(PairCounts._fields), self.n_folds, *self.statistic.pair_shape

    @property
    def stop(self) -> int:
        """Position behind the last one."""
        return self.start + prod(self.shape)

    def flatten(self, pair_counts: PairCounts) -> BinCounts:
        """Return the counts in the order of the bins."""
        return np.reshape(np.stack(pair_counts), self.stop - self.start)

    def read(self, bin_counts: BinCounts) -> PairCounts:
        """Return the counts of the statistic from those of all bins."""
        return PairCounts(*bin_counts[self.start : self.stop].reshape(self.shape))


@dataclass(frozen=True)
class AllFolds(Comparison):
    """Compares the model of all rows with those of all folds, by several statistics."""

    all_rows_number: OuterNumber
    """Number of the split on all rows."""
    fold_counts_of: Mapping[Statistic, FoldCounts]
    """Counts on the folds, by statistic."""
    find_duplicates: FindDuplicates | None
    """Function that finds rows of a block that equal labeled ones; None if none do."""
    deployed_fold: int = 0
    """Fold whose model is deployed; rows are drawn where that of all rows differs."""
    query_draw: QueryDraw = QueryDraw()
    key: str = "chosen"

    @property
    def n_queries(self) -> int:  # type: ignore[override]
        """Number of rows that are drawn for labeling."""
        return self.query_draw.n_queries

    @property
    def n_folds(self) -> int:
        """Folds, k."""
        return len(next(iter(self.fold_counts_of.values())).n_rows)

    @property
    def bins_of_statistics(self) -> list[StatisticBins]:
        """The bins of each statistic, in the order in which they follow each other."""
        bins_of_statistics, start = [], 0
        for statistic in self.fold_counts_of:
            bins_of_statistics.append(StatisticBins(statistic, start, self.n_folds))
            start = bins_of_statistics[-1].stop
        return bins_of_statistics

    @property
    def n_bins(self) -> int:  # type: ignore[override]
        """Bins of all statistics."""
        return self.bins_of_statistics[-1].stop

    def compared_splits(
        self, row_numbers: RowNumbers, model_sets: Sequence[int]
    ) -> list[SplitNumbers]:
        """Return the splits without each fold, and then that on all rows."""
        return [np.array(n) for n in (*range(self.n_folds), self.all_rows_number)]

    def count(self, predictions: Predictions, block: Block) -> BinCounts:
        """Count the only model set by each statistic."""
        return self.count_and_draw(predictions, block)[0]

    def count_and_draw(
        self, predictions: Predictions, block: Block
    ) -> tuple[BinCounts, QueriedRows]:
        """Count by each statistic; draw rows that are no duplicates of labeled rows."""
        predicted = predictions[:, 0]  # in the order of `compared_splits`
        # In most blocks no row equals a labeled one, and nothing is copied.
        duplicates = np.empty(0, np.int64)
        if self.find_duplicates is not None:
            # Hashing rows takes as long as six linear models: if statistics count only
            # rows on which models differ, other rows are not hashed.
            hashed = np.arange(len(block.row_numbers))
            if all(statistic.counts_differences for statistic in self.fold_counts_of):
                hashed = np.flatnonzero((predicted[:-1] != predicted[-1]).any(axis=0))
            if len(hashed):
                is_duplicate = self.find_duplicates(block.X[hashed])
                duplicates = hashed[is_duplicate]
        all_rows, only_duplicates = Rows(block.X), Rows(block.X[duplicates])
        by_statistic = [
            bins.flatten(
                PairCounts(
                    self._count_pairs(bins.statistic, all_rows, predicted),
                    self._count_pairs(
                        bins.statistic, only_duplicates, predicted[:, duplicates]
                    ),
                )
            )
            for bins in self.bins_of_statistics
        ]
        # One row for each set of models.
        bin_counts = np.concatenate(by_statistic)[np.newaxis]
        if not self.n_queries:
            return bin_counts, QueriedRows()
        one_fold_codes, all_rows_codes = predicted[self.deployed_fold], predicted[-1]
        # Rows that equal a labeled one may be a record that a model was trained on.
        differs = np.flatnonzero(one_fold_codes != all_rows_codes)
        fresh = np.setdiff1d(differs, duplicates, assume_unique=True)
        return bin_counts, QueriedRows.draw(
            self.query_draw.seed,
            block.row_numbers[fresh],
            one_fold_codes[fresh],
            all_rows_codes[fresh],
            self.n_queries,
        )

    def _count_pairs(
        self, statistic: Statistic, rows: Rows, predicted: Predictions
    ) -> Integers:
        """Count where the model of each fold differs, (n_folds, *pair_shape)."""
        *of_folds, of_all_rows = predicted
        return np.array(
            [
                count_pair(statistic, rows, of_fold, of_all_rows, counts_on_fold)
                for of_fold, counts_on_fold in zip(
                    of_folds, self.fold_counts_of[statistic].counts, strict=True
                )
            ]
        )

    def rows_by_bin(self, row_numbers: RowNumbers) -> BinCounts:
        """Count the rows, the same number for all bins, shape (1,)."""
        return np.array([len(row_numbers)])

    def unpack(
        self, bin_counts: BinCounts, n_rows: int, n_duplicates: int
    ) -> dict[Statistic, PoolCounts]:
        """Return the counts by statistic, for a pool with `n_duplicates` duplicates."""
        return {
            bins.statistic: PoolCounts(*bins.read(bin_counts), n_rows, n_duplicates)
            for bins in self.bins_of_statistics
        }


def count_differences(
    comparisons: Sequence[Comparison],
    predict: Callable[[list[SplitNumbers]], Predictions],
    block: Block,
    model_sets: Sequence[int],
) -> list[tuple[BinCounts, QueriedRows]]:
    """Count every comparison, and draw rows; each split predicts once for all of them.

    `predict` maps the splits of `compared_splits` to predictions of shape (their
    number, n_model_sets, n_rows).
    """
    compared = [c.compared_splits(block.row_numbers, model_sets) for c in comparisons]
    # Models predict each block once, however many comparisons read it: predictions take
    # most of the time of a pass.
    distinct = {
        _prediction_key(splits): splits for items in compared for splits in items
    }
    index_of = {key: index for index, key in enumerate(distinct)}
    predictions = predict(list(distinct.values()))
    return [
        comparison.count_and_draw(
            predictions[[index_of[_prediction_key(splits)] for splits in items]], block
        )
        for comparison, items in zip(comparisons, compared, strict=True)
    ]


def _prediction_key(numbers: SplitNumbers) -> Any:
    """Return a key by which comparisons share the predictions of one split.

    Only a single split for all rows can be shared: arrays of drawn folds belong to one
    comparison.
    """
    return numbers.item() if numbers.ndim == 0 else f"splits {id(numbers)}"
