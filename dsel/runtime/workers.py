"""Number, memory and state of a cluster's workers, as its scheduler reports them.

Dask pauses a worker whose process holds too much memory, until it holds less. Where the
imports alone take that much, it stays paused: tasks that were assigned to it wait for
ever, while other workers are idle. Such a worker is retired if dsel started it. If
somebody else did, a warning names it, and the run ends if it keeps tasks of the run.
"""

import logging
import math
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import psutil

from dsel.errors import ClusterLostError

logger = logging.getLogger(__name__)

NO_WORKERS_SECONDS: Final = 600.0  # new pods may have an image to fetch first
WARN_SECONDS: Final = 10.0  # without workers, before a warning says so
PAUSED_SECONDS: Final = 20.0  # without a running task: more than spilling takes
POLL_SECONDS: Final = 2.0  # between two requests to the scheduler
LONGEST_POLL_SECONDS: Final = 10.0  # what one adds to a waiting time at most
IMPORTS_NBYTES: Final = 320 * 2**20  # with less memory a worker is killed on import
GO_ON: Final = (
    "run the same command again with the same `out=` to continue from what is stored."
)
MORE_MEMORY: Final = "Workers need more memory: give each at least 700 MiB"

STARTED: Final[WeakSet[Any]] = WeakSet()
"""Clients of clusters that dsel started; workers of other clusters are not retired."""

Worker = Mapping[str, Any]
"""What `distributed.Client.scheduler_info` reports of one worker."""

_reports: Final[WeakKeyDictionary[Any, tuple[float, dict[str, Worker]]]] = (
    WeakKeyDictionary()
)
"""The last report of each client's scheduler, and when it came.

It is kept by client and not by executor, because every pass over a pool has an executor
of its own, and a method with many short passes would ask before each of them.
"""


