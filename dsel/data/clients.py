"""Where a pass runs: the client at hand, the worker that runs this, local threads."""

import os
import sys
from typing import Any


def resolve_client(client: Any = None) -> Any:
    """Return `client`, else the current one, else None for local threads.

    Inside a task there is no client: a pass started there runs in that task, since
    a worker that waited for its own tasks could wait for ever.
    """
    # Whoever has not imported distributed has no client: `import dsel` stays light.
    if client is not None or "distributed" not in sys.modules:
        return client
    if current_worker() is not None:
        return None
    from distributed import get_client

    try:
        return get_client()
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
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
