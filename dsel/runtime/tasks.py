"""What a task is, what becomes of it, and what it takes to run tasks somewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from dsel.errors import ClusterLostError, VersionMismatchError
from dsel.runtime.workers import GO_ON

TaskFunction = Callable[..., tuple[Any, Any]]
"""Takes (work, payloads of the inputs, *arguments), returns (record, payload)."""


class LostInputError(OSError):
    """What was sent for a task died with a worker; submitted again it may be done."""


@dataclass(frozen=True)
class Task:
    """One call of a function, in a thread of this process or in a worker."""

    key: str
    """No other task of the executor has it."""
    function: TaskFunction
    arguments: tuple[Any, ...] = ()
    """Passed on to the function."""
    sources: Callable[[Any], list[Any]] | None = None
    """Called with the Dask client or None when the task is submitted, and again where
    rows, which are sent to a worker then, died with it; gives one argument, the first.
    """
    inputs: tuple[str, ...] = ()
    """Keys of finished tasks that kept their payloads, which this one gets."""
    priority: int = 0
    """Tasks of higher priority go first."""
    keeps_payload: bool = False
    """Whether the payload stays where it was made, for other tasks and `fetch`."""
    place: int | None = None
    """Tasks of one place go to one worker if they can, also those of other executors:
    what an earlier one has read may be kept there."""

    def all_arguments(self, client: Any) -> tuple[Any, ...]:
        """Return what to call the function with, after work and payloads."""
        if self.sources is None:
            return self.arguments
        return (self.sources(client), *self.arguments)


@dataclass(frozen=True)
class Finished:
    """A task that came to an end."""

    key: str
    record: Any
    """What it counted; None where it failed or was cancelled."""
    error: BaseException | None = None

    def result(self) -> Any:
        """Return the record, or raise what went wrong."""
        if self.error is not None:
            raise self.error
        return self.record


class Executor(Protocol):
    """Runs tasks somewhere; the only thing that `dsel.runtime.submission` asks for."""

    @property
    def n_slots(self) -> int:
        """Tasks that can run at the same time, now.

        Raises
        ------
        ClusterLostError
            Where nothing could run them for too long.
        """

    @property
    def slot_memory(self) -> int:
        """Bytes that each of them may use now, where there is least."""

    def submit(self, task: Task) -> None:
        """Start a task."""

    def derive(self, task: Task, source: str) -> None:
        """Make a smaller input of the payload kept under `source`, where that is.

        It is not waited for. Where inputs are not moved it is that payload itself.
        """

    def wait(self, timeout: float) -> list[Finished]:
        """Return tasks that ended, at least one unless `timeout` seconds pass."""

    def fetch(self, key: str) -> Any:
        """Return the payload kept under `key`."""

    def forget(self, key: str) -> None:
        """Cancel the task if it has not begun, and drop its payload."""

    def close(self) -> None:
        """Cancel what runs and drop everything."""


def check_alive(error: BaseException | None) -> None:
    """Raise where a task's error says that the cluster is gone, or another one.

    Raises
    ------
    ClusterLostError
        Where scheduler or workers are gone.
    VersionMismatchError
        Where a worker joined that has other versions.
    """
    if isinstance(error, VersionMismatchError | ClusterLostError):
        raise error
    if type(error).__name__ in {"FutureCancelledError", "CancelledError"}:
        raise ClusterLostError(
            f"the scheduler is gone or the run's tasks were cancelled; {GO_ON}"
        ) from error
    if type(error).__name__ == "NoWorkerError":
        raise ClusterLostError(
            f"the cluster has had no workers for too long; {GO_ON}"
        ) from error


def died_of_task(error: BaseException) -> bool:
    """Whether a task was given up since worker after worker had died under it."""
    return type(error.__cause__).__name__ == "KilledWorker"
