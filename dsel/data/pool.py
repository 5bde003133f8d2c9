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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from dask.base import tokenize
from dask.local import get_sync
from dask.optimization import cull
from dask.utils import format_bytes
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from dsel.arrays import ArrayLike, Bools, Integers, as_plain, fill_masked_values
from dsel.cards import NAME_WIDTH, render_card
from dsel.checks import listing, show
from dsel.data.cache import process_cache
from dsel.data.columns import check_columns
from dsel.data.frames import (
    Frame,
    FrameSchema,
    check_finite,
    concatenate_rows,
    encode_rows,
    find_cast_changes,
    frame_like,
    frame_of,
    merge_entries,
    number_matrix,
    numbers_of,
    table_nbytes,
    take_rows,
)
from dsel.data.identity import content_hash, row_hashes
from dsel.data.pool_parts import POOL, Blocks, Origin, RowFilter, StoredSchema
from dsel.data.row_random import FITTING_STREAM, row_random_at
from dsel.errors import PoolChangedError, PoolRowError, RowError, reach_and_read
from dsel.old_names import OldName
from dsel.rounded_texts import count_of
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task
from dsel.typing import RowsLike

if TYPE_CHECKING:
    from distributed import Client


NEXT: Final = ("Next", "`dsel.certify(model, X, y, pool)`")
"""Next calls at a prompt, as outcomes show them."""
SLICE_NBYTES: Final = 2**26
"""Largest slice: a task takes some tenths of a second for it."""
SMALL_SLICE_NBYTES: Final = 2**23  # smallest, so that a few workers can share a pool
BLOCK_NBYTES: Final = 2**23
"""Bytes of rows in one call of `count_chunk`, whose arrays then stay small, too."""
SMALL_BLOCK_NBYTES: Final = 2**18  # smallest block of rows that have no chunks
MANY_BLOCKS: Final = 64  # number of blocks above which small ones are joined
_SENT_NBYTES: Final = 2**20  # smaller data go through the scheduler with their task
_SECONDS: Final = 10.0  # time-out of sending rows, plus a second for each MiB
_HASH_SEEDS: Final = (0x72_6F_77_73, 0x77_6F_72_64)


class PoolSlice(NamedTuple):
    """Consecutive rows of a pool that one task reads."""

    start: int
    """Global number of the first row."""
    stop: int
    n_rows: int
    """Number of rows that pass the filters of the pool."""


