"""Which models answer a row of the pool, and where their disagreements are counted.

A comparison names the splits whose models answer each row (its *queries*), and the bin
of the cube in which a disagreement is counted. Both need two answers a row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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


class Comparison:
    """Pairs of answers to every pool row, and the bins of their differences."""

    variable: str
    """Name of the cube's variable that the counts become."""
    n_bins: int
    """Bins of a candidate; unless a comparison says otherwise, one for each pair."""

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return split numbers, as `FittedGroup.predict` takes them, pair by pair."""
        raise NotImplementedError

    def tally(self, codes: Codes, rows: Codes) -> Codes:
        """Count rows whose answers differ, shape (n_candidates, n_bins)."""
        del rows
        return np.asarray(np.count_nonzero(codes[0::2] != codes[1::2], axis=2).T)

    def rows_by_bin(self, rows: Codes) -> Codes:
        """Count the rows that belong to each bin, shape (n_bins,)."""
        return np.full(self.n_bins, len(rows))


@dataclass(frozen=True)
class RandomFold(Comparison):
    """The full model against a fold's model drawn for each row: f against f_rand."""

    seed: int
    n_bins: int
    """Folds, by which is counted; split k is the full one."""
    variable: str = names.DISAGREEMENTS

    def drawn(self, rows: Codes) -> Codes:
        """Return the fold that is drawn for each row: a function of its number."""
        first, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        if stop - first == len(rows):
            return _drawn_folds(self.seed, self.n_bins, first, stop)
        words = row_random_at(self.seed, RANDOM_FOLD_STREAM, rows)
        return uniform_integers(words, self.n_bins)

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return the full split, and the fold that is drawn for each row."""
        del candidates  # the same draws for all
        return [np.array(self.n_bins), self.drawn(rows)]

    def tally(self, codes: Codes, rows: Codes) -> Codes:
        """Count by the drawn fold."""
        drawn, n = self.drawn(rows), self.n_bins
        differs = codes[0] != codes[1]
        return np.stack([np.bincount(drawn[each], minlength=n) for each in differs])

    def rows_by_bin(self, rows: Codes) -> Codes:
        """Count the rows that each fold is drawn for."""
        return np.bincount(self.drawn(rows), minlength=self.n_bins)


@lru_cache(maxsize=8)
def _drawn_folds(seed: int, n_folds: int, first: int, stop: int) -> Codes:
    """Draw for consecutive rows; cached, since a block needs them several times."""
    drawn = uniform_integers(row_random(seed, RANDOM_FOLD_STREAM, first, stop), n_folds)
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True)
class BestFold(Comparison):
    """The full model against that of the fold with the smallest error rate."""

    n_folds: int
    """Folds; split k is the full one."""
    folds: Codes
    """Fold of each candidate of the plan, shape (n_candidates,); -1 not known yet."""
    variable: str = names.BEST_FOLD_DISAGREEMENTS
    n_bins: int = 1

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return the full split, and the best fold of each candidate."""
        del rows
        return [np.array(self.n_folds), self.folds[np.asarray(candidates), np.newaxis]]


@dataclass(frozen=True)
class Halves(Comparison):
    """The two models of each random halving, splits 2r and 2r + 1."""

    n_bins: int
    """Halvings, by which is counted."""
    variable: str = names.DISAGREEMENTS

    def queries(self, rows: Codes, candidates: Sequence[int]) -> list[Codes]:
        """Return all halves."""
        del rows, candidates
        return [np.array(number) for number in range(2 * self.n_bins)]


def tallies(
    comparisons: Sequence[Comparison],
    codes_of: Callable[[list[Codes]], Codes],
    rows: Codes,
    members: Sequence[int],
) -> list[Codes]:
    """Count every comparison; each distinct query is answered once.

    `codes_of` takes a list of queries and returns codes, (n_queries, n_candidates,
    n_rows).
    """
    asked = [comparison.queries(rows, members) for comparison in comparisons]
    queries = {_name(each): each for mine in asked for each in mine}
    places = {name: place for place, name in enumerate(queries)}
    codes = codes_of(list(queries.values()))
    return [
        comparison.tally(codes[[places[_name(each)] for each in mine]], rows)
        for comparison, mine in zip(comparisons, asked, strict=True)
    ]


def _name(query: Codes) -> Any:
    """Return the number of a split that all rows ask for; other queries are unique."""
    return query.item() if query.ndim == 0 else f"query {id(query)}"
