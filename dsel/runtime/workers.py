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
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakKeyDictionary, WeakSet

import psutil

from dsel.errors import ClusterLostError

if TYPE_CHECKING:
    from distributed import Client


logger = logging.getLogger(__name__)

NO_WORKERS_SECONDS: Final = 600.0  # new pods may have an image to fetch first
WARN_SECONDS: Final = 10.0  # without workers, before a warning says so
PAUSED_SECONDS: Final = 20.0  # without a running task: more than spilling takes
POLL_SECONDS: Final = 2.0  # between two requests to the scheduler
LONGEST_POLL_SECONDS: Final = 10.0  # what one adds to a waiting time at most
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
"""What `distributed.Client.scheduler_info` reports of one worker."""

_reports: Final[WeakKeyDictionary[Any, tuple[float, dict[str, Worker]]]] = (
    WeakKeyDictionary()
)
"""When the last report of each client's scheduler came, and what it said. By client,
since every pass over a pool has an executor of its own, and would ask."""


class Workers:
    """The workers of a cluster, and for how long a run has waited for them."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.n_threads = 1
        """Of the workers that take tasks, at least one."""
        self.task_memory = 0
        """What a task may use now on the worker with the least."""
        self._updated = time.monotonic() - POLL_SECONDS
        self._seconds_without = 0.0
        self._paused: dict[str, float] = {}
        self._warned_of: list[str] | None = None

    def check_limits(self) -> None:
        """Raise MemoryError where a worker's limit is below what it imports."""
        limits = [int(each["memory_limit"] or 0) for each in self.now().values()]
        least = min(filter(None, limits), default=IMPORTS_NBYTES)
        if least < IMPORTS_NBYTES:
            raise MemoryError(
                f"a worker may use {least / MIB:.0f} MiB, and its imports alone take "
                f"about {IMPORTS_NBYTES / MIB:.0f}; give each at least 700 MiB."
            )

    def now(self) -> dict[str, Worker]:
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
        except (OSError, KeyError) as error:  # the connection closes; or is closed
            raise ClusterLostError(f"the scheduler is gone; {GO_ON}") from error
        _reports[self._client] = time.monotonic(), report
        return report

    def result_of(self, future: Any) -> Any:
        """Return a task's value, for which Dask alone would wait for ever."""
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except OSError:
                if future.status == "error":  # the task raised it, not the wait
                    raise
            self.update()

    def update(self) -> Self:
        """Take in the scheduler's report; raise where nobody is left to work."""
        passed = time.monotonic() - self._updated
        if passed < POLL_SECONDS:
            return self
        # Where the machine slept meanwhile, workers get time to come back.
        seconds, workers = min(passed, LONGEST_POLL_SECONDS), self.now()
        self._updated = time.monotonic()
        self.task_memory = min(map(_free, workers.values()), default=MACHINE_MEMORY)
        running = [each for each in workers.values() if each["status"] == "running"]
        self.n_threads = max(1, sum(int(each["nthreads"]) for each in running))
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
            for address, each in workers.items()
            if each["status"] == "paused"
            and not each["metrics"].get("task_counts", {}).get("executing")
        }
        stuck = [each for each, s in self._paused.items() if s > PAUSED_SECONDS]
        if running and stuck:
            self._leave_out(stuck)
        elif stuck and len(stuck) == len(workers):
            most = max(workers.values(), key=lambda each: each["memory_limit"] or 0)
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
        """Close paused workers that dsel started; warn of others, or end the run."""
        listed = ", ".join(stuck)
        if self._client in STARTED:
            logger.warning(
                "retired, for lack of memory even without a task: %s", listed
            )
            self._client.retire_workers(stuck, close_workers=True)
            return
        if self._warned_of != stuck:
            logger.warning(
                "paused by Dask for lack of memory, with tasks that no other worker "
                "takes: %s. dsel did not start them and leaves them as they are: give "
                "them memory, or retire them",
                listed,
            )
        self._warned_of = stuck
        seconds = min(self._paused[each] for each in stuck)
        kept = {key for has in self._client.processing(stuck).values() for key in has}
        if seconds > NO_WORKERS_SECONDS and kept & self._client.futures.keys():
            raise ClusterLostError(
                f"workers that dsel did not start have been paused for lack of memory "
                f"for {seconds:.0f} s and keep tasks of this run: {listed}. Retire "
                f"them or give them more memory; {GO_ON}"
            )


def _free(worker: Worker) -> int:
    metrics = worker["metrics"]
    held = int(metrics.get("memory", 0)) - int(metrics.get("managed_bytes", 0))
    limit = int(worker["memory_limit"] or MACHINE_MEMORY)
    # A process that has just begun holds little, and will hold at least its imports.
    return max(0, limit - max(IMPORTS_NBYTES, held)) // int(worker["nthreads"])
