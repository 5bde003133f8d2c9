"""One BLAS and OpenMP thread for each task, while any task of this process runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_running = 0
_limits: Any = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit native thread pools to one thread until the last of the tasks has ended.

    The limits belong to the process, the tasks run in several of its threads: the
    first one in sets them, the last one out restores what was there.
    """
    global _running, _limits
    with _lock:
        _running += 1
        if _running == 1:
            _limits = threadpool_limits(1)
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                _limits.restore_original_limits()
