"""Work, the tasks that carry it to a thread or a worker, and how tasks end.

Work is a value: its fields hold everything that it needs in addition to the context,
which is sent to the executor once. Therefore the fields show what is sent with each
task, and work can be logged and compared. It runs with one native thread: limits apply
to BLAS, OpenMP and the `n_jobs` of estimators.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

from joblib import parallel_config
from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

from dsel.errors import ClusterLostError, VersionMismatchError
from dsel.runtime.workers import GO_ON

if TYPE_CHECKING:
    from distributed import Client


C_contra = TypeVar("C_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Inputs:
    """Inputs of work in addition to its fields and the context."""

    kept: tuple[Any, ...] = ()
    """Kept output of the tasks in `Task.input_tasks`."""
    sources: Sequence[Any] = ()
    """Return value of `Task.sources`, with futures of the cluster resolved."""


@dataclass(frozen=True)
class Output(Generic[R_co]):
    """Output of work."""

    result: R_co
    """A small object, which is sent to the process that submitted the task."""
    kept: Any = None
    """An object that stays where it was made, for other tasks and for `fetch`."""


class Work(Protocol[C_contra, R_co]):
    """Work that one thread does; its types are those of context and result."""

    # The context is passed by position, so that each kind of work names it by what it
    # holds.
    def run(self, context: C_contra, /, inputs: Inputs) -> Output[R_co]:
        """Do the work.

        `context` is what `put` of the executor got, by `Task.context_key`.
        """


_in_task: Final = ContextVar("in_task", default=False)


@contextmanager
def hide_inner_progress() -> Iterator[None]:
    """Mark code as part of a larger task, so that it shows no progress of its own."""
    token = _in_task.set(True)
    try:
        yield
    finally:
        _in_task.reset(token)


def is_task() -> bool:
    """Return whether code runs in `hide_inner_progress`, as that of all tasks does."""
    return _in_task.get()


class LostInputError(OSError):
    """The input of a task was lost with a worker; the task can be submitted again."""


@dataclass(frozen=True)
class Task(Generic[C_contra, R_co]):
    """Work with a name, for a thread of this process or a worker."""

    key: str
    """Unique among the tasks of the executor."""
    work: Work[C_contra, R_co]
    sources: Callable[[Any], list[Any]] | None = None
    """Function that is called with the Dask client, or None, each time that the task is
    submitted; it returns rows of a pool, or readers of rows, for the worker."""
    input_tasks: tuple[str, ...] = ()
    """Keys of finished tasks whose kept output is passed to this one."""
    context_key: str | None = None
    """Key that `put` returned; None for the context that the executor was made with."""
    priority: int = 0
    """Tasks of higher priority go first."""
    keeps_output: bool = False
    """Whether `Output.kept` stays where it was made, for other tasks and `fetch`."""
    affinity: int | None = None
    """Tasks with the same number are sent to the same worker if possible, also those
    of other executors: rows that an earlier task has read may be in its cache."""

    def read_sources(self, client: "Client | None") -> list[Any]:
        """Return the sources that are sent with the task."""
        return [] if self.sources is None else self.sources(client)


@dataclass(frozen=True)
class Finished(Generic[R]):
    """A task that ended."""

    key: str
    result: R | None
    """`Output.result`; None where the task failed or was cancelled."""
    error: BaseException | None = None

    def get(self) -> R:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return cast(R, self.result)  # the result of a task may be None


def drain(ended_keys: "SimpleQueue[str]", timeout: float) -> list[str]:
    """Wait for one key, then return all keys in the queue."""
    try:
        keys = [ended_keys.get(timeout=timeout)]
    except Empty:
        return []
    # This returns all tasks that have ended, so that one turn of the loop prunes by all
    # of their counts.
    while not ended_keys.empty():
        keys.append(ended_keys.get())
    return keys


def raise_fatal_error(error: BaseException | None) -> None:
    """Raise where a task's error means that the whole run cannot continue."""
    if isinstance(error, VersionMismatchError | ClusterLostError):
        raise error
    # Classes are compared by names: versions of Dask have them in different modules,
    # and importing `distributed` takes a second that a run on threads does not need.
    if type(error).__name__ in {"FutureCancelledError", "CancelledError"}:
        raise ClusterLostError(
            f"the scheduler is gone or the run's tasks were cancelled; {GO_ON}"
        ) from error
    if type(error).__name__ == "NoWorkerError":
        raise ClusterLostError(
            f"the cluster has had no workers for too long; {GO_ON}"
        ) from error
    # KeyboardInterrupt and SystemExit in a user's code end the run, as anywhere else.
    if error is not None and not isinstance(error, Exception):
        raise error


