"""The unlabeled pool: blocks of a Dask graph, with global row numbers and a filter."""

import math
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from dask.base import tokenize
from dask.local import get_sync
from dask.optimization import cull
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dsel.arrays import fill_masked
from dsel.data.cache import process_cache
from dsel.data.frames import (
    Frame,
    FrameSchema,
    check_finite,
    encoded,
    frame_like,
    frame_of,
    numbers,
    numbers_of,
    stacked,
    summed,
    table_nbytes,
    taken,
)
from dsel.data.identity import content_hash, row_hashes
from dsel.data.row_random import PART_STREAM, row_random, row_random_at
from dsel.errors import PoolChangedError, reached
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task

POOL: Final = "`pool`"
"""How messages call rows that are in no file."""
SPAN_NBYTES: Final = 2**26
"""A task's share at most: some tenths of a second."""
SMALL_SPAN_NBYTES: Final = 2**23  # of a pool that a few workers divide
BLOCK_NBYTES: Final = 2**23
"""Rows handed to `count_chunk` at once: what it makes of them stays small too."""
SMALL_BLOCK_NBYTES: Final = 2**18  # at least, of rows that are not stored in chunks
MANY_BLOCKS: Final = 64  # of which small ones are put together
_SENT_NBYTES: Final = 2**20  # less goes through the scheduler, with its task
_SECONDS: Final = 10.0  # for which an answer is awaited, and one for each MiB sent
_HASH_SEEDS: Final = (0x72_6F_77_73, 0x77_6F_72_64)


class Span(NamedTuple):
    """Consecutive rows of a pool that one task reads."""

    start: int
    """Global number of the first row."""
    stop: int
    n_rows: int
    """Rows that the pool's filters leave in it."""


