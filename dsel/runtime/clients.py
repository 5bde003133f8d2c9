"""The client to use, the worker of this process, the number of local threads."""

import sys
from typing import TYPE_CHECKING, Any, Final

from joblib import cpu_count

from dsel.checks import check_integer, show

if TYPE_CHECKING:
    from distributed import Client


MOST_THREADS: Final = 4096


def resolve_client(
    client: "Client | None" = None, *, takes_function: bool = True
) -> Any:
    """Return `client`, else the current one, else None for this machine.

    A function that returns an executor is accepted, too, unless Dask's own collections
    have to run there. Inside a task the result is None: a pass over a pool that begins
    in a task runs in this task, since a worker that waits for its own tasks may wait
    forever.
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

    is_function = callable(client) and not isinstance(client, type)
    if is_function and takes_function:
        return client
    if not isinstance(client, Client):
        raise TypeError(
            f"`client` must be a distributed.Client, got {show(client)}; open one with "
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


def count_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads that `n_jobs` means, as in scikit-learn.

    None and -1 mean one for each processor, -2 one fewer, and so on.
    """
    n_processors = int(cpu_count())
    n_jobs = -1 if n_jobs is None else n_jobs
    number = check_integer(n_jobs, "n_jobs", at_least=-MOST_THREADS)
    if number == 0 or number > MOST_THREADS:
        raise ValueError(
            f"`n_jobs` must be at most {MOST_THREADS} and not 0, got {number}; -1 is "
            f"one thread for each of the {n_processors} processors here."
        )
    return number if number > 0 else max(1, n_processors + 1 + number)
