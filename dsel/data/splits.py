"""Splits of the labeled rows: random folds, halvings, one split, or the user's own."""

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any, Final, Generic, NewType, TypeVar

import numpy as np

from dsel.arrays import ArrayLike, Bools, Features, Integers
from dsel.checks import check_integer, show
from dsel.data.row_random import (
    BLOCK_STREAM,
    FOLD_STREAM,
    HALVING_STREAM,
    HOLDOUT_STREAM,
    row_random,
)
from dsel.old_names import OldName
from dsel.rounded_texts import count_of, name_folds

SplitIndex = NewType("SplitIndex", int)
"""Number of a split that every candidate of a search is trained on: its place in
`CVScheme.splits`, by which fits are submitted, counted and stored."""
OuterNumber = NewType("OuterNumber", int)
"""Number of an outer split: that of the fold that it leaves out, or the number of folds
for all rows. Only where a search is not nested is it a `SplitIndex`, too."""
Number_co = TypeVar("Number_co", bound=int, covariant=True)
"""Kind of a number of splits: `SplitIndex` or `OuterNumber`; int where only the splits
of one call are told apart."""
Number = TypeVar("Number", bound=int)

MOST_SPLITS: Final = 10_000
"""Largest number of splits of a splitter; no real search needs more."""
_NOTHING: Final = np.empty(0, dtype=np.int64)


class SplitKind(StrEnum):
    """Kind of a split, by the rows that it trains on."""

    ALL_ROWS = "full"
    """All rows."""
    FOLD = "fold"
    """All rows but one fold, which is tested."""
    PAIR = "pair"
    """All rows but two folds, each of which is tested."""
    QUARTER = "quarter"
    """One half of one of two folds, tested on its other half; with two folds no rows
    would be left to train on without both."""
    HALF = "half"
    """One half of a random halving, tested on the other half."""
    BLOCK = "block"
    """One of several disjoint blocks, without test rows."""
    HOLDOUT = "holdout"
    """All rows but some random ones, which are tested."""
    ROW = "without"
    """All rows but one."""
    LEAVE_ONE_OUT = "leave-one-out"
    """Each row in turn is left out: this is one split that stands for many models."""


@dataclass(frozen=True, repr=False)
class Split(Generic[Number_co]):
    """Sorted training rows of a model, and the test rows on which it is counted."""

    number: Number_co
    """Position in the plan, from 0, as a `SplitIndex` or an `OuterNumber`."""
    kind: SplitKind
    numbers: tuple[int, ...]
    """Numbers that identify the split among those of its kind: of the folds that it
    leaves out, of the quarter or block that it trains on, or of the halving and its
    half."""
    train_rows: Integers
    test_rows: Integers
    """The first part of the rows that are tested. Empty where none are held out."""
    second_part: Integers | None = None
    """The second fold of a pair."""
    counts_train: bool = False
    """Whether the training rows are the second part."""

    def __repr__(self) -> str:
        n_train, n_test = len(self.train_rows), sum(map(len, self.row_parts))
        return (
            f"<Split {self.number}: trained {self.trained_on}, on "
            f"{count_of(n_train, 'row')}, and tested on {n_test:,}>"
        )

    @property
    def name(self) -> str:
        """Name of the split, such as ``fold-3``, ``full`` or ``repeat-7-half-1``.

        It is hashed into the seeds of learners and part of the keys of records, so it
        must never change.
        """
        if self.kind is SplitKind.HALF:
            repeat, half = self.numbers
            return f"repeat-{repeat}-half-{half}"
        return "-".join([self.kind, *map(str, self.numbers)])

    @property
    def is_all_rows(self) -> bool:
        """Whether no row is left out."""
        return self.kind is SplitKind.ALL_ROWS

    @property
    def short_name(self) -> str:
        """The split in the names of tasks: ``fold=3``, ``folds=0,1``."""
        names = {SplitKind.FOLD: "fold", SplitKind.PAIR: "folds"}
        if self.kind not in names:
            return self.name
        return f"{names[self.kind]}={','.join(map(str, self.numbers))}"

    @property
    def trained_on(self) -> str:
        """The training rows in the words of messages, such as ``without fold 3``."""
        if self.is_all_rows:
            return "on all rows"
        if self.kind not in (SplitKind.FOLD, SplitKind.PAIR):
            return self.name
        return f"without {name_folds(*self.numbers)}"

    def test_only(self, part_number: int) -> "Split[Number_co]":
        """Return a pair of folds of which one alone is tested."""
        first, second = (
            rows if i == part_number else rows[:0]
            for i, rows in enumerate(self.row_parts)
        )
        return replace(self, test_rows=first, second_part=second)

    key, test_parts = OldName("numbers"), OldName("row_parts")

    @property
    def row_parts(self) -> tuple[Integers, ...]:
        """The one or two parts of rows on each of which errors are counted."""
        if self.second_part is not None:
            return self.test_rows, self.second_part
        return (self.test_rows, *([self.train_rows] if self.counts_train else ()))


def random_folds(n_rows: int, n_folds: int, *, seed: int) -> Integers:
    """Return the random fold of each row; the first folds may have one row more."""
    check_integer(n_folds, "n_folds", at_least=2)
    if n_folds > n_rows:
        raise ValueError(
            f"`n_folds` must not exceed the number of labeled rows, got {n_folds} "
            f"folds for {n_rows} rows; ask for fewer folds."
        )
    return _ranks(n_rows, FOLD_STREAM, seed) % n_folds


