"""Processes of this machine, for learners whose fits hold the interpreter.

Two threads fit such a learner no faster than one, and a process takes a second to
begin. So a run begins on threads, and has processes begin beside them when it lasts.
"""

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, Final

import cloudpickle
from joblib.externals.loky.process_executor import ProcessPoolExecutor
from sklearn import get_config

from dsel.runtime.clients import current_worker
from dsel.runtime.tasks import Task, is_task
from dsel.runtime.threads import run_here

PATIENCE_SECONDS: Final = 1.0  # about what a process takes to begin
IDLE_SECONDS: Final = 60.0  # without a task, after which processes end

_lock = threading.Lock()
_pools: Final[dict[int, ProcessPoolExecutor]] = {}
"""By number of processes; kept, since the next run may come soon."""


class NotPicklableError(Exception):
    """What a task returned cannot be brought back."""


class Processes:
    """The processes of one run, which its executors share.

    Parameters
    ----------
    n_processes
        Their number; one is none, since this process does as well.
    """

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
        future: Future[Any] = pool.submit(function, *arguments)
        return future

    def kill(self) -> None:
        """End the processes, whatever they do."""
        with _lock:
            pool = _pools.pop(self.n_processes, None)
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)


class SentWork:
    """The work of an executor in a file, from which every process reads it once."""

    def __init__(self, work: Any, processes: Processes) -> None:
        content = cloudpickle.dumps((work, get_config()))
        handle, self._path = tempfile.mkstemp(prefix="dsel-work-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        self._processes = processes
        self._reading = [
            processes.submit(_read, self._path) for _ in range(processes.n_processes)
        ]

    @property
    def has_arrived(self) -> bool:
        """Whether the processes have begun and imported what the work needs."""
        return all(future.done() for future in self._reading)

    def submit(self, task: Task) -> "Future[tuple[Any, Any]]":
        """Run a task there; its payload comes back only if it is to be kept."""
        return self._processes.submit(
            _run, self._path, task.function, task.keeps_payload,
            *task.all_arguments(None),
        )  # fmt: skip

    def close(self) -> None:
        """Remove the file."""
        os.unlink(self._path)


def _leave_interrupts() -> None:
    """Let the process that started this one decide what Ctrl-C ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=1)
def _load(path: str) -> tuple[Any, dict[str, Any]]:
    with open(path, "rb") as file:
        work, config = cloudpickle.load(file)
    return work, config


def _read(path: str) -> None:
    _load(path)


def _run(path: str, function: Any, keeps_payload: bool, *arguments: Any) -> Any:
    work, config = _load(path)
    record, payload = run_here(config, function, work, [], *arguments)
    result = record, payload if keeps_payload else None
    try:
        cloudpickle.dumps(result)  # else the error does not tell whose it is
    except Exception as error:
        raise NotPicklableError(str(error)) from None
    return result
