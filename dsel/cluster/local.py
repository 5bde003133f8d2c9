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
    """Worker processes on this machine, one thread each, reachable by this one alone.

    They listen on loopback, and answer only who has the key that is made for them when
    they start: other users of this machine have not. A script that opens one needs
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
            # Dask pauses a worker that holds 80 % of its limit. Small ones hold that
            # for their imports, and would never run a task.
            "distributed.worker.memory.pause": False,
            # After 15 s a worker that dies while it restarts would never be replaced.
            "distributed.deploy.lost-worker-timeout": "24h",
            # Workers of this machine fall asleep with it; one that dies hangs up.
            "distributed.scheduler.worker-ttl": None,
        }
        stack.enter_context(config.set(settings))
        with _interrupts_wait():
            cluster = LocalCluster(
                n_workers=self.workers or len(os.sched_getaffinity(0)),
                threads_per_worker=1,
                memory_limit=self.memory,
                host="127.0.0.1",
                # Loopback is open to everybody who has an account on this machine.
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
    """Hear Ctrl-C, SIGHUP and SIGTERM when the block is left, and not before.

    A cluster that is interrupted while it begins is left half made, which Dask does not
    know how to close.

    Workers, and those that replace them later, are started by a thread begun here, and
    inherit from it that Ctrl-C and SIGHUP, which a terminal sends to all, are blocked:
    we end them, and without tracebacks. SIGTERM must go on to end them, so it only
    waits here.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        # Python's own helper is deaf to Ctrl-C, but lets its starter hear that again.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with _waiting(signal.SIGTERM):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _waiting(number: int) -> Iterator[None]:
    """Hand a signal that comes inside of the block to its handler at the end of it."""
    handler = signal.getsignal(number)
    in_main = threading.current_thread() is threading.main_thread()
    if not (in_main and callable(handler)):  # what has no handler leaves nothing open
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
