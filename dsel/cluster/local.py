"""Worker processes on this machine."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, Final

from dsel import checks
from dsel.cluster.base import (
    FREED_MEMORY,
    LOOPBACK_HTTP,
    ONE_THREAD,
    check_memory,
    check_texts,
)

if TYPE_CHECKING:
    from distributed import Client

SPAWN_ENVIRONMENT: Final = "distributed.nanny.pre-spawn-environ"


@dataclass(frozen=True)
class Local:
    """Worker processes on this machine, one thread each, not reachable from others.

    They listen on loopback and require a key that is made when they start, so that
    other users of this machine cannot connect. A script that opens one needs
    ``if __name__ == "__main__":``, since the processes are spawned.

    Examples
    --------
    >>> Local(workers=0)
    Traceback (most recent call last):
    ...
    ValueError: `workers` must be >= 1, got 0.
    """

    workers: int | None = None
    """Number of processes; None means one per usable core."""
    memory: str = "auto"
    """Limit of each process, such as "4 GiB"; "auto" shares the machine's evenly."""

    def __post_init__(self) -> None:
        if self.workers is not None:
            checks.check_integer(self.workers, "workers", at_least=1)
        check_texts(self)
        if self.memory != "auto":
            check_memory(self.memory, "memory")

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Start the processes and return their client."""
        from dask import config
        from distributed import Client, LocalCluster, Security

        environment = ONE_THREAD | FREED_MEMORY
        settings = {
            **{f"{SPAWN_ENVIRONMENT}.{name}": n for name, n in environment.items()},
            # Dask pauses a worker that uses 80 % of its limit. With a small limit the
            # imports alone take that much, and the worker would never run a task.
            "distributed.worker.memory.pause": False,
            # With the default of 15 s a worker that dies while it restarts may never
            # be replaced.
            "distributed.deploy.lost-worker-timeout": "24h",
            # While the machine sleeps, workers that are alive send no heartbeat. That
            # one has died the scheduler learns from the closed connection.
            "distributed.scheduler.worker-ttl": None,
        }
        stack.enter_context(config.set(settings))
        with _interrupts_wait():
            cluster = LocalCluster(
                n_workers=self.workers or len(os.sched_getaffinity(0)),
                threads_per_worker=1,
                memory_limit=self.memory,
                host="127.0.0.1",
                # Every account on this machine can connect to loopback.
                security=Security.temporary(),
                dashboard_address=LOOPBACK_HTTP,
                worker_dashboard_address=LOOPBACK_HTTP,
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
        client: Client = stack.enter_context(Client(cluster, timeout=timeout))
        return client


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C, SIGHUP and SIGTERM until the block is left.

    Dask cannot close a cluster whose start was interrupted.

    Workers, and those that replace them later, are started by a thread that begins
    here. They inherit that SIGINT and SIGHUP, which a terminal sends to all processes,
    are blocked: this process ends them instead, without their tracebacks. SIGTERM must
    still end them, so it is not blocked but handled at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        # Starting Python's resource tracker unblocks SIGINT, so it is started first.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with _waiting(signal.SIGTERM):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _waiting(number: int) -> Iterator[None]:
    """Call the handler of a signal that comes inside the block at the end of it."""
    handler = signal.getsignal(number)
    in_main = threading.current_thread() is threading.main_thread()
    if not (
        in_main and callable(handler)
    ):  # without a handler there is nothing to delay
        yield
        return
    came: list[Any] = []
    signal.signal(number, lambda _, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(number, handler)
        if came:
            handler(number, came[0])
