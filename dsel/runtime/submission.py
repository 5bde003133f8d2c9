"""The loop that submits tasks, a few more than can run, and yields finished ones.

Searches, passes over a pool, and least squares all use `run_tasks`. So all of them wait
equally long for a cluster without workers, and submit a task again whose input rows
were lost with a worker.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dsel.checks import show
from dsel.runtime.clients import current_worker
from dsel.runtime.cluster_executor import ClusterExecutor
from dsel.runtime.local_executor import LocalExecutor
from dsel.runtime.tasks import Finished, Inputs, LostInputError, Task, check_alive

if TYPE_CHECKING:
    from distributed import Client


R = TypeVar("R")
logger = logging.getLogger(__name__)

WINDOW: Final = 2
"""Tasks submitted for each slot: one runs, and the next one waits for its end."""
TURN_SECONDS: Final = 0.5
"""Longest wait before `on_turn` is called again."""
LOST_TRIES: Final = 8
"""Largest number of times that a task is submitted whose input rows are lost with a
worker. Another task probably killed this worker, so it is more than for tasks that
fail."""

Executor = LocalExecutor | ClusterExecutor
"""Executors share the public methods and attributes that this module uses."""


def make_executor(
    context: Any,
    client: "Client | None",
    n_jobs: int | None = None,
    began: float | None = None,
) -> Executor:
    """Return an executor whose tasks get `context`.

    `client` is a `distributed.Client`, None for `n_jobs` threads of this process, or a
    function that takes `context` and returns an executor.
    """
    if client is None:
        return LocalExecutor(context, n_jobs, began)
    if callable(client):
        executor: Executor = client(context)
        # Of the type: a Delayed, say, has every attribute that one asks for.
        if getattr_static(type(executor), "submit", None) is None:
            raise TypeError(
                f"`client` must be a distributed.Client, or a function that returns an "
                f"executor, got a function that returned {show(executor)}; open one "
                "with distributed.Client(address) or dsel.cluster.connect."
            )
        return executor
    return ClusterExecutor(context, client)


def run_tasks(
    executor: Executor,
    next_task: Callable[[], Task[R] | None],
    *,
    on_turn: Callable[[], object] | None = None,
) -> Iterator[Finished[R]]:
    """Run tasks and yield each when it ends, in any order, until none is left.

    `next_task` is called when another task can be submitted. It returns None if there
    is none at the moment; the loop ends if no task is running then. `on_turn` is called
    before tasks are submitted, at least every half second; an exception of it ends the
    run.
    """
    running: dict[str, Task[R]] = {}
    n_lost: Counter[str] = Counter()
    while True:
        if on_turn is not None:
            on_turn()
        # A few tasks wait at each slot, so that none is idle while a result travels;
        # more would be decided by counts that are out of date.
        room = WINDOW * executor.n_slots - len(running)
        while room > 0 and (task := next_task()) is not None:
            running[task.key] = task
            executor.submit(task)
            room -= 1
        if not running:
            return
        for finished in executor.wait(TURN_SECONDS):
            check_alive(finished.error)
            task = running[finished.key]
            # Rows that were sent to a worker went with it: `Task.sources` sends them
            # again.
            is_lost = isinstance(finished.error, LostInputError)
            n_lost[task.key] += is_lost
            if is_lost and n_lost[task.key] < LOST_TRIES:
                logger.warning("a worker lost the rows of a task, which runs again")
                executor.forget(task.key)
                executor.submit(task)
                continue
            del running[task.key]
            yield finished
            if finished.error is not None or not task.keeps_output:
                executor.forget(task.key)


def run_to_completion(
    executor: Executor, tasks: Iterable[Task[R]]
) -> Iterator[Finished[R]]:
    """Run tasks and yield each when it ends; `tasks` is iterated as slots get free."""
    return run_tasks(executor, partial(next, iter(tasks), None))


def results_in_order(
    context: Any,
    tasks: Iterable[Task[R]],
    client: "Client | None",
    *,
    on_turn: Callable[[], object] | None = None,
) -> Generator[R]:
    """Run tasks on an executor of their own; yield their results in order.

    `tasks` is iterated only as fast as tasks are submitted, so it may be a stream. A
    result that comes early is kept until those before it are yielded. At most two
    windows of tasks are submitted beyond the first unfinished one. Inside a task all
    tasks run in that task (see `resolve_client`); a single task always runs here.
    `on_turn` is called as by `run_tasks`, and here before each task.
    """
    # Threads for one task would cost more than a small pool takes to read.
    is_single = isinstance(tasks, Sized) and len(tasks) == 1
    if client is None and (current_worker() is not None or is_single):
        for task in tasks:
            if on_turn is not None:
                on_turn()
            yield task.work.run(context, Inputs(sources=task.read_sources(None))).result
        return
    waiting = iter(tasks)
    keys: deque[str] = deque()
    early: dict[str, Finished[R]] = {}

    def next_task() -> Task[R] | None:
        is_far_ahead = len(keys) >= 2 * WINDOW * executor.n_slots
        task = None if is_far_ahead else next(waiting, None)
        if task is not None:
            keys.append(task.key)
        return task

    with closing(make_executor(context, client)) as executor:
        for finished in run_tasks(executor, next_task, on_turn=on_turn):
            early[finished.key] = finished
            while keys and keys[0] in early:
                yield early.pop(keys.popleft()).get()
