"""Processes of this machine, for learners whose fits hold the interpreter.

Two threads fit such a learner no faster than one, and a process takes a second to
begin. So a run begins on threads, and has processes begin beside them when it lasts.
"""

import multiprocessing
import signal
import threading
import time
import uuid
from concurrent.futures import BrokenExecutor, Future
from typing import Any, Final

import cloudpickle
from joblib.externals.loky.process_executor import ProcessPoolExecutor
from sklearn import get_config

from dsel.runtime.clients import current_worker
from dsel.runtime.tasks import Task, is_task, run_here

PATIENCE_SECONDS: Final = 1.0  # about what a process takes to begin
IDLE_SECONDS: Final = 60.0  # without a task, after which processes end

_lock = threading.Lock()
_pools: Final[dict[int, ProcessPoolExecutor]] = {}
"""By number of processes; kept, since the next run may come soon."""
_received: Final[dict[str, tuple[Any, dict[str, Any]]]] = {}
"""In such a process: the work of the run, and scikit-learn's configuration there."""


class NotPicklableError(Exception):
    """What a task returned cannot be brought back."""


class WorkMissingError(Exception):
    """The process has begun after the work was sent."""


class Processes:
    """The processes of one run, which its executors share; one is none."""

    def __init__(self, n_processes: int) -> None:
        # In a task, or a process of somebody else's pool, those beside it are busy.
        is_inside = multiprocessing.parent_process() or current_worker() or is_task()
        self.n_processes = 1 if is_inside else n_processes
        self._began = time.monotonic()

    @property
    def are_wanted(self) -> bool:
        """Whether they are there from another run, or this one is worth their start."""
        lasted = time.monotonic() - self._began
        is_worth_it = self.n_processes in _pools or lasted >= PATIENCE_SECONDS
        return self.n_processes > 1 and is_worth_it

    def submit(self, function: Any, *arguments: Any) -> "Future[Any]":
        """Start a call; processes that have ended begin again."""
        with _lock:
            if self.n_processes not in _pools:
                _pools[self.n_processes] = ProcessPoolExecutor(
                    self.n_processes,
                    timeout=IDLE_SECONDS,
                    initializer=_leave_interrupts,
                )
            pool = _pools[self.n_processes]
        try:
            future: Future[Any] = pool.submit(function, *arguments)
        except BrokenExecutor:
            self.kill()  # so that the next run begins others
            raise
        return future

    def kill(self) -> None:
        """End the processes, whatever they do."""
        with _lock:
            pool = _pools.pop(self.n_processes, None)
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)


class SentWork:
    """The work of an executor, which a process keeps once it has come."""

    def __init__(self, work: Any, processes: Processes) -> None:
        self._packed = work, get_config()
        self._key = uuid.uuid4().hex
        self._processes = processes
        self._coming = [
            processes.submit(_receive, self._key, self._packed)
            for _ in range(processes.n_processes)
        ]

    def has_arrived(self) -> bool:
        """Whether processes have begun and imported what the work needs.

        Raises whatever kept it from coming, such as an object that cannot be pickled.
        """
        if not all(future.done() for future in self._coming):
            return False
        for future in self._coming:
            future.result()
        return True

    def submit(self, task: Task, *, again: bool = False) -> "Future[tuple[Any, Any]]":
        """Run a task there; its payload comes back only if it is to be kept.

        `again` sends the work, too: the process had begun after it was sent.
        """
        return self._processes.submit(
            _run, self._key, self._packed if again else None, task.function,
            task.keeps_payload, *task.all_arguments(None),
        )  # fmt: skip


def _leave_interrupts() -> None:
    """Let the process that started this one decide what Ctrl-C ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _receive(key: str, packed: tuple[Any, dict[str, Any]]) -> None:
    _received.clear()  # one run works at a time; what another lost is sent again
    _received[key] = packed


def _run(key: str, packed: Any, function: Any, keeps: bool, *arguments: Any) -> Any:
    if packed is not None:
        _receive(key, packed)
    if key not in _received:
        raise WorkMissingError
    work, config = _received[key]
    record, payload = run_here(config, function, work, [], *arguments)
    result = record, payload if keeps else None
    try:
        cloudpickle.dumps(result)  # else the error does not tell whose it is
    except Exception as error:
        raise NotPicklableError(str(error)) from None
    return result
