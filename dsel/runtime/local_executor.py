"""Tasks on threads of this process and, in longer runs, in processes of this machine.

Two threads fit a learner that holds the interpreter's lock no faster than one thread,
and a process takes a second to start. Therefore a run of such a learner begins on one
thread, and moves to processes once it has lasted for a second.
"""

import logging
import multiprocessing
import os
import queue
import signal
import threading
import time
import uuid
from collections.abc import Sequence
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
    Output,
    Packed,
    Task,
    Work,
    drain,
    is_task,
    limit_threads,
    run_here,
)
from dsel.runtime.workers import GO_ON

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0  # about the time that a process takes to start
IDLE_SECONDS: Final = 60.0  # time after which processes without a task end
WATCH_SECONDS: Final = 1.0
"""Interval at which a process checks that its parent still exists."""
DIED: Final = (
    "a process of this machine ended while it ran a task, most often for lack of "
    f"memory; use fewer, as with `n_jobs=1`, and {GO_ON}"
)

_pools: Final[dict[int, ProcessPoolExecutor]] = {}
"""Pools by number of processes. They outlive a run, as the next one may come soon."""
_users: Final[dict[str, int]] = {}
"""Number of processes of each executor that uses a pool, by the identifier of its run.
Runs in several threads share a pool."""
_left: Final[dict[int, list["Future[Any]"]]] = {}
"""Tasks of closed executors that ran on while others used their pool."""
_pools_lock: Final = threading.RLock()
_has_exit_hook = False
_received: Final[dict[str, Packed]] = {}
"""The contexts of the run in a child process, by their keys."""


class NotPicklableError(Exception):
    """The output of work cannot be pickled, so it cannot be sent back."""


class ContextMissingError(Exception):
    """The process started after the context was sent, and does not have it."""


