"""One pass over a pool: spans counted as tasks, values combined in row order."""

import functools
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
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

_AHEAD: Final = 4
"""Spans submitted per worker thread: enough to keep it busy, few enough that rows sent
along do not pile up."""
_TRIES: Final = 4

KeptSpan = tuple[Span, str, str]
"""A span, and key and group of its blocks in the cache; empty if they are not kept."""


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


def _spans(pool: "Pool", keep: bool) -> list[KeptSpan]:
    spans = pool.spans(max(SPAN_NBYTES // pool.row_nbytes, 1))
    if not keep:
        return [(span, "", "") for span in spans]
    group = f"pool-{pool.token}"
    return [(span, f"{group}-{span.start}-{span.stop}", group) for span in spans]


def _local_values(
    pool: "Pool", count: SpanCount, keep: bool, client: None
) -> Iterator[Any]:
    def count_span(entry: KeptSpan) -> Any:
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
    threads = client.nthreads()
    job = ClusterPass(client, pool, count, tuple(sorted(threads)))
    ahead = max(_AHEAD * sum(threads.values()), _AHEAD)
    waiting = deque(enumerate(_spans(pool, keep)))
    under_way: deque[tuple[Any, int, KeptSpan]] = deque()
    try:
        while waiting or under_way:
            while waiting and len(under_way) < ahead:
                number, entry = waiting.popleft()
                under_way.append((job.submit(number, entry), number, entry))
            yield job.result(*under_way[0])
            under_way.popleft()
    finally:
        if under_way:
            client.cancel([future for future, _, _ in under_way])


@dataclass(frozen=True)
class ClusterPass:
    """Submits the spans of one pass."""

    client: Any
    pool: "Pool"
    count: SpanCount
    workers: tuple[str, ...]

    def submit(self, number: int, entry: KeptSpan) -> Any:
        """Return the future of a span's value."""
        span, key, group = entry
        where: dict[str, Any] = {}
        if key and self.workers:
            # The same worker in every pass finds the blocks that it kept.
            worker = self.workers[number % len(self.workers)]
            where = {"workers": [worker], "allow_other_workers": True}
        return self.client.submit(
            _limited,
            self.count,
            self.pool.sources(span, self.client),
            key,
            group,
            key=f"pool-pass-{uuid.uuid4().hex[:12]}-{number}",
            **where,
        )

    def result(self, future: Any, number: int, entry: KeptSpan) -> Any:
        """Return a span's value; ask again when rows sent to a worker died with it."""
        for _ in range(_TRIES - 1):
            try:
                return future.result()
            except CancelledError:
                future = self.submit(number, entry)
        return future.result()


def _limited(count: SpanCount, sources: Sequence[Any], key: str, group: str) -> Any:
    with threadpool_limits(1):
        return count(sources, key, group)
