"""Which models predict a row of the pool, and where their disagreements are counted.

A comparison names the splits whose models predict each row (its *queries*) and the bin
of the cube in which a disagreement is counted. `RandomFold` and `BestFold` need two
predictions a row. `AllAnswers` needs those of many splits, so it is made only for
criteria that read its counts. `KnownLabels` counts errors where labels of pool rows are
known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.data.row_random import (
    RANDOM_FOLD_STREAM,
    row_random,
    row_random_at,
    uniform_integers,
)
from dsel.families.vote import plurality

Codes = NDArray[np.int64]

UNKNOWN = -1


class Comparison(Protocol):
    """Predictions of every pool row, and the bins in which differences are counted."""

    @property
    def variable(self) -> str:
        """Name of the cube's variable that the counts become."""

    def evidence(
        self, counts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return the cube's variables of counts and of the rows in each bin.

        Both have the shape (n_candidates, n_bins); -1 where nothing was counted.
        """

    @property
    def n_bins(self) -> int:
        """Bins a candidate has."""

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the bin of each row, or None where every row is in every bin."""

    def queries(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return split numbers, as `FittedGroup.predict` takes them."""

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count rows whose predictions differ, shape (n_candidates, n_bins)."""


@dataclass(frozen=True)
class RandomFold:
    """The full model against a fold model drawn for each row: f against f_rand."""

    seed: int
    n_folds: int
    """Folds; split k is the full one."""
    variable: str = names.DISAGREEMENTS
    """Counted by the fold that was drawn."""

    @property
    def n_bins(self) -> int:
        """One bin a fold."""
        return self.n_folds

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the fold that is drawn for each row."""
        first, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        if stop - first == len(rows):
            return _drawn_folds(self.seed, self.n_folds, first, stop)
        return uniform_integers(
            row_random_at(self.seed, RANDOM_FOLD_STREAM, rows), self.n_folds
        )

    def queries(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return the full split, and the fold that is drawn for each row."""
        del candidates  # the same draws for all
        drawn = self.bins(rows)
        assert drawn is not None
        return [np.array(self.n_folds), drawn]

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count by the drawn fold."""
        drawn = self.bins(rows)
        assert drawn is not None
        return np.stack(
            [
                np.bincount(drawn[differs], minlength=self.n_folds)
                for differs in codes[0] != codes[1]
            ]
        )

    def evidence(
        self, counts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return differences, and the pool rows that each fold was given."""
        return {self.variable: counts, names.POOL_ROWS: rows}


@lru_cache(maxsize=8)
def _drawn_folds(seed: int, n_folds: int, first: int, stop: int) -> NDArray[np.int64]:
    """Draw for consecutive rows; cached, since a block needs them several times."""
    drawn = uniform_integers(row_random(seed, RANDOM_FOLD_STREAM, first, stop), n_folds)
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True)
class BestFold:
    """The full model against one fold model, fixed for each candidate beforehand."""

    n_folds: int
    """Folds; split k is the full one."""
    chosen: NDArray[np.int64]
    """Fold of each candidate of the plan, shape (n_candidates,); -1 not known yet."""
    variable: str = names.BEST_FOLD_DISAGREEMENTS
    """Counted on the whole pool."""
    n_bins: int = 1

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is compared."""
        del rows
        return None

    def queries(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return the full split, and the chosen fold of each candidate."""
        del rows
        fold = self.chosen[np.asarray(candidates)]
        return [np.array(self.n_folds), fold[:, np.newaxis]]

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count all differing rows."""
        del rows
        return np.asarray(np.count_nonzero(codes[:1] != codes[1:2], axis=2).T)

    def evidence(
        self, counts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return one number a candidate."""
        del rows
        return {self.variable: counts[:, 0]}


@dataclass(frozen=True)
class AllAnswers:
    """The models of the first splits predict every row; a function counts."""

    n_splits: int
    """How many splits, in the order of their numbers."""
    n_bins: int
    variable: str
    """Name of the cube's variable that the counts become."""
    count: Callable[[Codes], Codes]
    """From codes (n_splits, n_candidates, n_rows) to counts (n_candidates, n_bins)."""

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is in every bin."""
        del rows
        return None

    def queries(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return all of them."""
        del rows, candidates
        return [np.array(number) for number in range(self.n_splits)]

    def tally(self, codes: Codes, rows: NDArray[np.int64]) -> Codes:
        """Count what the function counts."""
        del rows
        return self.count(codes)

    def evidence(
        self, counts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return differences; of halves also the pool rows that each was given."""
        given = {names.POOL_ROWS: rows} if self.variable == names.DISAGREEMENTS else {}
        return {self.variable: counts, **given}


def halves(n_repeats: int) -> AllAnswers:
    """Compare the two models of each halving, 2r and 2r + 1, with each other."""
    return AllAnswers(2 * n_repeats, n_repeats, names.DISAGREEMENTS, by_halving)


def every_fold(n_folds: int) -> AllAnswers:
    """Compare each fold model with the full one, which is split `n_folds`."""
    return AllAnswers(n_folds + 1, n_folds, names.FOLD_DISAGREEMENTS, by_fold)


def differing_folds(n_folds: int) -> AllAnswers:
    """Count how many fold models differ from the full one, row by row."""
    return AllAnswers(n_folds + 1, n_folds, names.DIFFERING_FOLDS, by_number)


def votes(n_folds: int, n_classes: int) -> AllAnswers:
    """Compare each fold model with the plurality vote of them all."""
    count = partial(by_vote, n_classes=n_classes)
    return AllAnswers(n_folds, n_folds, names.VOTE_DISAGREEMENTS, count)


def by_vote(codes: Codes, n_classes: int) -> Codes:
    """Count by fold the rows on which its model and the vote of all differ."""
    differs = codes != plurality(codes, n_classes)
    return np.asarray(np.count_nonzero(differs, axis=2).T)


def by_halving(codes: Codes) -> Codes:
    """Count by halving the rows on which its two models differ."""
    return np.asarray(np.count_nonzero(codes[0::2] != codes[1::2], axis=2).T)


def by_fold(codes: Codes) -> Codes:
    """Count by fold the rows on which its model and the last one differ."""
    return np.asarray(np.count_nonzero(codes[:-1] != codes[-1], axis=2).T)


def by_number(codes: Codes) -> Codes:
    """Count in bin i the rows on which i + 1 models differ from the last one."""
    how_many = (codes[:-1] != codes[-1]).sum(axis=0)
    n_folds = len(codes) - 1
    return np.stack([np.bincount(row, minlength=n_folds + 1)[1:] for row in how_many])


@dataclass(frozen=True)
class KnownLabels:
    """Models against the labels that are known of some pool rows, for evaluation."""

    labels: NDArray[np.int32]
    """Class code of each pool row, by global row number; -1 where it is not known."""
    numbers: tuple[int, ...]
    """Split numbers whose errors are counted, one bin each."""
    variable: str
    """``half_test_errors`` or ``full_test_errors``."""
    first: int = 0
    """Number of the row that the first label belongs to."""
    n_classes: int = 0
    """Classes among which the models vote; 0 where each answers for itself."""

    @property
    def token(self) -> str:
        """Hash of the labels, since the counts depend on them."""
        return blake2b(self.labels.tobytes(), digest_size=12).hexdigest()

    @property
    def n_bins(self) -> int:
        """One bin a split, or one for their vote."""
        return 1 if self.n_classes else len(self.numbers)

    @property
    def n_known(self) -> int:
        """Rows of known label."""
        return int(np.sum(self.labels >= 0))

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is in every bin."""
        del rows
        return None

    def queries(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return every split of the list."""
        del rows, candidates
        return [np.array(number) for number in self.numbers]

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count the rows of known label whose prediction is another."""
        truth = self.labels[rows - self.first]
        if self.n_classes:
            codes = plurality(codes, self.n_classes)[np.newaxis]
        wrong = (codes != truth) & (truth >= 0)
        return np.asarray(np.sum(wrong, axis=2, dtype=np.int64).T)

    def evidence(
        self, counts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return errors, and how many labels are known."""
        del rows
        errors = counts if self.n_bins > 1 else counts[:, 0]
        return {names.TEST_ROWS: np.array(self.n_known), self.variable: errors}

    def of_rows(self, start: int, stop: int) -> "KnownLabels":
        """Return the comparison with the labels of some rows, so that less is sent."""
        return replace(self, labels=self.labels[start:stop], first=start)

    def without(self, is_left_out: NDArray[np.bool_]) -> "KnownLabels":
        """Return the comparison without the labels of rows that a pool leaves out."""
        labels = np.where(is_left_out, np.int32(UNKNOWN), self.labels)
        return replace(self, labels=labels)
