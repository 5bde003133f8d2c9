"""What a task of one pass over a pool does: count a span, block by block."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsel.data.base import Block
from dsel.data.blocks import read_blocks
from dsel.data.cache import process_cache

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


def span_nbytes(pool_nbytes: int) -> int:
    """Return a task's share, by the pool alone: all machines group sums alike."""
    return min(SPAN_NBYTES, max(SMALL_SPAN_NBYTES, pool_nbytes // 4))


def count_span(
    count: SpanCount,
    payloads: Sequence[Any],
    sources: Sequence[Any],
    key: str,
    group: str,
) -> tuple[Any, None]:
    """Count one span: the body of a task."""
    del payloads  # a span needs nothing but its rows
    return count.value(sources, key, group), None
