"""Tasks on threads of this process."""

import queue
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psutil
from sklearn import config_context, get_config

from dsel.runtime.clients import count_threads
from dsel.runtime.tasks import Finished, Task, as_task
from dsel.runtime.threads import single_threaded


class LocalExecutor:
    """Threads of this process.

    Parameters
    ----------
    work
        What every task gets first.
    n_threads
        Their number, as `count_threads` reads it.
    """

    def __init__(self, work: Any, n_threads: int | None = None) -> None:
        self._work = work
        self._config = get_config()  # else its threads have scikit-learn's defaults
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

    def submit(self, task: Task) -> None:
        """Queue the task; threads take tasks in the order of submission.

        Priorities are ignored, since few tasks are queued at a time. So is
        `keeps_payload`: payloads are kept in this process until `forget` in any case.
        """
        payloads = [self._futures[name].result()[1] for name in task.inputs]
        arguments = task.all_arguments(None)
        future = self._pool.submit(
            run_here, self._config, task.function, self._work, payloads, *arguments
        )
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._ended.put(task.key))

    def derive(self, task: Task, source: str) -> None:
        """Keep the whole payload under the new key: threads share it."""
        self._futures[task.key] = self._futures[source]

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
        """Wait for running tasks, and cancel those in the queue."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._futures.clear()
        self._limits.close()


def run_here(
    config: dict[str, Any],
    function: Any,
    work: Any,
    payloads: list[Any],
    *arguments: Any,
) -> Any:
    """Call a task's function with one thread, and scikit-learn set as the caller's."""
    with single_threaded(), config_context(**config), as_task():
        return function(work, payloads, *arguments)


def drain(ended: "queue.SimpleQueue[str]", timeout: float) -> list[str]:
    """Wait for one key, then return all that are there."""
    try:
        keys = [ended.get(timeout=timeout)]
    except queue.Empty:
        return []
    while not ended.empty():
        keys.append(ended.get())
    return keys


def _finished(key: str, future: "Future[tuple[Any, Any]]") -> Finished:
    error = future.exception()
    return Finished(key, None if error else future.result()[0], error)
