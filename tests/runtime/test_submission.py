"""The loop that submits tasks: a few ahead, taken as they end, tried again if lost."""

from collections import Counter
from contextlib import closing

import pytest

from dsel.errors import ClusterLostError, VersionMismatchError
from dsel.runtime.local import LocalExecutor
from dsel.runtime.submission import (
    LOST_TRIES,
    WINDOW,
    completed,
    records_in_order,
    run_tasks,
)
from dsel.runtime.tasks import LostInputError, Task
from tests.executors import FaultyExecutor, faulty_threads


def power(work, payloads, exponent):
    return work**exponent, f"payload {exponent}"


def failing(work, payloads):
    raise ValueError("no")


def powers(n):
    return [Task(f"power-{i}", power, (i,)) for i in range(n)]


def test_completed__asks_for_tasks_as_slots_become_free():
    asked = []

    def tasks():
        for task in powers(20):
            asked.append(task)
            yield task

    with closing(LocalExecutor(2, 1)) as executor:
        for ended, _ in enumerate(completed(executor, tasks())):
            assert len(asked) <= ended + 2 * WINDOW


def test_completed__keeps_payloads_if_asked():
    kept = Task("kept", power, (1,), keeps_payload=True)
    with closing(LocalExecutor(2, 1)) as executor:
        list(completed(executor, [kept, Task("dropped", power, (2,))]))
        assert executor.fetch("kept") == "payload 1"
        with pytest.raises(KeyError, match="dropped"):
            executor.fetch("dropped")


def test_completed__an_error_is_raised_where_the_result_is_wanted():
    with closing(LocalExecutor(2, 1)) as executor:
        (ended,) = completed(executor, [Task("one", failing)])
        with pytest.raises(ValueError, match="no"):
            ended.result()


def test_completed__ends_with_what_a_turn_raises():
    def refuse():
        raise PermissionError("another run has the place")

    with (
        closing(LocalExecutor(2, 1)) as executor,
        pytest.raises(PermissionError, match="another run"),
    ):
        list(completed(executor, powers(3), on_turn=refuse))


class Losing:
    """Loses what was sent for a task a number of times."""

    def __init__(self, n_times):
        self.n_times, self.n_tries = n_times, Counter()

    def __call__(self, task):
        self.n_tries[task.key] += 1
        if self.n_tries[task.key] <= self.n_times:
            raise LostInputError(task.key)


def add(work, payloads, rows, number):
    return work + rows + number, None


def test_completed__sends_again_what_died_with_a_worker():
    sent = []
    task = Task("sum", add, (3,), lambda client: sent.append(20) or 20)
    inner = LocalExecutor(100, 1)
    with closing(FaultyExecutor(inner, Losing(LOST_TRIES - 1))) as executor:
        (ended,) = completed(executor, [task])
    assert ended.result() == 123
    assert len(sent) == LOST_TRIES


def test_completed__gives_up_what_is_lost_again_and_again():
    losing = Losing(10**6)
    with closing(FaultyExecutor(LocalExecutor(2, 1), losing)) as executor:
        (ended,) = completed(executor, powers(1))
    with pytest.raises(LostInputError, match="power-0"):
        ended.result()
    assert losing.n_tries["power-0"] == LOST_TRIES


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
        list(completed(executor, powers(3)))


def test_run_tasks__asks_again_for_tasks_that_depend_on_what_ended():
    left = powers(1)

    def next_task():
        return left.pop() if left else None

    found = []
    with closing(LocalExecutor(2, 1)) as executor:
        for ended in run_tasks(executor, next_task):
            found.append(ended.result())
            if len(found) < 4:
                left.append(Task(f"next-{len(found)}", power, (len(found),)))
    assert found == [1, 2, 4, 8]


def test_records_in_order__yields_them_in_order_whatever_ends_first():
    tries = Losing(1)

    def late_first(task):
        if task.key == "power-0":
            tries(task)

    records = records_in_order(2, powers(9), faulty_threads(late_first, 2))
    assert list(records) == [2**n for n in range(9)]


def test_records_in_order__does_not_run_far_ahead_of_the_first():
    tries, executor = Losing(LOST_TRIES - 1), None

    def late_first(task):
        if task.key == "power-0":
            tries(task)

    def client(work):
        nonlocal executor
        executor = FaultyExecutor(LocalExecutor(work, 1), late_first)
        return executor

    next(records_in_order(2, powers(100), client))
    assert len({task.key for task in executor.submitted}) <= 2 * WINDOW


@pytest.mark.parametrize("n", [0, 1, 5])
def test_records_in_order__needs_no_client(n):
    assert list(records_in_order(2, powers(n), None)) == [2**i for i in range(n)]
