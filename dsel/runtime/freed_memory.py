"""Keeping freed memory for the next chunk, while tasks follow one another.

Dask's workers give freed memory back at once, so every chunk of a pool goes to pages
that the system has to clear first: reading takes twice as long. From its first task
until a moment after its last one a process keeps that memory; then it gives it back.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

KEPT_NBYTES: Final = 2**25
"""The most that glibc lets a process keep of one array; larger ones are given back."""
LINGER_SECONDS: Final = 1.0
"""From the end of a task until memory is given back: the next one begins sooner."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
_DEFAULT_MMAP_THRESHOLD: Final = 2**17


@dataclass
class FreedMemory:
    """What glibc does with memory that this process freed."""

    set_option: Callable[[int, int], Any]
    """glibc's ``mallopt``."""
    give_back: Callable[[int], Any]
    """glibc's ``malloc_trim``."""
    outside: tuple[int, int]
    """Thresholds in bytes, of trimming and of mapping, outside of tasks."""
    _running: int = 0
    _kept: bool = False
    _restoring: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep freed memory until a moment after the last of such blocks has ended."""
        with self._lock:
            self._running += 1
            if self._restoring is not None:
                self._restoring.cancel()
            if not self._kept:
                self._set(KEPT_NBYTES, KEPT_NBYTES)
                self._kept = True
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    self._restoring = threading.Timer(LINGER_SECONDS, self._restore)
                    self._restoring.daemon = True
                    self._restoring.start()

    def _restore(self) -> None:
        with self._lock:
            if self._running == 0 and self._kept:
                self._set(*self.outside)
                self.give_back(0)
                self._kept = False

    def _set(self, trim: int, mmap: int) -> None:
        self.set_option(_TRIM_THRESHOLD, trim)
        self.set_option(_MMAP_THRESHOLD, mmap)


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory in this block, where the C library is glibc."""
    memory = _of_this_process()
    if memory is None:
        yield
        return
    with memory.kept():
        yield


@lru_cache(maxsize=1)
def _of_this_process() -> FreedMemory | None:
    outside = thresholds_outside(os.environ)
    if outside is None or not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    try:
        return FreedMemory(library.mallopt, library.malloc_trim, outside)
    except AttributeError:  # another C library
        return None


def thresholds_outside(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the thresholds of trimming and mapping outside of tasks, in bytes.

    Dask sets low ones. Where nobody did, glibc moves them to the largest array that it
    ever freed; ours stay, as they would after one of `KEPT_NBYTES`. None where more is
    kept already.

    Examples
    --------
    >>> thresholds_outside({"MALLOC_TRIM_THRESHOLD_": "65536"})
    (65536, 131072)
    >>> thresholds_outside({})
    (33554432, 33554432)
    """
    given = environment.get("MALLOC_TRIM_THRESHOLD_", "")
    mapping = environment.get("MALLOC_MMAP_THRESHOLD_", "")
    if not given.isdigit():
        return KEPT_NBYTES, KEPT_NBYTES
    if int(given) >= KEPT_NBYTES:
        return None
    return int(given), int(mapping) if mapping.isdigit() else _DEFAULT_MMAP_THRESHOLD
