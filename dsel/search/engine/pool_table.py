"""Counts of models that are compared on the pool, slice by slice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.checks import show
from dsel.data.pool import PoolSlice
from dsel.search.design.comparisons import Comparison
from dsel.search.design.drawn_rows import DrawnRows
from dsel.search.engine.jobs import CountResult

Record = Mapping[str, object]
Records = Mapping[str, Record]
"""Records of a store, by key."""


def records_of(kind: str, records: Records) -> Iterator[tuple[list[str], Record]]:
    """Yield the records of one kind in the order of their keys, with a key's parts.

    Raises ValueError if a key is none of a run.
    """
    for key in sorted(records):
        first, *parts = key.split("/")
        if not any(parts[:1]):
            raise ValueError(f"no record has the key {show(key)}")
        if first == kind:
            yield parts, records[key]


@dataclass
class PoolTable:
    """Counts on the pool, by member; only the driver writes to it.

    The members of a search are its candidates, each with the models of all its splits.
    A pass of chosen models has one member: all of them.
    """

    slices: tuple[PoolSlice, ...]
    """Parts of the pool, one task each; empty without one."""
    comparisons: tuple[Comparison, ...]
    """Comparisons of a member's models."""
    keys: Sequence[str]
    """Key of each member in the store."""
    token_of: Callable[[int], str]
    """Function that returns the token of all present models of a member."""

    def __post_init__(self) -> None:
        n = len(self.keys)
        self.counted = np.zeros((n, len(self.slices)), bool)
        self.differences = [np.zeros((n, c.n_bins), np.int64) for c in self.comparisons]
        self.pool_rows = [np.zeros_like(counts) for counts in self.differences]
        self.seconds = np.zeros(n)
        # Rows for queries; only a pass of chosen models draws some.
        self.drawn = DrawnRows()
        self.slice_number = {(s.start, s.stop): i for i, s in enumerate(self.slices)}

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether each member is counted on the whole pool, (n_members,)."""
        return np.asarray(self.counted.all(axis=1))

    def add_slice(self, member: int, result: CountResult) -> bool:
        """Add a member's counts of a slice, once; return False if models differ."""
        at = self.slice_number[result.start, result.stop]
        # A slice may come twice: from a task that was thought dead, and from its retry.
        if self.counted[member, at]:
            return True
        # Fits may have been repeated while the slice was counted.
        if result.token != self.token_of(member):
            return False
        for place, comparison in enumerate(self.comparisons):
            variable = comparison.variable
            self.differences[place][member] += result.counts[variable]
            self.pool_rows[place][member] += result.rows[variable]
            self.drawn = self.drawn.merge(result.drawn, comparison.n_queries)
        self.counted[member, at] = True
        self.seconds[member] += result.seconds
        return True

    def forget(self, member: int) -> None:
        """Drop the counts of a member's earlier models."""
        self.counted[member] = False
        self.seconds[member] = 0.0
        for total in (*self.differences, *self.pool_rows):
            total[member] = 0
        self.drawn = DrawnRows()

    def key_of(self, member: int, result: CountResult) -> str:
        """Return the key of a member's counts of a slice in the store."""
        rows = f"{result.start}-{result.stop}"
        return f"slice/{rows}/{self.keys[member]}/{result.token}"

    def replay(self, records: Records) -> None:
        """Write the slices that an earlier run has counted into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        members = {key: member for member, key in enumerate(self.keys)}
        # A store may be of a version that compared something else; then it is counted
        # again.
        variables = {comparison.variable for comparison in self.comparisons}
        for (_, key, *_), record in records_of("slice", records):
            # A store may hold slices of a search and of chosen models.
            if key not in members:
                continue
            result = CountResult.from_record(record)
            # Another version may have made other slices; then these are counted again.
            is_there = (result.start, result.stop) in self.slice_number
            if is_there and variables <= result.rows.keys():
                self.add_slice(members[key], result)

    def by_name(self, shown: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """Return the counts by the cube's variables; -1 for members not `shown`."""
        named: dict[str, NDArray[Any]] = {}
        is_shown = shown[:, np.newaxis]
        for comparison, differences, rows in zip(
            self.comparisons, self.differences, self.pool_rows, strict=True
        ):
            counts = np.where(is_shown, differences, names.UNCOUNTED)
            if comparison.variable == names.BEST_FOLD_DISAGREEMENTS:
                named[comparison.variable] = counts[:, 0]
                continue
            named[comparison.variable] = counts
            named[names.POOL_ROWS] = pool_rows = np.where(is_shown, rows, 0)
            fraction = pool_rows / np.maximum(1, pool_rows.sum(axis=1, keepdims=True))
            spent = fraction * self.seconds[:, np.newaxis]
            named[names.SCORE_SECONDS] = np.where(is_shown, spent, np.nan)
        return named
