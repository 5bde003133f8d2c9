"""Tasks on threads of this process, and of a run that lasts in processes beside it.

Two threads fit a learner that holds the interpreter no faster than one, and a process
takes a second to begin. So a run of such a learner begins on one thread, and processes
take over when it lasts.
"""

import logging
import multiprocessing
import queue
import signal
import time
import uuid
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

import cloudpickle
import psutil
from joblib.externals.loky.process_executor import ProcessPoolExecutor
from sklearn import get_config

from dsel.errors import ClusterLostError
from dsel.runtime.clients import count_threads, current_worker
from dsel.runtime.tasks import Finished, Task, drain, is_task, run_here, single_threaded
from dsel.runtime.workers import GO_ON

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0  # about what a process takes to begin
IDLE_SECONDS: Final = 60.0  # without a task, after which processes end
DIED: Final = (
    "a process of this machine ended while it ran a task, most often for lack of "
    f"memory; use fewer, as with `n_jobs=1`, and {GO_ON}"
)

_pools: Final[dict[int, ProcessPoolExecutor]] = {}
"""By number of processes; kept, since the next run may come soon."""
_received: Final[dict[str, tuple[Any, dict[str, Any]]]] = {}
"""In such a process: the work of the run, and scikit-learn's configuration there."""


class NotPicklableError(Exception):
    """What a task returned cannot be brought back."""


class WorkMissingError(Exception):
    """The process has begun after the work was sent."""


class LocalExecutor:
    """Threads of this process, and processes for what holds the interpreter.

    `began` is when the run of a learner that holds it began, by the monotonic clock;
    None of all others. Tasks go to processes as soon as these are ready; those that
    need payloads of others stay on threads, where the payloads are.
    """

    def __init__(
        self, work: Any, n_threads: int | None = None, began: float | None = None
    ) -> None:
        self._packed = work, get_config()  # else threads have scikit-learn's defaults
        self._key = uuid.uuid4().hex
        self.n_slots = count_threads(n_threads)
        self._pool = ThreadPoolExecutor(self.n_slots, thread_name_prefix="dsel")
        # Fits that hold the interpreter are slower on two threads than on one.
        self._alone = self._pool if began is None else ThreadPoolExecutor(1)
        # In a task, or a process of somebody else's pool, those beside it are busy.
        is_inside = multiprocessing.parent_process() or current_worker() or is_task()
        self._began = None if is_inside or self.n_slots == 1 else began
        self._coming: list[Future[None]] = []  # the work, to each of the processes
        self._on_processes: dict[str, Task] = {}
        self._futures: dict[str, Future[tuple[Any, Any]]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._limits = ExitStack()
        self._limits.enter_context(single_threaded())

    @property
    def slot_memory(self) -> int:
        """Memory that is free now, divided by the threads."""
        return int(psutil.virtual_memory().available) // self.n_slots

    def submit(self, task: Task) -> None:
        """Queue the task; threads take tasks in this order, and keep all payloads."""
        if not task.inputs and self._has_processes():
            self._send(task)
            return
        payloads = [self._futures[name].result()[1] for name in task.inputs]
        threads = self._pool if task.inputs else self._alone
        arguments = task.function, payloads, *task.all_arguments(None)
        self._keep(task, threads.submit(run_here, self._packed, *arguments))

    def _send(self, task: Task, *, with_work: bool = False) -> None:
        """Run a task in a process; its payload comes back only if it is to be kept."""
        try:
            future = _in_process(
                self.n_slots, _run, self._key, self._packed if with_work else None,
                task.function, task.keeps_payload, *task.all_arguments(None),
            )  # fmt: skip
        except BrokenExecutor as error:  # it died since the last task ended
            raise ClusterLostError(DIED) from error
        self._on_processes[task.key] = task
        self._keep(task, future)

    def _keep(self, task: Task, future: "Future[tuple[Any, Any]]") -> None:
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._ended.put(task.key))

    def _has_processes(self) -> bool:
        """Whether processes have begun and imported what the work needs."""
        if self._began is None:
            return False
        n, lasted = self.n_slots, time.monotonic() - self._began
        if not self._coming and n not in _pools and lasted < PATIENCE_SECONDS:
            return False
        try:
            self._coming = self._coming or [
                _in_process(n, _receive, self._key, self._packed) for _ in range(n)
            ]
            if not all(future.done() for future in self._coming):
                return False
            for future in self._coming:
                future.result()
        except Exception as error:  # pickle raises what an object's own code raises
            self._stay_on_threads(error)
            return False
        return True

    def _stay_on_threads(self, error: BaseException) -> None:
        logger.warning("all tasks run on threads; processes do not: %s", error)
        self._began = None

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended, at least one unless `timeout` seconds pass first."""
        keys = [key for key in drain(self._ended, timeout) if key in self._futures]
        return [each for key in keys if (each := self._ending(key)) is not None]

    def _ending(self, key: str) -> Finished | None:
        """Return how a task ended; None of one that was cancelled or begins again."""
        future = self._futures[key]
        if future.cancelled():
            return None
        error, task = future.exception(), self._on_processes.pop(key, None)
        if task is not None and isinstance(error, NotPicklableError):
            self._stay_on_threads(error)
            self.submit(task)
            return None
        if task is not None and isinstance(error, WorkMissingError):
            self._send(task, with_work=True)
            return None
        if task is not None and isinstance(error, BrokenExecutor):
            end_processes(self.n_slots)
            raise ClusterLostError(DIED) from error
        return Finished(key, None if error else future.result()[0], error)

    def fetch(self, key: str) -> Any:
        """Return the payload kept under `key`."""
        return self._futures[key].result()[1]

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its payload."""
        self._on_processes.pop(key, None)
        future = self._futures.pop(key, None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Wait for running threads, end running processes, cancel what is queued."""
        if any(not self._futures[key].done() for key in self._on_processes):
            end_processes(self.n_slots)
        self._alone.shutdown(wait=True, cancel_futures=True)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._futures.clear()
        self._limits.close()


def _in_process(n: int, function: Any, *arguments: Any) -> "Future[Any]":
    """Start a call in one of `n` processes; those that have ended begin again."""
    if (pool := _pools.get(n)) is None:
        # What Ctrl-C ends is decided by the process that started them.
        pool = _pools.setdefault(n, ProcessPoolExecutor(
            n, timeout=IDLE_SECONDS, initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        ))  # fmt: skip
    try:
        future: Future[Any] = pool.submit(function, *arguments)
    except BrokenExecutor:
        end_processes(n)  # so that the next run begins others
        raise
    return future


def end_processes(n: int) -> None:
    """End the pool of `n` processes, whatever they do."""
    pool = _pools.pop(n, None)
    if pool is not None:
        pool.shutdown(wait=True, kill_workers=True)


def _receive(key: str, packed: tuple[Any, dict[str, Any]]) -> None:
    _received.clear()  # one run works at a time; what another lost is sent again
    _received[key] = packed


def _run(key: str, packed: Any, function: Any, keeps: bool, *arguments: Any) -> Any:
    if packed is not None:
        _receive(key, packed)
    if key not in _received:
        raise WorkMissingError
    record, payload = run_here(_received[key], function, [], *arguments)
    result = record, payload if keeps else None
    try:
        cloudpickle.dumps(result)  # else the error does not tell whose it is
    except Exception as error:
        raise NotPicklableError(str(error)) from None
    return result