class Workers:
    """The workers of a cluster, and for how long a run has waited for them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._n_threads = 1
        self._task_memory = 0
        self._updated = time.monotonic() - POLL_SECONDS
        self._seconds_without = 0.0
        self._has_warned = False
        self._paused: dict[str, float] = {}
        self._warned_of: list[str] = []

    @property
    def n_threads(self) -> int:
        """Threads of the workers that take tasks, at least one.

        Raises ClusterLostError where there have been none for too long, or only paused
        ones.
        """
        self._update()
        return self._n_threads

    @property
    def task_memory(self) -> int:
        """Bytes that a task may use now on the worker with the least memory.

        That is the worker's memory limit, less what its process holds besides results,
        divided by its threads.
        """
        self._update()
        return self._task_memory

    def check_limits(self) -> None:
        """Raise where a worker would be killed in its first task, whatever that is.

        Raises MemoryError where a worker's memory limit is below what it imports.
        """
        limits = [int(each["memory_limit"] or 0) for each in self.now().values()]
        least = min((limit for limit in limits if limit), default=IMPORTS_NBYTES)
        if least < IMPORTS_NBYTES:
            raise MemoryError(
                f"a worker may use {least / 2**20:.0f} MiB, and its imports alone take "
                f"about {IMPORTS_NBYTES / 2**20:.0f}; give each at least 700 MiB."
            )

    def now(self) -> dict[str, Worker]:
        """Return all workers by address, as they were at most `POLL_SECONDS` ago.

        Raises ClusterLostError where the scheduler is gone.
        """
        # A client that is reconnecting has lost its tasks, and a request to the
        # scheduler may then last as long as the client's own timeout.
        if self._client.status != "running":
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}")
        came, report = _reports.get(self._client, (-math.inf, {}))
        if time.monotonic() - came < POLL_SECONDS:
            return report
        try:
            report = dict(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError) as error:  # the connection closes; or is closed
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}") from error
        _reports[self._client] = time.monotonic(), report
        return report

    def result_of(self, future: Any) -> Any:
        """Return a task's value, and check meanwhile that workers are there.

        Dask alone would wait for ever, also for a value that was lost with its worker.

        Raises ClusterLostError where the scheduler is gone, or workers stay away for
        too long.
        """
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except OSError:
                if future.status == "error":  # the task raised it, not the wait
                    raise
            self._update()

    def _update(self) -> None:
        """Take in the scheduler's report, unless the last one is recent."""
        passed = time.monotonic() - self._updated
        if passed >= POLL_SECONDS:
            # Where the machine slept meanwhile, workers get time to come back.
            self._take_report(min(passed, LONGEST_POLL_SECONDS))
            self._updated = time.monotonic()

    def _take_report(self, seconds: float) -> None:
        """Update number and memory, and act on workers that take no tasks."""
        workers = self.now()
        free = [_free(each) for each in workers.values()]
        self._task_memory = min(free, default=_machine_memory())
        running = [each for each in workers.values() if each["status"] == "running"]
        self._n_threads = max(1, sum(int(each["nthreads"]) for each in running))
        self._seconds_without = 0.0 if running else self._seconds_without + seconds
        self._warn_of_none()
        self._paused = {
            address: self._paused.get(address, 0.0) + seconds
            for address, each in workers.items()
            if _is_stuck(each)
        }
        stuck = [each for each, s in self._paused.items() if s > PAUSED_SECONDS]
        if running and stuck and self._client in STARTED:
            self._retire(stuck)
        elif running and stuck:
            self._warn_of(stuck, min(self._paused[each] for each in stuck))
        elif stuck and len(stuck) == len(workers):
            raise ClusterLostError(f"{_short_of_memory(workers)}; {GO_ON}")
        elif self._seconds_without > NO_WORKERS_SECONDS:
            raise ClusterLostError(
                f"the cluster has had no workers for {NO_WORKERS_SECONDS:g} s; {GO_ON}"
            )

    def _warn_of_none(self) -> None:
        """Warn once for each time without workers."""
        is_late = self._seconds_without > WARN_SECONDS
        if is_late and not self._has_warned:
            logger.warning(
                "the cluster has no workers that take tasks; waiting for some, for "
                "%g s at most",
                NO_WORKERS_SECONDS,
            )
        self._has_warned = is_late

    def _warn_of(self, addresses: list[str], seconds: float) -> None:
        """Warn once of paused workers that dsel did not start; end if they stay so."""
        if self._warned_of != addresses:
            logger.warning(
                "paused by Dask for lack of memory, with tasks that no other worker "
                "takes: %s. dsel did not start them and leaves them as they are: give "
                "them memory, or retire them",
                ", ".join(addresses),
            )
        self._warned_of = addresses
        keys = [
            key for has in self._client.processing(addresses).values() for key in has
        ]
        if seconds > NO_WORKERS_SECONDS and any(map(self._client.futures.get, keys)):
            raise ClusterLostError(
                f"workers that dsel did not start have been paused for lack of memory "
                f"for {seconds:.0f} s and keep tasks of this run: "
                f"{', '.join(addresses)}. Retire them or give them more memory; {GO_ON}"
            )

    def _retire(self, addresses: list[str]) -> None:
        """Close workers; the others get their tasks and results."""
        logger.warning(
            "retired, for lack of memory even without a task: %s",
            ", ".join(addresses),
        )
        self._client.retire_workers(addresses, close_workers=True)


def _is_stuck(worker: Worker) -> bool:
    counts = worker["metrics"].get("task_counts", {})
    return worker["status"] == "paused" and not counts.get("executing")


@cache
def _machine_memory() -> int:
    """Return this machine's memory; cached, since reading it takes milliseconds."""
    return int(psutil.virtual_memory().total)


def _free(worker: Worker) -> int:
    metrics = worker["metrics"]
    held = int(metrics.get("memory", 0)) - int(metrics.get("managed_bytes", 0))
    limit = int(worker["memory_limit"] or _machine_memory())
    # A process that has just begun holds little, and will hold at least its imports.
    return max(0, limit - max(IMPORTS_NBYTES, held)) // int(worker["nthreads"])


def _short_of_memory(workers: Mapping[str, Worker]) -> str:
    most = max(workers.values(), key=lambda each: int(each["memory_limit"] or 0))
    held = int(most["metrics"].get("memory", 0)) / 2**20
    limit = int(most["memory_limit"] or 0) / 2**20
    return (
        f"all {len(workers)} workers are paused by Dask for lack of memory, and none "
        f"has run a task for {PAUSED_SECONDS:g} s; of {limit:.0f} MiB that one may use "
        f"it holds {held:.0f}. Give workers more memory"
    )
