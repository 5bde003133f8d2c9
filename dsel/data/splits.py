"""Splits of the labeled rows: made by chance (folds, halvings, one split) or given."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.checks import check_integer
from dsel.data.row_random import (
    BLOCK_STREAM,
    FOLD_STREAM,
    HALVING_STREAM,
    HOLDOUT_STREAM,
    row_random,
)

FULL: Final = "full"
"""Name of the split on all labeled rows."""
LEAVE_ONE_OUT: Final = "leave-one-out"
"""Name of the split that holds out every row in turn."""
_NOTHING: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Split:
    """Sorted rows that a model is trained on, and that its errors are counted on."""

    number: int
    """Place in the plan, from 0."""
    name: str
    """Such as ``fold-3``, ``full`` or ``repeat-7-half-1``; learner seeds hash it."""
    train_rows: NDArray[np.int64]
    test_rows: NDArray[np.int64]
    """Empty where nothing was held out."""
    second_rows: NDArray[np.int64] | None = None
    """The other fold of a pair, whose errors are counted in the place of those on the
    training rows."""
    counts_train: bool = False
    """Whether errors on the training rows are counted, too."""

    @property
    def tests(self) -> tuple[NDArray[np.int64], ...]:
        """The parts of the rows on which errors are counted, each part by itself."""
        if self.second_rows is not None:
            return self.test_rows, self.second_rows
        return (self.test_rows, *([self.train_rows] if self.counts_train else ()))


def random_folds(n_rows: int, n_folds: int, *, seed: int) -> NDArray[np.int64]:
    """Return each row's fold, drawn at random; the first folds may have a row more."""
    check_integer(n_folds, "n_folds", at_least=2)
    if n_folds > n_rows:
        raise ValueError(
            f"`n_folds` must not exceed the number of labeled rows, got {n_folds} "
            f"folds for {n_rows} rows; ask for fewer folds."
        )
    return _ranks(n_rows, FOLD_STREAM, seed) % n_folds


def fold_splits(folds: ArrayLike) -> tuple[Split, ...]:
    """Return the k fold splits, ``fold-0`` first, then ``full`` with number k."""
    numbers = np.asarray(folds)
    n_folds = int(numbers.max()) + 1
    splits = [_tested(fold, f"fold-{fold}", numbers == fold) for fold in range(n_folds)]
    return (*splits, full_split(len(numbers), number=n_folds))


def given_splits(cv: Any, X: Any, y: Any, groups: Any = None) -> tuple[Split, ...]:
    """Return the splits of a splitter, or of pairs of rows or masks, then ``full``."""
    try:
        pairs = list(cv.split(X, y, groups) if hasattr(cv, "split") else cv)
    except (TypeError, ValueError) as error:
        way = "" if groups is not None else "pass `groups` where it wants them, or "
        raise ValueError(
            f"`cv` {cv!r} does not split these rows: {str(error).rstrip('.')}. Give "
            f"other folds: {way}a list of (train rows, test rows)."
        ) from error
    if not pairs:
        raise ValueError(f"`cv` must give at least one split, got none from {cv!r}.")
    every, splits = np.arange(len(y), dtype=np.int64), []
    for number, pair in enumerate(pairs):
        try:
            train, test = (np.sort(every[rows]) for rows in pair)
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"`cv` must give pairs of training and test rows among {len(y)} "
                f"labeled rows, but split {number} does not: {error}."
            ) from error
        for name, rows in (("training", train), ("test", test)):
            if not rows.size or (np.diff(rows) == 0).any():
                raise ValueError(
                    f"`cv` must give every split rows, each once, but the {name} rows "
                    f"of split {number} are {'given twice' if rows.size else 'none'}; "
                    "repeat rows by `sample_weight`."
                )
        splits.append(Split(number, f"fold-{number}", train, test))
    return (*splits, full_split(len(y), number=len(splits)))


def half_splits(n_rows: int, repeats: int, *, seed: int) -> tuple[Split, ...]:
    """Return the two splits of each random halving, each tested on the other half."""
    check_integer(n_rows, "n_rows", at_least=2)
    check_integer(repeats, "repeats", at_least=1)
    splits = []
    for repeat in range(repeats):
        first = _ranks(n_rows, HALVING_STREAM + repeat, seed) < n_rows // 2
        for half, tested in enumerate((~first, first)):
            name = f"repeat-{repeat}-half-{half}"
            split = _tested(2 * repeat + half, name, tested)
            splits.append(replace(split, counts_train=True))
    return tuple(splits)


def block_splits(n_rows: int, n_blocks: int, *, seed: int) -> tuple[Split, ...]:
    """Return splits on disjoint random blocks of equally many rows, without a test."""
    check_integer(n_blocks, "n_blocks", at_least=2, at_most=n_rows)
    blocks = _ranks(n_rows, BLOCK_STREAM, seed) // (n_rows // n_blocks)
    return tuple(
        Split(block, f"block-{block}", np.flatnonzero(blocks == block), _NOTHING)
        for block in range(n_blocks)
    )


def holdout_split(n_rows: int, n_test: int, *, seed: int) -> Split:
    """Return one split, ``holdout``, that leaves out `n_test` random rows."""
    check_integer(n_test, "n_test", at_least=1, at_most=n_rows - 1)
    return _tested(0, "holdout", _ranks(n_rows, HOLDOUT_STREAM, seed) < n_test)


def full_split(n_rows: int, *, number: int = 0) -> Split:
    """Return the split on all rows, ``full``, which holds nothing out."""
    return Split(number, FULL, np.arange(n_rows, dtype=np.int64), _NOTHING)


def leave_one_out_split(n_rows: int, *, number: int = 0) -> Split:
    """Return the split that stands for as many models as there are rows."""
    rows = np.arange(n_rows, dtype=np.int64)
    return Split(number, LEAVE_ONE_OUT, rows, rows)


def _tested(number: int, name: str, in_test: NDArray[np.bool_]) -> Split:
    return Split(number, name, np.flatnonzero(~in_test), np.flatnonzero(in_test))


def _ranks(n_rows: int, stream: int, seed: int) -> NDArray[np.int64]:
    """Rank rows by (random number, row number)."""
    order = np.argsort(row_random(seed, stream, 0, n_rows), kind="stable")
    return np.argsort(order)
