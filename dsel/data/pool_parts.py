"""What a pool is made of: blocks, their origin, their types, and which rows stay."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.data.frames import FrameSchema
from dsel.data.row_random import row_random
from dsel.errors import PoolChangedError

if TYPE_CHECKING:
    from dsel.data.pool import Pool

POOL: Final = "`pool`"
"""How messages call rows that are in no file."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows as a Dask graph, block by block."""

    graph: Mapping[Any, Any]
    """Tasks of all blocks: arrays, CSR, or data frames of pandas. Not optimized: what
    is fused with a task can no longer be told to be a future or rows in memory."""
    keys: tuple[Any, ...]
    """Of the blocks, none of which is empty."""
    boundaries: NDArray[np.int64]
    """Global row numbers at which blocks begin, and the number of stored rows."""
    held: tuple[Any, ...] = ()
    """Keys of what a cluster holds for the graph: a task gets it next to this."""
    sent: dict[str, Any] = field(default_factory=dict)
    """By client and key the futures of rows that were sent. One dict for all that is
    made of a pool: its rows are sent once."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"sent": {}}  # futures belong to the driver


@dataclass(frozen=True)
class Origin:
    """Where rows come from, and what tells them from other rows."""

    fingerprint: str = ""
    """Of Dask's rows how they are made, of files their stamps, "" of rows in memory."""
    is_content: bool = True
    """Whether the fingerprint changes with the content."""
    location: str = POOL
    """How messages call the rows: with their file, where there is one."""
    other_records: bool = False
    """Whether it was declared that no row is the record of a labeled row."""
    stamps: Mapping[str, Any] = field(default_factory=dict)
    """By name of a file its size and time when the pool was opened."""
    read_stamps: Callable[[], Mapping[str, Any]] | None = None
    """Returns the stamps of its files as they are now; None where there are none."""
    read_columns: "Callable[[tuple[str, ...]], Pool] | None" = None
    """Opens some columns anew, where that saves reading the others."""

    def __getstate__(self) -> dict[str, Any]:
        # What reads files again may hold secrets; only the driver compares stamps.
        only_here: dict[str, Any] = {
            "read_columns": None,
            "stamps": {},
            "read_stamps": None,
        }
        return vars(self) | only_here

    def check_unchanged(self) -> None:
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
            f"been read both before and after. Let nothing write there during a run; "
            f"open the pool again and start anew, with an `out` of its own."
        )


@dataclass(frozen=True)
class StoredSchema:
    """Columns and types of rows as they are stored."""

    dtype: np.dtype[Any]
    """Of all values; of data frames that are not all numbers, Python objects."""
    n_columns: int
    row_nbytes: int
    """Bytes of one row in memory, on average, at least 1."""
    columns: tuple[str, ...] | None = None
    """Names, None where there are none."""
    frames: FrameSchema | None = None
    """Of data frames that were given; None of arrays."""
    is_sparse: bool = False
    has_order: bool = True
    """Whether columns stand in an order that somebody chose; zarr groups have none."""


@dataclass(frozen=True, eq=False)
class RowFilter:
    """Which rows stay; it depends on their numbers alone, and so reads nothing."""

    excluded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Ascending row numbers that are left out."""
    shares: tuple[tuple[float, float, int, int], ...] = ()
    """Arguments of `part`."""

    @property
    def keeps_all(self) -> bool:
        """Whether no row is left out."""
        return not self.shares and not len(self.excluded)

    def excluding(self, rows: ArrayLike) -> "RowFilter":
        """Return it with more rows left out."""
        # Ascending and each once: masks of blocks are found by bisection.
        new = np.asarray(rows, dtype=np.int64)
        return RowFilter(np.union1d(self.excluded, new), self.shares)

    def part(self, lower: float, upper: float, seed: int, stream: int) -> "RowFilter":
        """Return it with rows whose random number lies in ``[lower, upper)``."""
        return RowFilter(self.excluded, (*self.shares, (lower, upper, seed, stream)))

    def between(self, start: int, stop: int) -> "RowFilter":
        """Return what of it is about the rows ``start`` to ``stop - 1``."""
        ends = np.searchsorted(self.excluded, [start, stop])
        return RowFilter(self.excluded[slice(*ends)], self.shares)

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return a mask of the rows ``start`` to ``stop - 1`` that stay."""
        remains = np.ones(stop - start, dtype=np.bool_)
        first, last = np.searchsorted(self.excluded, [start, stop])
        remains[self.excluded[first:last] - start] = False
        for lower, upper, seed, stream in self.shares:
            drawn = row_random(seed, stream, start, stop)
            # Compared as integers: floats near a limit would be rounded.
            least, most = math.ceil(lower * 2**64), math.ceil(upper * 2**64)
            remains &= (drawn >= least) & (drawn < most)
        return remains