def fold_splits(
    folds: ArrayLike, is_counted: Bools | None = None
) -> tuple[Split[OuterNumber], ...]:
    """Return the k fold splits, ``fold-0`` first, then ``full`` with number k.

    With rows in groups, `is_counted` masks the rows that are counted; None counts all.
    """
    fold_of_row = np.asarray(folds)
    n_folds = int(fold_of_row.max()) + 1
    splits = [
        _make_split(OuterNumber(fold), SplitKind.FOLD, (fold,), fold_of_row == fold)
        for fold in range(n_folds)
    ]
    if is_counted is not None:
        splits = [
            replace(split, test_rows=split.test_rows[is_counted[split.test_rows]])
            for split in splits
        ]
    return (*splits, all_rows_split(len(fold_of_row), number=OuterNumber(n_folds)))


def splits_of_cv(
    cv: Any, X: Features, y: Any, groups: Any = None
) -> tuple[Split[OuterNumber], ...]:
    """Return the splits of a splitter, or of pairs of rows or masks, then ``full``."""
    try:
        iterable = cv.split(X, y, groups) if hasattr(cv, "split") else cv
        pairs = list(islice(iterable, MOST_SPLITS + 1))
    except Exception as error:  # a splitter of the user may raise anything
        text = " ".join(str(error).split()).rstrip(".")
        way = "" if groups is not None else "pass `groups` where it wants them, or "
        raise ValueError(
            f"`cv` {show(cv)} does not split these rows: {text}. "
            f"Give other folds: {way}a list of (train rows, test rows)."
        ) from error
    if not pairs:
        raise ValueError(
            f"`cv` must give at least one split, got none from {show(cv)}."
        )
    if len(pairs) > MOST_SPLITS:  # a generator may never end
        raise ValueError(
            f"`cv` must give at most {MOST_SPLITS:,} splits, got more from {show(cv)}."
        )
    every, splits = np.arange(len(y), dtype=np.int64), []
    for split_number, pair in enumerate(pairs):
        try:
            train, test = (np.sort(every[rows]) for rows in pair)
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"`cv` must give pairs of training and test rows among {len(y)} "
                f"labeled rows, but split {split_number} does not: {error}."
            ) from error
        for name, rows in (("training", train), ("test", test)):
            if not rows.size or (np.diff(rows) == 0).any():
                raise ValueError(
                    f"`cv` must give every split rows, each once, but the {name} rows "
                    f"of split {split_number} are "
                    f"{'given twice' if rows.size else 'none'}; "
                    "repeat rows by `sample_weight`."
                )
        number = OuterNumber(split_number)
        splits.append(Split(number, SplitKind.FOLD, (split_number,), train, test))
    return (*splits, all_rows_split(len(y), number=OuterNumber(len(splits))))


def half_splits(
    n_rows: int, repeats: int, *, seed: int
) -> tuple[Split[OuterNumber], ...]:
    """Return the two splits of each random halving, each tested on the other half."""
    check_integer(n_rows, "n_rows", at_least=2)
    check_integer(repeats, "repeats", at_least=1)
    splits = []
    for repeat in range(repeats):
        first = _ranks(n_rows, HALVING_STREAM + repeat, seed) < n_rows // 2
        for half, tested in enumerate((~first, first)):
            number = OuterNumber(2 * repeat + half)
            split = _make_split(number, SplitKind.HALF, (repeat, half), tested)
            splits.append(replace(split, counts_train=True))
    return tuple(splits)


def block_splits(n_rows: int, n_blocks: int, *, seed: int) -> tuple[Split[int], ...]:
    """Return splits on disjoint random blocks of equal size, without test rows."""
    check_integer(n_blocks, "n_blocks", at_least=2, at_most=n_rows)
    blocks = _ranks(n_rows, BLOCK_STREAM, seed) // (n_rows // n_blocks)
    return tuple(
        Split(
            block, SplitKind.BLOCK, (block,), np.flatnonzero(blocks == block), _NOTHING
        )
        for block in range(n_blocks)
    )


def holdout_split(n_rows: int, n_test: int, *, seed: int) -> Split[int]:
    """Return one split, ``holdout``, that leaves out `n_test` random rows."""
    check_integer(n_test, "n_test", at_least=1, at_most=n_rows - 1)
    in_test = _ranks(n_rows, HOLDOUT_STREAM, seed) < n_test
    return _make_split(0, SplitKind.HOLDOUT, (), in_test)


def all_rows_split(n_rows: int, *, number: OuterNumber) -> Split[OuterNumber]:
    """Return the split on all rows, ``full``, which holds nothing out."""
    rows = np.arange(n_rows, dtype=np.int64)
    return Split(number, SplitKind.ALL_ROWS, (), rows, _NOTHING)


def leave_one_out_split(n_rows: int, *, number: SplitIndex) -> Split[SplitIndex]:
    """Return the split that stands for a model without each row."""
    rows = np.arange(n_rows, dtype=np.int64)
    return Split(number, SplitKind.LEAVE_ONE_OUT, (), rows, rows)


def _make_split(
    number: Number, kind: SplitKind, numbers: tuple[int, ...], in_test: Bools
) -> Split[Number]:
    rows = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    return Split(number, kind, numbers, *rows)


def _ranks(n_rows: int, stream: int, seed: int) -> Integers:
    """Rank rows by (random number, row number)."""
    order = np.argsort(row_random(seed, stream, 0, n_rows), kind="stable")
    return np.argsort(order)
