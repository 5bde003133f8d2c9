"""Tasks on threads of this process, and of a run that lasts in processes beside it.

Two threads fit a learner that holds the interpreter no faster than one, and a process
takes a second to begin. So a run of such a learner begins on one thread, and processes
take over when it lasts.
"""

import logging
import multiprocessing
import os
import queue
import signal
import threading
import time
import uuid
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Final

import cloudpickle
import psutil
from joblib.externals.loky.backend.utils import kill_process_tree
from joblib.externals.loky.process_executor import ProcessPoolExecutor

from dsel.errors import ClusterLostError
from dsel.runtime.clients import count_threads, current_worker
from dsel.runtime.tasks import (
    Finished,
    Inputs,
    Job,
    Output,
    Packed,
    Task,
    drain,
    is_task,
    run_here,
    single_threaded,
)
from dsel.runtime.workers import GO_ON

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0  # about what a process takes to begin
IDLE_SECONDS: Final = 60.0  # without a task, after which processes end
WATCH_SECONDS: Final = 1.0
"""How often a process looks whether the one that started it is there."""
DIED: Final = (
    "a process of this machine ended while it ran a task, most often for lack of "
    f"memory; use fewer, as with `n_jobs=1`, and {GO_ON}"
)

_pools: Final[dict[int, ProcessPoolExecutor]] = {}
"""By number of processes; kept, since the next run may come soon."""
_ends_with_this_process = False
_received: Final[dict[str, Packed]] = {}
"""In such a process: what the run has put, by its key."""


class NotPicklableError(Exception):
    """What a job returned cannot be brought back."""


class ContextMissingError(Exception):
    """The process has begun after the context was sent."""


class LocalExecutor:
    """Threads of this process, and processes for what holds the interpreter.

    `began` is when the run of a learner that holds it began, by the monotonic clock;
    None of all others. Tasks go to processes as soon as these are ready; those that
    need what others have kept stay on threads, where it is.
    """

    def __init__(
        self, context: Any, n_threads: int | None = None, began: float | None = None
    ) -> None:
        self._run_id = uuid.uuid4().hex
        self._contexts: dict[str, Packed] = {}
        self._first = self.put(context)
        self.n_slots = count_threads(n_threads)
        self._pool = ThreadPoolExecutor(self.n_slots, thread_name_prefix="dsel")
        # Fits that hold the interpreter are slower on two threads than on one.
        self._alone = self._pool if began is None else ThreadPoolExecutor(1)
        # In a task, or a process of somebody else's pool, those beside it are busy.
        is_inside = multiprocessing.parent_process() or current_worker() or is_task()
        self._began = None if is_inside or self.n_slots == 1 else began
        # By key of a context: its way to each of the processes.
        self._coming: dict[str, list[Future[None]]] = {}
        self._on_processes: dict[str, Task] = {}
        self._futures: dict[str, Future[Output]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._limits = ExitStack()
        self._limits.enter_context(single_threaded())

    @property
    def slot_memory(self) -> int:
        """Memory that is free now, divided by the threads."""
        return int(psutil.virtual_memory().available) // self.n_slots

    def put(self, context: Any) -> str:
        """Keep what several tasks need; return its key, for `Task.context`."""
        key = f"{self._run_id}-{len(self._contexts)}"
        self._contexts[key] = Packed.of(context)
        return key

    def submit(self, task: Task) -> None:
        """Queue the task; threads take tasks in this order, and keep all output."""
        key = task.context or self._first
        if not task.inputs and self._are_processes_ready(key):
            self._send(task)
            return
        kept = tuple(self._futures[name].result().kept for name in task.inputs)
        threads = self._pool if task.inputs else self._alone
        inputs = Inputs(kept, task.read_sources(None))
        future = threads.submit(run_here, self._contexts[key], task.job, inputs)
        self._keep(task, future)

    def _send(self, task: Task, *, with_context: bool = False) -> None:
        """Run a task in a process; what it keeps comes back only if it is asked for."""
        key, inputs = task.context or self._first, Inputs((), task.read_sources(None))
        packed = self._contexts[key] if with_context else None
        try:
            future = _in_process(
                self.n_slots, _run, key, packed, task.job, inputs, task.keeps_output
            )
        except BrokenExecutor as error:  # it died since the last task ended
            raise ClusterLostError(DIED) from error
        self._on_processes[task.key] = task
        self._keep(task, future)

    def _keep(self, task: Task, future: "Future[Output]") -> None:
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._ended.put(task.key))

    def _are_processes_ready(self, key: str) -> bool:
        """Return whether processes have a context; at the first call, send it to them.

        Processes begin with the first context that is sent, unless the run is short.
        """
        if self._began is None:
            return False
        lasted = time.monotonic() - self._began
        is_short = self.n_slots not in _pools and lasted < PATIENCE_SECONDS
        if not self._coming and is_short:
            return False
        try:
            if key not in self._coming:
                self._send_context(key)
            coming = self._coming[key]
            if not all(future.done() for future in coming):
                return False
            for future in coming:
                future.result()
        except Exception as error:  # pickle raises what an object's own code raises
            self._stay_on_threads(error)
            return False
        return True

    def _send_context(self, key: str) -> None:
        """Send a context to every process; those that are not there begin."""
        coming = self._coming[key] = []  # there even if the first call raises
        coming += [
            _in_process(self.n_slots, _receive, key, self._contexts[key])
            for _ in range(self.n_slots)
        ]

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
        if task is not None and isinstance(error, ContextMissingError):
            self._send(task, with_context=True)
            return None
        if task is not None and isinstance(error, BrokenExecutor):
            end_processes(self.n_slots)
            raise ClusterLostError(DIED) from error
        return Finished(key, None if error else future.result().result, error)

    def fetch(self, key: str) -> Any:
        """Return what the task of `key` has kept."""
        return self._futures[key].result().kept

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop what it kept."""
        self._on_processes.pop(key, None)
        future = self._futures.pop(key, None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Wait for running threads, end running processes, cancel what is queued."""
        if any(not self._futures[key].done() for key in self._on_processes):
            end_processes(self.n_slots)
        for coming in self._coming.values():  # to processes that have not begun
            for future in coming:
                future.cancel()
        self._alone.shutdown(wait=True, cancel_futures=True)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._futures.clear()
        self._limits.close()


