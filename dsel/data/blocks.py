"""Rows in blocks: computed inside a task one at a time, put together, cut."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.local import get_sync
from dask.optimization import cull
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.columns import NUMBER
from dsel.data.filters import RowFilter, joint_mask
from dsel.data.frames import Frame, FrameSchema, concatenated, frame_of, is_frame
from dsel.errors import reached


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
    is_sparse: bool
    columns: tuple[str, ...] | None
    schema: FrameSchema | None
    """What blocks are to be like; None for rows as they come."""
    filters: tuple[RowFilter, ...]
    """Rules about the row numbers of this span."""
    stored: str
    """How messages call the files that the tasks read; "" where there are none."""


def read_blocks(
    sources: Sequence[Any], block_rows: int, *, allow_nan: bool = False
) -> Iterator[Block]:
    """Yield the rows of a span in order, at most `block_rows` at a time.

    Runs inside a task, on what `Pool.sources` returned with its futures resolved; no
    client is needed. A block of the collection is computed once and sliced, small ones
    are put together; nothing is read where the pool's filters leave no row. Whoever
    lets go of a block before asking for the next one never has more than one of the
    collection in memory. Raises ValueError where a value is infinite, or NaN unless
    allowed, or a block has not as many rows as its array says.
    """
    span, *values = sources
    graph = {**span.graph, **dict(zip(span.beside, values, strict=True))}
    for first, last in _together(span.boundaries, block_rows):
        start, stop = span.boundaries[first], span.boundaries[last]
        mask = joint_mask(span.filters, start, stop) if span.filters else None
        if mask is not None and not mask.any():
            continue
        parts = [_computed(graph, span, at) for at in range(first, last)]
        rows = _like(stacked(parts), span.schema)
        del parts
        for at in range(0, stop - start, block_rows):
            part = slice(at, at + block_rows)
            kept = None if mask is None else np.flatnonzero(mask[part])
            block = _block(span, start + at, rows[part], kept)
            if len(block.rows):
                check_finite(block.X, "`pool`", block.rows, span.columns, allow_nan)
                yield block
            del block
        del rows  # else they would be there beside the next ones


def _together(boundaries: Sequence[int], n_rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of blocks that have so many rows together at most, or are one."""
    first = 0
    while first < len(boundaries) - 1:
        fitting = np.searchsorted(boundaries, boundaries[first] + n_rows, side="right")
        last = max(int(fitting) - 1, first + 1)
        yield first, last
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


def _block(
    span: SpanGraph, first: int, X: Any, kept: NDArray[np.int64] | None
) -> Block:
    """Return rows of which the first has a number, all or those at some places."""
    numbers = np.arange(first, first + X.shape[0])
    if kept is not None and len(kept) < X.shape[0]:
        numbers, X = numbers[kept], X[kept]
    if isinstance(X, Frame):
        if not is_frame(X.given):
            X = Frame(_in_one_layout(X.given, span), X.schema)
        return Block(numbers, X)
    return Block(numbers, _in_one_layout(X, span))


def _in_one_layout(X: Any, span: SpanGraph) -> Any:
    if span.is_sparse:
        return summed(sparse.csr_matrix(X, dtype=span.dtype))
    # One layout for all chunkings: BLAS may round other layouts differently.
    return np.ascontiguousarray(X, dtype=span.dtype)


def _like(rows: Any, schema: FrameSchema | None) -> Any:
    """Return rows as a `Frame` where they are to be like one, or are frames."""
    if schema is not None:
        return Frame(rows.given if isinstance(rows, Frame) else rows, schema)
    return frame_of(rows) if is_frame(rows) else rows


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
    only_names = isinstance(X, Frame) and is_frame(X.given)
    if only_names:
        names = [each.name for each in X.schema.columns if each.kind == NUMBER]
        X = X.float_columns
    elif isinstance(X, Frame):
        X = X.given
    if _all_allowed(X.data if sparse.issparse(X) else X, allow_nan):
        return
    row, column = _first_forbidden(X, allow_nan)
    name = "" if names is None else f"{names[column]!r}"
    which = name if only_names else f"{column} ({name})" if name else f"{column}"
    raise ValueError(
        f"{where} must hold finite numbers, but row {rows[row]}, column {which} is "
        f"{X[row, column]} (NaN or infinite, 'inf'); drop the row, or put an imputer "
        f"in front of the estimator if values are missing."
    )


def _all_allowed(values: NDArray[Any], allow_nan: bool) -> bool:
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


def _first_forbidden(X: Any, allow_nan: bool) -> tuple[int, int]:
    """Return row and column of the first value that may not be there."""
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
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Frame) or is_frame(parts[0]):
        return concatenated(parts)
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
