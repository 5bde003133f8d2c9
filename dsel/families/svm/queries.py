"""Which split answers for which candidate and row: `which` of `FittedGroup`."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dsel.families.arrays import Bools, Integers


@dataclass(frozen=True)
class Query:
    """One entry of `which`, without its repetitions in memory."""

    view: Integers
    """Split numbers, (n_candidates, n_rows); axes that repeat have stride 0."""

    @property
    def same_for_candidates(self) -> bool:
        """Whether all candidates ask alike."""
        return self.view.strides[0] == 0 or self.view.shape[0] == 1

    @property
    def same_for_rows(self) -> bool:
        """Whether all rows ask alike."""
        return self.view.strides[1] == 0 or self.view.shape[1] == 1

    def at(self, rows: Integers) -> "Query":
        """Return the query of some rows."""
        shape = (self.view.shape[0], len(rows))
        if self.same_for_rows:
            return Query(np.broadcast_to(self.view[:, :1], shape))
        if self.same_for_candidates:
            return Query(np.broadcast_to(self.view[0, rows], shape))
        return Query(self.view[:, rows])

    def rows_with(self, splits: Collection[int]) -> Bools:
        """Return which rows ask one of these splits for any candidate."""
        wanted = np.array(sorted(splits), dtype=np.int64)
        view = self.view[:1] if self.same_for_candidates else self.view
        if self.same_for_rows:
            some = bool(np.isin(view[:, 0], wanted).any())
            return np.full(self.view.shape[1], some)
        return np.asarray(np.isin(view, wanted).any(axis=0))

    @cached_property
    def splits(self) -> frozenset[int]:
        """The splits that are asked by any candidate and row."""
        rows = self.view[:, :1] if self.same_for_rows else self.view
        return frozenset(np.unique(rows[:1] if self.same_for_candidates else rows))

    @cached_property
    def rows_of(self) -> dict[int, Integers]:
        """Row numbers by the split that they ask, where all candidates ask alike."""
        order = np.argsort(self.view[0], kind="stable")
        splits, starts = np.unique(self.view[0][order], return_index=True)
        pieces = np.split(order, starts[1:])
        return {int(split): rows for split, rows in zip(splits, pieces, strict=True)}

    def asks(self, split: int, at: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Yield pieces of machines' candidates and rows that ask a split.

        Parameters
        ----------
        split
            Its number.
        at
            Place of each of the machines' candidates on the candidate axis.

        Yields
        ------
        chosen, rows
            Places among the machines' candidates, and row numbers; neither is empty.
        """
        if self.same_for_candidates:
            if self.view.size and split in self.rows_of:
                yield np.arange(len(at)), self.rows_of[split]
        elif self.same_for_rows:
            chosen = np.flatnonzero(self.view[at, 0] == split)
            if len(chosen):
                yield chosen, np.arange(self.view.shape[1])
        else:
            for place, row in enumerate(at):
                rows = np.flatnonzero(self.view[row] == split)
                if len(rows):
                    yield np.array([place]), rows


def query_of(chosen: Any, shape: tuple[int, int]) -> Query:
    """Return one entry of `which`, broadcast to (n_candidates, n_rows)."""
    return Query(np.broadcast_to(np.asarray(chosen, dtype=np.int64), shape))


def row_order(queries: Sequence[Query], n_rows: int) -> Integers:
    """Return an order of rows in which rows that ask one split stand together."""
    for query in queries:
        if not query.same_for_rows:
            return np.argsort(query.view[0], kind="stable")
    return np.arange(n_rows)


def slice_of(places: Integers) -> slice | Integers:
    """Return ascending places as a slice where they are contiguous: no copy."""
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places
