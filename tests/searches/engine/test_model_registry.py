import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import xarray as xr

import dsel
from dsel.families.family import FitCounts
from dsel.runtime.local import LocalExecutor
from dsel.searches.engine import pool_rounds
from dsel.searches.engine.fit_task import FitJob, FitRecord
from dsel.searches.engine.fits import ModelRegistry
from tests.estimators import FAMILIES
from tests.executors import FaultyExecutor

TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]


@pytest.fixture
def held():
    """Return two tasks: one holds candidates 0 and 1 on split 0, one 1 on 1."""
    models = ModelRegistry()
    models.add("fit-1", record_of(FitJob(0, (0, 1), 0), nbytes=100))
    models.add("fit-2", record_of(FitJob(0, (1,), 1), nbytes=30))
    return models


def record_of(job, nbytes):
    none = np.zeros((len(job.candidates), 1))
    return FitRecord(job, FitCounts(none, none, none, none, {}), nbytes)


def test_held_models__know_where_each_model_is(held):
    assert held.keys_of([1], [0, 1]) == {"fit-1", "fit-2"}
    assert held.has(0, 0)
    assert not held.has(0, 1)
    assert held.nbytes == {0: 50, 1: 80}


def test_held_models__know_what_a_task_holds_of_others(held):
    assert held.unwanted_nbytes("fit-1", (1,)) == 50
    assert held.unwanted_nbytes("fit-2", (1,)) == 0


def test_held_models__release_tasks_that_nobody_needs(held):
    assert held.release({0}) == {"fit-2"}
    assert held.has(1, 0)  # it is where a needed one is
    assert not held.has(1, 1)
    assert held.release(set()) == {"fit-1"}


class MovingExecutor(FaultyExecutor):
    """Does what a cluster does, which moves what is derived."""

    def __init__(self, work):
        super().__init__(LocalExecutor(work, 1))
        self.derive, self.derived = self.derive_here, set()

    def derive_here(self, task, source):
        move = partial(moved, task.function)
        self.derived.add(task.key)
        self.inner.submit(replace(task, function=move, inputs=(source,)))

    def wait(self, timeout):
        ended = super().wait(timeout)
        return [finished for finished in ended if finished.key not in self.derived]


def moved(function, *arguments):
    return pickle.loads(pickle.dumps(function(*arguments)))


@pytest.mark.parametrize("name", FAMILIES)
def test_run__counts_alike_with_models_that_are_left_behind(name, rng, monkeypatch):
    X = rng.normal(size=(200, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=200), [-0.5, 0.5])
    plan = dsel.plan_search(
        *FAMILIES[name],
        X[:90],
        y[:90],
        X[90:],
        cv=3,
        random_state=0,
        prune=True,
        criterion="cv_bound",
    )
    whole = plan.run(n_jobs=1).drop_vars(TIMES)
    monkeypatch.setattr(pool_rounds, "WORTH_A_TASK", -1)
    monkeypatch.setattr(pool_rounds, "LEADERS", 1)
    xr.testing.assert_equal(plan.run(MovingExecutor).drop_vars(TIMES), whole)
