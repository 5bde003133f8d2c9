"""The loop of fits: which it makes, what it tries again, and what ends it."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.search.engine.counts import FitTable
from dsel.search.engine.fit_loop import FitLoop
from dsel.search.engine.inner_searches import InnerSearches
from dsel.search.engine.pruning import OnlyCandidate
from dsel.search.running.run import Run, RunOptions, open_engine
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
    run = Run(SEARCH, PLAN.facts, RunOptions(client=faulty_threads(fault)))
    pruner = pruner or InnerSearches(SEARCH.scheme, SEARCH.prune)
    with open_engine(run) as engine:
        loop = FitLoop(engine, table or new_table(), pruner, show)
        loop.fit()
    return loop


def count_fits(tasks):
    return Counter(
        (number, job.split_number)
        for task in tasks
        for job in task.work.jobs
        for number in job.candidates
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
    with open_engine(
        Run(SEARCH, PLAN.facts, RunOptions(client=faulty_threads(tasks.append)))
    ) as engine:
        loop = FitLoop(engine, table, OnlyCandidate(1), lambda loop: None)
        lost = np.zeros_like(table.finished_fits)
        lost[1, [2, 5]] = True
        loop.refit(lost)
        loop.refit(lost)  # they have a job already
        np.testing.assert_array_equal(table.fit_status, before)
        loop.fit()
    assert count_fits(tasks) == {(1, 2): 1, (1, 5): 1}
    np.testing.assert_array_equal(table.fit_status, before)
