"""The loop that submits tasks: a few ahead, taken as they end, tried again if lost."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass

import pytest

from dsel.errors import ClusterLostError, VersionMismatchError
from dsel.runtime.local_executor import LocalExecutor
from dsel.runtime.submission import (
    LOST_TRIES,
    WINDOW,
    TaskQueue,
    results_in_order,
    run_to_completion,
)
from dsel.runtime.tasks import LostInputError, Output, Task
from tests.executors import FaultyExecutor, faulty_threads


@dataclass(frozen=True)
class Power:
    """The context, raised to a number."""

    exponent: int

    def run(self, context, inputs):
        return Output(context**self.exponent, f"kept {self.exponent}")


def powers(n):
    return [Task(f"power-{i}", Power(i)) for i in range(n)]


@pytest.fixture
def executor():
    with closing(LocalExecutor(2, 1)) as executor:
        yield executor


def test_completed__asks_for_tasks_as_slots_become_free(executor):
    asked = []
    tasks = (asked.append(task) or task for task in powers(20))
    for ended, _ in enumerate(run_to_completion(executor, tasks)):
        assert len(asked) <= ended + 2 * WINDOW


def test_completed__keeps_output_if_asked(executor):
    kept = Task("kept", Power(1), keeps_output=True)
    list(run_to_completion(executor, [kept, Task("dropped", Power(2))]))
    assert executor.fetch("kept") == "kept 1"
    with pytest.raises(KeyError, match="dropped"):
        executor.fetch("dropped")


def test_results_in_order__end_with_what_a_turn_raises():
    def refuse():
        raise PermissionError("another run has the place")

    with pytest.raises(PermissionError, match="another run"):
        list(results_in_order(2, powers(3), faulty_threads(), on_turn=refuse))


def test_queue__has_room_for_a_few_tasks_and_again_when_some_have_ended(executor):
    queue, left, found = TaskQueue(executor), powers(20), []
    while left or queue.running:
        while left and queue.has_room:
            queue.submit(left.pop())
        assert len(queue.running) == min(WINDOW, 20 - len(found))
        found += [ended.get() for ended in queue.wait()]
    assert sorted(found) == [2**n for n in range(20)]


class Losing:
    """Loses what was sent for the first task a number of times."""

    def __init__(self, n_times):
        self.n_times, self.n_tries = n_times, Counter()

    def __call__(self, task):
        self.n_tries[task.key] += 1
        if task.key == "power-0" and self.n_tries[task.key] <= self.n_times:
            raise LostInputError(task.key)


class Add:
    """The context and the sources, and what other tasks have kept."""

    def run(self, context, inputs):
        return Output(context + sum(inputs.sources) + len("".join(inputs.kept)))


@pytest.mark.parametrize("n_times", [LOST_TRIES - 1, 10**6])
def test_completed__sends_again_what_died_with_a_worker_and_gives_up_at_last(n_times):
    sent, losing = [], Losing(n_times)
    task = Task("power-0", Add(), lambda client: sent.append(20) or [20])
    with closing(FaultyExecutor(LocalExecutor(100, 1), losing)) as executor:
        (ended,) = run_to_completion(executor, [task])
    assert len(sent) == LOST_TRIES
    if n_times < LOST_TRIES:
        assert ended.get() == 120
    else:
        assert isinstance(ended.error, LostInputError)


class CancelledError(Exception):
    """Named as that of a task whose scheduler is gone."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CancelledError(), ClusterLostError("the scheduler is gone")),
        (VersionMismatchError("worker a"), VersionMismatchError("worker a")),
    ],
)
def test_completed__ends_where_the_cluster_is_gone_or_another_one(error, expected):
    def fault(task):
        raise error

    with (
        closing(FaultyExecutor(LocalExecutor(2, 1), fault)) as executor,
        pytest.raises(type(expected), match=str(expected)),
    ):
        list(run_to_completion(executor, powers(3)))


def test_results_in_order__yields_them_in_order_whatever_ends_first():
    results = results_in_order(2, powers(9), faulty_threads(Losing(1), 2))
    assert list(results) == [2**n for n in range(9)]


def test_results_in_order__does_not_run_far_ahead_of_the_first():
    executor = None

    def client(context):
        nonlocal executor
        losing = Losing(LOST_TRIES - 1)
        executor = FaultyExecutor(LocalExecutor(context, 1), losing)
        return executor

    next(results_in_order(2, powers(100), client))
    assert len({task.key for task in executor.submitted}) <= 2 * WINDOW


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_in_order__needs_no_client(n):
    assert list(results_in_order(2, powers(n), None)) == [2**i for i in range(n)]


def test_put__gives_tasks_another_context_and_what_others_kept(executor):
    tasks = [Task("a", Power(1), keeps_output=True), Task("b", Power(2))]
    other = Task("c", Power(2), context_key=executor.put(5))
    found = {
        each.key: each.get() for each in run_to_completion(executor, [*tasks, other])
    }
    assert found == {"a": 2, "b": 4, "c": 25}
    [later] = run_to_completion(executor, [Task("d", Add(), input_tasks=("a",))])
    assert later.get() == 2 + len("kept 1")
