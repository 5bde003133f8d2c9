"""One thread for each task: BLAS, OpenMP, and what an estimator's `n_jobs` asks for."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from joblib import parallel_config
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_running = 0
_limits: Any = None


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Look for native thread pools: milliseconds, so again only after an import."""
    del n_modules  # what makes an answer old
    return ThreadpoolController()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit native thread pools to one thread until the last of the tasks has ended.

    The limits of BLAS belong to the process, the tasks run in several of its threads:
    the first one in sets them, the last one out restores what was there. Whoever starts
    many tasks enters this around all of them, so that the limits are set once. OpenMP
    keeps a number for each thread that calls it. An estimator's own workers would come
    on top of those that run the tasks, so it gets none.
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
    """Take OpenBLAS from the thread that limited it last.

    From version 3.8 on threadpoolctl lets one thread at a time change OpenBLAS: calls
    of all others do nothing and say nothing, until the first one ends or gives it up.
    Here the last thread out restores what another one has set.
    """
    for library in pools.lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