def is_worker_death(error: BaseException) -> bool:
    """Return whether Dask gave up a task because every worker that ran it died."""
    return type(error.__cause__).__name__ == "KilledWorker"


_lock = threading.Lock()
_filters: Final = ExitStack()
_running = _keeping = 0
_limits: Any = None


@dataclass(frozen=True)
class Packed:
    """A context with the scikit-learn configuration of the thread that sent it."""

    context: Any
    config: Mapping[str, Any]
    """scikit-learn's configuration is local to a thread, so work must get it."""

    @classmethod
    def of(cls, context: Any) -> "Packed":
        """Return a context with this thread's settings."""
        return cls(context, get_config())


def run_here(packed: Packed, work: Work[Any, R], inputs: Inputs) -> Output[R]:
    """Do work with one native thread and the caller's scikit-learn configuration."""
    with limit_threads(), config_context(**packed.config), hide_inner_progress():
        return work.run(packed.context, inputs)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Return the native thread pools; they are cached, since looking takes a while."""
    # The number of modules is only a cache key: an import may add thread pools.
    del n_modules
    return ThreadpoolController()


@contextmanager
def limit_threads() -> Iterator[None]:
    """Limit native thread pools to one thread until the last of the tasks has ended.

    Limits of BLAS hold for the whole process: the first task to enter sets them, the
    last to leave restores them. Limits of OpenMP hold for the calling thread.
    Estimators with `n_jobs` run sequentially, because their workers would compete with
    those that run the tasks.

    Warning filters are kept, too: forests of scikit-learn empty them for a moment in
    each thread that predicts, and when threads overlap they would stay empty.
    """
    global _running, _limits
    with _lock:
        pools = _controller(len(sys.modules))
        _running += 1
        if _running == 1:
            _limits = pools.select(user_api="blas").limit(limits=1)
    try:
        with (
            keep_filters(),
            pools.select(user_api="openmp").limit(limits=1),
            parallel_config(backend="sequential"),
        ):
            yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                _let_others_limit(pools)
                _limits.restore_original_limits()
                _let_others_limit(pools)


@contextmanager
def keep_filters() -> Iterator[None]:
    """Keep the warning filters of the process until the last of the threads has left.

    Code that changes filters while several threads work must enter this context: two
    overlapping contexts that restore the filters they found would leave the state of
    one of them.
    """
    global _keeping
    with _lock:
        _keeping += 1
        if _keeping == 1:
            _filters.enter_context(warnings.catch_warnings())
            warnings.showwarning = partial(_show, warnings.showwarning)
    try:
        yield
    finally:
        with _lock:
            _keeping -= 1
            if _keeping == 0:
                _filters.close()


def _show(
    show: Callable[..., None], message: object, category: Any, *where: Any
) -> None:
    """Show a warning, unless it is of scikit-learn about filters that are empty."""
    if not str(message).startswith("`sklearn.utils.parallel.delayed` should be used"):
        show(message, category, *where)


def _let_others_limit(pools: ThreadpoolController) -> None:
    """Allow this thread to change the limits that another thread has set.

    Since threadpoolctl 3.8 a limit of OpenBLAS belongs to the thread that set it.
    """
    for library in pools.lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
