"""Tasks on the workers of a Dask cluster; what they share is sent once, as a task."""

import queue
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from importlib import import_module
from itertools import count
from operator import attrgetter
from typing import Any, Final, Generic, Self, TypeVar

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from dsel.errors import ClusterLostError
from dsel.runtime.tasks import (
    Finished,
    Inputs,
    LostInputError,
    Output,
    Packed,
    Task,
    Work,
    drain,
    raise_fatal_error,
    run_here,
)
from dsel.runtime.versions import COMPARED, check_here, check_versions, versions_here
from dsel.runtime.workers import GO_ON, Workers

LARGE_GRAPHS: Final = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
"""Dask configuration without the warning about large graphs; contexts are large on
purpose."""


T = TypeVar("T")
_in_turn: Final = threading.RLock()


class Sent(Generic[T]):
    """An object that Dask sends as bytes, and each process unpickles once, in a task.

    Unpickling imports modules. Python raises "deadlock detected" if one thread imports
    a package while another thread imports a module of that package. Dask would unpickle
    work in its event loop while tasks unpickle their context; here tasks unpickle both,
    one task at a time.
    """

    def __init__(self, value: T) -> None:
        self._value = [value]
        self._content = b""
        self._arrays: list[NDArray[Any]] = []

    @classmethod
    def snapshot(cls, value: T) -> Self:
        """Return the object as it is now, whatever later tasks do to it.

        Workers send a context to each other while their tasks use it. A pickle fails if
        a task changes one of the object's dictionaries at that moment, as a cached
        property does, and the task that waits for the pickle never runs.
        """
        sent = cls(value)
        sent._content, sent._arrays = _to_bytes(value)
        return sent

    def __getstate__(self) -> tuple[bytes, list[NDArray[Any]]]:
        return (self._content, self._arrays) if self._content else _to_bytes(self.get())

    def __setstate__(self, state: tuple[bytes, list[NDArray[Any]]]) -> None:
        # This runs in the event loop, before rows of a pool, which Dask unpickles
        # itself, and before all tasks, so that no two threads import parts of dsel.
        with _in_turn:
            import_module("dsel.search")
        self._value = []
        self._content, self._arrays = state

    def get(self) -> T:
        """Return the object; it shares the memory of the bytes."""
        # Dask unpickles everything that clients send, too; nothing here comes from a
        # store.
        from distributed.protocol.pickle import loads

        with _in_turn:
            if not self._value:
                self._value.append(loads(self._content, buffers=self._arrays))
        return self._value[0]


def _to_bytes(value: object) -> tuple[bytes, list[NDArray[Any]]]:
    buffers: list[Any] = []
    content = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    # Buffers are sent as arrays, since the object that a worker receives for a buffer
    # cannot be pickled again.
    return content, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]


