"""What the scheduler says of its workers, asked for now and then.

Dask pauses a worker whose process holds too much, and hopes that it will hold less.
Where that is what its imports take, it never will: tasks that were given to it wait for
ever, beside workers that have nothing to do. Such a worker is sent away if we started
it; of others' it is said, and the run ends if they keep its tasks.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakSet

import psutil

from dsel.errors import ClusterLostError

logger = logging.getLogger(__name__)

NO_WORKERS_SECONDS: Final = 600.0  # new pods may have an image to fetch first
TELL_SECONDS: Final = 10.0  # without workers, before whoever waits is told
PAUSED_SECONDS: Final = 20.0  # without a running task: more than spilling takes
COUNT_SECONDS: Final = 2.0  # between two looks at how many workers there are
LONGEST_LOOK_SECONDS: Final = 10.0  # what a look counts for at most, however late
IMPORTS_NBYTES: Final = 320 * 2**20  # a worker that may not hold them dies of them
GO_ON: Final = (
    "run the same command again with the same `out=` to go on from what is stored."
)
MORE_MEMORY: Final = "Workers need more memory: give each at least 600 MiB"

STARTED: Final[WeakSet[Any]] = WeakSet()
"""Clients of clusters that were started for them; other workers are not ours to end."""

Worker = Mapping[str, Any]
"""What `distributed.Client.scheduler_info` says of one."""


class Workers:
    """The workers of a cluster, as far as a run wants to know.

    Parameters
    ----------
    client
        A `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._n_threads = 1
        self._task_memory = 0
        self._looked = time.monotonic() - COUNT_SECONDS
        self._without = 0.0
        self._has_told = False
        self._paused: dict[str, float] = {}
        self._told_of: list[str] = []

    @property
    def n_threads(self) -> int:
        """Threads of the workers that take tasks, at least one.

        Raises
        ------
        ClusterLostError
            Where there have been none for too long, or none but paused ones.
        """
        self._look_again()
        return self._n_threads

    @property
    def task_memory(self) -> int:
        """Bytes that each task may use now, where there is least.

        That is what a worker's process may hold, less what it holds beside results,
        divided by its threads.
        """
        self._look_again()
        return self._task_memory

    def check_limits(self) -> None:
        """Raise where a worker would die of its first task, whatever that is.

        Raises
        ------
        MemoryError
            Where one may not even hold what it imports.
        """
        limits = [int(each["memory_limit"] or 0) for each in self.now().values()]
        least = min((limit for limit in limits if limit), default=IMPORTS_NBYTES)
        if least < IMPORTS_NBYTES:
            raise MemoryError(
                f"a worker may use {least / 2**20:.0f} MiB, and its imports alone take "
                f"about {IMPORTS_NBYTES / 2**20:.0f}; give each at least 600 MiB."
            )

    def now(self) -> dict[str, Worker]:
        """Return all workers by address.

        Raises
        ------
        ClusterLostError
            Where the scheduler is gone.
        """
        # A client that connects anew has given up its tasks, and an answer may take
        # as long as the client's own patience.
        if self._client.status != "running":
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}")
        try:
            return dict(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError) as error:  # a comm is closed; or has long been
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}") from error

    def result_of(self, future: Any) -> Any:
        """Return a task's value, and look now and then who could compute or send it.

        Dask by itself waits for ever, also for what a worker held that died since.

        Raises
        ------
        ClusterLostError
            Where the scheduler is gone, or workers stay away for too long.
        """
        while True:
            try:
                return future.result(timeout=COUNT_SECONDS)
            except OSError:
                if future.status == "error":  # it is the task's own
                    raise
            self._look_again()

    def _look_again(self) -> None:
        """Ask the scheduler, unless it was asked just now."""
        passed = time.monotonic() - self._looked
        if passed >= COUNT_SECONDS:
            # A machine that slept since gives its workers time to come back.
            self._look(min(passed, LONGEST_LOOK_SECONDS))
            self._looked = time.monotonic()

    def _look(self, seconds: float) -> None:
        workers = self.now()
        machine = int(psutil.virtual_memory().total)
        free = [_free(each, machine) for each in workers.values()]
        self._task_memory = min(free, default=machine)
        running = [each for each in workers.values() if each["status"] == "running"]
        self._n_threads = max(1, sum(int(each["nthreads"]) for each in running))
        self._without = 0.0 if running else self._without + seconds
        self._tell()
        self._paused = {
            address: self._paused.get(address, 0.0) + seconds
            for address, each in workers.items()
            if _is_stuck(each)
        }
        stuck = [each for each, s in self._paused.items() if s > PAUSED_SECONDS]
        if running and stuck and self._client in STARTED:
            self._send_away(stuck)
        elif running and stuck:
            self._tell_of(stuck, min(self._paused[each] for each in stuck))
        elif stuck and len(stuck) == len(workers):
            raise ClusterLostError(f"{_short_of_memory(workers)}; {GO_ON}")
        elif self._without > NO_WORKERS_SECONDS:
            raise ClusterLostError(
                f"the cluster has had no workers for {NO_WORKERS_SECONDS:g} s; {GO_ON}"
            )

    def _tell(self) -> None:
        """Say once, each time that workers stay away, what is waited for."""
        is_late = self._without > TELL_SECONDS
        if is_late and not self._has_told:
            logger.warning(
                "the cluster has no workers that take tasks; waiting for some, for "
                "%g s at most",
                NO_WORKERS_SECONDS,
            )
        self._has_told = is_late

    def _tell_of(self, addresses: list[str], seconds: float) -> None:
        """Say once which workers of others keep tasks; they are not waited for long."""
        if self._told_of != addresses:
            logger.warning(
                "paused by Dask for want of memory, with tasks that no other worker "
                "takes: %s. dsel did not start them and lets them be: give them "
                "memory, or retire them",
                ", ".join(addresses),
            )
        self._told_of = addresses
        keys = [
            key for has in self._client.processing(addresses).values() for key in has
        ]
        if seconds > NO_WORKERS_SECONDS and any(map(self._client.futures.get, keys)):
            raise ClusterLostError(
                f"workers that dsel did not start have been paused for want of memory "
                f"for {seconds:.0f} s and keep tasks of this run: "
                f"{', '.join(addresses)}. Retire them or give them more memory; {GO_ON}"
            )

    def _send_away(self, addresses: list[str]) -> None:
        """Let others have the tasks and results of workers, and close these."""
        logger.warning(
            "sent away, for want of memory even without a task: %s",
            ", ".join(addresses),
        )
        self._client.retire_workers(addresses, close_workers=True)


def _is_stuck(worker: Worker) -> bool:
    counts = worker["metrics"].get("task_counts", {})
    return worker["status"] == "paused" and not counts.get("executing")


def _free(worker: Worker, machine: int) -> int:
    metrics = worker["metrics"]
    held = int(metrics.get("memory", 0)) - int(metrics.get("managed_bytes", 0))
    limit = int(worker["memory_limit"] or machine)
    return max(0, limit - max(0, held)) // int(worker["nthreads"])


def _short_of_memory(workers: Mapping[str, Worker]) -> str:
    most = max(workers.values(), key=lambda each: int(each["memory_limit"] or 0))
    held = int(most["metrics"].get("memory", 0)) / 2**20
    limit = int(most["memory_limit"] or 0) / 2**20
    return (
        f"all {len(workers)} workers are paused by Dask for want of memory, and none "
        f"has run a task for {PAUSED_SECONDS:g} s; of {limit:.0f} MiB that one may use "
        f"it holds {held:.0f}. Give workers more memory"
    )
