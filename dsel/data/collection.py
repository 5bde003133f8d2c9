"""The rows of a pool as a Dask collection, and what that does not carry."""

import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from dask.base import DaskMethodsMixin, tokenize
from dask.optimization import cull
from dask.threaded import get as get_threaded
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.cache import nbytes_of
from dsel.data.frames import (
    Frame,
    FrameSchema,
    columns_taken,
    concatenated,
    native,
)

POOL: Final = "`pool`"
"""How messages call rows that are in no file."""

SMALL_BLOCK_NBYTES: Final = 2**18
"""Rows that are not stored in chunks are read by so much at least."""
BLOCK_NBYTES: Final = 2**23
"""Smaller chunks are read together where there are many."""
MANY_BLOCKS: Final = 64
MOST_BLOCKS: Final = 2**14
"""More would make a graph that takes a second to build."""

_SENT_NBYTES: Final = 2**20  # less goes through the scheduler, with its task
_SECONDS: Final = 10.0  # for which a worker to send to is awaited

Graph = dict[Any, Any]


@dataclass(frozen=True, eq=False)
class Collection:
    """A Dask collection with column names, and how its content is told."""

    array: Any
    """A Dask array of shape (n_rows, n_columns), numeric, in one chunk of columns, of
    known chunk lengths, its blocks dense or CSR; else `Partitions`, of data frames."""
    columns: tuple[str, ...] | None
    nbytes: int
    """Bytes of all rows in memory."""
    tell: Callable[[], tuple[str, bool]] = field(repr=False)
    """Returns a text for the content as it is now, at a cost far below that of reading
    the rows, and whether that text changes with the content."""
    frames: "Collection | None" = field(default=None, repr=False)
    """The same rows as data frames, where they are numbers that were given so."""
    read: "Callable[[tuple[str, ...]], Collection] | None" = field(
        default=None, repr=False
    )
    """Opens some columns anew, where that saves reading the others."""
    where: str = POOL
    """How messages call it: with its file, where there is one."""
    is_in_memory: bool = False

    def __getstate__(self) -> dict[str, Any]:
        # What was made of the fields is made again, and futures stay where they are.
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        # Which form and which columns are read was decided before.
        return state | {"frames": None, "read": None}

    def with_columns(self, names: tuple[str, ...]) -> "Collection":
        """Return some of the columns, in this order."""
        if self.read is not None:
            found = self.read(names)
            as_frames = isinstance(self.array, Partitions)
            return found.frames if as_frames and found.frames else found
        assert self.columns is not None
        places = [self.columns.index(name) for name in names]
        array = self.array
        if isinstance(array, Partitions):
            array = array.with_columns(names)
        else:
            chunks = (array.chunks[0], (len(places),))
            cut = partial(_columns_at, places=places)
            meta = array._meta[:, :0]
            array = array.map_blocks(cut, dtype=array.dtype, chunks=chunks, meta=meta)
        return replace(
            self,
            array=array,
            columns=names,
            nbytes=self.nbytes * len(names) // max(len(self.columns), 1),
            tell=partial(_told_of_columns, self.tell, names),
            frames=self.frames and self.frames.with_columns(names),
        )

    @property
    def n_rows(self) -> int:
        """Rows stored."""
        return int(self.array.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR."""
        return bool(sparse.issparse(self.array._meta))

    @property
    def is_stored(self) -> bool:
        """Whether tasks read the rows from files."""
        return self.where != POOL

    @cached_property
    def told(self) -> tuple[str, bool]:
        """What `tell` said when it was asked first."""
        return self.tell()

    @cached_property
    def boundaries(self) -> NDArray[np.int64]:
        """Row numbers at which blocks begin, and `n_rows`; empty ones do not count."""
        stops = np.cumsum(np.asarray(self.array.chunks[0], dtype=np.int64))
        return np.unique(np.append(np.int64(0), stops))

    @cached_property
    def _keys(self) -> list[Any]:
        """Keys of the blocks that have rows."""
        keys = [row[0] for row in self.array.__dask_keys__()]
        return [keys[i] for i in np.flatnonzero(self.array.chunks[0])]

    @cached_property
    def _graph(self) -> Graph:
        """The graph of all blocks, built once: that of a span is cut out of it.

        Not optimized: what is fused with a task can no longer be told to be a future
        or rows in memory, which must not be sent with every span.
        """
        graph = dict(self.array.__dask_graph__())
        if "distributed" in sys.modules:
            from distributed import futures_of

            graph |= {future.key: future for future in futures_of(self.array)}
        return graph

    def blocks(
        self, start: int, stop: int, client: Any
    ) -> tuple[NDArray[np.int64], list[Any], Graph, Graph]:
        """Return what computes the blocks between two boundaries.

        That is where the blocks begin, and `stop`; their keys in the graph; all tasks
        that they need, and no others; and by key what of it the cluster of `client`
        holds, which is not in the graph.
        """
        first, last = np.searchsorted(self.boundaries, [start, stop])
        keys = self._keys[first:last]
        graph, _ = cull(self._graph, keys)
        futures = {key: value for key, value in graph.items() if _is_future(value)}
        if client is None:  # a graph would take the future itself for a key
            graph |= {key: (future.result,) for key, future in futures.items()}
            futures = {}
        else:
            futures |= self._sent(graph, client)
        graph = {key: task for key, task in graph.items() if key not in futures}
        return self.boundaries[first : last + 1], keys, graph, futures

    def _sent(self, graph: Graph, client: Any) -> Graph:
        """Send rows that the graph holds to workers; return their futures by key.

        They are sent once for as long as the collection lives, unless they are lost
        with a worker. The scheduler never gets them.
        """
        rows = {key: value for key, value in graph.items() if _are_rows(value)}
        if sum(map(nbytes_of, rows.values())) < _SENT_NBYTES:
            return {}
        kept = _SENT.setdefault(self, {}).setdefault(client.id, {})
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


_SENT: Final[WeakKeyDictionary[Collection, dict[str, Graph]]] = WeakKeyDictionary()
"""Futures of rows in memory, by collection, client and key."""


def _told_of_columns(
    tell: Callable[[], tuple[str, bool]], names: tuple[str, ...]
) -> tuple[str, bool]:
    text, changes = tell()
    return f"columns-{tokenize(text, names)}", changes


def _columns_at(rows: Any, places: list[int]) -> Any:
    return rows[:, places]


def _is_future(value: Any) -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(value, Future)


def _are_rows(value: Any) -> bool:
    return isinstance(value, np.ndarray | Frame) or bool(sparse.issparse(value))


class Partitions(DaskMethodsMixin):
    """A Dask collection of data frames, one under each key, of known lengths."""

    dtype = np.dtype(object)
    __dask_scheduler__ = staticmethod(get_threaded)
    __dask_optimize__ = None

    def __init__(
        self,
        graph: Mapping[Any, Any],
        keys: Sequence[Any],
        lengths: Sequence[int],
        schema: FrameSchema,
    ) -> None:
        self.graph, self.keys, self.schema = graph, tuple(keys), schema
        self.chunks = (tuple(lengths), (len(schema.columns),))
        self.shape = (sum(lengths), len(schema.columns))
        self._meta = schema.empty

    def with_columns(self, names: tuple[str, ...]) -> "Partitions":
        """Return some of the columns, in this order."""
        name = new_name()
        graph = {
            (name, number, 0): (columns_taken, key, names)
            for number, key in enumerate(self.keys)
        }
        columns = {column.name: column for column in self.schema.columns}
        schema = FrameSchema(
            columns_taken(self.schema.empty, names), tuple(columns[n] for n in names)
        )
        whole = {**self.graph, **graph}
        return Partitions(whole, list(graph), self.chunks[0], schema)

    def __dask_graph__(self) -> Mapping[Any, Any]:
        return self.graph

    def __dask_keys__(self) -> list[Any]:
        return [[key] for key in self.keys]

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return _one_frame, ()

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Partitions, (self.keys, self.chunks[0], self.schema)


def _one_frame(parts: Sequence[Sequence[Any]]) -> Any:
    return native(concatenated([native(part) for (part,) in parts]))


def in_slices(
    table: Any, nbytes: int, cut: Callable[[Any, slice], Any], name: str
) -> tuple[Graph, tuple[int, ...]]:
    """Return the graph of slices of rows in memory, and the length of each."""
    n_rows = int(table.shape[0])
    lengths = block_lengths(n_rows, chunk_of_any(n_rows, nbytes), nbytes)
    edges = pairwise(np.cumsum((0, *lengths)).tolist())
    graph = {(name, i, 0): cut(table, slice(*each)) for i, each in enumerate(edges)}
    return graph, lengths


def dask_array(
    graph: Mapping[Any, Any], lengths: Sequence[int], like: Any, name: str
) -> Any:
    """Return blocks of rows, one under each key ``(name, number, 0)``, as an array.

    `like` has their number of columns, their type, and is sparse if they are.
    """
    import dask.array as da  # takes a while: only who opens a pool pays for it

    n_columns, dtype = int(like.shape[1]), np.dtype(like.dtype)
    is_sparse = sparse.issparse(like)
    meta = (sparse.csr_matrix if is_sparse else np.empty)((0, 0), dtype=dtype)
    return da.Array(dict(graph), name, (tuple(lengths), (n_columns,)), meta=meta)


def new_name() -> str:
    """Return a name for the blocks of one collection."""
    return f"pool-{uuid.uuid4().hex}"


def array_of_reads(source: Any, chunk_rows: int) -> Any:
    """Return what tasks fetch rows from by slices, as a Dask array.

    `source` is pickled with every task. Chunks of `chunk_rows` that are small are read
    together.
    """
    import dask.array as da

    n_rows, n_columns = map(int, source.shape)
    nbytes = n_rows * n_columns * source.dtype.itemsize
    return da.from_array(
        source,
        chunks=(block_lengths(n_rows, chunk_rows, nbytes), (n_columns,)),
        name=new_name(),
        inline_array=True,
        meta=np.empty((0, 0), source.dtype),
    )


def block_lengths(n_rows: int, chunk_rows: int, nbytes: int) -> tuple[int, ...]:
    """Return the lengths of blocks of some whole chunks each, the last one shorter."""
    n_chunks = -(-n_rows // chunk_rows)
    chunk_nbytes = max(nbytes * chunk_rows // max(n_rows, 1), 1)
    together = min(n_chunks // MANY_BLOCKS, BLOCK_NBYTES // chunk_nbytes)
    step = chunk_rows * max(together, -(-n_chunks // MOST_BLOCKS), 1)
    whole, rest = divmod(n_rows, step)
    return (step,) * whole + ((rest,) if rest or not whole else ())


def chunk_of_any(n_rows: int, nbytes: int) -> int:
    """Return a number of rows to read together where any slice costs the same."""
    return max(1, SMALL_BLOCK_NBYTES // max(nbytes // max(n_rows, 1), 1))
