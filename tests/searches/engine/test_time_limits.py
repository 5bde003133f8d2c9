"""Fits with a time limit: what is late fails, nothing else changes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import xarray as xr
from sklearn.svm import SVC

from dsel.errors import AllFitsFailedError, FitFailedWarning
from dsel.searches import execute, plan_search
from dsel.searches.engine import time_limits
from dsel.searches.engine.fit_task import FitJob, fit_jobs
from dsel.searches.engine.time_limits import (
    FittingProcess,
    fit_jobs_in_time,
    fitting_process,
)
from tests.clusters import wait_until
from tests.estimators import Sleeper
from tests.executors import Killed, faulty_threads

TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]
LIMIT = 5.0  # on a busy machine a fit of milliseconds takes a while
ONE_FIT = {"criterion": "holdout_bound", "prune": False}  # of each candidate


@pytest.fixture
def make_plan(rng):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)

    def make(grid, estimator=None, **options):
        settings = {"cv": 3, "random_state": 0, "fit_timeout": LIMIT} | options
        estimator = estimator or Sleeper()
        return plan_search(
            estimator,
            grid,
            X[:80],
            y[:80],
            X[80:],
            **{"criterion": "cv_bound"} | settings,
        )

    return make


def test_execute__a_fit_that_takes_too_long_fails_and_the_others_do_not(make_plan):
    plan = make_plan({"seconds": [0.0, 0.01, 1000.0]}, **ONE_FIT)
    with pytest.warns(FitFailedWarning, match=r"TimeoutError.*more than 5 s"):
        found = execute(plan, n_jobs=1, with_model=True)
    assert found.results.status.values.tolist() == [0, 0, 2]
    assert "TimeoutError" in str(found.results.message.values[2])
    assert found.results.attrs["fit_timeout"] == "5 s"
    assert found.model.predict(np.ones((1, 3))) == 1


def test_execute__a_limit_that_is_kept_changes_nothing(make_plan):
    plan = make_plan({"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, SVC(), prune=False)
    limited, free = (
        execute(replace(plan, fit_timeout=limit), n_jobs=1).results.drop_vars(TIMES)
        for limit in (100.0, None)
    )
    xr.testing.assert_equal(limited, free)


def test_execute__late_fits_are_tried_again_with_more_time_only(
    make_plan, tmp_path, monkeypatch
):
    plan = make_plan({"seconds": [0.0, 1000.0]}, **ONE_FIT)
    with pytest.warns(FitFailedWarning):
        first = execute(plan, out=tmp_path / "run", n_jobs=1).results
    tasks = []
    client = faulty_threads(tasks.append)
    with pytest.warns(FitFailedWarning):
        again = execute(plan, client, out=tmp_path / "run").results
    xr.testing.assert_equal(again, first)
    assert not [task for task in tasks if task.key.startswith("fit-")]
    # Fits without a limit run in this process, where nobody has to sleep.
    awake = SimpleNamespace(sleep=lambda seconds: None)
    monkeypatch.setattr("tests.estimators.time", awake)
    free = replace(plan, fit_timeout=None)
    more = execute(free, out=tmp_path / "run").results.drop_vars(TIMES)
    xr.testing.assert_equal(more, execute(free).results.drop_vars(TIMES))


def test_execute__all_late_is_an_error_that_says_so(make_plan):
    plan = make_plan({"seconds": [1000.0]}, fit_timeout=0.5, **ONE_FIT)
    with pytest.raises(AllFitsFailedError, match=r"took more than 0\.5 s"):
        execute(plan, n_jobs=1)


def test_execute__a_process_that_dies_in_a_fit_is_a_failed_candidate(make_plan):
    plan = make_plan({"dies": [False, True]}, **ONE_FIT)
    with pytest.warns(FitFailedWarning, match="ChildProcessError.*ended with code 9"):
        found = execute(plan, n_jobs=1).results
    assert found.status.values.tolist() == [0, 2]


def test_execute__fits_a_lost_model_again_without_a_limit(make_plan, tmp_path):
    plan, tasks = make_plan({"seconds": [0.0]}, cv=2, prune=False), []
    with pytest.raises(Killed):
        execute(plan, faulty_threads(killed_after=3), out=tmp_path)
    client = faulty_threads(lambda task: tasks.append(task.function.__name__))
    execute(plan, client, out=tmp_path)
    assert tasks.count("fit_jobs_in_time") == 0
    assert tasks.count("fit_jobs") == 3


@pytest.mark.parametrize("late", [(), (0,), (2,), (0, 1, 2, 3)])
def test_fit_jobs_in_time__tells_the_late_from_those_they_share_work_with(
    late, make_plan, monkeypatch
):
    plan = make_plan({"C": [0.1, 1.0, 10.0, 100.0]}, SVC(gamma=0.5))

    def fit(job, seconds, keeps_models):
        assert seconds == 2.0 * len(job.candidates)
        if set(job.candidates) & set(late):
            raise TimeoutError
        (record,), fitted = fit_jobs(plan.work, (), [job], keeps_models)
        return record, fitted[job]

    monkeypatch.setattr(
        time_limits, "fitting_process", lambda work: SimpleNamespace(fit=fit)
    )
    job = FitJob(0, (0, 1, 2, 3), 0)
    records, models = fit_jobs_in_time(plan.work, (), [job], True, 2.0)
    found = {record.job.candidates: record.is_late for record in records}
    if not late:
        assert found == {(0, 1, 2, 3): False}
    else:
        assert found == {(number,): number in late for number in range(4)}
    assert set(models) == {record.job for record in records if not record.is_late}


def test_fitting_process__is_started_again_after_a_late_fit(make_plan):
    work = make_plan({"seconds": [1000.0, 0.0]}).work
    process = fitting_process(work)
    with pytest.raises(TimeoutError):
        process.fit(FitJob(0, (0,), 0), 0.1)
    again = fitting_process(work)
    assert again is not process
    record, models = again.fit(FitJob(1, (1,), 0), 60.0)
    assert models.candidates == (1,)
    assert record.counts.messages == {}
    again.end()


def test_fitting_process__ends_with_whoever_asked(make_plan):
    process = FittingProcess(make_plan({"seconds": [1000.0]}).work)
    child = psutil.Process(process._process.pid)
    process._pipe.close()
    wait_until(
        lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE,
        what="the end of the process",
    )
    process._process.wait()


def test_plan__says_that_a_limit_depends_on_the_machine(make_plan):
    said = " ".join(repr(make_plan({"seconds": [0.0]})).split())
    assert "depends on the machine" in said
    with pytest.raises(ValueError, match="`fit_timeout`"):
        make_plan({"seconds": [0.0]}, fit_timeout=0.0)
