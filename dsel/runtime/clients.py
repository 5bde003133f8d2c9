"""Where tasks run: the client to use, the worker of this process, local threads."""

import sys
from numbers import Integral
from typing import Any, Final

from joblib import cpu_count

MOST_THREADS: Final = 4096


def resolve_client(client: Any = None) -> Any:
    """Return `client`, else the current one, else None for local threads.

    A function that returns an executor is taken as well, see `make_executor`.

    Inside a task the result is None: a pass that is started there runs in that task,
    since a worker that waits for tasks that it submitted itself may wait for ever.

    Raises TypeError where `client` is something else, such as an address.
    """
    if client is None:
        # Without distributed there can be no client, and it takes long to import.
        if "distributed" not in sys.modules or current_worker() is not None:
            return None
        from distributed import get_client

        try:
            client = get_client()
        except ValueError:
            return None
    from distributed import Client

    if callable(client) and client is not Client:
        return client
    if not isinstance(client, Client):
        raise TypeError(
            f"`client` must be a distributed.Client, got {client!r}; open one with "
            "distributed.Client(address) or dsel.cluster.connect."
        )
    if client.asynchronous:
        raise TypeError(
            "`client` must be a synchronous distributed.Client, got one whose "
            "event loop this is; open another, or call from another thread."
        )
    return client


def current_worker() -> Any:
    """Return the Dask worker whose task runs this code, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def local_threads() -> int:
    """Return the number of processors that this process may use."""
    return int(cpu_count())


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` means, as in scikit-learn.

    None and -1 mean one for each processor, -2 one fewer, and so on.
    """
    if n_jobs is None:
        return local_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"`n_jobs` must be an integer or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError(
            "`n_jobs` must not be 0; None or -1 is one thread for each processor."
        )
    if n_jobs > MOST_THREADS:
        raise ValueError(
            f"`n_jobs` must be at most {MOST_THREADS}, got {n_jobs}; -1 is one thread "
            f"for each of the {local_threads()} processors here."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, local_threads() + 1 + int(n_jobs))
