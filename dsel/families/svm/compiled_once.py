"""Compiling with numba: once on a machine, whatever processes need the same function.

The workers of a cluster begin with the same work at the same time. Each would compile
for itself what a cache on disk keeps for all, and all of them would wait as long as the
slowest. So one process compiles a function; the others wait, and load what it wrote.
"""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from numba import njit

WAIT_SECONDS: Final = 120.0
"""After which a process compiles for itself: the one that it waits for may hang."""
POLL_SECONDS: Final = 0.05

_turn = threading.RLock()
_held: Final[set[str]] = set()  # locks of functions that are compiled for one another


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles, and caches where any folder can be written."""
    # No wrapper for callers in C: there are none, and compiling it takes time.
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            made = njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package nor the user has a writable folder
            return njit(**options)(function)
        compile_it = made.compile
        path = os.path.join(made.stats.cache_path, f"{function.__name__}.lock")

        def compile_alone(signature: Any) -> Any:
            with one_at_a_time(path):
                collects = gc.isenabled()
                gc.disable()  # little of what compiling makes is garbage: a sixth less
                try:
                    return compile_it(signature)  # looks into the cache first
                finally:
                    if collects:
                        gc.enable()

        made.compile = compile_alone
        return made

    return decorate


@contextmanager
def one_at_a_time(path: str) -> Iterator[None]:
    """Let one process of this machine into the block, for as long as others wait.

    A thread may enter again. Where the file cannot be locked nobody waits.
    """
    with _turn:
        if path in _held or find_spec("fcntl") is None:
            yield
            return
        _held.add(path)
        try:
            with _locked(path):
                yield
        finally:
            _held.remove(path)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # the cache can be read only
        yield
        return
    try:
        _wait(file)
        yield
    finally:
        os.close(file)  # which unlocks it, as the end of the process does


def _wait(file: int) -> None:
    from fcntl import LOCK_EX, LOCK_NB, flock

    ends = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends:
        try:
            return flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
        except OSError:  # a file system without locks
            return None
    return None