class LocalExecutor:
    """Threads of this process, and processes for learners that hold the lock.

    `processes_since` is the time, by the monotonic clock, at which the run of such a
    learner began; None for all other runs, which use no processes. Tasks go to
    processes as soon as these are ready. Tasks that need kept output of other tasks
    stay on threads, which have this output.
    """

    def __init__(
        self,
        context: Any,
        n_threads: int | None = None,
        processes_since: float | None = None,
    ) -> None:
        self._run_id = uuid.uuid4().hex
        self._contexts: dict[str, Packed] = {}
        self._first = self.put(context)
        self.n_slots = count_threads(n_threads)
        self._pool = ThreadPoolExecutor(self.n_slots, thread_name_prefix="dsel")
        # Fits that hold the interpreter's lock are slower on two threads than on one.
        self._alone = self._pool if processes_since is None else ThreadPoolExecutor(1)
        # Inside a task, or in a process of another library's pool, the other processors
        # are busy already, so no processes are started.
        is_inside = multiprocessing.parent_process() or current_worker() or is_task()
        self._processes_since = (
            None if is_inside or self.n_slots == 1 else processes_since
        )
        # Futures of the transfers of each context to the processes.
        self._transfers: dict[str, list[Future[None]]] = {}
        self._on_processes: dict[str, Task[Any, Any]] = {}
        self._futures: dict[str, Future[Output[Any]]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._limits = ExitStack()
        self._limits.enter_context(limit_threads())

    @property
    def slot_memory(self) -> int:
        """Bytes of free memory, divided by the number of threads."""
        return int(psutil.virtual_memory().available) // self.n_slots

    def put(self, context: Any) -> str:
        """Store a context that several tasks share; return the key for tasks."""
        key = f"{self._run_id}-{len(self._contexts)}"
        self._contexts[key] = Packed.of(context)
        return key

    def submit(self, task: Task[Any, Any]) -> None:
        """Queue the task. Threads take tasks in this order, and keep all output."""
        key = task.context_key or self._first
        if not task.input_tasks and self._are_processes_ready(key):
            self._send(task)
            return
        kept_values = tuple(
            self._futures[name].result().kept for name in task.input_tasks
        )
        threads = self._pool if task.input_tasks else self._alone
        inputs = Inputs(kept_values, task.read_sources(None))
        future = threads.submit(run_here, self._contexts[key], task.work, inputs)
        self._keep(task, future)

    def _send(self, task: Task[Any, Any], *, with_context: bool = False) -> None:
        """Run a task in a process; its kept output comes back only if it is needed."""
        key = task.context_key or self._first
        inputs = Inputs((), task.read_sources(None))
        packed = self._contexts[key] if with_context else None
        try:
            future = _start_in_process(
                self.n_slots, _run, key, packed, task.work, inputs, task.keeps_output
            )
        except BrokenExecutor as error:  # a process died since the last task ended
            raise ClusterLostError(DIED) from error
        self._on_processes[task.key] = task
        self._keep(task, future)

    def _keep(self, task: Task[Any, Any], future: "Future[Output[Any]]") -> None:
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._ended.put(task.key))

    def _are_processes_ready(self, key: str) -> bool:
        """Return whether processes have a context; the first call sends it to them.

        Sending the first context starts the processes, unless the run is still short.
        """
        if self._processes_since is None:
            return False
        lasted = time.monotonic() - self._processes_since
        is_short = self.n_slots not in _pools and lasted < PATIENCE_SECONDS
        if not self._transfers and is_short:
            return False
        try:
            if key not in self._transfers:  # missing processes are started
                # The list is stored first, so that a call that raises is not repeated.
                self._transfers[key] = []
                with _pools_lock:
                    _users[self._run_id] = self.n_slots
                self._transfers[key] += [
                    _start_in_process(self.n_slots, _receive, key, self._contexts[key])
                    for _ in range(self.n_slots)
                ]
            transfers = self._transfers[key]
            if not all(future.done() for future in transfers):
                return False
            for future in transfers:
                future.result()
        except Exception as error:  # pickling runs the user's code, which may raise
            self._stay_on_threads(error)
            return False
        return True

    def _stay_on_threads(self, error: BaseException) -> None:
        logger.warning("all tasks run on threads; processes do not: %s", error)
        self._processes_since = None

    def wait(self, timeout: float) -> list[Finished[Any]]:
        """Return tasks that ended, at least one unless `timeout` seconds pass first."""
        keys = [key for key in drain(self._ended, timeout) if key in self._futures]
        return [end for key in keys if (end := self._result_of(key)) is not None]

    def _result_of(self, key: str) -> Finished[Any] | None:
        """Return how a task ended; None if it was cancelled or is run again."""
        future = self._futures[key]
        if future.cancelled():
            return None
        error = future.exception()
        task = self._on_processes.pop(key, None)
        if task is not None and isinstance(error, NotPicklableError):
            self._stay_on_threads(error)
            self.submit(task)
            return None
        if task is not None and isinstance(error, ContextMissingError):
            self._send(task, with_context=True)
            return None
        if task is not None and isinstance(error, BrokenExecutor):
            end_processes(self.n_slots, only_broken=True)
            raise ClusterLostError(DIED) from error
        return Finished(key, None if error else future.result().result, error)

    def fetch(self, key: str) -> Any:
        """Return the kept output of a task."""
        return self._futures[key].result().kept

    def fetch_results(self, keys: Sequence[str]) -> list[Any]:
        """Return the results of tasks; here no kept output is lost."""
        return [self._futures[key].result().result for key in keys]

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its kept output."""
        self._on_processes.pop(key, None)
        future = self._futures.pop(key, None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        """Wait for running threads, end running processes, cancel queued tasks.

        Processes end only if no other run of this process uses them. A task that runs
        while others use the processes runs on, and ends at the latest when the last
        user is closed.
        """
        sent = [self._futures[key] for key in self._on_processes]
        with _pools_lock:
            was_user = _users.pop(self._run_id, None) is not None
            is_shared = self.n_slots in _users.values()
            if was_user and not is_shared:
                sent += _left.pop(self.n_slots, [])
            unfinished = [future for future in sent if not future.done()]
            if is_shared:
                running = [future for future in unfinished if not future.cancel()]
                _left.setdefault(self.n_slots, []).extend(running)
            elif unfinished:
                end_processes(self.n_slots)
        for transfers in self._transfers.values():  # to processes not yet started
            for future in transfers:
                future.cancel()
        self._alone.shutdown(wait=True, cancel_futures=True)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._futures.clear()
        self._limits.close()


def _start_in_process(n: int, function: Any, *arguments: Any) -> "Future[Any]":
    """Start a call in one of `n` processes; ended processes are started again."""
    with _pools_lock:  # nobody ends a pool between its start and its first task
        is_first = not _pools
        if (pool := _pools.get(n)) is None:
            pool = _pools[n] = ProcessPoolExecutor(
                n,
                timeout=IDLE_SECONDS,
                initializer=_begin_process,
                initargs=(os.getpid(),),
            )
        try:
            future: Future[Any] = pool.submit(function, *arguments)
        except BrokenExecutor:
            end_processes(n)  # so that the next run starts new ones
            raise
    if is_first:
        _register_exit_hook()
    return future


def _register_exit_hook() -> None:
    """End all processes at exit, before loky waits until they have started.

    A start takes seconds, and much longer on a busy machine. Hooks of `atexit` come too
    late, after threads were waited for. Hooks of `threading` run in reverse order, and
    loky registers its own in the first call of its first pool, so ours must come later.
    """
    global _has_exit_hook
    if not _has_exit_hook:
        _has_exit_hook = True
        with suppress(AttributeError, RuntimeError):  # RuntimeError: at exit already
            threading._register_atexit(_end_all_processes)  # type: ignore[attr-defined]


def _end_all_processes() -> None:
    for n in list(_pools):
        end_processes(n)


def end_processes(n: int, *, only_broken: bool = False) -> None:
    """End the pool of `n` processes, also while they run tasks.

    With `only_broken`, a pool that another run has started since stays.
    """
    with _pools_lock:
        pool = _pools.get(n)
        if pool is None or (only_broken and pool._flags.broken is None):
            return
        del _pools[n]
    # loky's own kill_workers raises InvalidStateError in its thread if a task was
    # cancelled before it began, and leaves all processes running. Killing the processes
    # makes the pool a broken one for loky, which then cleans up what is queued.
    for process in list((pool._processes or {}).values()):
        with suppress(ProcessLookupError):
            kill_process_tree(process)
    pool.shutdown(wait=True)


def _begin_process(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end this process when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:  # a parent that was killed cannot end its children
        while os.getppid() == parent and psutil.pid_exists(parent):
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _receive(key: str, packed: Packed) -> None:
    # Contexts of other runs are dropped to save memory. A run that still needs one gets
    # ContextMissingError and sends it again.
    run_id = key.partition("-")[0]
    for old in [other for other in _received if not other.startswith(run_id)]:
        del _received[old]
    _received[key] = packed


def _run(
    key: str, packed: Packed | None, work: Work[Any, Any], inputs: Inputs, keeps: bool
) -> Output[Any]:
    """Run a task in a process, where `packed` is its context if not sent before."""
    if packed is not None:
        _receive(key, packed)
    if key not in _received:
        raise ContextMissingError
    output = run_here(_received[key], work, inputs)
    output = output if keeps else replace(output, kept=None)
    try:
        cloudpickle.dumps(output)  # loky's own error would not show that this failed
    except Exception as error:
        raise NotPicklableError(str(error)) from None
    return output
