"""The loop of fits: which it makes, what it tries again, and what ends it."""

import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.search.engine.counts import FitTable
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.inner_searches import InnerSearches
from dsel.search.engine.jobs import FitJob, FitResult, FitStatus
from dsel.search.engine.pruning import OnlyCandidate, PruningDecision
from dsel.search.running.run import open_engine
from tests.executors import faulty_threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
PLAN = dsel.plan_search(
    DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 8]}, X, Y,
    prune=False, random_state=0,
)  # fmt: skip
SEARCH = PLAN.search


def new_table():
    return FitTable(SEARCH.scheme, SEARCH.context.candidate_groups, SEARCH.n_candidates)


def run_loop(pruner=None, table=None, fault=lambda task: None, show=lambda loop: None):
    pruner = pruner or InnerSearches(SEARCH.scheme, SEARCH.prune)
    client = faulty_threads(fault)
    with open_engine(SEARCH.context, SEARCH.pool, client=client) as engine:
        loop = FitLoop(engine, table or new_table(), pruner, show)
        loop.fit()
    return loop


def count_fits(tasks):
    return Counter(
        (number, job.split_number)
        for task in tasks
        for job in task.work.jobs
        for number in job.candidate_numbers
    )


def test_loop__makes_all_fits_once_and_counts_their_errors():
    tasks = []
    table = run_loop(fault=tasks.append).table
    assert table.finished_fits.all()
    assert {*count_fits(tasks).values()} == {1}
    for number, tree in enumerate(SEARCH.context.estimators):
        for split in SEARCH.scheme.splits:
            model = clone(tree).fit(X[split.train_rows], Y[split.train_rows])
            wrong = [(model.predict(X[n]) != Y[n]).sum() for n in split.row_parts]
            assert table.errors[number, split.number].tolist() == wrong


def test_loop__makes_only_fits_that_its_pruner_needs():
    loop = run_loop(OnlyCandidate(1))
    assert loop.table.finished_fits.all(axis=1).tolist() == [False, True, False]
    progress = loop.progress()
    assert progress.fits_done == len(SEARCH.scheme.splits)
    assert progress.fits_done + progress.fits_dropped == progress.fits_total


def test_loop__makes_no_fit_again_that_its_table_has():
    tasks, table = [], run_loop(OnlyCandidate(1)).table
    loop = run_loop(table=table, fault=tasks.append)
    assert table.finished_fits.all()
    assert {number for number, _ in count_fits(tasks)} == {0, 2}
    assert loop.progress().fits_kept == len(SEARCH.scheme.splits)


def test_loop__tries_the_jobs_of_a_failed_task_again_with_the_same_counts():
    failed = []

    def fail_once(task):
        if len(failed) < 2:
            failed.append(task)
            raise OSError("a file system")

    assert np.array_equal(
        run_loop(fault=fail_once).table.errors, run_loop().table.errors
    )


def test_loop__ends_with_an_error_of_its_display():
    n_fits = []

    def interrupt(loop):
        n_fits.append(loop.progress().fits_done)
        if n_fits[-1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_loop(show=interrupt)
    assert 0 < n_fits[-1] < SEARCH.n_candidates * len(SEARCH.scheme.splits)


def test_refit__makes_fits_once_more_before_others_and_keeps_their_counts():
    tasks, table = [], run_loop(OnlyCandidate(1)).table
    before = table.fit_status.copy()
    client = faulty_threads(tasks.append)
    with open_engine(SEARCH.context, SEARCH.pool, client=client) as engine:
        loop = FitLoop(engine, table, OnlyCandidate(1), lambda loop: None)
        lost = np.zeros_like(table.finished_fits)
        lost[1, [2, 5]] = True
        loop.repeat_fits(lost)
        loop.repeat_fits(lost)  # they have a job already
        np.testing.assert_array_equal(table.fit_status, before)
        loop.fit()
    assert count_fits(tasks) == {(1, 2): 1, (1, 5): 1}
    np.testing.assert_array_equal(table.fit_status, before)


FOLDS_AND_ALL = dsel.plan_search(
    DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 8]}, X, Y, X[:50],
    certificate="cv_bound", random_state=0,
)  # fmt: skip
"""A search of five folds, whose numbers are 0 to 4, and all rows, whose number is 5."""


@dataclass(frozen=True)
class BoundBySums:
    """Pruner that drops no candidate: a bound is its start plus the scores so far."""

    starts: np.ndarray = field(default_factory=lambda: np.zeros(3))
    best_first: bool = True

    def decide(self, table):
        bounds = self.starts + np.nansum(table.scores[..., 0], axis=1)
        none = np.zeros(table.n_candidates, bool)
        return PruningDecision(bounds, np.ones(table.fit_status.shape, bool), none)


