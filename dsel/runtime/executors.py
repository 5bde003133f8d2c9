"""Where tasks run: on a Dask cluster, or on local threads without one.

Both give a task the run's *work* (labeled rows, families, groups) as its first
argument, return the small record that it makes to the driver, and keep the large
payload (fitted models) where it was made, under the task's key.
"""

import queue
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Protocol

import psutil

from dsel.errors import ClusterLostError, VersionMismatchError
from dsel.runtime.clients import count_threads
from dsel.runtime.tasks import LostInputError, result_of
from dsel.runtime.threads import single_threaded
from dsel.runtime.versions import check_here, check_versions
from dsel.runtime.workers import GO_ON, Workers

DERIVED_PRIORITY: Final = 100
"""More than that of any task which waits for what is derived."""

Task = Callable[..., tuple[Any, Any]]
"""Takes (work, payloads of the inputs, *arguments), returns (record, payload)."""


@dataclass(frozen=True)
class Finished:
    """A task that came to an end."""

    key: str
    """Key under which it was submitted."""
    record: Any
    """What it counted; None where it failed or was cancelled."""
    error: BaseException | None = None
    """What went wrong."""

    def result(self) -> Any:
        """Return the record, or raise what went wrong."""
        if self.error is not None:
            raise self.error
        return self.record


class Executor(Protocol):
    """Runs tasks, for the driver or for `dsel.runtime.jobs.completed`."""

    @property
    def client(self) -> Any:
        """The Dask client; None where tasks run in this process."""

    @property
    def n_slots(self) -> int:
        """Tasks that can run at the same time, now."""

    @property
    def slot_memory(self) -> int:
        """Bytes that each of them may use now, where there is least."""

    def submit(
        self,
        key: str,
        task: Task,
        *arguments: Any,
        inputs: Sequence[str] = (),
        priority: int = 0,
        keeps_payload: bool = False,
    ) -> None:
        """Start a task; `inputs` are keys of finished tasks whose payloads it gets.

        Only the payload of a task that keeps it can be an input, or be fetched.
        """

    def derive(self, key: str, task: Task, *arguments: Any, source: str) -> None:
        """Make a smaller input of the payload kept under `source`, where that is.

        It is not waited for. Where inputs are not moved it is that payload itself.
        """

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended, at least one unless `timeout` seconds pass."""

    def fetch(self, key: str) -> Any:
        """Return the payload kept under `key`."""

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its payload."""

    def close(self) -> None:
        """Cancel what runs and drop everything."""


