"""An executor whose tasks, or whose driver, fail where a test wants them to."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dsel.runtime.local_executor import LocalExecutor
from dsel.runtime.tasks import Task


class Killed(BaseException):
    """Ends a run in the middle, as a signal would."""


@dataclass(frozen=True)
class FaultyWork:
    """Does the work of a task, after the fault."""

    task: Task
    fault: Callable[[Task], object]

    def run(self, context, inputs):
        self.fault(self.task)
        return self.task.work.run(context, inputs)


class FaultyExecutor:
    """Runs tasks as another executor does, but for what a fault makes of them.

    Parameters
    ----------
    inner
        The other one.
    fault
        Called with each task when it runs, ahead of its work; what it raises is how
        the task ends.
    killed_after
        How many tasks the driver is told of before it is killed; None for all.
    """

    def __init__(self, inner, fault=lambda _: None, killed_after=None):
        self.inner, self.fault, self.submitted = inner, fault, []
        self.n_left = killed_after

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def wait(self, timeout):
        if self.n_left == 0:
            raise Killed
        ended = self.inner.wait(timeout)[: self.n_left]
        if self.n_left is not None:
            self.n_left -= len(ended)
        return ended

    def submit(self, task):
        self.submitted.append(task)
        self.inner.submit(replace(task, work=FaultyWork(task, self.fault)))


def faulty_threads(fault=lambda _: None, n_threads=1, killed_after=None):
    """Return a client for `run` and `fit`: local threads that fail as is wanted."""
    return lambda context: FaultyExecutor(
        LocalExecutor(context, n_threads), fault, killed_after
    )
