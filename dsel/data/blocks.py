"""Rows in blocks: computed inside a task one at a time, put together, cut."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from dask.local import get_sync
from dask.optimization import cull
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.filters import RowFilter
from dsel.data.frames import NUMBER, Frame, FrameSchema, frame_of, taken
from dsel.errors import reached


@dataclass(frozen=True)
class Span:
    """Consecutive rows of a pool that one task reads."""

    start: int
    """Global number of the first row."""
    stop: int
    """Global number after the last row."""
    n_rows: int
    """Rows that the pool's filter leaves in it."""


@dataclass(frozen=True)
class Block:
    """Rows in memory."""

    rows: NDArray[np.int64]
    """Global row numbers, ascending."""
    X: Any
    """The rows: a C-contiguous 2-d array in the pool's dtype, CSR, or a `Frame`."""


@dataclass(frozen=True)
class SpanGraph:
    """The tasks that compute the blocks of a span: first entry of its sources."""

    boundaries: tuple[int, ...]
    """Row numbers at which blocks begin, and the one after the last row."""
    keys: tuple[Any, ...]
    graph: Mapping[Any, Any]
    """Dask graph, but for what comes beside it."""
    beside: tuple[Any, ...]
    """Keys of what a cluster holds: its values are the other entries of the sources."""
    dtype: np.dtype[Any]
    """Of the blocks; of data frames, Python objects."""
    columns: tuple[str, ...] | None
    schema: FrameSchema | None
    """What blocks are to be like; None for rows as they come."""
    filter: RowFilter
    stored: str
    """How messages call the files that the tasks read; "" where there are none."""


def read_blocks(
    sources: Sequence[Any], block_rows: int, *, allow_nan: bool = False
) -> Iterator[Block]:
    """Yield the rows of a span in order, at most `block_rows` at a time.

    Runs inside a task, on what `Pool.sources` returned with its futures resolved; no
    client is needed. A block of the pool is computed once and sliced, small ones
    are put together; nothing is read where the pool's filter leaves no row. Whoever
    lets go of a block before asking for the next one never has more than one of the
    pool in memory. Raises ValueError where a value is infinite, or NaN unless
    allowed, or a block has not as many rows as its array says.
    """
    span, *values = sources
    graph = {**span.graph, **dict(zip(span.beside, values, strict=True))}
    first = 0
    while first < len(span.boundaries) - 1:
        start = span.boundaries[first]
        fitting = np.searchsorted(span.boundaries, start + block_rows, side="right")
        last = max(int(fitting) - 1, first + 1)
        mask = span.filter.mask(start, span.boundaries[last])
        if mask.any():
            parts = [_computed(graph, span, at) for at in range(first, last)]
            rows = stacked(parts)
            del parts
            for at in range(0, len(mask), block_rows):
                part = slice(at, at + block_rows)
                block = _block(span, start + at, taken(rows, part), mask[part])
                if len(block.rows):
                    check_finite(block.X, "`pool`", block.rows, span.columns, allow_nan)
                    yield block
                del block
            del rows  # else they would be there beside the next ones
        first = last


def _computed(graph: Mapping[Any, Any], span: SpanGraph, number: int) -> Any:
    """Compute one block here, whatever scheduler is set, and show no progress of it."""
    needed, _ = cull(graph, span.keys[number])
    start, stop = span.boundaries[number : number + 2]
    try:
        rows = reached(
            span.stored or "`pool`",
            lambda: get_sync(needed, span.keys[number], callbacks=()),
        )
    except (OSError, RuntimeError, ValueError) as error:
        if not span.stored or isinstance(error, ConnectionError):
            raise
        raise ValueError(
            f"{span.stored} is damaged: rows {start} to {stop - 1} cannot be read "
            f"({error}); write the pool again."
        ) from error
    if rows.shape[0] != stop - start:
        raise ValueError(
            f"`pool` must have the chunk lengths that it tells, but its rows {start} "
            f"to {stop - 1} are {rows.shape[0]} rows; correct them, as "
            f"compute_chunk_sizes() of a Dask array does."
        )
    return rows


