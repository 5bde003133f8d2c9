"""Where a pass runs: the client at hand, the worker that runs this, local threads."""

import os
import sys
from numbers import Integral
from typing import Any


def resolve_client(client: Any = None) -> Any:
    """Return `client`, else the current one, else None for local threads.

    A function that makes an executor is a client too, see `make_executor`.

    Inside a task there is no client: a pass started there runs in that task, since
    a worker that waited for its own tasks could wait for ever.

    Raises
    ------
    TypeError
        Where `client` is none.
    """
    # Whoever has not imported distributed has no client: `import dsel` stays light.
    if client is None and "distributed" not in sys.modules:
        return None
    if client is not None:
        return _checked(client)
    if current_worker() is not None:
        return None
    from distributed import get_client

    try:
        return _checked(get_client())
    except ValueError:
        return None


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
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_threads(n_jobs: int | None) -> int:
    """Return the threads that `n_jobs` asks for, read as scikit-learn reads it.

    Parameters
    ----------
    n_jobs
        Their number; None and -1 mean one for each processor, -2 one fewer, and so on.

    Raises
    ------
    TypeError
        Where it is neither None nor an integer.
    ValueError
        Where it is 0.
    """
    if n_jobs is None:
        return local_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"`n_jobs` must be an integer or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError(
            "`n_jobs` must not be 0; None or -1 is one thread for each processor."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, local_threads() + 1 + int(n_jobs))


def _checked(client: Any) -> Any:
    """Return a client, or raise TypeError: an address is no client yet."""
    from distributed import Client

    if callable(client) and client is not Client:
        return client
    if isinstance(client, Client):
        if client.asynchronous:
            raise TypeError(
                "`client` must be a synchronous distributed.Client, got one whose "
                "event loop this is; open another, or call from another thread."
            )
        return client
    raise TypeError(
        f"`client` must be a distributed.Client, got {client!r}; open one with "
        "distributed.Client(address) or dsel.cluster.connect."
    )
