"""Arrays that the tasks of one process share, within a limit of bytes."""

import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import psutil
from scipy import sparse

from dsel.runtime.clients import count_threads, current_worker

SPILL_FRACTION = 0.7  # share of a worker's memory limit; Dask's default for spilling
IDLE_SECONDS: Final = 300.0  # an unused value is unlikely to be needed after this
GROUP_PREFIX: Final = "own-"
"""Prefix of the keys of values that only the fits of one group of candidates need."""


class _Entry(NamedTuple):
    value: Any
    nbytes: int
    scan_name: str
    used: float


class ByteCache:
    """A cache that drops the least recently used values, and idle ones in time."""

    def __init__(self, limit: int, *, idle_seconds: float | None = None) -> None:
        # A number of bytes, by which tasks also size their work arrays.
        self.limit = limit
        self.held = 0
        self._idle_seconds = idle_seconds
        self._entries: dict[str, _Entry] = {}  # the oldest use first
        self._has_timer = False
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}

    def get(self, key: str, make: Callable[[], Any], *, scan_name: str = "") -> Any:
        """Return the value stored under `key`, or make it and keep it if it fits.

        Values of one named scan never replace each other. A repeated scan over more
        than fits then keeps its first part. By recency alone it would lose every part
        just before it is needed again.
        """
        # One lock for each key: two threads never make the same value, and makers of
        # different values do not wait for each other.
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            entry = self._entries.get(key)
            if entry is None:
                value = make()
                entry = _Entry(value, nbytes_of(value), scan_name, 0.0)
            with self._lock:
                self._drop([key])
                self._store(key, entry._replace(used=time.monotonic()))
                self._making.pop(key, None)
        return entry.value

    def forget(self, keys: Iterable[str]) -> None:
        """Drop the values of these keys, where the cache has them."""
        with self._lock:
            self._drop(keys)

    def _store(self, key: str, entry: _Entry) -> None:
        """Store a value if dropping others makes room, those of its scan excepted."""
        missing, victims = self.held + entry.nbytes - self.limit, []
        for other_key, other in self._entries.items():
            if missing > 0 and not (
                entry.scan_name and other.scan_name == entry.scan_name
            ):
                victims.append(other_key)
                missing -= other.nbytes
        if missing <= 0:
            self._drop(victims)
            self._entries[key] = entry
            self.held += entry.nbytes
            self._start_timer()

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self._entries:
                self.held -= self._entries.pop(key).nbytes

    def _start_timer(self) -> None:
        """Start the timer of `_drop_idle`, as long as the cache holds any value."""
        if self._idle_seconds is not None and self._entries and not self._has_timer:
            timer = threading.Timer(self._idle_seconds, self._drop_idle)
            timer.daemon = True
            timer.start()
            self._has_timer = True

    def _drop_idle(self) -> None:
        """Drop the values that were not used for `idle_seconds`."""
        latest = time.monotonic() - (self._idle_seconds or 0.0)
        with self._lock:
            self._drop([k for k, e in self._entries.items() if e.used <= latest])
            self._has_timer = False
            self._start_timer()


class LastUseCache:
    """A cache that drops the values of a group of fits after the last of them."""

    def __init__(self, cache: ByteCache) -> None:
        self.cache, self.limit = cache, cache.limit
        self.own_keys: set[str] = set()

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value stored under `key`, or make it; see `ByteCache.get`."""
        if key.startswith(GROUP_PREFIX):
            self.own_keys.add(key)
        return self.cache.get(key, make)


def nbytes_of(value: object) -> int:
    """Return the bytes of all arrays in containers and objects; each counts once."""
    counted_ids: set[int] = set()
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if id(item) in counted_ids or isinstance(item, type):
            continue
        counted_ids.add(id(item))
        if isinstance(item, (bytes, bytearray)):
            total += len(item)
        elif hasattr(item, "nbytes") and not sparse.issparse(item):
            total += int(item.nbytes)
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif hasattr(item, "__dict__") and not callable(item):
            waiting.extend(vars(item).values())
    return total


@lru_cache(maxsize=1)
def process_cache() -> ByteCache:
    """Return this process's cache: a fraction of its memory for each task thread."""
    limit, used_nbytes, n_threads = _memory()
    left = limit - used_nbytes
    # The cache gets half of the limit, minus the memory in use. If little of that half
    # is left, it gets half of the memory that remains before Dask spills to disk, or an
    # eighth of all that remains. The rest is for code, models and blocks.
    nbytes = max(
        left - limit // 2,
        (int(SPILL_FRACTION * limit) - used_nbytes) // 2,
        left // 8,
        0,
    )
    return ByteCache(nbytes // n_threads, idle_seconds=IDLE_SECONDS)


def spare_memory() -> int:
    """Return the bytes that each task of this process may still allocate now."""
    limit, used_nbytes, n_threads = _memory()
    return max(limit - used_nbytes, 0) // n_threads


def _memory() -> tuple[int, int, int]:
    """Return the memory limit and use of this process in bytes, and its threads."""
    used_nbytes, machine = (
        int(psutil.Process().memory_info().rss),
        psutil.virtual_memory(),
    )
    worker = current_worker()
    if worker is None:
        return int(machine.available) + used_nbytes, used_nbytes, count_threads()
    limit = worker.memory_manager.memory_limit or machine.total
    return int(limit), used_nbytes, int(worker.state.nthreads)