class LocalExecutor:
    """Threads of this process."""

    def __init__(self, work: Any, n_threads: int | None = None) -> None:
        self._work = work
        self._n_threads = count_threads(n_threads)
        self._pool = ThreadPoolExecutor(self._n_threads, thread_name_prefix="dsel")
        self._futures: dict[str, Future[tuple[Any, Any]]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._limits = ExitStack()
        self._limits.enter_context(single_threaded())

    @property
    def n_slots(self) -> int:
        """Number of threads."""
        return self._n_threads

    @property
    def slot_memory(self) -> int:
        """Memory that is free now, divided by the threads."""
        return int(psutil.virtual_memory().available) // self._n_threads

    @property
    def client(self) -> None:
        """There is no client."""
        return

    def submit(
        self,
        key: str,
        task: Task,
        *arguments: Any,
        inputs: Sequence[str] = (),
        priority: int = 0,
        keeps_payload: bool = False,
    ) -> None:
        """Queue the task; threads take tasks in the order of submission."""
        del priority  # the driver submits few tasks ahead
        del keeps_payload  # keeping it here costs nothing
        payloads = [self._futures[name].result()[1] for name in inputs]
        future = self._pool.submit(_run, task, self._work, payloads, *arguments)
        self._futures[key] = future
        future.add_done_callback(lambda _: self._ended.put(key))

    def derive(self, key: str, task: Task, *arguments: Any, source: str) -> None:
        """Take the payload as it is: threads share it."""
        self._futures[key] = self._futures[source]

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended."""
        return [
            _finished(key, self._futures[key])
            for key in drain(self._ended, timeout)
            if key in self._futures and not self._futures[key].cancelled()
        ]

    def fetch(self, key: str) -> Any:
        """Return the payload kept under `key`."""
        return self._futures[key].result()[1]

    def forget(self, key: str) -> None:
        """Drop the task and its payload."""
        future = self._futures.pop(key, None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Wait for running tasks; those that wait are cancelled."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._futures.clear()
        self._limits.close()


class ClusterExecutor:
    """Workers of a Dask cluster."""

    def __init__(self, work: Any, client: Any, run_id: str) -> None:
        from dask import config

        self._workers = Workers(client)
        self._workers.check_limits()  # first: a lost scheduler answers nothing else
        versions = check_versions(client)
        self._client = client
        self._run_id = run_id
        self._serial = count(1)  # what is submitted again is another task to Dask
        self._futures: dict[str, tuple[Any, Any]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        # One named task holds the labeled rows: a worker that loses them asks again.
        # They are meant to be part of the graph, once.
        threshold = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
        with config.set(threshold):
            packed = (work, tuple(versions.items()))
            self._work = client.submit(_same, packed, key=f"work-{run_id}")

    @property
    def client(self) -> Any:
        """The client that was given."""
        return self._client

    @property
    def n_slots(self) -> int:
        """Threads of all workers; workers come and go, so it is asked now and then."""
        return self._workers.n_threads

    @property
    def slot_memory(self) -> int:
        """What a task may use now on the worker that has least."""
        return self._workers.task_memory

    def submit(
        self,
        key: str,
        task: Task,
        *arguments: Any,
        inputs: Sequence[str] = (),
        priority: int = 0,
        keeps_payload: bool = False,
    ) -> None:
        """Submit the task; where its payload stays, also one that takes its record.

        That second task waits for a thread of the worker behind a task that is there
        already, so short tasks are told of late: only those pay it that need it.
        """
        payloads = [self._futures[name][0] for name in inputs]
        name = f"{key}-{self._run_id}-{next(self._serial)}"
        whole = record = self._client.submit(
            _run_on_worker if keeps_payload else _record_on_worker,
            task,
            self._work,
            payloads,
            *arguments,
            key=name,
            priority=priority,
            pure=False,
        )
        if keeps_payload:
            record = self._client.submit(
                _record, whole, key=f"record-{name}", priority=priority + 1, pure=False
            )
        self._futures[key] = (whole, record)
        record.add_done_callback(lambda _: self._ended.put(key))

    def derive(self, key: str, task: Task, *arguments: Any, source: str) -> None:
        """Submit the task ahead of those that are there: others wait for it."""
        whole = self._client.submit(
            _run_on_worker,
            task,
            self._work,
            [self._futures[source][0]],
            *arguments,
            key=f"{key}-{self._run_id}-{next(self._serial)}",
            priority=DERIVED_PRIORITY,
            pure=False,
        )
        self._futures[key] = (whole, whole)

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended; a cancelled one has an error of its own."""
        ended = [key for key in drain(self._ended, timeout) if key in self._futures]
        return [self._ending(key) for key in ended]

    def _ending(self, key: str) -> Finished:
        record = self._futures[key][1]
        try:
            return Finished(key, result_of(record, self._client))
        except ImportError as error:
            check_versions(self._client)  # a worker without dsel may have joined
            return Finished(key, None, error)
        except CancelledError as error:
            # Dask gives up a task where rows that were sent ahead of it are lost.
            is_over = self._client.status != "running" or self._work.cancelled()
            return Finished(key, None, error if is_over else LostInputError(key))
        except ClusterLostError:
            raise
        except Exception as error:
            return Finished(key, None, _explained(error))

    def fetch(self, key: str) -> Any:
        """Bring the payload kept under `key` to this process."""
        payload = self._client.submit(_payload, self._futures[key][0], pure=False)
        try:
            return result_of(payload, self._client)
        except CancelledError as error:
            check_alive(error)
            raise

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its payload."""
        for future in self._futures.pop(key, ()):
            # To let go of what has ended takes no answer from the scheduler.
            future.release() if future.done() else future.cancel()

    def close(self) -> None:
        """Cancel what runs and drop everything of this run."""
        for key in list(self._futures):
            self.forget(key)
        self._work.release()


def make_executor(
    work: Any, client: Any, n_jobs: int | None = None, *, run_id: str = ""
) -> Executor:
    """Return the workers of a client as an executor, or local threads for None.

    Raises
    ------
    VersionMismatchError
        Where a worker has another version of a package that decides results.
    """
    if client is None:
        return LocalExecutor(work, n_jobs)
    return ClusterExecutor(work, client, run_id or uuid.uuid4().hex[:12])


def check_alive(error: BaseException | None) -> None:
    """Raise where a task's error says that the cluster is gone, or another one.

    Raises
    ------
    ClusterLostError
        Where scheduler or workers are gone.
    VersionMismatchError
        Where a worker joined that has other versions.
    """
    if isinstance(error, VersionMismatchError):
        raise error
    if type(error).__name__ in {"FutureCancelledError", "CancelledError"}:
        raise ClusterLostError(
            f"the scheduler is gone or the run's tasks were cancelled; {GO_ON}"
        ) from error
    if type(error).__name__ == "NoWorkerError":
        raise ClusterLostError(
            f"the cluster has had no workers for too long; {GO_ON}"
        ) from error


def died_of_task(error: BaseException) -> bool:
    """Whether a task was given up since worker after worker had died under it."""
    return type(error.__cause__).__name__ == "KilledWorker"


def drain(ended: "queue.SimpleQueue[str]", timeout: float) -> list[str]:
    """Wait for one key, then take all that are there."""
    try:
        keys = [ended.get(timeout=timeout)]
    except queue.Empty:
        return []
    while not ended.empty():
        keys.append(ended.get())
    return keys


def _explained(error: Exception) -> Exception:
    """Return what Dask says of a task whose workers die in words of its user."""
    if type(error).__name__ != "KilledWorker":
        return error
    n_deaths = getattr(error, "allowed_failures", 0) + 1
    explained = MemoryError(
        f"a task was given up after {n_deaths} workers had died under it, as they do "
        f"where memory is short; give workers more, then {GO_ON}"
    )
    explained.__cause__ = error
    return explained


def _finished(key: str, future: "Future[tuple[Any, Any]]") -> Finished:
    error = future.exception()
    return Finished(key, None if error else future.result()[0], error)


def _run(task: Task, work: Any, payloads: list[Any], *arguments: Any) -> Any:
    with single_threaded():
        return task(work, payloads, *arguments)


def _run_on_worker(task: Task, packed: Any, wholes: list[Any], *arguments: Any) -> Any:
    work, versions = packed
    check_here(versions)
    return _run(task, work, [whole[1] for whole in wholes], *arguments)


def _record_on_worker(
    task: Task, packed: Any, wholes: list[Any], *arguments: Any
) -> Any:
    return _run_on_worker(task, packed, wholes, *arguments)[0]


def _record(whole: tuple[Any, Any]) -> Any:
    return whole[0]


def _payload(whole: tuple[Any, Any]) -> Any:
    return whole[1]


def _same(packed: Any) -> Any:
    return packed
