"""The unlabeled pool: blocks of a Dask graph, with global row numbers and a filter."""

import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, Final

import numpy as np
import pandas as pd
from dask.base import tokenize
from dask.local import get_sync
from dask.optimization import cull
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dsel.checks import check_integer
from dsel.data.blocks import check_finite, in_one_layout, numbers_of, stacked
from dsel.data.cache import process_cache
from dsel.data.frames import Frame, FrameSchema, encoded, frame_of, table_nbytes, taken
from dsel.data.identity import row_hashes
from dsel.data.row_random import PART_STREAM, row_random, row_random_at
from dsel.errors import reached
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import records_in_order
from dsel.runtime.tasks import Task

POOL: Final = "`pool`"
"""How messages call rows that are in no file."""
SPAN_NBYTES: Final = 2**26
"""A task's share at most: some tenths of a second."""
SMALL_SPAN_NBYTES: Final = 2**23
"""A task's share where the pool is small and still divided among a few workers."""
BLOCK_NBYTES: Final = 2**23
"""Rows handed to `count_chunk` at once: what it makes of them stays small too. Chunks
below this are read together where there are many."""
SMALL_BLOCK_NBYTES: Final = 2**18
"""Rows that are not stored in chunks are read by so much at least."""
MANY_BLOCKS: Final = 64
MOST_BLOCKS: Final = 2**14
"""More would make a graph that takes a second to build."""
_SENT_NBYTES: Final = 2**20  # less goes through the scheduler, with its task
_SECONDS: Final = 10.0  # for which a worker to send to is awaited
_EVERY: Final = 2**62
_HASH_SEEDS: Final = (0x72_6F_77_73, 0x77_6F_72_64)

Graph = dict[Any, Any]


@dataclass(frozen=True, eq=False)
class RowFilter:
    """Leaves out listed rows, those outside of a range, and a random share."""

    excluded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Ascending global row numbers without repeats."""
    first: int = 0
    last: int = _EVERY
    """One past the last row that may remain."""
    shares: tuple[tuple[float, float, int, int], ...] = ()
    """Lower and upper limit, seed and stream: a row remains whose random number,
    divided by 2**64, lies in ``[lower, upper)``."""

    @property
    def is_void(self) -> bool:
        """Whether every row remains."""
        limits = self.first, self.last
        return not len(self.excluded) and not self.shares and limits == (0, _EVERY)

    @property
    def token(self) -> str:
        """Text that tells the rule from others."""
        return str(tokenize(self.excluded, self.first, self.last, self.shares))

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which of the rows ``start`` to ``stop - 1`` remain."""
        remains = np.ones(stop - start, dtype=np.bool_)
        remains[: max(self.first - start, 0)] = False
        remains[max(self.last - start, 0) :] = False
        remains[self.within(start, stop).excluded - start] = False
        for lower, upper, seed, stream in self.shares:
            drawn = row_random(seed, stream, start, stop)
            remains &= _below(drawn, upper) & ~_below(drawn, lower)
        return remains

    def within(self, start: int, stop: int) -> "RowFilter":
        """Return the filter with only the listed rows of this range."""
        first, last = np.searchsorted(self.excluded, [start, stop])
        return replace(self, excluded=self.excluded[first:last])


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


