"""Tasks on threads of this process, and of a run that lasts in processes beside it."""

import logging
import queue
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psutil
from sklearn import get_config

from dsel.errors import ClusterLostError
from dsel.runtime.clients import count_threads
from dsel.runtime.processes import (
    NotPicklableError,
    Processes,
    SentWork,
    WorkMissingError,
)
from dsel.runtime.tasks import Finished, Task, run_here, single_threaded
from dsel.runtime.workers import GO_ON

logger = logging.getLogger(__name__)


class LocalExecutor:
    """Threads of this process, and processes for what holds the interpreter.

    Tasks go to `processes` as soon as these are ready; those that need payloads of
    others stay on threads, where the payloads are.
    """

    def __init__(
        self,
        work: Any,
        n_threads: int | None = None,
        processes: Processes | None = None,
    ) -> None:
        self._work = work
        self._processes = processes
        self._sent: SentWork | None = None
        self._on_processes: dict[str, Task] = {}
        self._config = get_config()  # else its threads have scikit-learn's defaults
        self.n_slots = count_threads(n_threads)
        self._pool = ThreadPoolExecutor(self.n_slots, thread_name_prefix="dsel")
        self._futures: dict[str, Future[tuple[Any, Any]]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        # Fits that hold the interpreter are slower on two threads than on one.
        self._alone = ThreadPoolExecutor(1) if processes else self._pool
        self._limits = ExitStack()
        self._limits.enter_context(single_threaded())

    @property
    def slot_memory(self) -> int:
        """Memory that is free now, divided by the threads."""
        return int(psutil.virtual_memory().available) // self.n_slots

    def submit(self, task: Task) -> None:
        """Queue the task; threads take tasks in the order of submission.

        Priorities are ignored, since few tasks are queued at a time. So is
        `keeps_payload`: payloads are kept in this process until `forget` in any case.
        """
        if not task.inputs and self._processes_are_ready():
            assert self._sent is not None
            self._on_processes[task.key] = task
            self._keep(task, self._sent.submit(task))
            return
        payloads = [self._futures[name].result()[1] for name in task.inputs]
        arguments = task.all_arguments(None)
        threads = self._pool if task.inputs else self._alone
        future = threads.submit(
            run_here, self._config, task.function, self._work, payloads, *arguments
        )
        self._keep(task, future)

    def _keep(self, task: Task, future: "Future[tuple[Any, Any]]") -> None:
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._ended.put(task.key))

    def _processes_are_ready(self) -> bool:
        if self._processes is None or not self._processes.are_wanted:
            return False
        try:
            if self._sent is None:
                self._sent = SentWork(self._work, self._processes)
            return self._sent.has_arrived()
        except Exception as error:  # pickle raises what an object's own code raises
            self._stay_on_threads(error)
            return False

    def _stay_on_threads(self, error: BaseException) -> None:
        logger.warning("all tasks run on threads; processes do not: %s", error)
        self._processes = None

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended."""
        keys = [key for key in drain(self._ended, timeout) if key in self._futures]
        return [each for key in keys if (each := self._ending(key)) is not None]

    def _ending(self, key: str) -> Finished | None:
        """Return how a task ended; None of one that was cancelled or begins again."""
        future = self._futures[key]
        if future.cancelled():
            return None
        error = future.exception()
        task = self._on_processes.pop(key, None)
        if task is not None and isinstance(error, NotPicklableError):
            self._stay_on_threads(error)
            self.submit(task)
            return None
        if task is not None and isinstance(error, WorkMissingError) and self._sent:
            self._on_processes[key] = task
            self._keep(task, self._sent.submit(task, again=True))
            return None
        if self._processes and task is not None and isinstance(error, BrokenExecutor):
            self._processes.kill()
            raise ClusterLostError(
                "a process of this machine ended while it ran a task, most often for "
                f"lack of memory; use fewer, as with `n_jobs=1`, and {GO_ON}"
            ) from error
        return Finished(key, None if error else future.result()[0], error)

    def fetch(self, key: str) -> Any:
        """Return the payload kept under `key`."""
        return self._futures[key].result()[1]

    def forget(self, key: str) -> None:
        """Drop the task and its payload."""
        self._on_processes.pop(key, None)
        future = self._futures.pop(key, None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Wait for running threads, end running processes, cancel what is queued."""
        is_running = any(not self._futures[key].done() for key in self._on_processes)
        if self._processes is not None and is_running:
            self._processes.kill()
        self._alone.shutdown(wait=True, cancel_futures=True)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._futures.clear()
        self._limits.close()


def drain(ended: "queue.SimpleQueue[str]", timeout: float) -> list[str]:
    """Wait for one key, then return all that are there."""
    try:
        keys = [ended.get(timeout=timeout)]
    except queue.Empty:
        return []
    while not ended.empty():
        keys.append(ended.get())
    return keys
