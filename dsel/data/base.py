"""The seam behind a pool: where chunks of rows are stored and how a task reads them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Span:
    """Consecutive rows of a pool that one task reads."""

    start: int
    """Global number of the first row."""
    stop: int
    """Global number after the last row."""
    n_rows: int
    """Rows that the pool's filters leave in it."""


@dataclass(frozen=True)
class Block:
    """Rows in memory."""

    rows: NDArray[np.int64]
    """Global row numbers, ascending."""
    X: Any
    """The rows: a C-contiguous 2-d array in the pool's dtype, or CSR."""


@dataclass(frozen=True, eq=False)
class Layout:
    """What a storage holds, known without reading rows."""

    n_rows: int
    """Rows stored."""
    n_columns: int
    """Features of a row."""
    dtype: np.dtype[Any]
    """Numeric type of every block."""
    columns: tuple[str, ...] | None
    """Names of the features, where there are any."""
    is_sparse: bool
    """Whether blocks are CSR."""
    nbytes: int
    """Bytes of all rows in memory."""
    boundaries: NDArray[np.int64]
    """Row numbers at which chunks begin, and `n_rows`: ascending, no repeats."""


class Storage(Protocol):
    """Rows of a pool in chunks. Members are immutable and pickle.

    A member describes where rows are; nothing is read before a task asks for it.
    """

    @property
    def layout(self) -> Layout:
        """Shape, type and chunks."""

    @property
    def token(self) -> str:
        """Text that changes with the content as it was when first asked for.

        Cheap beside reading the rows.
        """

    @property
    def tells_content(self) -> bool:
        """Whether the token changes with the content; else only reading can tell."""

    def reopened(self) -> Self:
        """Return the rows as they are now: nothing that was known of them is kept.

        Raises
        ------
        ValueError
            Where they have another shape or other chunks than when they were opened.
        """

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return what a task needs to read rows between two boundaries.

        Returns
        -------
        starts, payloads
            Row number at which each piece begins, and per piece a `Piece`, an array
            (dense or sparse), or, for Dask arrays, a future on `client` or a delayed
            object that becomes an array.
        """


@runtime_checkable
class Piece(Protocol):
    """Rows that the task itself fetches; small to pickle."""

    def blocks(self, block_rows: int) -> Iterator[tuple[int, Any]]:
        """Yield (first row number, rows), at most `block_rows` each, in order."""


def dense_layout(
    array: Any, columns: tuple[str, ...] | None, boundaries: NDArray[np.int64]
) -> Layout:
    """Return the layout of anything with the attributes of a dense 2-d array."""
    n_rows, n_columns = map(int, array.shape)
    dtype = np.dtype(array.dtype)
    return Layout(
        n_rows=n_rows,
        n_columns=n_columns,
        dtype=dtype,
        columns=columns,
        is_sparse=False,
        nbytes=n_rows * n_columns * dtype.itemsize,
        boundaries=boundaries,
    )


def virtual_boundaries(n_rows: int, row_nbytes: int) -> NDArray[np.int64]:
    """Return boundaries for rows that are not stored in chunks: every 256 KiB."""
    step = max(1, 2**18 // max(row_nbytes, 1))
    return regular_boundaries(n_rows, step)


def regular_boundaries(n_rows: int, chunk_rows: int) -> NDArray[np.int64]:
    """Return the boundaries of chunks of equal length, the last one shorter."""
    starts = np.arange(0, n_rows, chunk_rows, dtype=np.int64)
    return np.append(starts, np.int64(n_rows))


def slices(start: int, X: Any, block_rows: int) -> Iterator[tuple[int, Any]]:
    """Yield an array in slices of at most `block_rows` rows."""
    for first in range(0, X.shape[0], block_rows):
        yield start + first, X[first : first + block_rows]
