"""Some rows of a pool, by which a later pass sees that it reads other rows.

Files have stamps that tell whether they were written. A Dask graph has only its keys,
and may give other rows each time that it is computed, if it draws without a seed, or
reads a clock or a table that grows.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.arrays import Features, Floats
from dsel.data.frames import encode_rows
from dsel.data.pool import Block, Pool
from dsel.errors import PoolChangedError

MOST_ROWS: Final = 32
"""Rows that are compared: each costs a pass some microseconds."""
TOLERANCE: Final = 1e-4
"""Part of a column's largest value by which equal rows may differ: workers may round
products of float32 in other ways."""


@dataclass(frozen=True)
class SampledRows:
    """Rows as one pass over a pool has read them."""

    numbers: NDArray[np.int64]
    """Global row numbers, ascending."""
    X: Any
    """The rows: an array, CSR, or a `Frame`."""

    @classmethod
    def of(cls, pool: Pool, numbers: NDArray[np.int64], X: Features) -> Self | None:
        """Return some of these rows of a pool; None where stamps tell of a change."""
        if pool.origin.is_content or not len(numbers):
            return None
        places = np.linspace(0, len(numbers) - 1, MOST_ROWS).astype(np.int64)
        places = np.unique(places)
        return cls(numbers[places], X[places])

    def check(self, block: Block) -> None:
        """Raise PoolChangedError where a block has others of these rows."""
        ends = int(block.row_numbers[0]), int(block.row_numbers[-1]) + 1
        part = slice(*np.searchsorted(self.numbers, ends))
        numbers = self.numbers[part]
        if not len(numbers):
            return
        before = _dense(self.X[part])
        now = _dense(block.X[np.searchsorted(block.row_numbers, numbers)])
        spread = np.nanmax(np.abs(before), axis=0, initial=0.0)
        is_same = np.isclose(now, before, 0.0, TOLERANCE * spread, equal_nan=True)
        is_other = ~is_same.all(axis=1)
        if is_other.any():
            raise PoolChangedError(
                f"`pool` gives other rows each time that it is computed, such as row "
                f"{numbers[np.argmax(is_other)]}: its counts would be about rows that "
                f"are gone. Write it to a file by write_pool and search with that, or "
                f"seed what draws the rows."
            )


def _dense(X: Features) -> Floats:
    rows = encode_rows(X)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return np.asarray(rows, np.float64)