class ClusterExecutor:
    """Workers of a Dask cluster."""

    def __init__(self, context: Any, client: Any) -> None:
        self._workers = Workers(client)
        # This comes first, since it raises where the scheduler is gone.
        self._workers.check_limits()
        self._client = client
        self._run_id = uuid.uuid4().hex[:12]  # part of all keys, to make them unique
        self._addresses = sorted(self._workers.fetch_workers())
        if client not in COMPARED:
            check_versions(client)
        self._serial = count(1)  # a retry needs another key, or Dask returns the error
        self._futures: dict[str, tuple[Any, Any]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._contexts: dict[str, Any] = {}
        self._first = self.put(context)

    def put(self, context: Any) -> str:
        """Send a context that several tasks share; return its `Task.context_key`.

        The context is the argument of one named task, not scattered data: if the worker
        that holds it dies, Dask computes it again.
        """
        from dask import config

        key = f"context-{self._run_id}-{len(self._contexts)}"
        with config.set(LARGE_GRAPHS):
            sent = Sent.snapshot(Packed.of(context)), tuple(versions_here().items())
            self._contexts[key] = self._client.submit(tuple, sent, key=key)
        return key

    @property
    def n_slots(self) -> int:
        """Number of threads of all workers, as of a few seconds ago."""
        return self._workers.update().n_threads

    @property
    def slot_memory(self) -> int:
        """Bytes that a task may use now on the worker with the least memory."""
        return self._workers.update().task_memory

    def submit(self, task: Task[Any, Any]) -> None:
        """Submit the task, and a second one that returns the result of kept output.

        Without kept output there is no second task, because it would wait in the queue
        behind other tasks, which delays short ones.
        """
        from dask import config

        where: dict[str, Any] = {}
        if task.affinity is not None and self._addresses:
            address = self._addresses[task.affinity % len(self._addresses)]
            where = {"workers": [address], "allow_other_workers": True}
        with config.set(LARGE_GRAPHS):  # models from a store may have some MiB
            whole = result = self._client.submit(
                _run_on_worker,
                self._contexts[task.context_key or self._first],
                Sent.snapshot(task.work),
                [self._futures[name][0] for name in task.input_tasks],
                task.read_sources(self._client),
                task.keeps_output,
                key=f"{task.key}-{self._run_id}-{next(self._serial)}",
                priority=task.priority,
                **where,
            )
        if task.keeps_output:
            # This task has priority, because the search waits for it and it takes no
            # time.
            result = self._client.submit(
                attrgetter("result"),
                whole,
                key=f"result-{whole.key}",
                priority=task.priority + 1,
            )
        self._futures[task.key] = (whole, result)
        result.add_done_callback(lambda _: self._ended.put(task.key))

    def wait(self, timeout: float) -> list[Finished[Any]]:
        """Return tasks that ended, at least one unless `timeout` seconds pass first."""
        keys = drain(self._ended, timeout)
        return [self._result_of(key) for key in keys if key in self._futures]

    def _result_of(self, key: str) -> Finished[Any]:
        """Return the result or error of an ended task; raise if the cluster is lost."""
        result = self._futures[key][1]
        try:
            return Finished(key, self._workers.result_of(result))
        except ImportError as error:
            check_versions(self._client)  # a worker without dsel may have joined
            return Finished(key, None, error)
        except CancelledError as error:
            # Dask cancels a task whose input rows were lost with a worker; such a task
            # can be submitted again. If the contexts are cancelled, too, or the client
            # is not connected, the whole run is lost.
            contexts = self._contexts.values()
            is_lost = any(context.cancelled() for context in contexts)
            is_over = self._client.status != "running" or is_lost
            return Finished(key, None, error if is_over else LostInputError(key))
        except ClusterLostError:
            raise
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                return Finished(key, None, error)
            n_deaths = getattr(error, "allowed_failures", 0) + 1
            explanation = MemoryError(
                f"a task was given up after {n_deaths} workers had died while they ran "
                f"it, most often for lack of memory; give workers more, then {GO_ON}"
            )
            # `is_worker_death` recognizes the error by its cause.
            explanation.__cause__ = error
            return Finished(key, None, explanation)

    def fetch(self, key: str) -> Any:
        """Return the kept output of a task, brought to this process."""
        return self._fetch([key], "kept")[0].get()

    def fetch_results(self, keys: Sequence[str]) -> list[Any]:
        """Return the results of tasks that keep output, as they are now.

        They belong to the present output. Dask runs a task again that was lost with its
        worker, and the result that `wait` has returned is that of the first run.
        """
        return self._fetch(keys, "result")

    def _fetch(self, keys: Sequence[str], field: str) -> list[Any]:
        """Return a field of the outputs of tasks, which stayed on workers."""
        # The whole output is fetched: a result that was kept apart may be of an earlier
        # time.
        futures = [
            self._client.submit(
                attrgetter(field), self._futures[key][0], pure=False, priority=20
            )
            for key in keys
        ]
        try:
            return [self._workers.result_of(future) for future in futures]
        except CancelledError as error:
            raise_fatal_error(error)
            raise

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its kept output."""
        for future in self._futures.pop(key, ()):
            # Unlike `cancel`, `release` does not wait for the scheduler's reply.
            future.release() if future.done() else future.cancel()

    def close(self) -> None:
        """Cancel running tasks, and drop everything that belongs to this run."""
        for key in list(self._futures):
            self.forget(key)
        for context in self._contexts.values():
            context.release()


def _run_on_worker(
    sent: tuple[Sent[Packed], Any],
    work: Sent[Work[Any, Any]],
    wholes: list[Output[Sent[Any]]],
    sources: list[Any],
    keeps: bool,
) -> Any:
    """Run a task on a worker; return its Output if it is kept there."""
    context, versions = sent
    check_here(versions)
    inputs = Inputs(tuple(output.kept.get() for output in wholes), sources)
    output = run_here(context.get(), work.get(), inputs)
    return replace(output, kept=Sent(output.kept)) if keeps else output.result
