"""One thread for each task: limits of BLAS, OpenMP and an estimator's `n_jobs`."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from joblib import parallel_config
from sklearn import config_context
from threadpoolctl import ThreadpoolController

from dsel.runtime.tasks import as_task

_lock = threading.Lock()
_running = 0
_limits: Any = None


def run_here(
    config: dict[str, Any],
    function: Any,
    work: Any,
    payloads: list[Any],
    *arguments: Any,
) -> Any:
    """Call a task's function with one thread, and scikit-learn set as the caller's."""
    with single_threaded(), config_context(**config), as_task():
        return function(work, payloads, *arguments)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Return the native thread pools; searched again only after further imports.

    The search takes milliseconds, and imports are what adds pools.
    """
    del n_modules  # only a key of the cache
    return ThreadpoolController()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit native thread pools to one thread until the last of the tasks has ended.

    The limits of BLAS hold for the whole process, and tasks run in several of its
    threads: the first task to enter sets them, the last to leave restores them. Code
    that starts many tasks enters this once around all of them, so that the limits are
    not set for each. OpenMP has a limit for each calling thread. An estimator's own
    `n_jobs` workers would compete with those that run the tasks, so they are off.
    """
    global _running, _limits
    with _lock:
        pools = _controller(len(sys.modules))
        _running += 1
        if _running == 1:
            _limits = pools.select(user_api="blas").limit(limits=1)
    try:
        with (
            pools.select(user_api="openmp").limit(limits=1),
            parallel_config(backend="sequential"),
        ):
            yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                _let_others_limit(pools)
                _limits.restore_original_limits()
                _let_others_limit(pools)


def _let_others_limit(pools: ThreadpoolController) -> None:
    """Allow this thread to change the limits that another thread has set.

    Since version 3.8 of threadpoolctl only the thread that set a limit of OpenBLAS can
    change it: calls of others do nothing, without an error, until that thread ends or
    is cleared. Here the last thread to leave restores what another one has set.
    """
    for library in pools.lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
