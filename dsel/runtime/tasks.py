"""Running one function over many spans, values coming back in order."""

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from threadpoolctl import threadpool_limits

from dsel.errors import ClusterLostError
from dsel.runtime.clients import current_worker, local_threads

logger = logging.getLogger(__name__)

AHEAD: Final = 4
"""Tasks submitted per worker thread: enough to keep it busy, few enough that rows sent
along do not pile up."""
TRIES: Final = 4
"""How often a task is asked for whose rows died with the worker that held them."""
LOOK_SECONDS: Final = 10.0
"""How long a task is waited for before it is asked who could run it."""
NO_WORKERS_SECONDS: Final = 600.0
"""How long workers may stay away, as in a search: by default Dask waits for ever."""
LOST: Final = "the scheduler is gone; run the same again when there is one."

Job = Callable[[Any], tuple[Any, ...]]
"""Called with the client (or None) just before a task starts; gives its arguments."""


class LostInputError(OSError):
    """What was sent for a task died with a worker; submitted again it may be done."""


def values_in_order(
    function: Callable[..., Any],
    jobs: Sequence[Job],
    client: Any,
    *,
    sticky: bool = False,
) -> Iterator[Any]:
    """Yield ``function(*job(client))`` for every job, in the order of the jobs.

    Parameters
    ----------
    function
        Runs in a worker, or in a local thread if there is no client; in this thread
        inside a task.
    jobs
        What makes the arguments.
    client
        Dask client or None.
    sticky
        Whether the same job should run on the same worker in every call.
    """
    if client is not None:
        return _cluster_values(function, jobs, client, sticky)
    if current_worker() is not None or len(jobs) == 1:
        return (function(*job(None)) for job in jobs)
    return _thread_values(function, jobs)


def _thread_values(function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[Any]:
    with threadpool_limits(1), ThreadPoolExecutor(local_threads()) as threads:
        try:
            yield from threads.map(lambda job: function(*job(None)), jobs)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _cluster_values(
    function: Callable[..., Any], jobs: Sequence[Job], client: Any, sticky: bool
) -> Iterator[Any]:
    threads = client.nthreads()
    submitter = Submitter(function, client, tuple(sorted(threads)) if sticky else ())
    ahead = max(AHEAD * sum(threads.values()), AHEAD)
    waiting = deque(enumerate(jobs))
    under_way: deque[tuple[Any, int, Job]] = deque()
    try:
        while waiting or under_way:
            while waiting and len(under_way) < ahead:
                number, job = waiting.popleft()
                under_way.append((submitter.submit(number, job), number, job))
            yield submitter.result(*under_way[0])
            under_way.popleft()
    finally:
        if under_way and client.status == "running":  # else there is nobody to tell
            client.cancel([future for future, _, _ in under_way])


@dataclass(frozen=True)
class Submitter:
    """Submits the tasks of one call."""

    function: Callable[..., Any]
    client: Any
    workers: tuple[str, ...]
    """Addresses to prefer in turn; none where any worker will do."""

    def submit(self, number: int, job: Job) -> Any:
        """Return the future of a job's value."""
        where: dict[str, Any] = {}
        if self.workers:
            worker = self.workers[number % len(self.workers)]
            where = {"workers": [worker], "allow_other_workers": True}
        key = f"dsel-span-{uuid.uuid4().hex[:12]}-{number}"
        arguments = job(self.client)
        return self.client.submit(_limited, self.function, *arguments, key=key, **where)

    def result(self, future: Any, number: int, job: Job) -> Any:
        """Return a job's value; ask again when rows sent to a worker died with it.

        Raises
        ------
        ClusterLostError
            Where the scheduler is gone, or workers stay away.
        """
        for _ in range(TRIES - 1):
            try:
                return result_of(future, self.client)
            except CancelledError:
                future = self.submit(number, job)
        return result_of(future, self.client)


def result_of(future: Any, client: Any) -> Any:
    """Return a task's value, and look now and then who could compute or send it.

    Dask by itself waits for ever, also for what a worker held that died since.

    Raises
    ------
    ClusterLostError
        Where the scheduler is gone, or workers stay away.
    """
    without = 0.0
    while True:
        try:
            return future.result(timeout=LOOK_SECONDS)
        except OSError as error:
            if future.status == "error":  # it is the task's own
                raise
            waited = LOOK_SECONDS if isinstance(error, TimeoutError) else 0.0
        without = 0.0 if _has_workers(client) else without + waited
        if without == waited > 0:
            logger.warning("the cluster has no workers; waiting for some")
        if without >= NO_WORKERS_SECONDS:
            raise ClusterLostError(
                f"the cluster has had no workers for {NO_WORKERS_SECONDS:g} s; run "
                "the same again when it has some."
            )


def _has_workers(client: Any) -> bool:
    try:
        if client.status == "running":
            return bool(client.nthreads())
    except OSError as error:
        raise ClusterLostError(LOST) from error
    raise ClusterLostError(LOST)


def _limited(function: Callable[..., Any], *arguments: Any) -> Any:
    with threadpool_limits(1):
        return function(*arguments)