def _in_process(n: int, function: Any, *arguments: Any) -> "Future[Any]":
    """Start a call in one of `n` processes; those that have ended begin again."""
    is_first = not _pools
    if (pool := _pools.get(n)) is None:
        pool = _pools.setdefault(
            n,
            ProcessPoolExecutor(
                n, timeout=IDLE_SECONDS, initializer=_begin, initargs=(os.getpid(),)
            ),
        )
    try:
        future: Future[Any] = pool.submit(function, *arguments)
    except BrokenExecutor:
        end_processes(n)  # so that the next run begins others
        raise
    if is_first:
        _end_with_this_process()
    return future


def _end_with_this_process() -> None:
    """End all processes before this one waits for them to begin, as loky has it do.

    A process that is beginning takes seconds, much longer on a machine that is busy.
    Hooks of `atexit` come too late, after threads were waited for; those of threads
    run the last one first, and loky adds its own with the first call of its first pool.
    """
    global _ends_with_this_process
    if not _ends_with_this_process:
        _ends_with_this_process = True
        with suppress(AttributeError, RuntimeError):  # RuntimeError: it is ending now
            threading._register_atexit(_end_all_processes)  # type: ignore[attr-defined]


def _end_all_processes() -> None:
    for n in list(_pools):
        end_processes(n)


def end_processes(n: int) -> None:
    """End the pool of `n` processes, whatever they do."""
    pool = _pools.pop(n, None)
    if pool is None:
        return
    # loky's own kill_workers raises InvalidStateError in its thread at a task that was
    # cancelled before it began, and leaves all processes running. A pool whose
    # processes are gone it takes for broken, and then cleans up whatever is queued.
    for process in list((pool._processes or {}).values()):
        with suppress(ProcessLookupError):
            kill_process_tree(process)
    pool.shutdown(wait=True)


def _begin(parent: int) -> None:
    """Let the parent decide what Ctrl-C ends, and end this process with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:  # a parent that was killed can tell nobody
        while os.getppid() == parent and psutil.pid_exists(parent):
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _receive(key: str, packed: Packed) -> None:
    # One run works at a time; what another one lost is sent again.
    run_id = key.partition("-")[0]
    for old in [each for each in _received if not each.startswith(run_id)]:
        del _received[old]
    _received[key] = packed


def _run(
    key: str, packed: Packed | None, job: Job, inputs: Inputs, keeps: bool
) -> Output:
    if packed is not None:
        _receive(key, packed)
    if key not in _received:
        raise ContextMissingError
    output = run_here(_received[key], job, inputs)
    output = output if keeps else replace(output, kept=None)
    try:
        cloudpickle.dumps(output)  # else the error does not tell whose it is
    except Exception as error:
        raise NotPicklableError(str(error)) from None
    return output
