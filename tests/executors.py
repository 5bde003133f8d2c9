"""An executor that lets faults befall the tasks of another one."""

from dataclasses import replace
from functools import partial

from dsel.runtime.local import LocalExecutor


class FaultyExecutor:
    """Runs tasks as another executor does, but for what a fault makes of them.

    Parameters
    ----------
    inner
        The other one.
    fault
        Called with each task when it runs, ahead of its function; what it raises is how
        the task ends.
    """

    def __init__(self, inner, fault):
        self.inner, self.fault, self.submitted = inner, fault, []
        self.derive, self.wait, self.fetch = inner.derive, inner.wait, inner.fetch
        self.forget, self.close = inner.forget, inner.close

    @property
    def n_slots(self):
        return self.inner.n_slots

    @property
    def slot_memory(self):
        return self.inner.slot_memory

    def submit(self, task):
        self.submitted.append(task)
        function = partial(_with_fault, self.fault, task)
        self.inner.submit(replace(task, function=function))


def _with_fault(fault, task, *arguments):
    fault(task)
    return task.function(*arguments)


def faulty_threads(fault, n_threads=1):
    """Return a client for `run` and `fit`: local threads whose tasks have faults."""
    return lambda work: FaultyExecutor(LocalExecutor(work, n_threads), fault)
