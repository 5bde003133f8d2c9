"""What becomes of the jobs of a task that failed."""

from contextlib import closing
from functools import partial

import pytest
from distributed.scheduler import KilledWorker

from dsel.errors import ClusterLostError, LossError
from dsel.runtime.local_executor import LocalExecutor
from dsel.search.engine.job_queue import JobQueue
from dsel.search.engine.jobs import CountJob, FitJob

PAIR = FitJob(0, (3, 5), split_number=2)
ALONE = [FitJob(0, (3,), split_number=2), FitJob(0, (5,), split_number=2)]


@pytest.fixture
def make_queue():
    with closing(LocalExecutor(None, 1)) as executor:
        yield partial(JobQueue, executor)


def outcome(queue, jobs, error=None):
    queue.urgent_jobs.clear()
    failed = queue.retry(jobs, OSError("a file system") if error is None else error)
    return [job for [job] in queue.urgent_jobs], failed


def worker_death():
    error = RuntimeError("a worker died")
    error.__cause__ = KilledWorker("fit-1", None, 3)
    return error


def test_jobs__of_one_task_are_tried_one_by_one_and_so_are_their_candidates(make_queue):
    queue = make_queue(may_give_up=True)
    assert outcome(queue, [PAIR, *ALONE]) == ([PAIR, *ALONE], [])
    assert outcome(queue, [PAIR]) == (ALONE, [])


def test_jobs__that_are_alone_are_given_up_after_three_attempts(make_queue):
    queue, [job, _] = make_queue(may_give_up=True), ALONE
    for _ in range(2):
        assert outcome(queue, [job]) == ([job], [])
    assert outcome(queue, [job]) == ([], [job])


def test_jobs__that_must_not_fail_end_the_run_after_three_attempts(make_queue):
    queue, job = make_queue(may_give_up=False), CountJob(0, 100, (0, 1))
    for _ in range(2):
        assert outcome(queue, [job]) == ([job], [])
    with pytest.raises(OSError, match="a file system"):
        outcome(queue, [job])


def test_memory__is_needed_for_the_candidates_together(make_queue):
    queue = make_queue(may_give_up=True)
    assert outcome(queue, [PAIR], MemoryError()) == ([PAIR], [])


@pytest.mark.parametrize(
    ("may_give_up", "error"),
    [(True, LossError("mine")), (False, ValueError("rows")), (False, KeyError("k"))],
    ids=str,
)
def test_errors__that_another_attempt_would_repeat_end_the_run(
    make_queue, may_give_up, error
):
    with pytest.raises(type(error)):
        outcome(make_queue(may_give_up=may_give_up), [PAIR], error)


def test_errors__of_rows_give_a_fit_up_as_any_other_does(make_queue):
    queue, [job, _] = make_queue(may_give_up=True), ALONE
    found = [outcome(queue, [job], ValueError("x")) for _ in range(3)]
    assert found[-1] == ([], [job])


@pytest.mark.parametrize(
    ("n_groups", "any_done", "ends"),
    [(2, False, True), (1, False, False), (2, True, False)],
)
def test_deaths__of_twelve_workers_end_a_run_that_has_done_nothing(
    make_queue, n_groups, any_done, ends
):
    queue = make_queue(may_give_up=True, any_done=any_done)
    jobs = [FitJob(n % n_groups, (n,), split_number=0) for n in range(12)]
    for job in jobs[:-1]:
        outcome(queue, [job], worker_death())
    if ends:
        with pytest.raises(ClusterLostError, match="fits of 2 groups of candidates"):
            outcome(queue, jobs[-1:], worker_death())
    else:
        outcome(queue, jobs[-1:], worker_death())
