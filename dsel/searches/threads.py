"""One thread for each task: BLAS, OpenMP, and what an estimator's `n_jobs` asks for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config
from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_running = 0
_limits: Any = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit native thread pools to one thread until the last of the tasks has ended.

    The limits belong to the process, the tasks run in several of its threads: the
    first one in sets them, the last one out restores what was there. An estimator's
    own workers would come on top of those that run the tasks, so it gets none.
    """
    global _running, _limits
    with _lock:
        _running += 1
        if _running == 1:
            _limits = threadpool_limits(1)
    try:
        with parallel_config(backend="sequential"):
            yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                _limits.restore_original_limits()
