"""Which models answer a row of the pool, and where their disagreements are counted.

A comparison names the splits whose models answer each row (its *queries*), and the bin
of the cube in which a disagreement is counted. Both need two answers a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
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

Codes = NDArray[np.int64]


class Comparison(Protocol):
    """Answers to every pool row, and the bins in which differences are counted."""

    @property
    def variable(self) -> str:
        """Name of the cube's variable that the counts become."""

    @property
    def n_bins(self) -> int:
        """Bins a candidate has."""

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return split numbers, as `FittedGroup.predict` takes them."""

    def tally(self, codes: Codes, rows: Codes) -> Codes:
        """Count rows whose answers differ, shape (n_candidates, n_bins)."""

    def rows_by_bin(self, rows: Codes) -> Codes:
        """Count the rows that belong to each bin, shape (n_bins,)."""


@dataclass(frozen=True)
class RandomFold:
    """The full model against a fold's model drawn for each row: f against f_rand."""

    seed: int
    n_folds: int
    """Folds; split k is the full one."""
    variable: str = names.DISAGREEMENTS
    """Counted by the fold that was drawn."""

    @property
    def n_bins(self) -> int:
        """One bin a fold."""
        return self.n_folds

    def drawn(self, rows: Codes) -> Codes:
        """Return the fold that is drawn for each row: a function of its number."""
        first, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        if stop - first == len(rows):
            return _drawn_folds(self.seed, self.n_folds, first, stop)
        words = row_random_at(self.seed, RANDOM_FOLD_STREAM, rows)
        return uniform_integers(words, self.n_folds)

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return the full split, and the fold that is drawn for each row."""
        del candidates  # the same draws for all
        return [np.array(self.n_folds), self.drawn(rows)]

    def tally(self, codes: Codes, rows: Codes) -> Codes:
        """Count by the drawn fold."""
        drawn, n = self.drawn(rows), self.n_folds
        differs = codes[0] != codes[1]
        return np.stack([np.bincount(drawn[each], minlength=n) for each in differs])

    def rows_by_bin(self, rows: Codes) -> Codes:
        """Count the rows that each fold is drawn for."""
        return np.bincount(self.drawn(rows), minlength=self.n_folds)


@lru_cache(maxsize=8)
def _drawn_folds(seed: int, n_folds: int, first: int, stop: int) -> Codes:
    """Draw for consecutive rows; cached, since a block needs them several times."""
    drawn = uniform_integers(row_random(seed, RANDOM_FOLD_STREAM, first, stop), n_folds)
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True)
class BestFold:
    """The full model against that of the fold with the smallest error rate."""

    n_folds: int
    """Folds; split k is the full one."""
    folds: Codes
    """Fold of each candidate of the plan, shape (n_candidates,); -1 not known yet."""
    variable: str = names.BEST_FOLD_DISAGREEMENTS
    """Counted on the whole pool."""
    n_bins: int = 1

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return the full split, and the best fold of each candidate."""
        del rows
        return [np.array(self.n_folds), self.folds[np.asarray(candidates), np.newaxis]]

    def tally(self, codes: Codes, rows: Codes) -> Codes:
        """Count all differing rows."""
        del rows
        return np.asarray(np.count_nonzero(codes[:1] != codes[1:2], axis=2).T)

    def rows_by_bin(self, rows: Codes) -> Codes:
        """Every row is compared."""
        return np.array([len(rows)])


@dataclass(frozen=True)
class Halves:
    """The two models of each random halving, splits 2r and 2r + 1."""

    n_repeats: int
    variable: str = names.DISAGREEMENTS
    """Counted by halving."""

    @property
    def n_bins(self) -> int:
        """One bin a halving."""
        return self.n_repeats

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return all halves."""
        del rows, candidates
        return [np.array(number) for number in range(2 * self.n_repeats)]

    def tally(self, codes: Codes, rows: Codes) -> Codes:
        """Count by halving the rows on which its two models differ."""
        del rows
        return np.asarray(np.count_nonzero(codes[0::2] != codes[1::2], axis=2).T)

    def rows_by_bin(self, rows: Codes) -> Codes:
        """Every row is compared by every halving."""
        return np.full(self.n_repeats, len(rows))


def tallies(
    comparisons: Sequence[Comparison],
    codes_of: Any,
    rows: Codes,
    members: Sequence[int],
) -> list[Codes]:
    """Count every comparison; each distinct query is answered once.

    `codes_of` takes a list of queries and returns codes, (n_queries, n_candidates,
    n_rows).
    """
    queries: list[Codes] = []
    places: list[list[int]] = []
    for comparison in comparisons:
        places.append([])
        for query in comparison.queries(rows, members):
            known = (i for i, each in enumerate(queries) if _same(each, query))
            found = next(known, len(queries))
            if found == len(queries):
                queries.append(query)
            places[-1].append(found)
    codes = codes_of(queries)
    return [
        comparison.tally(codes[place], rows)
        for comparison, place in zip(comparisons, places, strict=True)
    ]


def _same(one: Codes, other: Codes) -> bool:
    return one is other or (one.shape == other.shape and np.array_equal(one, other))