class Block(NamedTuple):
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
    """Dask graph of all blocks: arrays, CSR, or data frames of pandas. Not optimized:
    what is fused with a task can no longer be told to be a future or rows in memory."""
    keys: tuple[Any, ...]
    """Of the blocks, none of which is empty."""
    boundaries: NDArray[np.int64]
    """Global row numbers at which blocks begin, and the number of stored rows."""
    stored_dtype: np.dtype[Any]
    """Of all values; of data frames that are not all numbers, Python objects."""
    n_columns: int
    row_nbytes: int
    """Bytes of one row in memory, on average, at least 1."""
    name: str
    """Of Dask's rows how they are made, of files their stamps, "" of rows in memory."""
    is_content: bool = True
    """Whether the name changes with the content."""
    columns: tuple[str, ...] | None = None
    frames: FrameSchema | None = None
    """Of data frames that were given; None of arrays."""
    is_sparse: bool = False
    where: str = POOL
    """How messages call it: with its file, where there is one."""
    read: "Callable[[tuple[str, ...]], Pool] | None" = None
    """Opens some columns anew, where that saves reading the others."""
    stamps: Mapping[str, Any] = field(default_factory=dict)
    """By name of a file its size and time when the pool was opened."""
    read_stamps: Callable[[], Mapping[str, Any]] | None = None
    """Returns the stamps of its files as they are now; None where there are none."""
    beside: tuple[Any, ...] = ()
    """Keys of what a cluster holds for the graph: a task gets it beside this."""
    excluded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Ascending row numbers that are left out."""
    shares: tuple[tuple[float, float, int, int], ...] = ()
    """Arguments of `part`."""
    has_order: bool = True
    """Whether columns stand in an order that somebody chose; zarr groups have none."""
    other_records: bool = False
    """Whether it was declared that no row is the record of a labeled row."""
    schema: FrameSchema | None = None
    """Of the data frames that blocks become; None for arrays, or frames as stored."""
    sent: dict[str, Any] = field(default_factory=dict)
    """By client and key the futures of rows that were sent, for all that is made of
    this pool."""

    def __getstate__(self) -> dict[str, Any]:
        # What reads files again may hold secrets; only the driver compares stamps.
        only_here: dict[str, Any] = {
            "sent": {}, "read": None, "stamps": {}, "read_stamps": None
        }  # fmt: skip
        return vars(self) | only_here

    def check_unchanged(self) -> None:
        """Raise PoolChangedError where its files were written since it was opened."""
        if self.read_stamps is None:
            return
        before, now = self.stamps, self.read_stamps()
        if before == now:
            return
        name = min(k for k in {*before, *now} if before.get(k) != now.get(k))
        file = f"its file {name!r}" if name else "it"
        what = f"{file} is gone" if name not in now else f"{file} was written"
        raise PoolChangedError(
            f"{self.where} changed after it was opened: {what}, and rows may have been "
            f"read both before and after. Let nothing write there during a run; open "
            f"the pool again and start anew, with an `out` of its own."
        )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Compare stamps before a pass and behind it, whether it fails or not."""
        self.check_unchanged()
        try:
            yield
        except Exception:
            # A file that has become shorter, say, breaks tasks in many ways.
            self.check_unchanged()
            raise
        self.check_unchanged()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "`pool` cannot be an array without a copy; call numpy.asarray(pool)."
            )
        blocks = self.reduce(lambda X, _: [numbers(X)], add, allow_nan=True)
        rows = stacked(blocks)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return np.asarray(rows, dtype=dtype)

    def to_dask_array(self, lengths: Any = None) -> Any:
        """Return the rows that the filters leave as a Dask array of numbers.

        Its chunks have lengths, whatever `lengths` says: it is taken as that of a Dask
        data frame is, so that learners can treat both alike.
        """
        del lengths
        return self.as_array(resolve_client(None))

    def as_array(self, client: Any = None) -> Any:
        """Return the rows that the filters leave as a Dask array of numbers."""
        import dask.array as da  # takes a while: only who writes a pool pays for it

        graph: dict[Any, Any] = {}
        name, lengths = _new_name(), []
        for number, span in enumerate(self.spans(1)):
            part, *held = replace(self, schema=None).sources(span, client)
            graph |= dict(zip(part.beside, held, strict=True))
            graph[name, number, 0] = (partial(_numbers_of_span, part), *part.beside)
            lengths.append(span.n_rows)
        kind = sparse.csr_matrix if self.is_sparse else np.empty
        meta = kind((0, 0), dtype=self.stored_dtype)
        return da.Array(graph, name, (tuple(lengths), (self.n_columns,)), meta=meta)

    @property
    def n_rows(self) -> int:
        """Rows that the filters leave."""
        return int(self.kept_before[-1])

    @cached_property
    def kept_before(self) -> NDArray[np.int64]:
        """Rows that the filters leave before each of the boundaries."""
        if not self.shares and not len(self.excluded):
            return self.boundaries
        kept = [self.mask(*ends).sum() for ends in pairwise(self.boundaries)]
        return np.cumsum([0, *kept])

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which of the rows ``start`` to ``stop - 1`` the filters leave."""
        remains = np.ones(stop - start, dtype=np.bool_)
        first, last = np.searchsorted(self.excluded, [start, stop])
        remains[self.excluded[first:last] - start] = False
        for lower, upper, seed, stream in self.shares:
            drawn = row_random(seed, stream, start, stop)
            # Compared as integers: floats near a limit would be rounded.
            least, most = math.ceil(lower * 2**64), math.ceil(upper * 2**64)
            remains &= (drawn >= least) & (drawn < most)
        return remains

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values of every block: of frames, Python objects."""
        are_frames = self.schema is not None and self.frames is not None
        return np.dtype(object) if are_frames else self.stored_dtype

    @property
    def nbytes(self) -> int:
        """Bytes that a pass reads, in memory; the filter does not lower it."""
        return self.row_nbytes * int(self.boundaries[-1])

    def with_columns(self, names: Iterable[Any], what: str = "`X`") -> "Pool":
        """Return the pool with some of its columns, in this order."""
        names, columns = tuple(map(str, names)), self.columns or ()
        if names == columns:
            return self
        if missing := [name for name in names if name not in columns]:
            raise ValueError(
                f"{self.where} lacks the column {missing[0]!r} of {what}; it has "
                f"{', '.join(columns[:20])}. Rename one, or leave it out of {what}."
            )
        schema = self.schema and self.schema.with_columns(names)
        if self.read is not None:
            kept: dict[str, Any] = {
                name: getattr(self, name)
                for name in ("excluded", "shares", "other_records", "has_order")
            }
            return replace(self.read(names), schema=schema, **kept)
        name, places = _new_name(), [columns.index(each) for each in names]
        own = {(name, n): (_columns_at, key, places) for n, key in enumerate(self.keys)}
        frames = self.frames and self.frames.with_columns(names)
        return replace(
            self,
            graph={**self.graph, **own},
            keys=tuple(own),
            stored_dtype=self.stored_dtype if frames is None else frames.dtype,
            n_columns=len(names),
            row_nbytes=-(-self.row_nbytes * len(names) // self.n_columns),
            columns=names,
            frames=frames,
            schema=schema,
        )

    @cached_property
    def token(self) -> str:
        """Name by content (of Dask: by name) and filter; cheap beside reading."""
        name = self.name
        if not name:
            blocks = (_computed(self.graph, self, n) for n in range(len(self.keys)))
            if self.frames:
                blocks = (Frame(each, self.frames) for each in blocks)
            name = str([content_hash(each) for each in blocks])
        return f"pool-{tokenize(name, self.columns, self.excluded, self.shares)}"

    def fingerprint(self, client: Any = None) -> str:
        """Return a text that changes with the rows: those of Dask arrays are read."""
        if self.is_content or not self.n_rows:
            return self.token

        def words_of(X: Any, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
            # They add up to the same for any chunking of the same rows.
            hashes = row_hashes(encoded(X))
            odd = (row_random_at(seed, 0, rows) | np.uint64(1) for seed in _HASH_SEEDS)
            return np.array([np.sum(hashes * each) for each in odd])

        words = self.reduce(words_of, add, client=client, allow_nan=True)
        head = (self.n_rows, self.n_columns, str(self.dtype), self.columns)
        return f"rows-{tokenize(head, words.tolist())}"

    def __repr__(self) -> str:
        n_stored = self.boundaries[-1]
        left = "" if self.n_rows == n_stored else f" of {n_stored:,} stored"
        kind = "CSR " if self.is_sparse else ""
        dtype = "data frames" if self.dtype.kind == "O" else self.dtype
        return (
            f"<Pool: {self.n_rows:,} rows{left} x {self.n_columns} columns, "
            f"{kind}{dtype}, {len(self.keys):,} chunks, "
            f"{self.nbytes / 2**20:,.1f} MiB>"
        )

    def excluding(self, rows: ArrayLike) -> "Pool":
        """Return the pool without the rows of these global numbers."""
        excluded = np.union1d(self.excluded, np.asarray(rows, dtype=np.int64))
        return replace(self, excluded=excluded)

    def part(
        self, lower: float, upper: float, *, seed: int, stream: int = PART_STREAM
    ) -> "Pool":
        """Return the rows whose random number lies in ``[lower, upper)``.

        It is `row_random` of `seed` and the row, divided by 2**64, so that parts of one
        seed divide the pool.
        """
        return replace(self, shares=(*self.shares, (lower, upper, seed, stream)))

    def spans(self, rows: int | None = None) -> tuple[Span, ...]:
        """Split the pool into spans of about `rows` stored rows along its chunks.

        They have no chunks at their ends in which the filter leaves no row. None stands
        for a number that depends on the pool alone: all machines group sums alike.
        """
        if rows is None:
            nbytes = min(SPAN_NBYTES, max(SMALL_SPAN_NBYTES, self.nbytes // 4))
            rows = max(nbytes // self.row_nbytes, 1)
        edges, kept, spans = self.boundaries, self.kept_before, []
        for first, last in _together(edges, rows):
            n_rows = int(kept[last] - kept[first])
            if n_rows:
                needed = first + np.flatnonzero(np.diff(kept[first : last + 1]))
                start, stop = edges[needed[0]], edges[needed[-1] + 1]
                spans.append(Span(int(start), int(stop), n_rows))
        return tuple(spans)

    def sources(self, span: Span, client: Any = None) -> list[Any]:
        """Return what a task passes to `read_blocks` to read one of the `spans`.

        What the workers of `client` hold stands in the list as futures, which `submit`
        resolves.
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
            beside=tuple(held),
            excluded=self.excluded[slice(*np.searchsorted(self.excluded, span[:2]))],
        )
        return [part, *held.values()]

    def _sent(self, graph: Mapping[Any, Any], client: Any) -> dict[Any, Any]:
        """Send rows that the graph holds to workers, once; return futures by key."""
        rows = {key: value for key, value in graph.items() if _are_rows(value)}
        nbytes = sum(map(table_nbytes, rows.values()))
        if nbytes < _SENT_NBYTES:
            return {}
        kept = self.sent.setdefault(client.id, {})
        missing = [k for k in rows if k not in kept or kept[k].cancelled()]
        # Of a scheduler that is gone an answer would be awaited for long.
        if missing and client.status == "running":
            values = [rows[key] for key in missing]
            send = partial(
                client.scatter, values, hash=False, timeout=_SECONDS, asynchronous=True
            )
            try:  # it may go just now, and a client waits as long as for a new one
                sent = client.sync(send, callback_timeout=_SECONDS + nbytes / 2**20)
            except (OSError, KeyError):  # KeyError: of a worker that has just died
                return {}  # the rows wait with their task
            kept.update(zip(missing, sent, strict=True))
        return {key: kept[key] for key in rows if key in kept}

    def reduce(
        self,
        count_chunk: Callable[[Any, NDArray[np.int64]], Any],
        combine: Callable[[Any, Any], Any],
        *,
        client: Any = None,
        keep: bool = False,
        allow_nan: bool = False,
        spans: Sequence[Span] | None = None,
        name: str = "count",
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
        spans
            Those that are read; None for all.
        name
            What the pass does, for names of tasks: ``moments-rows=0``.

        Returns
        -------
        object
            What `combine` made of all values.

        Raises
        ------
        ValueError
            Where the pool has no rows, or a value is not finite.
        PoolChangedError
            Where a file was written since the pool was opened, or during the pass.
        """
        if self.n_rows == 0:
            raise ValueError("`pool` must have rows for a pass, got none.")
        client = resolve_client(client)
        if client is None and self.keys and _are_rows(self.graph[self.keys[0]]):
            keep = False  # the cache would only outlive them
        schema = self.schema and self.schema.text
        told = self.token, str(self.dtype), schema, allow_nan
        group = f"pool-{tokenize(told)}" if keep else ""
        block_rows = max(BLOCK_NBYTES // self.row_nbytes, 1)
        tasks = [
            Task(
                f"{name}-rows={span.start}",
                ReduceJob(
                    block_rows, allow_nan,
                    f"{group}-{span.start}-{span.stop}" if group else "", group,
                ),
                partial(self.sources, span),
                place=number if keep else None,
            )
            for number, span in enumerate(spans or self.spans())
        ]  # fmt: skip
        context = count_chunk, combine
        with self.unchanged():
            return reduce(combine, results_in_order(context, tasks, client))


def in_blocks(
    tasks: Iterable[Any],
    lengths: Iterable[int],
    like: Any,
    *,
    graph: Mapping[Any, Any] | None = None,
    dtype: np.dtype[Any] | None = None,
    row_nbytes: float = 0,
    **others: Any,
) -> Pool:
    """Return rows of which each block is the value of a task, or in memory.

    `like`, a schema or an array, tells types; `graph` has what the tasks depend on.
    """
    frames = like if isinstance(like, FrameSchema) else None
    if frames:
        others |= {"frames": frames, "columns": frames.names}
    n_columns = len(frames.columns) if frames else like.shape[1]
    stored = frames.row_nbytes if frames else n_columns * like.dtype.itemsize
    kept = [
        (task, length) for task, length in zip(tasks, lengths, strict=True) if length
    ]
    block = _new_name()
    own = {(block, number): task for number, (task, _) in enumerate(kept)}
    return Pool(
        {**(graph or {}), **own},
        tuple(own),
        np.cumsum([0, *(length for _, length in kept)]),
        dtype or like.dtype,
        n_columns,
        max(math.ceil(row_nbytes or stored), 1),
        **others,
    )


def in_slices(
    read: Callable[[slice], Any], like: Any, n_rows: int, chunk_rows: int = 0, *,
    row_nbytes: float = 0, is_in_memory: bool = False, **others: Any,
) -> Pool:  # fmt: skip
    """Return rows that a function reads by slices, in blocks of whole chunks.

    A `chunk_rows` of 0 stands for rows of which any slice costs the same.
    """
    row_nbytes = max(row_nbytes or like.shape[1] * like.dtype.itemsize, 1)
    chunk_rows = chunk_rows or max(1, int(SMALL_BLOCK_NBYTES // row_nbytes))
    nbytes = min(n_rows * row_nbytes / MANY_BLOCKS, BLOCK_NBYTES)
    step = chunk_rows * max(int(nbytes // (chunk_rows * row_nbytes)), 1)
    edges = [*range(0, n_rows, step), n_rows]
    slices = [slice(*ends) for ends in pairwise(edges)]
    tasks = [read(each) if is_in_memory else (partial(read, each),) for each in slices]
    return in_blocks(tasks, np.diff(edges), like, row_nbytes=row_nbytes, **others)


def _together(edges: NDArray[np.int64], rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first of some blocks of so many rows, and the one behind the last."""
    first = 0
    while first < len(edges) - 1:
        fitting = int(np.searchsorted(edges, edges[first] + rows, side="right"))
        last = max(fitting - 1, first + 1)
        yield first, last
        first = last


def _new_name() -> str:
    return f"pool-{uuid.uuid4().hex}"


def _columns_at(rows: Any, places: list[int]) -> Any:
    return rows.iloc[:, places] if hasattr(rows, "iloc") else rows[:, places]


def _are_rows(value: Any) -> bool:
    return isinstance(value, (np.ndarray, pd.DataFrame)) or sparse.issparse(value)


def _is_future(value: Any) -> bool:
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(value, distributed.Future)


@dataclass(frozen=True)
class ReduceJob:
    """Some consecutive rows of a pool, block by block, whose values are combined."""

    block_rows: int
    """Rows that are in memory at once."""
    allow_nan: bool
    key: str = ""
    """Under which blocks stay in memory; "" where none does."""
    group: str = ""
    """Names blocks that are dropped together."""

    def run(
        self, context: tuple[Callable[..., Any], Callable[[Any, Any], Any]],
        inputs: Inputs,
    ) -> Output:  # fmt: skip
        """Return what was combined; the context counts a block, and combines two."""
        count, combine = context
        read = read_blocks(inputs.sources, self.block_rows, allow_nan=self.allow_nan)
        blocks: Iterable[Block] = read
        if self.key:
            cache = process_cache()
            blocks = cache.get(self.key, lambda: list(read), group=self.group)

        def counted(block: Block) -> Any:
            return count(block.X, block.rows)

        # In a loop a block would be there beside the next one.
        return Output(reduce(combine, map(counted, blocks)))


def _numbers_of_span(*sources: Any) -> Any:
    every = int(sources[0].boundaries[-1])
    (block,) = read_blocks(sources, every, allow_nan=True)
    return block.X


def read_blocks(
    sources: Sequence[Any], block_rows: int, *, allow_nan: bool = False
) -> Iterator[Block]:
    """Yield the rows of a span in order, at most `block_rows` at a time.

    Runs inside a task, on what `Pool.sources` returned with its futures resolved. Who
    lets go of a block before asking for the next one has one of the pool in memory.
    """
    pool, *values = sources
    graph = {**pool.graph, **dict(zip(pool.beside, values, strict=True))}
    for first, last in _together(pool.boundaries, block_rows):
        start, stop = pool.boundaries[[first, last]].tolist()
        mask = pool.mask(start, stop)
        if not mask.any():
            continue
        rows = stacked([_computed(graph, pool, at) for at in range(first, last)])
        for at in range(0, len(mask), block_rows):
            part = slice(at, at + block_rows)
            block = _block(pool, start + at, taken(rows, part), mask[part])
            if len(block.rows):
                check_finite(block.X, "`pool`", block.rows, pool.columns, allow_nan)
                yield block
            del block
        del rows  # else they would be there beside the next ones


def _computed(graph: Mapping[Any, Any], pool: Pool, number: int) -> Any:
    """Compute one block here, whatever scheduler is set, and show no progress of it."""
    key, where = pool.keys[number], pool.where
    needed, _ = cull(graph, key)
    start, stop = pool.boundaries[number : number + 2]
    try:
        rows = reached(where, lambda: get_sync(needed, key, callbacks=()))
    except (OSError, RuntimeError, ValueError) as error:
        if where == POOL or isinstance(error, ConnectionError):
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
    return fill_masked(rows, where)


def _block(pool: Pool, first: int, X: Any, mask: NDArray[np.bool_]) -> Block:
    """Return rows of which the first has a number, without those that are masked."""
    numbers = np.arange(first, first + len(mask))
    if not mask.all():
        numbers, X = numbers[mask], taken(X, np.flatnonzero(mask))
    if pool.schema is not None:
        X = frame_like(X, pool.schema)
    elif isinstance(X, pd.DataFrame):
        X = frame_of(X) if pool.dtype.kind == "O" else numbers_of(X, pool.dtype)
    elif sparse.issparse(X):
        X = summed(sparse.csr_matrix(X, dtype=pool.dtype))
    else:  # in one layout for all chunks: BLAS may round others differently
        X = np.ascontiguousarray(X, dtype=pool.dtype)
    return Block(numbers, X)
