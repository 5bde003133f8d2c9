"""One pass over a pool: spans counted as tasks, values combined in row order."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dsel.data.arrays import ArrayStorage, SparseStorage
from dsel.data.base import Block
from dsel.data.blocks import read_blocks
from dsel.data.cache import process_cache
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import records_in_order
from dsel.runtime.tasks import Task

if TYPE_CHECKING:
    from dsel.data.pool import Pool

SPAN_NBYTES: Final = 2**26
"""A task's share at most: some tenths of a second."""
SMALL_SPAN_NBYTES: Final = 2**23
"""A task's share where the pool is small and still divided among a few workers."""
BLOCK_NBYTES: Final = 2**23
"""Rows handed to `count_chunk` at once: what it makes of them stays small too."""


@dataclass(frozen=True)
class SpanCount:
    """What every task of a pass needs; sent to a cluster once."""

    count_chunk: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    block_rows: int
    allow_nan: bool

    def value(self, sources: Sequence[Any], key: str, group: str) -> Any:
        """Count one span; blocks are kept under `key` unless it is empty."""
        blocks: Iterable[Block] = read_blocks(
            sources, self.block_rows, allow_nan=self.allow_nan
        )
        if key:
            read = blocks
            blocks = process_cache().get(key, lambda: list(read), group=group)
        values = (self.count_chunk(block.X, block.rows) for block in blocks)
        return functools.reduce(self.combine, values)


def run_pass(
    pool: "Pool",
    count_chunk: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    *,
    client: Any,
    keep: bool,
    allow_nan: bool,
) -> Any:
    """Count every span and combine the values in row order; see `Pool.reduce`."""
    block_rows = max(BLOCK_NBYTES // pool.row_nbytes, 1)
    count = SpanCount(count_chunk, combine, block_rows, allow_nan)
    client = resolve_client(client)
    if client is None and isinstance(pool.storage, (ArrayStorage, SparseStorage)):
        # These rows are in memory: the cache would only outlive them.
        keep = False
    group = f"pool-{pool.token}" if keep else ""
    spans = pool.spans(max(_span_nbytes(pool) // pool.row_nbytes, 1))
    tasks = [
        Task(
            f"span-{span.start}",
            _count_span,
            (f"{group}-{span.start}-{span.stop}" if group else "", group),
            functools.partial(pool.sources, span),
            place=number if keep else None,
        )
        for number, span in enumerate(spans)
    ]
    return functools.reduce(combine, records_in_order(count, tasks, client))


def _span_nbytes(pool: "Pool") -> int:
    """Return a task's share, by the pool alone: all machines group sums alike."""
    return min(SPAN_NBYTES, max(SMALL_SPAN_NBYTES, pool.nbytes // 4))


def _count_span(
    count: SpanCount,
    payloads: Sequence[Any],
    sources: Sequence[Any],
    key: str,
    group: str,
) -> tuple[Any, None]:
    del payloads  # a span needs nothing but its rows
    return count.value(sources, key, group), None