class Block(NamedTuple):
    """Rows in memory."""

    row_numbers: Integers
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

    blocks: Blocks
    origin: Origin
    stored_schema: StoredSchema
    target_schema: FrameSchema | None = None
    """Schema of the frames that blocks become; None for arrays or frames as stored."""
    row_filter: RowFilter = field(default_factory=RowFilter)

    @property
    def boundaries(self) -> Integers:
        """Global row numbers at which blocks begin, and the number of stored rows."""
        return self.blocks.boundaries

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns; None where they have none."""
        return self.stored_schema.columns

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.stored_schema.n_columns

    @property
    def row_nbytes(self) -> int:
        """Bytes of one row in memory, on average, at least 1."""
        return self.stored_schema.row_nbytes

    @property
    def frames(self) -> FrameSchema | None:
        """Schema of data frames as they are stored; None of arrays."""
        return self.stored_schema.frames

    @property
    def where(self) -> str:
        """Name of the pool in messages, with its file if there is one."""
        return self.origin.location

    @property
    def other_records(self) -> bool:
        """Whether the user declared that no row is the record of a labeled row."""
        return self.origin.other_records

    def check_for_changes(self) -> None:
        """Raise PoolChangedError where a file was written after the pool was opened."""
        self.origin.check_for_changes()

    def with_schema(self, schema: FrameSchema | None) -> "Pool":
        """Return the pool with blocks as frames of a schema, or as stored for None."""
        return replace(self, target_schema=schema)

    @contextmanager
    def guard_pass(self) -> Iterator[None]:
        """Check before and after a pass, even if it fails, that no file has changed."""
        self.check_for_changes()
        try:
            yield
        except Exception:
            # A changed file breaks tasks in many ways; report the change instead.
            self.check_for_changes()
            raise
        self.check_for_changes()

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "`pool` cannot be an array without a copy; call numpy.asarray(pool)."
            )
        blocks = self.reduce(lambda X, _: [number_matrix(X)], add, allow_nan=True)
        rows = concatenate_rows(blocks)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return np.asarray(rows, dtype=dtype)

    def to_dask_array(self, lengths: Any = None) -> Any:
        """Return the rows that pass the filters as a numeric Dask array.

        The lengths of its chunks are always known. `lengths` is ignored; Dask data
        frames have this argument, and learners can treat both alike.
        """
        del lengths
        return self.as_array(resolve_client(None))

    def as_array(self, client: "Client | None" = None) -> Any:
        """Return the rows that pass the filters as a numeric Dask array."""
        import dask.array as da  # slow to import, and needed only here

        graph: dict[Any, Any] = {}
        name, lengths = _new_name(), []
        for slice_number, pool_slice in enumerate(self.slices(1)):
            source, *future_keys = self.with_schema(None).sources(pool_slice, client)
            graph |= dict(zip(source.blocks.held, future_keys, strict=True))
            graph[name, slice_number, 0] = (
                partial(_numbers_of_slice, source),
                *source.blocks.held,
            )
            lengths.append(pool_slice.n_rows)
        stored = self.stored_schema
        kind = sparse.csr_matrix if stored.is_sparse else np.empty
        meta = kind((0, 0), dtype=stored.dtype)
        return da.Array(graph, name, (tuple(lengths), (self.n_columns,)), meta=meta)

    @property
    def n_rows(self) -> int:
        """Number of rows that pass the filters."""
        return int(self.n_passing_before[-1])

    @cached_property
    def n_passing_before(self) -> Integers:
        """Number of rows before each boundary that pass the filters."""
        # A filter costs a random word for each row, and most pools have no filter.
        if self.row_filter.keeps_all:
            return self.boundaries
        mask = self.row_filter.mask
        n_passing = [mask(*ends).sum() for ends in pairwise(self.boundaries)]
        return np.cumsum([0, *n_passing])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values of every block; object for data frames."""
        are_frames = self.target_schema is not None and self.frames is not None
        return np.dtype(object) if are_frames else self.stored_schema.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that a pass reads, in memory; filters do not lower it."""
        return self.row_nbytes * int(self.boundaries[-1])

    def with_columns(
        self, names: Iterable[Any], what: str = "`X`", *, block_rows: int | None = None
    ) -> "Pool":
        """Return the pool with some of its columns, in this order.

        `block_rows` is the largest number of rows of a block, if files can be read in
        any blocks.
        """
        names, columns = tuple(map(str, names)), self.columns or ()
        if names == columns and (block_rows is None or not self.origin.read_columns):
            return self
        check_columns(columns, names, self.where, f" of {what}")
        target = self.target_schema and self.target_schema.with_columns(names)
        if self.origin.read_columns is not None:
            # Filters refer to row numbers, so they are valid for the reopened rows.
            opened = self.origin.read_columns(names, block_rows)
            return Pool(
                opened.blocks,
                replace(opened.origin, other_records=self.other_records),
                replace(opened.stored_schema, has_order=self.stored_schema.has_order),
                target,
                self.row_filter,
            )
        positions = [columns.index(column) for column in names]
        stored = self.stored_schema
        frames = stored.frames and stored.frames.with_columns(names)
        return replace(
            self,
            blocks=self.blocks.map(partial(_columns_at, positions)),
            stored_schema=replace(
                stored,
                dtype=stored.dtype if frames is None else frames.dtype,
                n_columns=len(names),
                row_nbytes=-(-stored.row_nbytes * len(names) // stored.n_columns),
                columns=names,
                frames=frames,
            ),
            target_schema=target,
        )

    @cached_property
    def token(self) -> str:
        """An identifier of content and filters; for Dask arrays the name is used.

        It is cheap to compute: only rows in memory are hashed.
        """
        name, row_filter = self.origin.fingerprint, self.row_filter
        if not name:
            graph, task_keys = self.blocks.graph, self.blocks.task_keys
            blocks = (_compute_block(graph, self, n) for n in range(len(task_keys)))
            if self.frames:
                blocks = (Frame(block, self.frames) for block in blocks)
            name = str([content_hash(block) for block in blocks])
        filters = row_filter.excluded, row_filter.word_ranges
        return f"pool-{tokenize(name, self.columns, *filters)}"

    def fingerprint(self, client: "Client | None" = None) -> str:
        """Return a text that changes with the rows; Dask arrays are read for it."""
        if self.origin.is_content or not self.n_rows:
            return self.token

        def words_of(X: RowsLike, row_numbers: Integers) -> NDArray[np.uint64]:
            # Each row's hash is weighted by its number, so that order matters, and
            # added up, so that chunking does not.
            hashes = row_hashes(encode_rows(X))
            odd = (
                row_random_at(seed, 0, row_numbers) | np.uint64(1)
                for seed in _HASH_SEEDS
            )
            return np.array([np.sum(hashes * weights) for weights in odd])

        words = self.reduce(words_of, add, client=client, allow_nan=True)
        head = (self.n_rows, self.n_columns, str(self.dtype), self.columns)
        return f"rows-{tokenize(head, words.tolist())}"

    def __repr__(self) -> str:
        return f"<Pool: {self}>\n{NEXT[0]:{NAME_WIDTH}}  {NEXT[1]}"

    def __str__(self) -> str:
        n_chunks = count_of(len(self.blocks.task_keys), "chunk")
        return f"{self._size}, {self._kind}, {n_chunks}, {format_bytes(self.nbytes)}"

    def _repr_html_(self) -> str:
        shown_rows = [
            ("", "Pool of unlabeled rows"),
            ("rows", self._size),
            ("of", self._kind),
            ("chunks", f"{len(self.blocks.task_keys):,}"),
            ("size", format_bytes(self.nbytes)),
        ]
        if self.columns:
            shown_rows.append(("columns", listing(list(self.columns), 10)))
        return render_card([*shown_rows, NEXT])

    @property
    def _size(self) -> str:
        n_stored = self.boundaries[-1]
        left = "" if self.n_rows == n_stored else f" of {n_stored:,} stored"
        return f"{self.n_rows:,} rows{left} x {self.n_columns} columns"

    @property
    def _kind(self) -> str:
        dtype = "data frames" if self.dtype.kind == "O" else self.dtype
        return f"{'CSR ' if self.stored_schema.is_sparse else ''}{dtype}"

    def excluding(self, rows: ArrayLike) -> "Pool":
        """Return the pool without the rows of these global numbers."""
        return replace(self, row_filter=self.row_filter.excluding(rows))

    def subset(
        self, lower: float, upper: float, *, seed: int, stream: int = FITTING_STREAM
    ) -> "Pool":
        """Return the rows whose random number lies in ``[lower, upper)``.

        The random number is `row_random` of `seed` and the row, divided by 2**64, so
        adjoining intervals with one seed divide the pool.
        """
        row_filter = self.row_filter.subset(lower, upper, seed, stream)
        return replace(self, row_filter=row_filter)

    part = OldName("subset")

    def slices(self, rows: int | None = None) -> tuple[PoolSlice, ...]:
        """Split the pool into slices of about `rows` stored rows along its chunks.

        Chunks at the ends of a slice in which the filter leaves no row are cut off. If
        `rows` is None, the number depends on the pool alone, so that all machines group
        sums in the same way.
        """
        if rows is None:
            # There are at least four slices where they are not too small, so that a few
            # workers share a small pool. The number of workers must not matter: sums of
            # floats depend on where slices end.
            nbytes = min(SLICE_NBYTES, max(SMALL_SLICE_NBYTES, self.nbytes // 4))
            rows = max(nbytes // self.row_nbytes, 1)
        edges, passing, slices = self.boundaries, self.n_passing_before, []
        for first, last in _runs_of_blocks(edges, rows):
            n_rows = int(passing[last] - passing[first])
            if n_rows:
                # A filter may keep the middle of a slice only; its ends are not read.
                needed = first + np.flatnonzero(np.diff(passing[first : last + 1]))
                start, stop = edges[needed[0]], edges[needed[-1] + 1]
                slices.append(PoolSlice(int(start), int(stop), n_rows))
        return tuple(slices)

    def sources(
        self, pool_slice: PoolSlice, client: "Client | None" = None
    ) -> list[Any]:
        """Return the arguments with which a task calls `read_blocks` for a slice.

        Data on the workers of `client` are futures in this list, which `submit`
        resolves.
        """
        first, last = np.searchsorted(
            self.boundaries, [pool_slice.start, pool_slice.stop]
        )
        blocks = self.blocks
        task_keys = blocks.task_keys[first:last]
        graph, _ = cull(blocks.graph, list(task_keys))
        futures = {key: value for key, value in graph.items() if _is_future(value)}
        if client is None:  # in a graph a future would be treated as a key
            graph |= {key: (future.result,) for key, future in futures.items()}
            futures = {}
        else:
            futures |= self._send_rows(graph, client)
        source = replace(
            self,
            blocks=Blocks(
                {key: task for key, task in graph.items() if key not in futures},
                task_keys,
                blocks.boundaries[first : last + 1],
                tuple(futures),
            ),
            row_filter=self.row_filter.between(pool_slice.start, pool_slice.stop),
        )
        return [source, *futures.values()]

    def _send_rows(self, graph: Mapping[Any, Any], client: "Client") -> dict[Any, Any]:
        """Send rows in the graph to the workers once; return futures by key."""
        rows = {key: value for key, value in graph.items() if _are_rows(value)}
        nbytes = sum(map(table_nbytes, rows.values()))
        if nbytes < _SENT_NBYTES:
            return {}
        # The key is the client: a future of a closed client cannot be used by the next
        # one.
        futures = self.blocks.sent.setdefault(client.id, {})
        missing = [k for k in rows if k not in futures or futures[k].cancelled()]
        sent = send_values([rows[key] for key in missing], nbytes, client)
        if len(sent) < len(missing):
            return {}
        futures.update(zip(missing, sent, strict=True))
        return {key: futures[key] for key in rows if key in futures}

    def reduce(
        self,
        count_chunk: Callable[[Any, Integers], Any],
        combine: Callable[[Any, Any], Any],
        *,
        client: "Client | None" = None,
        keep: bool = False,
        allow_nan: bool = False,
        slices: Sequence[PoolSlice] | None = None,
        name: str = "count",
        on_turn: Callable[[], object] | None = None,
    ) -> Any:
        """Compute a statistic of the pool in one pass.

        Parameters
        ----------
        count_chunk
            Called as ``count_chunk(X, rows)`` with a block and its row numbers.
        combine
            Called as ``combine(earlier, later)``, always in row order. Counts are the
            same for any chunking, sums of floats up to rounding.
        client
            Dask client; None is the current one, else this machine. Inside a task
            the pass runs in that task.
        keep
            Whether blocks stay in memory for the next pass, as far as they fit.
        allow_nan
            Whether missing values are allowed.
        slices
            Slices to read; None for all.
        name
            Name of the pass in the names of its tasks, such as ``moments-rows=0``.
        on_turn
            Called at least every half second of the pass, without arguments, in the
            calling thread; an exception of it ends the pass.

        Returns
        -------
        object
            The combined value.

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
        graph, task_keys = self.blocks.graph, self.blocks.task_keys
        if client is None and task_keys and _are_rows(graph[task_keys[0]]):
            keep = False  # rows in memory need no second copy in the cache
        schema = self.target_schema and self.target_schema.text
        identity = self.token, str(self.dtype), schema, allow_nan
        scan_name = f"pool-{tokenize(identity)}" if keep else ""
        block_rows = max(BLOCK_NBYTES // self.row_nbytes, 1)
        tasks = []
        for slice_number, pool_slice in enumerate(slices or self.slices()):
            first, stop = pool_slice.start, pool_slice.stop
            key = f"{scan_name}-{first}-{stop}" if scan_name else ""
            work = ReduceSlice(block_rows, allow_nan, key, scan_name)
            sources = partial(self.sources, pool_slice)
            # Slices that stay in memory go to the same worker in each pass.
            affinity = slice_number if keep else None
            tasks.append(Task(f"{name}-rows={first}", work, sources, affinity=affinity))
        context = count_chunk, combine
        with self.guard_pass():
            # Results are combined in row order, so that sums of floats are the same on
            # any number of workers.
            results = results_in_order(context, tasks, client, on_turn=on_turn)
            return reduce(combine, results)


def pool_of_blocks(
    tasks: Iterable[object],
    lengths: Iterable[int],
    like: Any,
    origin: Origin,
    *,
    graph: Mapping[Any, Any] | None = None,
    dtype: np.dtype[Any] | None = None,
    row_nbytes: float = 0,
    columns: Iterable[object] | None = None,
) -> Pool:
    """Return a pool whose blocks are values of tasks, or in memory.

    `like`, a schema or an array, has the types; `graph` has the tasks' dependencies.
    """
    frames = like if isinstance(like, FrameSchema) else None
    names = frames.names if frames else columns
    n_columns = len(frames.columns) if frames else like.shape[1]
    stored = frames.row_nbytes if frames else n_columns * like.dtype.itemsize
    # Empty blocks would have one boundary twice, and no slice could begin there.
    nonempty = [
        (task, length) for task, length in zip(tasks, lengths, strict=True) if length
    ]
    block = _new_name()
    named = {
        (block, block_number): task for block_number, (task, _) in enumerate(nonempty)
    }
    boundaries = np.cumsum([0, *(length for _, length in nonempty)])
    return Pool(
        Blocks({**(graph or {}), **named}, tuple(named), boundaries),
        origin,
        StoredSchema(
            (dtype or like.dtype).newbyteorder("="),
            n_columns,
            max(math.ceil(row_nbytes or stored), 1),
            None if names is None else tuple(map(str, names)),
            frames,
            is_sparse=frames is None and sparse.issparse(like),
        ),
    )


def pool_of_slices(
    read: Callable[[slice], Any],
    like: Any,
    n_rows: int,
    origin: Origin,
    *,
    chunk_rows: int = 0,
    row_nbytes: float = 0,
    is_in_memory: bool = False,
    columns: Iterable[object] | None = None,
) -> Pool:
    """Return a pool that a function reads by slices, in blocks of whole chunks.

    A `chunk_rows` of 0 means that rows are not stored in chunks.
    """
    row_nbytes = max(row_nbytes or like.shape[1] * like.dtype.itemsize, 1)
    chunk_rows = chunk_rows or max(1, int(SMALL_BLOCK_NBYTES // row_nbytes))
    nbytes = min(n_rows * row_nbytes / MANY_BLOCKS, BLOCK_NBYTES)
    # Blocks have whole chunks: a chunk that two blocks share would be read and decoded
    # twice.
    step = chunk_rows * max(int(nbytes // (chunk_rows * row_nbytes)), 1)
    edges = [*range(0, n_rows, step), n_rows]
    slices = [slice(*ends) for ends in pairwise(edges)]
    tasks = [read(s) if is_in_memory else (partial(read, s),) for s in slices]
    return pool_of_blocks(
        tasks, np.diff(edges), like, origin, row_nbytes=row_nbytes, columns=columns
    )


def _runs_of_blocks(edges: Integers, n_rows: int) -> Iterator[tuple[int, int]]:
    """Yield runs of blocks of up to `n_rows` rows, as (first, last + 1)."""
    first = 0
    while first < len(edges) - 1:
        fitting = int(np.searchsorted(edges, edges[first] + n_rows, side="right"))
        last = max(fitting - 1, first + 1)  # a block of more rows is a run by itself
        yield first, last
        first = last


def _new_name() -> str:
    return f"pool-{uuid.uuid4().hex}"


def _columns_at(positions: list[int], _: int, rows: Any) -> Any:
    return rows.iloc[:, positions] if hasattr(rows, "iloc") else rows[:, positions]


def _are_rows(value: Any) -> bool:
    return isinstance(value, (np.ndarray, pd.DataFrame)) or sparse.issparse(value)


def _is_future(value: object) -> bool:
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(value, distributed.Future)


def send_values(values: list[Any], nbytes: int, client: "Client") -> list[Any]:
    """Send values to workers, and return their futures.

    There are no futures if the values have few bytes, or the cluster does not answer:
    then the values are sent with their task.
    """
    # If the scheduler is gone, the call would wait for a long time.
    if not values or nbytes < _SENT_NBYTES or client.status != "running":
        return []
    send = partial(
        client.scatter, values, hash=False, timeout=_SECONDS, asynchronous=True
    )
    # The scheduler may end at this moment, so the call has a time-out.
    try:
        sent = client.sync(send, callback_timeout=_SECONDS + nbytes / 2**20)
    except (OSError, KeyError):  # KeyError: a worker has just died
        return []
    return list(sent)


@dataclass(frozen=True)
class ReduceSlice:
    """Counts a slice of the pool block by block, and combines the counts."""

    block_rows: int
    """Rows that are in memory at once."""
    allow_nan: bool
    key: str = ""
    """Cache key of the blocks that stay in memory; "" where none do."""
    scan_name: str = ""
    """Name of the scan, whose blocks never replace each other in the cache."""

    def run(
        self,
        count_and_combine: tuple[Callable[..., Any], Callable[[Any, Any], Any]],
        inputs: Inputs,
    ) -> Output[Any]:
        """Return the combined counts of all blocks."""
        count, combine = count_and_combine
        read = read_blocks(inputs.sources, self.block_rows, allow_nan=self.allow_nan)
        blocks: Iterable[Block] = read
        if self.key:
            cache = process_cache()
            blocks = cache.get(self.key, lambda: list(read), scan_name=self.scan_name)

        def count_block(block: Block) -> Any:
            return count(block.X, block.row_numbers)

        # A loop variable would keep one block in memory while the next one is read.
        return Output(reduce(combine, map(count_block, blocks)))


def _numbers_of_slice(*sources: Any) -> Any:
    every = int(sources[0].boundaries[-1])
    (block,) = read_blocks(sources, every, allow_nan=True)
    return block.X


def read_blocks(
    sources: Sequence[Any], block_rows: int, *, allow_nan: bool | None = False
) -> Iterator[Block]:
    """Yield the rows of a slice in order, at most `block_rows` at a time.

    It runs inside a task, on the list of `Pool.sources` with its futures resolved. A
    caller that drops a block before it takes the next one has one block in memory. If
    `allow_nan` is None, the caller checks that numbers are finite.
    """
    pool, *values = sources
    blocks, row_filter = pool.blocks, pool.row_filter
    # Dask resolves futures in arguments of a task, but not in a graph that is one.
    graph = {**blocks.graph, **dict(zip(blocks.held, values, strict=True))}
    for first, last in _runs_of_blocks(pool.boundaries, block_rows):
        start, stop = pool.boundaries[[first, last]].tolist()
        mask = row_filter.mask(start, stop)
        if not mask.any():
            continue
        rows = concatenate_rows(
            [
                _compute_block(graph, pool, block_number)
                for block_number in range(first, last)
            ]
        )
        for at in range(0, len(mask), block_rows):
            chosen = slice(at, at + block_rows)
            block = _block(pool, start + at, take_rows(rows, chosen), mask[chosen])
            if len(block.row_numbers):
                if allow_nan is not None:
                    check_finite(
                        block.X,
                        "`pool`",
                        block.row_numbers,
                        pool.columns,
                        allow_nan,
                        PoolRowError,
                    )
                yield block
            del block
        del rows  # they would otherwise be in memory while the next ones are read


NO_DAMAGE = (ConnectionError, RowError, PoolChangedError)


def _compute_block(graph: Mapping[Any, Any], pool: Pool, block_number: int) -> Any:
    """Compute one block in this thread, ignoring Dask's scheduler and callbacks."""
    key, where = pool.blocks.task_keys[block_number], pool.where
    # Inside a task Dask's own scheduler would start threads of its own, and progress
    # bars of the user would count blocks.
    needed, _ = cull(graph, key)
    start, stop = pool.boundaries[block_number : block_number + 2]
    try:
        rows = reach_and_read(where, lambda: get_sync(needed, key, callbacks=()))
    except (OSError, RuntimeError, ValueError) as error:
        # A server that does not answer is no damage; the task is tried again. A value
        # of another kind than in the labeled rows is no damage either, nor is a file
        # that another program writes.
        if where == POOL or isinstance(error, NO_DAMAGE):
            raise
        raise ValueError(
            f"{where} is damaged: rows {start} to {stop - 1} cannot be read "
            f"({error}); write the pool again."
        ) from error
    if rows.shape[0] != stop - start:
        raise ValueError(
            f"`pool` must have the chunk lengths that it declares, but its rows "
            f"{start} to {stop - 1} are {rows.shape[0]} rows; correct them, as "
            f"compute_chunk_sizes() of a Dask array does."
        )
    return fill_masked_values(rows, where)


def _block(pool: Pool, first: int, X: Any, mask: Bools) -> Block:
    """Return a block of rows with its first row number, without masked rows."""
    # Global numbers: random words of rows follow from these under any chunking.
    row_numbers = np.arange(first, first + len(mask))
    if not mask.all():
        row_numbers, X = row_numbers[mask], take_rows(X, np.flatnonzero(mask))
    if pool.target_schema is not None:
        X = frame_like(X, pool.target_schema)
    elif isinstance(X, pd.DataFrame) and pool.dtype.kind == "O":
        X = frame_of(X)
    else:
        X = _in_declared_type(X, pool, row_numbers)
    return Block(row_numbers, X)


def _in_declared_type(X: Any, pool: Pool, row_numbers: Integers) -> Any:
    """Return numbers in the type of the pool; raise PoolRowError where one changes.

    A chunk of a Dask collection may have another type than the collection declares:
    fractions would become whole numbers, NaN some number, and a copy of a labeled row
    would not equal it once it is rounded.
    """
    dtype = pool.dtype
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(X, pd.DataFrame):
            rows = numbers_of(X, dtype)
            parts = [(X.iloc[:, j].to_numpy(), rows[:, j]) for j in range(X.shape[1])]
        elif sparse.issparse(X):
            X = merge_entries(sparse.csr_matrix(X))
            rows = X.astype(dtype, copy=False)
            parts = [(X.data, rows.data)]
        else:  # all chunks have one memory order: BLAS may round others differently
            rows = np.ascontiguousarray(X, dtype=dtype)
            parts = [(X, rows)]
    for values, cast in parts:
        changed = find_cast_changes(values, cast, may_round=False)
        if changed is None:
            continue
        row = np.argwhere(changed)[0, 0]
        if sparse.issparse(X):
            row = np.searchsorted(X.indptr, row, side="right") - 1
        value = show(as_plain(values[changed][0]))
        raise PoolRowError(
            f"{pool.where} declares numbers of the type {dtype}, but ",
            int(row_numbers[row]),
            f" has {value}; correct the type, such as the `dtype` or `meta` of a Dask "
            f"collection.",
        )
    return rows
