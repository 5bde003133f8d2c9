"""The unlabeled pool: a Dask array with global row numbers and row filters."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Final

import numpy as np
from dask.base import tokenize
from numpy.typing import ArrayLike, NDArray

from dsel.checks import check_integer
from dsel.data.blocks import Block, Span, SpanGraph, read_blocks
from dsel.data.cache import process_cache
from dsel.data.collection import Collection
from dsel.data.filters import Excluded, RandomFraction, RowFilter, RowRange, joint_mask
from dsel.data.frames import FrameSchema, encoded
from dsel.data.identity import row_hashes
from dsel.data.row_random import PART_STREAM, row_random_at
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import records_in_order
from dsel.runtime.tasks import Task

SPAN_NBYTES: Final = 2**26
"""A task's share at most: some tenths of a second."""
SMALL_SPAN_NBYTES: Final = 2**23
"""A task's share where the pool is small and still divided among a few workers."""
BLOCK_NBYTES: Final = 2**23
"""Rows handed to `count_chunk` at once: what it makes of them stays small too."""
_MASKED_AT_ONCE: Final = 2**20
_HASH_SEEDS: Final = (0x72_6F_77_73, 0x77_6F_72_64)


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

    collection: Collection
    """All rows, also those that the filters leave out."""
    filters: tuple[RowFilter, ...] = ()
    """Rules about row numbers; a row must pass them all."""
    schema: FrameSchema | None = None
    """Of the data frames that blocks become; None for rows as they are stored."""

    @property
    def array(self) -> Any:
        """All rows in Dask, also those that the filters leave out: array or frames."""
        return self.collection.array

    @property
    def n_rows(self) -> int:
        """Rows that the filters leave."""
        return int(self._kept_before[-1])

    @property
    def n_columns(self) -> int:
        """Features of a row."""
        return int(self.array.shape[1])

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the features, or None."""
        return self.collection.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values of every block: of frames, Python objects."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR."""
        return self.collection.is_sparse

    @property
    def boundaries(self) -> NDArray[np.int64]:
        """Global row numbers at which blocks begin, and the number of stored rows."""
        return self.collection.boundaries

    @property
    def nbytes(self) -> int:
        """Bytes that a pass reads, in memory; filters do not lower it."""
        return self.collection.nbytes

    @property
    def row_nbytes(self) -> int:
        """Bytes of one row in memory, on average, at least 1."""
        return max(-(-self.nbytes // max(self.collection.n_rows, 1)), 1)

    def as_frames(self) -> "Pool":
        """Return the pool with blocks of data frames, where it was given as such."""
        frames = self.collection.frames
        return self if frames is None else replace(self, collection=frames)

    def with_columns(self, names: Sequence[str]) -> "Pool":
        """Return the pool with some of its columns, in this order."""
        if tuple(names) == self.columns:
            return self
        return replace(self, collection=self.collection.with_columns(tuple(names)))

    def reopened(self) -> "Pool":
        """Return the pool as it is now, where values in memory may have changed.

        Raises ValueError where its files were written anew since its token was asked.
        """
        again = replace(self.collection)
        if again.is_stored and again.told != self.collection.told:
            raise ValueError(
                f"{again.where} was written anew since it was opened; open it again, "
                f"and plan with it."
            )
        return replace(self, collection=again)

    def fingerprint(self, client: Any = None) -> str:
        """Return a text that changes with the rows, which are read if they must be.

        They must of Dask arrays, and where files have no stamps. Their chunks do not
        matter.
        """
        if self.collection.told[1] or not self.n_rows:
            return self.token
        words = self.reduce(_hashed, add, client=client, allow_nan=True)
        head = (self.n_rows, self.n_columns, str(self.dtype), self.columns)
        return f"rows-{tokenize(head, words.tolist())}"

    @property
    def token(self) -> str:
        """Name by content (of Dask: by name) and filters; cheap beside reading."""
        if not self.filters:
            return self.collection.told[0]
        rules = [rule.token for rule in self.filters]
        return f"pool-{tokenize(self.collection.told[0], rules)}"

    def __repr__(self) -> str:
        left = f" of {self.collection.n_rows:,} stored" if self.filters else ""
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
        their ends in which filters leave no row.
        """
        check_integer(rows, "rows", at_least=1)
        edges, kept = self.boundaries, self._kept_before
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
        edges, keys, graph, beside = self.collection.blocks(
            span.start, span.stop, client
        )
        rules = [rule.within(span.start, span.stop) for rule in self.filters]
        tasks = SpanGraph(
            boundaries=tuple(edges.tolist()),
            keys=tuple(keys),
            graph=graph,
            beside=tuple(beside),
            dtype=self.dtype,
            is_sparse=self.is_sparse,
            columns=self.columns,
            schema=self.schema,
            filters=tuple(rule for rule in rules if rule is not None),
            stored=self.collection.where if self.collection.is_stored else "",
        )
        return [tasks, *beside.values()]

    def excluding(self, rows: ArrayLike) -> "Pool":
        """Return the pool without the rows of these global numbers.

        Raises ValueError where a number is no row of the pool.
        """
        numbers = np.unique(np.asarray(rows, dtype=np.int64))
        if not len(numbers):
            return self
        if numbers[0] < 0 or numbers[-1] >= self.collection.n_rows:
            raise ValueError(
                "`rows` must be row numbers of the pool, 0 to "
                f"{self.collection.n_rows - 1}, got {numbers[0]} to {numbers[-1]}."
            )
        return replace(self, filters=(*self.filters, Excluded(numbers)))

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
        rule = RandomFraction(lower, upper, seed, stream)
        return replace(self, filters=(*self.filters, rule))

    def between(self, first: int, last: int) -> "Pool":
        """Return the rows of numbers `first` to ``last - 1``; others are not read."""
        return replace(self, filters=(*self.filters, RowRange(first, last)))

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
        if client is None and self.collection.is_in_memory:
            keep = False  # the cache would only outlive them
        group = f"pool-{self.token}" if keep else ""
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
        count = _SpanCount(count_chunk, combine, block_rows, allow_nan)
        return reduce(combine, records_in_order(count, tasks, client))

    @cached_property
    def _kept_before(self) -> NDArray[np.int64]:
        """Rows that the filters leave before each boundary."""
        return self.kept_before(self.boundaries)

    def kept_before(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows the filters leave before each of these row numbers.

        They ascend, from 0 to the number of stored rows.
        """
        if not self.filters:
            return edges
        kept, before = np.empty_like(edges), 0
        for start in range(0, max(int(edges[-1]), 1), _MASKED_AT_ONCE):
            stop = min(start + _MASKED_AT_ONCE, int(edges[-1]))
            mask = joint_mask(self.filters, start, stop)
            running = before + np.append(np.int64(0), np.cumsum(mask))
            here = (edges >= start) & (edges <= stop)
            kept[here] = running[edges[here] - start]
            before = int(running[-1])
        return kept


def _hashed(X: Any, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return two words that add up to the same for any chunking of the same rows."""
    hashes = row_hashes(encoded(X))
    return np.array(
        [
            np.sum(hashes * (row_random_at(seed, 0, rows) | np.uint64(1)))
            for seed in _HASH_SEEDS
        ]
    )


@dataclass(frozen=True)
class _SpanCount:
    """What every task of a pass needs; sent to a cluster once."""

    count_chunk: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    block_rows: int
    allow_nan: bool

    def values(self, blocks: Iterable[Block]) -> Iterator[Any]:
        """Yield what is counted in each block."""
        for block in blocks:
            yield self.count_chunk(block.X, block.rows)
            del block  # else it would be there beside the next one


def _count_span(
    count: _SpanCount,
    payloads: Sequence[Any],
    sources: Sequence[Any],
    key: str,
    group: str,
) -> tuple[Any, None]:
    """Count one span, the body of a task; blocks are kept under `key` if it is one."""
    del payloads  # a span needs nothing but its rows
    read = read_blocks(sources, count.block_rows, allow_nan=count.allow_nan)
    blocks: Iterable[Block] = read
    if key:
        blocks = process_cache().get(key, lambda: list(read), group=group)
    return reduce(count.combine, count.values(blocks)), None
