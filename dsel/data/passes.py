"""One pass over a pool: spans counted as tasks, values combined in row order."""

import functools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from threadpoolctl import threadpool_limits

from dsel.data.base import Block, Span
from dsel.data.blocks import read_blocks
from dsel.data.cache import process_cache
from dsel.data.clients import current_worker, local_threads, resolve_client

if TYPE_CHECKING:
    from dsel.data.pool import Pool

SPAN_NBYTES: Final = 2**26
"""A task's share: some tenths of a second. A constant, so that sums of floats are
grouped alike on every machine."""
BLOCK_NBYTES: Final = 2**23
"""Rows handed to `count_chunk` at once: what it makes of them stays small too."""


@dataclass(frozen=True)
class SpanCount:
    """The body of a task; small to pickle but for what `count_chunk` holds."""

    count_chunk: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    block_rows: int
    allow_nan: bool

    def __call__(self, sources: Sequence[Any], key: str, group: str) -> Any:
        """Count one span; blocks are kept under `key` unless it is empty."""
        blocks: Iterable[Block] = read_blocks(
            sources, self.block_rows, allow_nan=self.allow_nan
        )
        if key:
            blocks = process_cache().get(
                key, functools.partial(list, blocks), group=group
            )
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
    run = _local_values if client is None else _cluster_values
    return functools.reduce(combine, run(pool, count, keep, client))


def _spans(pool: "Pool", keep: bool) -> list[tuple[Span, str, str]]:
    """Return the spans, each with the key and the group of its blocks in the cache."""
    spans = pool.spans(max(SPAN_NBYTES // pool.row_nbytes, 1))
    if not keep:
        return [(span, "", "") for span in spans]
    group = f"pool-{pool.token}"
    return [(span, f"{group}-{span.start}-{span.stop}", group) for span in spans]


def _local_values(
    pool: "Pool", count: SpanCount, keep: bool, client: None
) -> Iterator[Any]:
    def count_span(entry: tuple[Span, str, str]) -> Any:
        span, key, group = entry
        return count(pool.sources(span), key, group)

    spans = _spans(pool, keep)
    if current_worker() is not None or len(spans) == 1:
        yield from map(count_span, spans)
        return
    with threadpool_limits(1), ThreadPoolExecutor(local_threads()) as threads:
        try:
            yield from threads.map(count_span, spans)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _cluster_values(
    pool: "Pool", count: SpanCount, keep: bool, client: Any
) -> Iterator[Any]:
    run = uuid.uuid4().hex[:8]
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"]) if keep else []
    futures = [
        client.submit(
            _limited,
            count,
            pool.sources(span, client),
            kept_as,
            key=f"pool-pass-{run}-{number}",
            **_preference(workers, number),
        )
        for number, (span, *kept_as) in enumerate(_spans(pool, keep))
    ]
    try:
        for number, future in enumerate(futures):
            yield future.result()
            futures[number] = None
    finally:
        client.cancel([future for future in futures if future is not None])


def _preference(workers: Sequence[str], number: int) -> dict[str, Any]:
    """Send a span to the same worker in every pass, so that it finds its blocks."""
    if not workers:
        return {}
    return {"workers": [workers[number % len(workers)]], "allow_other_workers": True}


def _limited(count: SpanCount, sources: Sequence[Any], kept_as: Sequence[str]) -> Any:
    with threadpool_limits(1):
        return count(sources, *kept_as)