@dataclass(frozen=True, eq=False, repr=False)
class Pool:
    """Unlabeled rows, read block by block inside tasks.

    Row numbers are global: a row keeps its number under any chunking and any filter.
    Pools are immutable; filters give a new one and read nothing.

    Examples
    --------
    >>> from dsel.data import open_pool
    >>> pool = open_pool(np.zeros((5, 2))).excluding([1])
    >>> pool.n_rows, pool.reduce(lambda X, rows: len(rows), lambda a, b: a + b)
    (4, 4)
    """

    graph: Mapping[Any, Any]
    """Dask graph of all blocks, which are arrays, CSR, or data frames of pandas: that
    of a span is cut out of it. Not optimized: what is fused with a task can no longer
    be told to be a future or rows in memory, which must not be sent with every span."""
    keys: tuple[Any, ...]
    """Of the blocks, none of which is empty."""
    boundaries: NDArray[np.int64]
    """Global row numbers at which blocks begin, and the number of stored rows."""
    stored_dtype: np.dtype[Any]
    """Of all values; of data frames that are not all numbers, Python objects."""
    n_columns: int
    """Features of a row."""
    row_nbytes: int
    """Bytes of one row in memory, on average, at least 1."""
    tell: Callable[[], tuple[str, bool]] | None
    """Returns a text for the content as it is now, at a cost far below that of reading
    the rows, and whether that text changes with the content; None inside a task."""
    columns: tuple[str, ...] | None = None
    """Names of the features, or None."""
    frames: FrameSchema | None = None
    """Of data frames that were given; None of arrays."""
    is_sparse: bool = False
    """Whether blocks are CSR."""
    where: str = POOL
    """How messages call it: with its file, where there is one."""
    read: "Callable[[tuple[str, ...]], Pool] | None" = None
    """Opens some columns anew, where that saves reading the others."""
    beside: tuple[Any, ...] = ()
    """Keys of what a cluster holds for the graph: a task gets it beside this."""
    filter: RowFilter = RowFilter()
    """Tells by their numbers which rows remain."""
    schema: FrameSchema | None = None
    """Of the data frames that blocks become; None for rows as they are stored, frames
    of numbers as arrays."""
    memo: dict[str, Any] = field(default_factory=dict)
    """Shared by what is made of this pool: what `tell` said, and by client and key the
    futures of rows that were sent. It stays where it is when a pool is sent."""

    def __getstate__(self) -> dict[str, Any]:
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"memo": {}, "read": None}

    @property
    def array(self) -> Any:
        """All numbers as a Dask array, also of rows that the filter leaves out."""
        import dask.array as da  # takes a while: only who writes a pool pays for it

        name, graph, dtype = _new_name(), dict(self.graph), self.stored_dtype
        for number, key in enumerate(self.keys):
            graph[name, number, 0] = (
                key if self.frames is None else (numbers_of, key, dtype)
            )
        kind = sparse.csr_matrix if self.is_sparse else np.empty
        chunks = (tuple(np.diff(self.boundaries).tolist()), (self.n_columns,))
        return da.Array(graph, name, chunks, meta=kind((0, 0), dtype=dtype))

    @property
    def n_rows(self) -> int:
        """Rows that the filter leaves."""
        return int(self.kept_before[-1])

    @property
    def n_stored(self) -> int:
        """Rows with those that the filter leaves out."""
        return int(self.boundaries[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values of every block: of frames, Python objects."""
        are_frames = self.schema is not None and self.frames is not None
        return np.dtype(object) if are_frames else self.stored_dtype

    @property
    def is_stored(self) -> bool:
        """Whether tasks read the rows from files."""
        return self.where != POOL

    @property
    def nbytes(self) -> int:
        """Bytes that a pass reads, in memory; the filter does not lower it."""
        return self.row_nbytes * self.n_stored

    def as_frames(self) -> "Pool":
        """Return the pool with blocks of data frames, where it was given as such."""
        return replace(self, schema=self.frames)

    def with_columns(self, names: Sequence[str]) -> "Pool":
        """Return the pool with some of its columns, in this order."""
        names = tuple(names)
        if names == self.columns:
            return self
        schema = self.schema and self.schema.with_columns(names)
        if self.read is not None:
            return replace(self.read(names), filter=self.filter, schema=schema)
        assert self.columns is not None
        name, places = _new_name(), [self.columns.index(each) for each in names]
        own = {(name, n): (_columns_at, key, places) for n, key in enumerate(self.keys)}
        frames = self.frames and self.frames.with_columns(names)
        return replace(
            self,
            graph={**self.graph, **own},
            keys=tuple(own),
            stored_dtype=self.stored_dtype if frames is None else frames.dtype,
            n_columns=len(names),
            row_nbytes=-(-self.row_nbytes * len(names) // max(self.n_columns, 1)) or 1,
            tell=partial(_told_of_columns, self.tell, names),
            columns=names,
            frames=frames,
            schema=schema,
            memo={},
        )

    @property
    def told(self) -> tuple[str, bool]:
        """What `tell` said when it was asked first."""
        if "told" not in self.memo:
            assert self.tell is not None
            self.memo["told"] = self.tell()
        told: tuple[str, bool] = self.memo["told"]
        return told

    def reopened(self) -> "Pool":
        """Return the pool as it is now, where values in memory may have changed.

        Raises ValueError where its files were written anew since its token was asked.
        """
        again = replace(self, memo={})
        if self.is_stored and again.told != self.told:
            raise ValueError(
                f"{self.where} was written anew since it was opened; open it again, "
                f"and plan with it."
            )
        return again

    def fingerprint(self, client: Any = None) -> str:
        """Return a text that changes with the rows, which are read if they must be.

        They must of Dask arrays, and where files have no stamps. Their chunks do not
        matter.
        """
        if self.told[1] or not self.n_rows:
            return self.token
        words = self.reduce(_hashed, add, client=client, allow_nan=True)
        head = (self.n_rows, self.n_columns, str(self.dtype), self.columns)
        return f"rows-{tokenize(head, words.tolist())}"

    @property
    def token(self) -> str:
        """Name by content (of Dask: by name) and filter; cheap beside reading."""
        text = self.told[0]
        if self.filter.is_void:
            return text
        return f"pool-{tokenize(text, self.filter.token)}"

    def __repr__(self) -> str:
        left = "" if self.filter.is_void else f" of {self.n_stored:,} stored"
        kind = "CSR " if self.is_sparse else ""
        dtype = "data frames" if self.dtype.kind == "O" else self.dtype
        return (
            f"<Pool: {self.n_rows:,} rows{left} x {self.n_columns} columns, "
            f"{kind}{dtype}, {len(self.boundaries) - 1:,} chunks, "
            f"{self.nbytes / 2**20:,.1f} MiB>"
        )

    def spans(self, rows: int) -> tuple[Span, ...]:
        """Split the pool into spans of about `rows` stored rows along its chunks.

        A longer chunk is a span of its own. Spans are in row order, without chunks at
        their ends in which the filter leaves no row.
        """
        check_integer(rows, "rows", at_least=1)
        edges, kept = self.boundaries, self.kept_before
        spans, first = [], 0
        while first < len(edges) - 1:
            fitting = int(np.searchsorted(edges, edges[first] + rows, side="right"))
            last = max(fitting - 1, first + 1)
            n_rows = int(kept[last] - kept[first])
            if n_rows:
                needed = first + np.flatnonzero(np.diff(kept[first : last + 1]))
                start, stop = edges[needed[0]], edges[needed[-1] + 1]
                spans.append(Span(int(start), int(stop), n_rows))
            first = last
        return tuple(spans)

    def sources(self, span: Span, client: Any = None) -> list[Any]:
        """Return what a task passes to `read_blocks` to read one of the `spans`.

        What the workers of `client` hold, as chunks of a persisted array, stands in the
        list as futures; it must reach `submit` as a plain argument so that they are
        resolved.
        """
        first, last = np.searchsorted(self.boundaries, [span.start, span.stop])
        keys = self.keys[first:last]
        graph, _ = cull(self.graph, list(keys))
        held = {key: value for key, value in graph.items() if _is_future(value)}
        if client is None:  # a graph would take the future itself for a key
            graph |= {key: (future.result,) for key, future in held.items()}
            held = {}
        else:
            held |= self._sent(graph, client)
        part = replace(
            self,
            graph={key: task for key, task in graph.items() if key not in held},
            keys=keys,
            boundaries=self.boundaries[first : last + 1],
            tell=None,
            beside=tuple(held),
            filter=self.filter.within(span.start, span.stop),
        )
        return [part, *held.values()]

    def _sent(self, graph: Graph, client: Any) -> Graph:
        """Send rows that the graph holds to workers; return their futures by key.

        They are sent once for as long as the pool lives, unless they are lost with a
        worker. The scheduler never gets them.
        """
        rows = {key: value for key, value in graph.items() if _are_rows(value)}
        if sum(map(table_nbytes, rows.values())) < _SENT_NBYTES:
            return {}
        kept = self.memo.setdefault(client.id, {})
        missing = [k for k in rows if k not in kept or kept[k].cancelled()]
        # Of a scheduler that is gone an answer would be awaited for long.
        if missing and client.status == "running":
            try:
                values = [rows[key] for key in missing]
                sent = client.scatter(values, hash=False, timeout=_SECONDS)
            except (OSError, KeyError):  # KeyError: of a worker that has just died
                return {}  # the rows wait with their task
            kept.update(zip(missing, sent, strict=True))
        return {key: kept[key] for key in rows if key in kept}

    def excluding(self, rows: ArrayLike) -> "Pool":
        """Return the pool without the rows of these global numbers.

        Raises ValueError where a number is no row of the pool.
        """
        numbers = np.unique(np.asarray(rows, dtype=np.int64))
        if not len(numbers):
            return self
        if numbers[0] < 0 or numbers[-1] >= self.n_stored:
            raise ValueError(
                "`rows` must be row numbers of the pool, 0 to "
                f"{self.n_stored - 1}, got {numbers[0]} to {numbers[-1]}."
            )
        excluded = np.union1d(self.filter.excluded, numbers)
        return replace(self, filter=replace(self.filter, excluded=excluded))

    def part(
        self, lower: float, upper: float, *, seed: int, stream: int = PART_STREAM
    ) -> "Pool":
        """Return the rows whose random number lies in ``[lower, upper)``.

        It is `row_random` of `seed` and the row, divided by 2**64. Parts with limits
        0 = a < b < ... < 1 and one seed divide the pool: a fitting and a bounding part,
        or a random subset of the share ``upper - lower``.
        """
        if not 0.0 <= lower <= upper <= 1.0:
            raise ValueError(
                "`lower` and `upper` must be ordered limits in [0, 1], "
                f"got {lower!r} and {upper!r}."
            )
        shares = (*self.filter.shares, (lower, upper, seed, stream))
        return replace(self, filter=replace(self.filter, shares=shares))

    def between(self, first: int, last: int) -> "Pool":
        """Return the rows of numbers `first` to ``last - 1``; others are not read."""
        first, last = max(first, self.filter.first), min(last, self.filter.last)
        return replace(self, filter=replace(self.filter, first=first, last=last))

    def reduce(
        self,
        count_chunk: Callable[[Any, NDArray[np.int64]], Any],
        combine: Callable[[Any, Any], Any],
        *,
        client: Any = None,
        keep: bool = False,
        allow_nan: bool = False,
    ) -> Any:
        """Compute a statistic of the pool in one pass.

        Parameters
        ----------
        count_chunk
            Called as ``count_chunk(X, rows)`` with a block and its row numbers.
        combine
            Called as ``combine(earlier, later)``, in row order whatever finishes
            first. Counts are the same for any chunking, sums of floats up to rounding.
        client
            Dask client; None is the current one, else local threads. Inside a task
            the pass runs in that task.
        keep
            Whether blocks stay in memory for the next pass, as far as they fit.
        allow_nan
            Whether missing values may pass.

        Returns
        -------
        object
            What `combine` made of all values.

        Raises
        ------
        ValueError
            Where the pool has no rows, or a value is not finite.
        """
        if self.n_rows == 0:
            raise ValueError("`pool` must have rows for a pass, got none.")
        client = resolve_client(client)
        if client is None and self.keys and _are_rows(self.graph[self.keys[0]]):
            keep = False  # the cache would only outlive them
        group = f"pool-{self.token}-{self.dtype}" if keep else ""
        # By the pool alone: all machines group sums alike.
        span_nbytes = min(SPAN_NBYTES, max(SMALL_SPAN_NBYTES, self.nbytes // 4))
        span_rows = max(span_nbytes // self.row_nbytes, 1)
        tasks = [
            Task(
                f"span-{span.start}",
                _count_span,
                (f"{group}-{span.start}-{span.stop}" if group else "", group),
                partial(self.sources, span),
                place=number if keep else None,
            )
            for number, span in enumerate(self.spans(span_rows))
        ]
        block_rows = max(BLOCK_NBYTES // self.row_nbytes, 1)
        work = count_chunk, combine, block_rows, allow_nan
        return reduce(combine, records_in_order(work, tasks, client))

    @cached_property
    def kept_before(self) -> NDArray[np.int64]:
        """Rows that the filter leaves before each of the boundaries."""
        if self.filter.is_void:
            return self.boundaries
        kept = [self.filter.mask(*ends).sum() for ends in pairwise(self.boundaries)]
        return np.cumsum([0, *kept])


def in_blocks(
    tasks: Iterable[Any],
    lengths: Iterable[int],
    like: Any,
    tell: Callable[[], tuple[str, bool]],
    columns: Sequence[str] | None = None,
    *,
    graph: Mapping[Any, Any] | None = None,
    dtype: np.dtype[Any] | None = None,
    row_nbytes: float = 0,
    **others: Any,
) -> Pool:
    """Return rows of which each block is the value of a task, or in memory.

    `like` tells type and columns: the schema of data frames, or an array. `graph` has
    what the tasks depend on; `others` are fields of a pool.
    """
    frames = like if isinstance(like, FrameSchema) else None
    n_columns = like.shape[1] if frames is None else len(frames.columns)
    stored = frames.row_nbytes if frames else n_columns * like.dtype.itemsize
    name = _new_name()
    kept = [each for each in zip(tasks, lengths, strict=True) if each[1]]
    own = {(name, number): task for number, (task, _) in enumerate(kept)}
    return Pool(
        {**(graph or {}), **own},
        tuple(own),
        np.cumsum([0, *(length for _, length in kept)]),
        dtype or like.dtype,
        n_columns,
        max(-int(-(row_nbytes or stored) // 1), 1),
        tell,
        frames.names if frames else None if columns is None else tuple(columns),
        frames,
        **others,
    )


def edges_of_blocks(n_rows: int, chunk_rows: int, row_nbytes: float) -> list[int]:
    """Return where blocks of some whole chunks each begin, and the number of rows.

    A `chunk_rows` of 0 stands for rows of which any slice costs the same.
    """
    row_nbytes = max(row_nbytes, 1)
    chunk_rows = chunk_rows or max(1, int(SMALL_BLOCK_NBYTES // row_nbytes))
    n_chunks = -(-n_rows // chunk_rows)
    together = min(
        n_chunks // MANY_BLOCKS, int(BLOCK_NBYTES // (chunk_rows * row_nbytes))
    )
    step = chunk_rows * max(together, -(-n_chunks // MOST_BLOCKS), 1)
    return [*range(0, n_rows, step), n_rows]


def _new_name() -> str:
    return f"pool-{uuid.uuid4().hex}"


def _told_of_columns(tell: Any, names: tuple[str, ...]) -> tuple[str, bool]:
    text, changes = tell()
    return f"columns-{tokenize(text, names)}", changes


def _columns_at(rows: Any, places: list[int]) -> Any:
    return rows.iloc[:, places] if hasattr(rows, "iloc") else rows[:, places]


def _are_rows(value: Any) -> bool:
    return isinstance(value, (np.ndarray, pd.DataFrame)) or sparse.issparse(value)


def _is_future(value: Any) -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(value, Future)


def _hashed(X: Any, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return two words that add up to the same for any chunking of the same rows."""
    hashes = row_hashes(encoded(X))
    words = [row_random_at(seed, 0, rows) | np.uint64(1) for seed in _HASH_SEEDS]
    return np.array([np.sum(hashes * each) for each in words])


def _count_span(
    work: tuple[Callable[..., Any], Callable[[Any, Any], Any], int, bool],
    payloads: Sequence[Any],
    sources: Sequence[Any],
    key: str,
    group: str,
) -> tuple[Any, None]:
    """Count one span, the body of a task; blocks are kept under `key` if it is one."""
    del payloads  # a span needs nothing but its rows
    count, combine, block_rows, allow_nan = work
    read = read_blocks(sources, block_rows, allow_nan=allow_nan)
    blocks: Iterable[Block] = read
    if key:
        blocks = process_cache().get(key, lambda: list(read), group=group)
    return reduce(combine, _counted(count, blocks)), None


def _counted(count: Callable[..., Any], blocks: Iterable[Block]) -> Iterator[Any]:
    for block in blocks:
        yield count(block.X, block.rows)
        del block  # else it would be there beside the next one


def read_blocks(
    sources: Sequence[Any], block_rows: int, *, allow_nan: bool = False
) -> Iterator[Block]:
    """Yield the rows of a span in order, at most `block_rows` at a time.

    Runs inside a task, on what `Pool.sources` returned with its futures resolved. A
    block of the pool is computed once and sliced, small ones are put together; nothing
    is read where the filter leaves no row. Whoever lets go of a block before asking for
    the next one never has more than one of the pool in memory. Raises ValueError where
    a value is infinite, or NaN unless allowed.
    """
    pool, *values = sources
    graph = {
        **pool.graph,
        **dict(zip(pool.beside, values, strict=True)),
    }
    edges, first = pool.boundaries, 0
    while first < len(edges) - 1:
        start = int(edges[first])
        fitting = np.searchsorted(edges, start + block_rows, side="right")
        last = max(int(fitting) - 1, first + 1)
        mask = pool.filter.mask(start, int(edges[last]))
        if mask.any():
            parts = [_computed(graph, pool, at) for at in range(first, last)]
            rows = stacked(parts)
            del parts
            for at in range(0, len(mask), block_rows):
                part = slice(at, at + block_rows)
                block = _block(pool, start + at, taken(rows, part), mask[part])
                if len(block.rows):
                    check_finite(block.X, "`pool`", block.rows, pool.columns, allow_nan)
                    yield block
                del block
            del rows  # else they would be there beside the next ones
        first = last


def _computed(graph: Mapping[Any, Any], pool: Pool, number: int) -> Any:
    """Compute one block here, whatever scheduler is set, and show no progress of it."""
    key, where = pool.keys[number], pool.where
    needed, _ = cull(graph, key)
    start, stop = pool.boundaries[number : number + 2]
    try:
        rows = reached(where, lambda: get_sync(needed, key, callbacks=()))
    except (OSError, RuntimeError, ValueError) as error:
        if not pool.is_stored or isinstance(error, ConnectionError):
            raise
        raise ValueError(
            f"{where} is damaged: rows {start} to {stop - 1} cannot be read "
            f"({error}); write the pool again."
        ) from error
    if rows.shape[0] != stop - start:
        raise ValueError(
            f"`pool` must have the chunk lengths that it tells, but its rows {start} "
            f"to {stop - 1} are {rows.shape[0]} rows; correct them, as "
            f"compute_chunk_sizes() of a Dask array does."
        )
    return rows


def _block(pool: Pool, first: int, X: Any, mask: NDArray[np.bool_]) -> Block:
    """Return rows of which the first has a number, without those that are masked."""
    numbers = np.arange(first, first + len(mask))
    if not mask.all():
        numbers, X = numbers[mask], taken(X, np.flatnonzero(mask))
    if not isinstance(X, pd.DataFrame):
        X = in_one_layout(X, pool.dtype)
    elif pool.dtype.kind != "O":
        X = numbers_of(X, pool.dtype)
    elif pool.schema is None:
        return Block(numbers, frame_of(X))
    return Block(numbers, X if pool.schema is None else Frame(X, pool.schema))


def _below(drawn: NDArray[np.uint64], limit: float) -> NDArray[np.bool_]:
    """Compare in integers: as floats, numbers near a limit would be rounded."""
    least = -int(-Fraction(limit) * 2**64 // 1)
    if least >= 2**64:
        return np.ones(len(drawn), dtype=np.bool_)
    below: NDArray[np.bool_] = drawn < np.uint64(least)
    return below
