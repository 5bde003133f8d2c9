"""Tasks that do not come back: tried again, until one candidate is found to fail."""

import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

from dsel.errors import ClusterLostError, FitFailedWarning
from dsel.searches import execute, plan_search
from dsel.searches.engine import fits
from tests.executors import faulty_threads


def jobs_of(task):
    """Return what a task fits; nothing of one that counts."""
    return task.arguments[0] if task.key.startswith("fit-") else []


class Deadly:
    """Dies, as a worker does, of one candidate a number of times."""

    def __init__(self, candidate, deaths):
        self.candidate, self.deaths, self.asked = candidate, deaths, []

    def __call__(self, task):
        jobs = jobs_of(task)
        self.asked += [job.candidates for job in jobs]
        if self.deaths and any(self.candidate in job.candidates for job in jobs):
            self.deaths -= 1
            raise ChildProcessError("the worker died")


@pytest.fixture
def plan(rng):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    grid = {"C": [0.1, 1.0, 10.0, 100.0]}
    return plan_search(
        SVC(gamma=0.5),
        grid,
        X[:60],
        y[:60],
        X[60:],
        cv=2,
        random_state=0,
        prune=False,
        criterion="cv_bound",
    )


def test_execute__a_candidate_that_kills_its_workers_fails_alone(plan):
    whole = execute(plan, n_jobs=1).results
    client = faulty_threads(Deadly(candidate=2, deaths=10**6))
    with pytest.warns(FitFailedWarning, match="ChildProcessError: the worker died"):
        found = execute(plan, client).results
    assert found.status.values.tolist() == [0, 0, 2, 0]
    others = {"C": [0, 1, 3]}
    xr.testing.assert_equal(found.disagreements[others], whole.disagreements[others])


class KilledWorker(Exception):  # noqa: N818
    """Named as Dask's own."""


class Killing:
    """Dies of some groups as a worker does that has too little memory."""

    def __init__(self, *groups):
        self.groups, self.n_deaths = groups, 0

    def __call__(self, task):
        if any(job.group in self.groups for job in jobs_of(task)):
            self.n_deaths += 1
            raise MemoryError("4 workers had died") from KilledWorker()


@pytest.fixture
def gammas(rng):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    grid = {"C": [1.0, 10.0], "gamma": 2.0 ** np.arange(-9, 1)}
    return plan_search(
        SVC(),
        grid,
        X[:60],
        y[:60],
        X[60:],
        cv=2,
        random_state=0,
        prune=False,
        criterion="cv_bound",
    )


def test_execute__ends_where_workers_die_of_whatever_they_are_given(gammas):
    killing = Killing(*range(10))
    with pytest.raises(
        ClusterLostError, match=r"die whatever they run.* at least 700 MiB"
    ):
        execute(gammas, faulty_threads(killing))
    assert killing.n_deaths < 20  # of 90 that would have to be waited for


def test_execute__goes_on_where_workers_die_of_one_group_only(gammas, monkeypatch):
    monkeypatch.setattr(fits, "DEATHS", 1)
    with pytest.warns(FitFailedWarning, match="2 of 20 candidates failed"):
        found = execute(gammas, faulty_threads(Killing(0))).results
    assert (found.status != 0).sum() == 2


@pytest.mark.filterwarnings("ignore::dsel.errors.FitFailedWarning")
def test_execute__goes_on_where_all_that_is_left_kills_workers(gammas, tmp_path):
    """What was done shows that workers have memory enough, in a run before this too."""
    client = faulty_threads(Killing(*range(1, 10)))
    for _ in range(2):
        found = execute(gammas, client, out=tmp_path / "run").results
        assert (found.status != 0).sum() == 18


def test_execute__a_model_that_cannot_be_fitted_again_is_an_error(plan):
    def refuse(task):
        if task.keeps_payload:  # the chosen model, fitted when the search is over
            raise ChildProcessError("the worker died")

    X, y = plan.work.X, plan.work.y
    alone = plan_search(SVC(), {"C": [1.0, 10.0]}, X, y, cv=2, random_state=0)
    expected = "candidate . was counted, but .* again: ChildProcessError: the worker"
    with pytest.raises(RuntimeError, match=expected):
        execute(alone, faulty_threads(refuse), with_model=True)


def test_execute__a_task_that_dies_once_costs_nothing_else(plan):
    whole = execute(plan, n_jobs=1).results
    deadly = Deadly(candidate=2, deaths=1)
    found = execute(plan, faulty_threads(deadly)).results
    xr.testing.assert_equal(found.disagreements, whole.disagreements)
    n_fits = sum(map(len, deadly.asked))
    splits = len(plan.scheme.splits)
    assert n_fits == plan.n_candidates * (splits + 1)  # one task again, no other


def test_execute__raises_at_once_where_failures_are_to_be_raised(plan):
    deadly = Deadly(candidate=2, deaths=10**6)
    with pytest.raises(ChildProcessError, match="the worker died"):
        execute(plan, faulty_threads(deadly), on_failure="raise")
    assert (2,) in deadly.asked
