"""Counts of models that are compared on the pool, slice by slice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel.checks import show
from dsel.data.pool import PoolSlice
from dsel.results.records import from_record
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
    """Counts on the pool, by model set; only the driver writes to it.

    The models of a set are compared with each other. All chosen models are one set; in
    an exhaustive search each candidate has one, with the models of all its splits.
    """

    slices: tuple[PoolSlice, ...]
    """Parts of the pool, one task each; empty without one."""
    comparisons: tuple[Comparison, ...]
    """Comparisons of the models of a set."""
    keys: Sequence[str]
    """Key of each model set in the store."""
    token_of: Callable[[int], str]
    """Function that returns the token of all present models of a set."""

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
        """Whether each set is counted on the whole pool, (n_model_sets,)."""
        return np.asarray(self.counted.all(axis=1))

    def add_slice(self, model_set: int, result: CountResult) -> bool:
        """Add the counts of a slice, once; return False if they are of other models."""
        at = self.slice_number[result.start, result.stop]
        # A slice may come twice: from a task that was thought dead, and from its retry.
        if self.counted[model_set, at]:
            return True
        # Fits may have been repeated while the slice was counted.
        if result.token != self.token_of(model_set):
            return False
        for place, comparison in enumerate(self.comparisons):
            variable = comparison.variable
            self.differences[place][model_set] += result.counts[variable]
            self.pool_rows[place][model_set] += result.rows[variable]
            self.drawn = self.drawn.merge(result.drawn, comparison.n_queries)
        self.counted[model_set, at] = True
        self.seconds[model_set] += result.seconds
        return True

    def forget(self, model_set: int) -> None:
        """Drop the counts of a set's earlier models."""
        self.counted[model_set] = False
        self.seconds[model_set] = 0.0
        for total in (*self.differences, *self.pool_rows):
            total[model_set] = 0
        self.drawn = DrawnRows()

    def key_of(self, model_set: int, result: CountResult) -> str:
        """Return the key of a set's counts of a slice in the store."""
        rows = f"{result.start}-{result.stop}"
        return f"slice/{rows}/{self.keys[model_set]}/{result.token}"

    def replay(self, records: Records) -> None:
        """Write the slices that an earlier run has counted into the table.

        Raises TypeError or ValueError if a record was not written by a run.
        """
        numbers = {key: number for number, key in enumerate(self.keys)}
        # A store may be of a version that compared something else; then it is counted
        # again.
        variables = {comparison.variable for comparison in self.comparisons}
        for (_, key, *_), record in records_of("slice", records):
            # A store may hold slices of a search and of chosen models.
            if key not in numbers:
                continue
            result = from_record(CountResult, record)
            # Another version may have made other slices; then these are counted again.
            is_there = (result.start, result.stop) in self.slice_number
            if is_there and variables <= result.rows.keys():
                self.add_slice(numbers[key], result)
