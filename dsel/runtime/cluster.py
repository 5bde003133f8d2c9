"""Tasks on the workers of a Dask cluster; the work is sent once, as one of them."""

import queue
import uuid
from concurrent.futures import CancelledError
from itertools import count
from operator import itemgetter
from typing import Any, Final

from sklearn import get_config

from dsel.errors import ClusterLostError
from dsel.runtime.tasks import (
    Finished,
    LostInputError,
    Task,
    TaskFunction,
    check_alive,
    drain,
    run_here,
)
from dsel.runtime.versions import COMPARED, check_here, check_versions, versions_here
from dsel.runtime.workers import GO_ON, Workers

LARGE_GRAPHS: Final = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
"""Dask's configuration in which it does not warn of what is sent on purpose."""


class ClusterExecutor:
    """Workers of a Dask cluster."""

    def __init__(self, work: Any, client: Any) -> None:
        from dask import config

        self._workers = Workers(client)
        self._workers.check_limits()  # first: it raises where the scheduler is gone
        self._client = client
        self._run_id = uuid.uuid4().hex[:12]  # tells its tasks from those of others
        self._addresses = sorted(self._workers.now())
        if client not in COMPARED:
            check_versions(client)
        self._serial = count(1)  # what is submitted again is another task to Dask
        self._futures: dict[str, tuple[Any, Any]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        # One named task holds the labeled rows, so that Dask computes it again where
        # the worker that held them died. They are part of the graph on purpose, once.
        with config.set(LARGE_GRAPHS):
            packed = (work, get_config()), tuple(versions_here().items())
            self._work = client.submit(tuple, packed, key=f"work-{self._run_id}")

    @property
    def n_slots(self) -> int:
        """Threads of all workers, as of a few seconds ago: workers come and go."""
        return self._workers.update().n_threads

    @property
    def slot_memory(self) -> int:
        """Bytes that a task may use now on the worker with the least memory."""
        return self._workers.update().task_memory

    def submit(self, task: Task) -> None:
        """Submit the task; where its payload stays, also one that returns its record.

        That one waits behind tasks that are there already, which delays short ones.
        """
        from dask import config

        where: dict[str, Any] = {}
        if task.place is not None and self._addresses:
            address = self._addresses[task.place % len(self._addresses)]
            where = {"workers": [address], "allow_other_workers": True}
        arguments = task.all_arguments(self._client)
        with config.set(LARGE_GRAPHS):  # models from a store may have some MiB
            whole = record = self._client.submit(
                _run_on_worker, task.function, self._work,
                [self._futures[name][0] for name in task.inputs], task.keeps_payload,
                *arguments, key=f"{task.key}-{self._run_id}-{next(self._serial)}",
                priority=task.priority, pure=False, **where,
            )  # fmt: skip
        if task.keeps_payload:
            record = self._client.submit(
                itemgetter(0), whole, key=f"record-{whole.key}",
                priority=task.priority + 1, pure=False,
            )  # fmt: skip
        self._futures[task.key] = (whole, record)
        record.add_done_callback(lambda _: self._ended.put(task.key))

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended, at least one unless `timeout` seconds pass first."""
        keys = drain(self._ended, timeout)
        return [self._ending(key) for key in keys if key in self._futures]

    def _ending(self, key: str) -> Finished:
        record = self._futures[key][1]
        try:
            return Finished(key, self._workers.result_of(record))
        except ImportError as error:
            check_versions(self._client)  # a worker without dsel may have joined
            return Finished(key, None, error)
        except CancelledError as error:
            # Dask cancels a task whose rows, sent ahead of it, died with a worker.
            is_over = self._client.status != "running" or self._work.cancelled()
            return Finished(key, None, error if is_over else LostInputError(key))
        except ClusterLostError:
            raise
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                return Finished(key, None, error)
            n_deaths = getattr(error, "allowed_failures", 0) + 1
            explained = MemoryError(
                f"a task was given up after {n_deaths} workers had died while they ran "
                f"it, most often for lack of memory; give workers more, then {GO_ON}"
            )
            explained.__cause__ = error  # by which `died_of_task` tells it
            return Finished(key, None, explained)

    def fetch(self, key: str) -> Any:
        """Bring the payload kept under `key` to this process."""
        whole = self._futures[key][0]
        payload = self._client.submit(itemgetter(1), whole, pure=False)
        try:
            return self._workers.result_of(payload)
        except CancelledError as error:
            check_alive(error)
            raise

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its payload."""
        for future in self._futures.pop(key, ()):
            # Unlike `cancel`, `release` does not wait for an answer of the scheduler.
            future.release() if future.done() else future.cancel()

    def close(self) -> None:
        """Cancel what runs and drop everything of this run."""
        for key in list(self._futures):
            self.forget(key)
        self._work.release()


def _run_on_worker(
    function: TaskFunction, sent: Any, wholes: list[Any], keeps: bool, *arguments: Any
) -> Any:
    packed, versions = sent
    check_here(versions)
    whole = run_here(packed, function, [each[1] for each in wholes], *arguments)
    return whole if keeps else whole[0]
