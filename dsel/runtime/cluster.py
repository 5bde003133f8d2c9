"""Tasks on the workers of a Dask cluster.

What all tasks need (the work) is sent once, as a task of its own. A task returns
(record, payload); the record comes to this process, the payload (fitted models) stays
on the worker.
"""

import queue
from concurrent.futures import CancelledError
from itertools import count
from typing import Any, Final

from dsel.errors import ClusterLostError
from dsel.runtime.local import drain, run_here
from dsel.runtime.tasks import (
    Finished,
    LostInputError,
    Task,
    TaskFunction,
    check_alive,
)
from dsel.runtime.versions import check_here, check_versions
from dsel.runtime.workers import GO_ON, Workers

DERIVED_PRIORITY: Final = 100
"""More than that of any task which waits for what is derived."""


class ClusterExecutor:
    """Workers of a Dask cluster.

    Parameters
    ----------
    work
        What every task gets first.
    client
        A `distributed.Client`.
    run_id
        Tells the tasks of this executor from those of others.
    """

    def __init__(self, work: Any, client: Any, run_id: str) -> None:
        from dask import config

        self._workers = Workers(client)
        self._workers.check_limits()  # first: a lost scheduler answers nothing else
        versions = check_versions(client)
        self._client = client
        self._run_id = run_id
        self._addresses = sorted(self._workers.now())
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
    def n_slots(self) -> int:
        """Threads of all workers; workers come and go, so it is asked now and then."""
        return self._workers.n_threads

    @property
    def slot_memory(self) -> int:
        """What a task may use now on the worker that has least."""
        return self._workers.task_memory

    def submit(self, task: Task) -> None:
        """Submit the task; where its payload stays, also one that takes its record.

        That second task waits for a thread of the worker behind a task that is there
        already, so short tasks are told of late: only those pay it that need it.
        """
        body = _run_on_worker if task.keeps_payload else _record_on_worker
        whole = record = self._submit(body, task, task.inputs, task.priority)
        if task.keeps_payload:
            record = self._client.submit(
                _record,
                whole,
                key=f"record-{whole.key}",
                priority=task.priority + 1,
                pure=False,
            )
        self._futures[task.key] = (whole, record)
        record.add_done_callback(lambda _: self._ended.put(task.key))

    def derive(self, task: Task, source: str) -> None:
        """Submit the task ahead of those that are there: others wait for it."""
        whole = self._submit(_run_on_worker, task, (source,), DERIVED_PRIORITY)
        self._futures[task.key] = (whole, whole)

    def _submit(
        self, body: TaskFunction, task: Task, inputs: tuple[str, ...], priority: int
    ) -> Any:
        where: dict[str, Any] = {}
        if task.place is not None and self._addresses:
            address = self._addresses[task.place % len(self._addresses)]
            where = {"workers": [address], "allow_other_workers": True}
        return self._client.submit(
            body,
            task.function,
            self._work,
            [self._futures[name][0] for name in inputs],
            *task.all_arguments(self._client),
            key=f"{task.key}-{self._run_id}-{next(self._serial)}",
            priority=priority,
            pure=False,
            **where,
        )

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended; a cancelled one has an error of its own."""
        ended = [key for key in drain(self._ended, timeout) if key in self._futures]
        return [self._ending(key) for key in ended]

    def _ending(self, key: str) -> Finished:
        record = self._futures[key][1]
        try:
            return Finished(key, self._workers.result_of(record))
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
            return self._workers.result_of(payload)
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


def _run_on_worker(
    function: TaskFunction, packed: Any, wholes: list[Any], *arguments: Any
) -> Any:
    work, versions = packed
    check_here(versions)
    return run_here(function, work, [whole[1] for whole in wholes], *arguments)


def _record_on_worker(
    function: TaskFunction, packed: Any, wholes: list[Any], *arguments: Any
) -> Any:
    return _run_on_worker(function, packed, wholes, *arguments)[0]


def _record(whole: tuple[Any, Any]) -> Any:
    return whole[0]


def _payload(whole: tuple[Any, Any]) -> Any:
    return whole[1]


def _same(packed: Any) -> Any:
    return packed
