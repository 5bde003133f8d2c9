"""The parts of a pool: blocks, their origin, their types, the row filter, some rows."""

import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pandas as pd
from scipy import sparse

from dsel.arrays import ArrayLike, Bools, Features, Floats, Integers
from dsel.data.frames import FrameSchema, encode_rows
from dsel.data.row_random import row_random
from dsel.errors import PoolChangedError

if TYPE_CHECKING:
    from dsel.data.pool import Block, Pool


POOL: Final = "`pool`"
"""Name in messages of rows that are in no file."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows as a Dask graph, block by block."""

    graph: Mapping[Any, Any]
    """Tasks of all blocks: arrays, CSR, or data frames of pandas. It is not optimized,
    because futures and rows in memory could not be found in fused tasks."""
    task_keys: tuple[Any, ...]
    """Keys of the tasks of blocks; none of the blocks is empty."""
    boundaries: Integers
    """Global row numbers at which blocks begin, and the number of stored rows."""
    held: tuple[Any, ...] = ()
    """Keys of the graph whose values are on the cluster; a task gets these in addition
    to the graph."""
    sent: dict[str, Any] = field(default_factory=dict)
    """Futures of rows that were sent, by client and key. All pools derived from one
    pool share this dict, so that rows are sent once."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"sent": {}}  # futures belong to the driver

    def map(self, function: Callable[[int, Any], Any]) -> "Blocks":
        """Return blocks that a function makes of the first row number and the rows."""
        name, starts = f"blocks-{uuid.uuid4().hex}", self.boundaries[:-1].tolist()
        tasks = {
            (name, block_number): (partial(function, start), key)
            for block_number, (key, start) in enumerate(
                zip(self.task_keys, starts, strict=True)
            )
        }
        return replace(self, graph={**self.graph, **tasks}, task_keys=tuple(tasks))


LET_NOTHING_WRITE = (
    "Let nothing write there during a run; open the pool again and start anew, with an "
    "`out` of its own."
)


@dataclass(frozen=True)
class Origin:
    """Identity and location of rows."""

    fingerprint: str = ""
    """Identity of the rows: the graph of Dask arrays, the stamps of files, "" for rows
    in memory."""
    is_content: bool = True
    """Whether the fingerprint changes with the content."""
    location: str = POOL
    """Name of the rows in messages, with their file if there is one."""
    other_records: bool = False
    """Whether the user declared that no row is the record of a labeled row."""
    stamps: Mapping[str, Any] = field(default_factory=dict)
    """Size and time of each file, by name, when the pool was opened."""
    read_stamps: Callable[[], Mapping[str, Any]] | None = None
    """Function that returns the current stamps of the files; None without files."""
    index: pd.Index | None = field(default=None, compare=False)
    """Index of a pandas frame that is not 0, 1, ..., by which its rows are known; None
    of all other rows."""
    read_columns: "Callable[[tuple[str, ...], int | None], Pool] | None" = None
    """Function that opens only some columns, where this saves reading the others; its
    second argument is the most rows of a block, or None."""

    def __getstate__(self) -> dict[str, Any]:
        # Functions that read files may contain credentials, and only the driver
        # compares stamps, so they are not sent to workers.
        only_here: dict[str, Any] = {
            "read_columns": None,
            "index": None,
            "stamps": {},
            "read_stamps": None,
        }
        return vars(self) | only_here

    def check_for_changes(self) -> None:
        """Raise PoolChangedError where a file was written since the pool was opened."""
        if self.read_stamps is None:
            return
        before, now = self.stamps, self.read_stamps()
        if before == now:
            return
        name = min(k for k in {*before, *now} if before.get(k) != now.get(k))
        file = f"its file {name!r}" if name else "it"
        what = f"{file} is gone" if name not in now else f"{file} was written"
        raise PoolChangedError(
            f"{self.location} changed after it was opened: {what}, and rows may have "
            f"been read both before and after. {LET_NOTHING_WRITE}"
        )


@dataclass(frozen=True)
class StoredSchema:
    """Columns and types of rows as they are stored."""

    dtype: np.dtype[Any]
    """Type of all values; object for data frames that are not all numbers."""
    n_columns: int
    row_nbytes: int
    """Bytes of one row in memory, on average, at least 1."""
    columns: tuple[str, ...] | None = None
    """Names, None where there are none."""
    frames: FrameSchema | None = None
    """Schema of data frames; None for arrays."""
    is_sparse: bool = False
    has_order: bool = True
    """Whether the order of columns is meaningful; zarr groups have none."""


@dataclass(frozen=True, eq=False)
class RowFilter:
    """A filter of rows by their numbers, for which no row has to be read."""

    excluded: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    """Ascending row numbers that are left out."""
    word_ranges: tuple[tuple[float, float, int, int], ...] = ()
    """Arguments of `subset`."""

    @property
    def keeps_all(self) -> bool:
        """Whether no row is left out."""
        return not self.word_ranges and not len(self.excluded)

    def excluding(self, rows: ArrayLike) -> "RowFilter":
        """Return the filter with more rows left out."""
        # Sorted and distinct, because masks of blocks are found by bisection.
        new = np.asarray(rows, dtype=np.int64)
        return RowFilter(np.union1d(self.excluded, new), self.word_ranges)

    def subset(self, lower: float, upper: float, seed: int, stream: int) -> "RowFilter":
        """Return the filter that keeps random numbers in ``[lower, upper)``, too."""
        return RowFilter(
            self.excluded, (*self.word_ranges, (lower, upper, seed, stream))
        )

    def between(self, start: int, stop: int) -> "RowFilter":
        """Return the filter about the rows ``start`` to ``stop - 1``."""
        ends = np.searchsorted(self.excluded, [start, stop])
        return RowFilter(self.excluded[slice(*ends)], self.word_ranges)

    def mask(self, start: int, stop: int) -> Bools:
        """Return a mask of the rows ``start`` to ``stop - 1`` that pass the filter."""
        remains = np.ones(stop - start, dtype=np.bool_)
        first, last = np.searchsorted(self.excluded, [start, stop])
        remains[self.excluded[first:last] - start] = False
        for lower, upper, seed, stream in self.word_ranges:
            random_words = row_random(seed, stream, start, stop)
            # The words are compared as integers, since floats near a limit would be
            # rounded.
            least, most = math.ceil(lower * 2**64), math.ceil(upper * 2**64)
            remains &= (random_words >= least) & (random_words < most)
        return remains


MOST_ROWS: Final = 128
"""Rows that are compared: two for each of 64 slices, since a resumed run reads only
some. Each costs a pass some microseconds."""
TOLERANCE: Final = 1e-4
"""Part of a column's largest value by which equal rows may differ: workers may round
products of float32 in other ways."""


@dataclass(frozen=True)
class SampledRows:
    """Rows as one pass over a pool has read them."""

    row_numbers: Integers
    """Global row numbers, ascending."""
    X: Any
    """The rows: an array, CSR, or a `Frame`."""

    @classmethod
    def of(cls, pool: "Pool", row_numbers: Integers, X: Features) -> Self | None:
        """Return some of these rows of a pool; None where stamps tell of a change."""
        if pool.origin.is_content or not len(row_numbers):
            return None
        places = np.linspace(0, len(row_numbers) - 1, MOST_ROWS).astype(np.int64)
        places = np.unique(places)
        return cls(row_numbers[places], X[places])

    @property
    def numbers(self) -> Floats:
        """The rows as numbers, (n_rows, n_columns)."""
        return _dense(self.X)

    def check(self, block: "Block") -> None:
        """Raise PoolChangedError where a block has others of these rows."""
        ends = int(block.row_numbers[0]), int(block.row_numbers[-1]) + 1
        between = slice(*np.searchsorted(self.row_numbers, ends))
        row_numbers = self.row_numbers[between]
        if not len(row_numbers):
            return
        before = _dense(self.X[between])
        now = _dense(block.X[np.searchsorted(block.row_numbers, row_numbers)])
        spread = np.nanmax(np.abs(before), axis=0, initial=0.0)
        is_same = np.isclose(now, before, 0.0, TOLERANCE * spread, equal_nan=True)
        is_other = ~is_same.all(axis=1)
        if is_other.any():
            raise PoolChangedError(
                f"`pool` gives other rows each time that it is computed, such as row "
                f"{row_numbers[np.argmax(is_other)]}: its counts would be about rows "
                f"that are gone. Write it to a file by write_pool and search with "
                f"that, or seed what draws the rows."
            )


def _dense(X: Features) -> Floats:
    rows = encode_rows(X)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return np.asarray(rows, np.float64)
