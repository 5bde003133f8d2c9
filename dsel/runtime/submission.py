"""The one queue of submitted tasks, a few more than can run at once.

Searches, passes over a pool, and least squares all submit to a `TaskQueue`, and wait
for its tasks. Therefore all of them wait equally long for a cluster without workers,
and resubmit a task whose input rows were lost with a worker.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from dsel.checks import show
from dsel.runtime.clients import current_worker
from dsel.runtime.cluster_executor import ClusterExecutor
from dsel.runtime.local_executor import LocalExecutor
from dsel.runtime.tasks import Finished, Inputs, LostInputError, Task, raise_fatal_error

if TYPE_CHECKING:
    from distributed import Client


C = TypeVar("C")
R = TypeVar("R")
logger = logging.getLogger(__name__)

WINDOW: Final = 2
"""Tasks submitted for each slot: one runs, and the next one waits for its end."""
TURN_SECONDS: Final = 0.5
"""Longest wait before a loop shows its progress and looks for what it can submit."""
LOST_TRIES: Final = 8
"""Largest number of times that a task is submitted whose input rows are lost with a
worker. It is larger than for tasks that fail, since another task probably killed this
worker."""

Executor = LocalExecutor | ClusterExecutor
"""Executors share the public methods and attributes that this module uses."""


def make_executor(
    context: Any,
    client: "Client | None",
    n_jobs: int | None = None,
    processes_since: float | None = None,
) -> Executor:
    """Return an executor whose tasks get `context`.

    `client` is a `distributed.Client`, None for `n_jobs` threads of this process, or a
    function that takes `context` and returns an executor.
    """
    if client is None:
        return LocalExecutor(context, n_jobs, processes_since)
    if callable(client):
        executor: Executor = client(context)
        # The type is inspected, since instances such as a Delayed have any attribute.
        if getattr_static(type(executor), "submit", None) is None:
            raise TypeError(
                f"`client` must be a distributed.Client, or a function that returns an "
                f"executor, got a function that returned {show(executor)}; open one "
                "with distributed.Client(address) or dsel.cluster.connect."
            )
        return executor
    return ClusterExecutor(context, client)


class TaskQueue(Generic[R]):
    """Submitted tasks of an executor, a few more than can run at once.

    A loop submits tasks while it has room, and takes the results of those that ended.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.running: dict[str, Task[Any, R]] = {}
        """Tasks that have not ended, by key."""
        self._n_lost: Counter[str] = Counter()

    @property
    def has_room(self) -> bool:
        """Whether another task can be submitted."""
        # A few tasks wait at each slot, so that none is idle while a result is
        # transferred. More of them would have been selected by counts that are out of
        # date.
        return len(self.running) < WINDOW * self.executor.n_slots

    def submit(self, task: Task[Any, R]) -> None:
        """Submit a task."""
        self.running[task.key] = task
        self.executor.submit(task)

    def wait(self) -> Iterator[Finished[R]]:
        """Yield tasks that have ended, in any order; wait half a second at most.

        A task whose input rows were lost with a worker is submitted again. Raises the
        error of a task which says that the whole run cannot continue.
        """
        for finished in self.executor.wait(TURN_SECONDS):
            raise_fatal_error(finished.error)
            key = finished.key
            task = self.running[finished.key]
            # Rows on a lost worker are lost with it: `Task.sources` sends them again.
            is_lost = isinstance(finished.error, LostInputError)
            self._n_lost[key] += is_lost
            if is_lost and self._n_lost[key] < LOST_TRIES:
                logger.warning("a worker lost the rows of a task, which runs again")
                self.executor.forget(key)
                self.executor.submit(task)
                continue
            del self.running[key]
            yield finished
            if finished.error is not None or not task.keeps_output:
                self.executor.forget(key)


def run_to_completion(
    executor: Executor, tasks: Iterable[Task[Any, R]]
) -> Iterator[Finished[R]]:
    """Run tasks and yield each when it ends; `tasks` is iterated as slots get free."""
    queue = TaskQueue[R](executor)
    waiting = iter(tasks)
    while True:
        while queue.has_room and (task := next(waiting, None)) is not None:
            queue.submit(task)
        if not queue.running:
            return
        yield from queue.wait()


def results_in_order(
    context: C,
    tasks: Iterable[Task[C, R]],
    client: "Client | None",
    *,
    on_turn: Callable[[], object] | None = None,
) -> Generator[R]:
    """Run tasks on an executor of their own; yield their results in order.

    `tasks` is iterated only as fast as tasks are submitted, so it may be a stream. A
    result that comes early is kept until those before it are yielded. At most two
    windows of tasks are submitted beyond the first unfinished one. Inside a task all
    tasks run in that task (see `resolve_client`); a single task always runs here.
    `on_turn` is called before tasks are submitted, at least every half second; an
    exception of it ends the run.
    """
    # Threads for one task would cost more than a small pool takes to read.
    is_single = isinstance(tasks, Sized) and len(tasks) == 1
    if client is None and (current_worker() is not None or is_single):
        for here in tasks:
            if on_turn is not None:
                on_turn()
            yield here.work.run(context, Inputs(sources=here.read_sources(None))).result
        return
    waiting = iter(tasks)
    keys: deque[str] = deque()
    early: dict[str, Finished[R]] = {}
    with closing(make_executor(context, client)) as executor:
        queue = TaskQueue[R](executor)
        while True:
            if on_turn is not None:
                on_turn()
            # Early results wait in memory for the first one, which may be slow.
            while queue.has_room and len(keys) < 2 * WINDOW * executor.n_slots:
                if (task := next(waiting, None)) is None:
                    break
                keys.append(task.key)
                queue.submit(task)
            if not queue.running:
                return
            for finished in queue.wait():
                early[finished.key] = finished
                while keys and keys[0] in early:
                    yield early.pop(keys.popleft()).get()
