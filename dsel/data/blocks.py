"""Reading the rows of a span inside a task, block by block."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.base import Block, Piece, slices
from dsel.data.filters import RowFilter, joint_mask


@dataclass(frozen=True)
class SpanHeader:
    """What the pieces of a span have in common: first entry of its sources."""

    starts: tuple[int, ...]
    """Row number at which each piece begins."""
    dtype: np.dtype[Any]
    """Numeric type of every block."""
    is_sparse: bool
    """Whether blocks are CSR."""
    columns: tuple[str, ...] | None
    """Names of the features, for messages."""
    filters: tuple[RowFilter, ...]
    """Rules about the row numbers of this span."""


def read_blocks(
    sources: Sequence[Any], block_rows: int, *, allow_nan: bool = False
) -> Iterator[Block]:
    """Yield the rows of a span in order, as few at a time as asked.

    Runs inside a task; no client is needed. A chunk is read once and sliced.

    Parameters
    ----------
    sources
        What `Pool.sources` returned; futures in it resolved to arrays.
    block_rows
        Largest number of rows of a block, >= 1.
    allow_nan
        Whether missing values (NaN) may pass; infinite ones never do.

    Yields
    ------
    Block
        Rows that the pool's filters leave, never an empty block.

    Raises
    ------
    ValueError
        Where a value is not finite; the message names row and column.
    """
    header, *payloads = sources
    for start, payload in zip(header.starts, payloads, strict=True):
        for first, raw in _raw_blocks(payload, start, block_rows):
            block = _filtered(header, first, raw)
            if len(block.rows):
                _check_finite(block, header.columns, allow_nan)
                yield block


def _raw_blocks(payload: Any, start: int, block_rows: int) -> Iterator[tuple[int, Any]]:
    if is_dask_collection(payload):
        payload = payload.compute(scheduler="synchronous")
    if isinstance(payload, Piece):
        return payload.blocks(block_rows)
    return slices(start, payload, block_rows)


def _filtered(header: SpanHeader, first: int, raw: Any) -> Block:
    stop = first + raw.shape[0]
    rows = np.arange(first, stop, dtype=np.int64)
    if header.filters:
        kept = np.flatnonzero(joint_mask(header.filters, first, stop))
        rows, raw = rows[kept], raw[kept]
    if header.is_sparse:
        return Block(rows, sparse.csr_matrix(raw, dtype=header.dtype))
    # One layout for all chunkings: BLAS may round other layouts differently.
    return Block(rows, np.ascontiguousarray(raw, dtype=header.dtype))


def _check_finite(
    block: Block, columns: tuple[str, ...] | None, allow_nan: bool
) -> None:
    values = block.X.data if sparse.issparse(block.X) else block.X
    if all_allowed(values, allow_nan):
        return
    row, column = first_forbidden(block.X, allow_nan)
    name = "" if columns is None else f" ({columns[column]!r})"
    raise ValueError(
        f"`pool` must hold finite numbers, but row {block.rows[row]}, column "
        f"{column}{name} is {block.X[row, column]}; correct or drop that row, or put "
        "an imputer in front of the estimator if values are missing."
    )


def all_allowed(values: NDArray[Any], allow_nan: bool) -> bool:
    """Tell whether no value is infinite, nor NaN unless allowed."""
    if values.dtype.kind != "f":
        return True
    with np.errstate(all="ignore"):
        # A sum of squares is several times faster than a look at each value, and is
        # finite only if they all are; it may overflow, so a bad one proves nothing.
        flat = values.reshape(-1)
        if np.isfinite(np.dot(flat, flat)):
            return True
    return not _forbidden(values, allow_nan).any()


def first_forbidden(X: Any, allow_nan: bool) -> tuple[int, int]:
    """Return row and column of the first value that `all_allowed` objects to."""
    if sparse.issparse(X):
        entries = sparse.coo_matrix(X)
        bad = np.flatnonzero(_forbidden(entries.data, allow_nan))
        row, column = min(zip(entries.row[bad], entries.col[bad], strict=True))
    else:
        row, column = np.argwhere(_forbidden(X, allow_nan))[0]
    return int(row), int(column)


def _forbidden(values: NDArray[Any], allow_nan: bool) -> NDArray[np.bool_]:
    forbidden: NDArray[np.bool_] = np.isinf(values)
    return forbidden if allow_nan else forbidden | np.isnan(values)
