"""Number, memory and state of a cluster's workers, as its scheduler reports them.

Dask pauses a worker whose process holds too much memory, until it holds less. Where the
imports alone take that much, it stays paused: tasks that were assigned to it wait
forever, while other workers are idle. A worker like this is retired if dsel started it.
Otherwise a warning names it, and the run ends if it keeps tasks of the run.
"""

import logging
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakKeyDictionary, WeakSet

import psutil

from dsel.errors import ClusterLostError

if TYPE_CHECKING:
    from distributed import Client


logger = logging.getLogger(__name__)

NO_WORKERS_SECONDS: Final = 600.0  # new pods may have to fetch an image first
WARN_SECONDS: Final = 10.0  # time without workers before a warning
PAUSED_SECONDS: Final = 20.0  # time without a running task, longer than spilling takes
POLL_SECONDS: Final = 2.0  # between two requests to the scheduler
LONGEST_POLL_SECONDS: Final = 10.0  # largest time that one poll adds to a waiting time
MIB: Final = 2**20
MACHINE_MEMORY: Final = int(psutil.virtual_memory().total)
IMPORTS_NBYTES: Final = 320 * MIB  # with less memory a worker is killed on import
GO_ON: Final = (
    "run the same command again with the same `out=` to continue from what is stored."
)
MORE_MEMORY: Final = "Workers need more memory: give each at least 700 MiB"

STARTED: Final[WeakSet[Any]] = WeakSet()
"""Clients of clusters that dsel started; workers of other clusters are not retired."""

Worker = Mapping[str, Any]
"""Entry of one worker in `distributed.Client.scheduler_info`."""

_reports: Final[WeakKeyDictionary[Any, tuple[float, dict[str, Worker]]]] = (
    WeakKeyDictionary()
)
"""Time and content of the last report of each client's scheduler. Executors share it,
since every pass over a pool has its own executor, which would poll again."""


class Workers:
    """The workers of a cluster, and the time that a run has waited for them."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.n_threads = 1
        """Threads of the workers that take tasks, at least 1."""
        self.task_memory = 0
        """Bytes that a task may use now on the worker with the least free memory."""
        self._updated = time.monotonic() - POLL_SECONDS
        self._seconds_without = 0.0
        self._paused: dict[str, float] = {}
        self._warned_of: list[str] | None = None

    def check_limits(self) -> None:
        """Raise MemoryError where a worker's limit is too small for its imports."""
        limits = [int(w["memory_limit"] or 0) for w in self.fetch_workers().values()]
        least = min(filter(None, limits), default=IMPORTS_NBYTES)
        if least < IMPORTS_NBYTES:
            raise MemoryError(
                f"a worker may use {least / MIB:.0f} MiB, and its imports alone take "
                f"about {IMPORTS_NBYTES / MIB:.0f}; give each at least 700 MiB."
            )

    def fetch_workers(self) -> dict[str, Worker]:
        """Return all workers by address, as they were at most `POLL_SECONDS` ago."""
        came, report = _reports.get(self._client, (-math.inf, {}))
        # A client that is reconnecting has lost its tasks, and a request to the
        # scheduler may then last as long as the client's own timeout.
        if self._client.status != "running":
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}")
        if time.monotonic() - came < POLL_SECONDS:
            return report
        try:
            report = dict(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError) as error:  # KeyError: the connection was closed
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}") from error
        _reports[self._client] = time.monotonic(), report
        return report

    def result_of(self, future: Any) -> Any:
        """Return a task's value, or raise where Dask would wait forever for it."""
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except OSError:
                if future.status == "error":  # the task raised the error, not the wait
                    raise
            self.update()

    def update(self) -> Self:
        """Read the scheduler's report; raise where no worker is left for the tasks."""
        passed = time.monotonic() - self._updated
        if passed < POLL_SECONDS:
            return self
        # If the machine was suspended in the meantime, workers get time to come back.
        seconds = min(passed, LONGEST_POLL_SECONDS)
        workers = self.fetch_workers()
        self._updated = time.monotonic()
        self.task_memory = min(
            map(_free_memory, workers.values()), default=MACHINE_MEMORY
        )
        running = [w for w in workers.values() if w["status"] == "running"]
        # The number is at least 1, so that a task is submitted at all: Dask starts
        # adaptive workers for tasks that wait.
        self.n_threads = max(1, sum(int(w["nthreads"]) for w in running))
        before = self._seconds_without
        self._seconds_without = 0.0 if running else before + seconds
        if before <= WARN_SECONDS < self._seconds_without:
            logger.warning(
                "the cluster has no workers that take tasks; waiting for some, for "
                "%g s at most",
                NO_WORKERS_SECONDS,
            )
        self._paused = {
            address: self._paused.get(address, 0.0) + seconds
            for address, worker in workers.items()
            if worker["status"] == "paused"
            and not worker["metrics"].get("task_counts", {}).get("executing")
        }
        stuck = [a for a, seconds in self._paused.items() if seconds > PAUSED_SECONDS]
        if running and stuck:
            self._leave_out(stuck)
        elif stuck and len(stuck) == len(workers):
            most = max(workers.values(), key=lambda w: w["memory_limit"] or 0)
            raise ClusterLostError(
                f"all {len(workers)} workers are paused by Dask for lack of memory, "
                f"and none has run a task for {PAUSED_SECONDS:g} s; of "
                f"{(most['memory_limit'] or 0) / MIB:.0f} MiB that one may use it "
                f"holds {most['metrics'].get('memory', 0) / MIB:.0f}. Give workers "
                f"more memory; {GO_ON}"
            )
        elif self._seconds_without > NO_WORKERS_SECONDS:
            raise ClusterLostError(
                f"the cluster has had no workers for {NO_WORKERS_SECONDS:g} s; {GO_ON}"
            )
        return self

    def _leave_out(self, stuck: list[str]) -> None:
        """Close paused workers that dsel started; warn about others, or end the run."""
        addresses = ", ".join(stuck)
        if self._client in STARTED:
            logger.warning(
                "retired, for lack of memory even without a task: %s", addresses
            )
            self._client.retire_workers(stuck, close_workers=True)
            return
        if self._warned_of != stuck:
            logger.warning(
                "paused by Dask for lack of memory, with tasks that no other worker "
                "takes: %s. dsel did not start them and leaves them as they are: give "
                "them memory, or retire them",
                addresses,
            )
        self._warned_of = stuck
        seconds = min(self._paused[address] for address in stuck)
        keys_on_worker = {
            key for keys in self._client.processing(stuck).values() for key in keys
        }
        if (
            seconds > NO_WORKERS_SECONDS
            and keys_on_worker & self._client.futures.keys()
        ):
            raise ClusterLostError(
                f"workers that dsel did not start have been paused for lack of memory "
                f"for {seconds:.0f} s and keep tasks of this run: {addresses}. Retire "
                f"them or give them more memory; {GO_ON}"
            )


def _free_memory(worker: Worker) -> int:
    metrics = worker["metrics"]
    used_nbytes = int(metrics.get("memory", 0)) - int(metrics.get("managed_bytes", 0))
    limit = int(worker["memory_limit"] or MACHINE_MEMORY)
    # A process that has just started holds little now, but at least its imports later.
    return max(0, limit - max(IMPORTS_NBYTES, used_nbytes)) // int(worker["nthreads"])
