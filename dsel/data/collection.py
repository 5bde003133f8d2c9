"""The rows of a pool: blocks in a Dask graph, and what a graph does not carry."""

import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from dask.base import tokenize
from dask.optimization import cull
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.blocks import numbers_of
from dsel.data.frames import FrameSchema, table_nbytes

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
    """Rows in blocks: arrays, CSR, or data frames of pandas."""

    graph: Mapping[Any, Any]
    """Dask graph of all blocks: that of a span is cut out of it. Not optimized: what is
    fused with a task can no longer be told to be a future or rows in memory, which must
    not be sent with every span."""
    keys: tuple[Any, ...]
    """Of the blocks, none of which is empty."""
    boundaries: NDArray[np.int64]
    """Row numbers at which blocks begin, and the number of rows."""
    dtype: np.dtype[Any]
    """Of all values; of data frames that are not all numbers, Python objects."""
    n_columns: int
    row_nbytes: float
    """Bytes of a row in memory, on average."""
    tell: Callable[[], tuple[str, bool]] | None = field(repr=False)
    """Returns a text for the content as it is now, at a cost far below that of reading
    the rows, and whether that text changes with the content; None inside a task."""
    columns: tuple[str, ...] | None = None
    schema: FrameSchema | None = None
    """Of data frames; None of arrays."""
    is_sparse: bool = False
    where: str = POOL
    """How messages call it: with its file, where there is one."""
    read: "Callable[[tuple[str, ...]], Collection] | None" = None
    """Opens some columns anew, where that saves reading the others."""
    is_in_memory: bool = False
    beside: tuple[Any, ...] = ()
    """Keys of what a cluster holds for the graph: a task gets it beside this."""
    sent: dict[str, Graph] = field(default_factory=dict, init=False, repr=False)
    """Futures of rows in memory, by client and key."""

    def __getstate__(self) -> dict[str, Any]:
        # Futures of rows that were sent stay where they are.
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"sent": {}, "read": None}

    @property
    def n_rows(self) -> int:
        """Rows stored."""
        return int(self.boundaries[-1])

    @cached_property
    def told(self) -> tuple[str, bool]:
        """What `tell` said when it was asked first."""
        assert self.tell is not None
        return self.tell()

    @property
    def is_stored(self) -> bool:
        """Whether tasks read the rows from files."""
        return self.where != POOL

    @property
    def array(self) -> Any:
        """All rows as a Dask array, of frames their numbers."""
        import dask.array as da  # takes a while: only who writes a pool pays for it

        name, graph = new_name(), dict(self.graph)
        kind = sparse.csr_matrix if self.is_sparse else np.empty
        for number, key in enumerate(self.keys):
            graph[name, number, 0] = (
                key if self.schema is None else (numbers_of, key, self.dtype)
            )
        chunks = (tuple(np.diff(self.boundaries).tolist()), (self.n_columns,))
        return da.Array(graph, name, chunks, meta=kind((0, 0), dtype=self.dtype))

    def with_columns(self, names: tuple[str, ...]) -> "Collection":
        """Return some of the columns, in this order."""
        if self.read is not None:
            return self.read(names)
        assert self.columns is not None
        name = new_name()
        places = [self.columns.index(each) for each in names]
        own = {
            (name, number): (_columns_at, key, places)
            for number, key in enumerate(self.keys)
        }
        schema = self.schema and self.schema.with_columns(names)
        return replace(
            self,
            graph={**self.graph, **own},
            keys=tuple(own),
            dtype=self.dtype if schema is None else schema.dtype,
            n_columns=len(names),
            row_nbytes=self.row_nbytes * len(names) / max(self.n_columns, 1),
            tell=partial(_told_of_columns, self.tell, names),
            columns=names,
            schema=schema,
        )

    def between(self, start: int, stop: int, client: Any) -> tuple["Collection", Graph]:
        """Return the blocks between two boundaries for a task to compute.

        Their graph has no other tasks. By key, what the cluster of `client` holds.
        """
        first, last = np.searchsorted(self.boundaries, [start, stop])
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
            read=None,
            beside=tuple(held),
        )
        return part, held

    def _sent(self, graph: Graph, client: Any) -> Graph:
        """Send rows that the graph holds to workers; return their futures by key.

        They are sent once for as long as the collection lives, unless they are lost
        with a worker. The scheduler never gets them.
        """
        rows = {key: value for key, value in graph.items() if hasattr(value, "dtypes")
                or isinstance(value, np.ndarray) or sparse.issparse(value)}  # fmt: skip
        if sum(map(table_nbytes, rows.values())) < _SENT_NBYTES:
            return {}
        kept = self.sent.setdefault(client.id, {})
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


def in_blocks(
    tasks: Iterable[Any],
    lengths: Iterable[int],
    graph: Mapping[Any, Any] | None = None,
    **told: Any,
) -> Collection:
    """Return rows of which each block is the value of a task, or in memory.

    `graph` has what the tasks depend on; `told` are the other fields.
    """
    name = new_name()
    kept = [each for each in zip(tasks, lengths, strict=True) if each[1]]
    own = {(name, number): task for number, (task, _) in enumerate(kept)}
    boundaries = np.cumsum([0, *(length for _, length in kept)])
    return Collection({**(graph or {}), **own}, tuple(own), boundaries, **told)


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


def new_name() -> str:
    """Return a name for the blocks of one collection."""
    return f"pool-{uuid.uuid4().hex}"


def _told_of_columns(tell: Any, names: tuple[str, ...]) -> tuple[str, bool]:
    text, changes = tell()
    return f"columns-{tokenize(text, names)}", changes


def _columns_at(rows: Any, places: list[int]) -> Any:
    return rows.iloc[:, places] if hasattr(rows, "iloc") else rows[:, places]


def _is_future(value: Any) -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(value, Future)
