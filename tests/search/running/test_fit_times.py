"""The seconds that fits of several kinds of models are expected to take."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import dsel
from dsel.search.engine.counts import FitTable
from dsel.search.engine.jobs import FitStatus
from dsel.search.running.run_progress import FitTimes

KINDS = [{"model": SVC(C=c)} for c in (1, 2)] + [{"model": LogisticRegression()}]


@pytest.fixture
def table():
    X = np.random.default_rng(0).normal(size=(60, 2))
    plan = dsel.plan_search(SVC(), {"C": [1, 2, 3]}, X, X[:, 0] > 0, random_state=0)
    return FitTable(plan.search.scheme, (), 3)


def finish(table, candidate, n_fits, seconds):
    table.fit_status[candidate, :n_fits] = FitStatus.DONE
    table.fit_seconds[candidate, :n_fits] = seconds


def test_fit_times__are_unknown_before_a_fit_and_a_range_before_one_of_each_kind(table):
    times, n_splits = FitTimes.of(KINDS), table.fit_status.shape[1]
    everything = np.ones(table.fit_status.shape, bool)
    assert times.expect(table, everything) is None
    finish(table, 0, 2, 3.0)
    left = 3.0 * (2 * n_splits - 2)  # of both SVMs, one of which has no fit
    assert times.expect(table, everything) == (6.0, left, left + 3.0 * n_splits)
    finish(table, 2, 1, 0.5)
    left += 0.5 * (n_splits - 1)
    assert times.expect(table, everything) == (6.5, left, left)
    # Four more fits may be of either kind.
    assert times.expect(table, ~everything, 4) == (6.5, 2.0, 12.0)


def test_fit_times__count_no_fits_that_pruning_has_dropped(table):
    times = FitTimes.of([{"C": c} for c in (1, 2, 3)])
    finish(table, 0, 1, 2.0)
    table.apply_pruning(
        np.ones(table.fit_status.shape, bool), np.array([0, 1, 1], bool)
    )
    everything = np.ones(table.fit_status.shape, bool)
    left = 2.0 * (table.fit_status.shape[1] - 1)
    assert times.expect(table, everything) == (2.0, left, left)