@contextmanager
def loop_by_hand(pruner, n_threads=1):
    """Yield a loop whose jobs a test claims, and ends, one by one."""
    search = FOLDS_AND_ALL.search
    client = faulty_threads(n_threads=n_threads)
    groups = search.context.candidate_groups
    assert [len(group.candidates) for group in groups] == [1, 1, 1]
    with open_engine(search.context, search.pool, client=client) as engine:
        table = FitTable(search.scheme, groups, search.n_candidates)
        yield FitLoop(engine, table, pruner, lambda loop: None)


def claim(loop, n_jobs):
    """Return candidate and split of the next jobs."""
    claimed = []
    for _ in range(n_jobs):
        loop.prune()
        claimed += [
            (job.candidate_numbers[0], job.split_number) for job in loop.next_jobs()
        ]
    return claimed


def end_fits(loop, split_number, scores):
    for candidate, score in scores.items():
        result = FitResult(FitStatus.DONE, 1.0, (0, 0), (score,))
        loop.table.add_fit(candidate, split_number, result)


def test_next_jobs__continue_the_candidate_whose_bound_will_be_smallest():
    with loop_by_hand(BoundBySums()) as loop:
        # Without a count candidates take turns.
        both = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
        assert claim(loop, 6) == both
        # Each submitted fold is expected to add as much as the known ones do on
        # average: the values are 8, 2 and 5, and the second one grows by 1 a fold. The
        # third one comes at its tie with 5, since it has fewer folds that run.
        end_fits(loop, 0, {0: 4.0, 1: 1.0, 2: 2.5})
        assert claim(loop, 3) == [(1, 2), (1, 3), (1, 4)]
        assert claim(loop, 3) == [(2, 2), (2, 3), (0, 2)]
        # With two known folds the values are 4 + 4 / 2 * 1, and 2.9 + 2.9 / 2 * 2,
        # which is less; the folds of the second candidate have all begun. The fit on
        # all rows waits until every fold is counted.
        end_fits(loop, 1, {0: 0.0, 1: 1.0, 2: 0.4})
        assert claim(loop, 4) == [(2, 4), (0, 3), (0, 4)]
        for split_number in (2, 3):
            end_fits(loop, split_number, {1: 1.0})
        assert claim(loop, 1) == []
        end_fits(loop, 4, {1: 1.0})
        assert claim(loop, 2) == [(1, 5)]


def test_next_jobs__take_no_bound_before_the_first_count_for_growth():
    with loop_by_hand(BoundBySums(np.array([4.0, 0.0, 3.0]))) as loop:
        assert claim(loop, 6) == [(1, fold) for fold in range(5)] + [(2, 0)]
        # The bounds of 1, 4 and 3.5 grow by 1 and 0.5 a fold; that of the first
        # candidate is not known to grow.
        end_fits(loop, 0, {1: 1.0, 2: 0.5})
        assert claim(loop, 3) == [(2, 1), (0, 0), (0, 1)]


def test_make_task__follows_the_data_of_its_group_until_another_slot_is_free():
    def slot_of(loop, candidate, split_number):
        jobs = [FitJob(candidate, (candidate,), split_number)]
        task = loop.make_task(jobs)
        loop.queue.running[task.key] = jobs
        return task.affinity

    with loop_by_hand(OnlyCandidate(0), n_threads=2) as loop:
        assert [slot_of(loop, 0, fold) for fold in range(3)] == [0, 0, 1]
        assert [slot_of(loop, 1, fold) for fold in range(2)] == [1, 1]
        assert slot_of(loop, 0, 3) == 0
        # A job that failed may run in any slot.
        loop.queue.attempts[FitJob(2, (2,), 0)] = 1
        assert slot_of(loop, 2, 0) is None


def test_memory__of_a_slot_is_half_for_the_data_that_fits_share():
    plan = dsel.plan_search(SVC(), {"C": [1, 8]}, X, Y, random_state=0)

    def run(slot_memory):
        def client(context):
            executor = faulty_threads()(context)
            executor.slot_memory = slot_memory
            return executor

        return plan.run(client)

    with pytest.raises(MemoryError, match=", got 1,000; ") as caught:
        run(2_001)
    [needed] = re.findall("([0-9,]+) bytes", str(caught.value))
    n_bytes = int(needed.replace(",", ""))
    with pytest.raises(MemoryError, match=f"{needed} bytes, got"):
        run(2 * n_bytes - 1)
    assert run(2 * n_bytes).choice.params["C"] in {1, 8}