def _block(span: SpanGraph, first: int, X: Any, mask: NDArray[np.bool_]) -> Block:
    """Return rows of which the first has a number, without those that are masked."""
    numbers = np.arange(first, first + len(mask))
    if not mask.all():
        numbers, X = numbers[mask], taken(X, np.flatnonzero(mask))
    if not isinstance(X, pd.DataFrame):
        X = in_one_layout(X, span.dtype)
    elif span.dtype.kind != "O":
        X = numbers_of(X, span.dtype)
    elif span.schema is None:
        return Block(numbers, frame_of(X))
    return Block(numbers, X if span.schema is None else Frame(X, span.schema))


def in_one_layout(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows in one layout for all chunkings: BLAS may round others differently.

    Of sparse ones that is CSR, with one entry for each place.
    """
    if sparse.issparse(X):
        return summed(sparse.csr_matrix(X, dtype=dtype))
    return np.ascontiguousarray(X, dtype=dtype)


def numbers_of(frame: pd.DataFrame, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the rows of a frame of numbers as an array of one layout."""
    missing = {"na_value": np.nan} if dtype.kind == "f" else {}
    return np.ascontiguousarray(frame.to_numpy(dtype=dtype, **missing))


def check_finite(
    X: Any,
    where: str,
    rows: NDArray[np.int64],
    names: Sequence[str] | None,
    allow_nan: bool,
) -> None:
    """Raise ValueError where a number is infinite, or NaN unless allowed.

    Gaps in columns of text, dates and the like are for the estimator to judge.
    """
    only_names = isinstance(X, Frame) and isinstance(X.given, pd.DataFrame)
    if only_names:
        names = [each.name for each in X.schema.columns if each.kind == NUMBER]
        X = X.float_columns
    elif isinstance(X, Frame):
        X = X.given
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        # A sum of squares is several times faster than a look at each value, and is
        # finite only if they all are; it may overflow, so a bad one proves nothing.
        flat = values.reshape(-1)
        if np.isfinite(np.dot(flat, flat)):
            return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    if sparse.issparse(X):
        entries, places = sparse.coo_matrix(X), np.flatnonzero(bad)
        row, column = min(zip(entries.row[places], entries.col[places], strict=True))
    else:
        row, column = np.argwhere(bad)[0]
    name = "" if names is None else f"{names[column]!r}"
    which = name if only_names else f"{column} ({name})" if name else f"{column}"
    raise ValueError(
        f"{where} must hold finite numbers, but row {rows[row]}, column {which} is "
        f"{X[row, column]} (NaN or infinite, 'inf'); drop the row, or put an imputer "
        f"in front of the estimator if values are missing."
    )


def rechunked(blocks: Iterable[Any], chunk_rows: int) -> Iterator[Any]:
    """Yield the rows of blocks in chunks of one length; the last may be shorter."""
    held: list[Any] = []
    n_held = 0
    for block in blocks:
        rows = block
        while n_held + rows.shape[0] >= chunk_rows:
            cut = chunk_rows - n_held
            yield stacked([*held, rows[:cut]])
            held, n_held, rows = [], 0, rows[cut:]
        if rows.shape[0]:
            held.append(rows)
            n_held += rows.shape[0]
    if held:
        yield stacked(held)


def stacked(parts: Sequence[Any]) -> Any:
    """Return blocks of rows as one: CSR where any of them is sparse."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Frame):
        return Frame(stacked([part.given for part in parts]), first.schema)
    if isinstance(first, pd.DataFrame):
        return pd.concat(parts)
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(list(parts), format="csr")
    return np.concatenate(parts)


def summed(rows: Any) -> Any:
    """Return rows as they are; sparse ones as CSR with one entry for each place.

    A place may be listed twice, as counted words are. scikit-learn's neighbours and
    SVMs would not add these up.
    """
    if not sparse.issparse(rows):
        return rows
    matrix = rows.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
