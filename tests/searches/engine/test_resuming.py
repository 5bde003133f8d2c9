"""What was counted is never counted again, and every road ends at the same cube."""

import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import dsel
from dsel.errors import StoreMismatchError
from dsel.searches import execute, plan_search
from tests.executors import Killed, faulty_threads

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [1e-4, 1e-3, 1e-2]}
TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def make_plan(digits, estimator=None, grid=GRID, n_labeled=300, **options):
    X, y = digits
    settings = {"cv": 5, "delta": 0.1, "random_state": 0} | options
    return plan_search(
        estimator or SVC(),
        grid,
        X[:n_labeled],
        y[:n_labeled],
        X[400:],
        **{"criterion": "cv_bound"} | settings,
    )


def execute_until(plan, out, n_tasks):
    """Run until `n_tasks` tasks were taken, then die."""
    client = faulty_threads(n_threads=2, killed_after=n_tasks)
    with pytest.raises(Killed):
        execute(plan, client, out=out)


def execute_and_tell(plan, out):
    """Run, and return the cube and the jobs of all fits."""
    ran = []
    found = execute(plan, faulty_threads(ran.append), out=out).results
    fits = (task for task in ran if task.key.startswith("fit-"))
    return found, [job for task in fits for job in task.arguments[0]]


def assert_counts_equal(grown, whole):
    """Compare counts and bounds; but the ledger knows what was added later."""
    xr.testing.assert_equal(grown.drop_vars(TIMES), whole.drop_vars(TIMES))


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("n_tasks", [1, 3, 5])
def test_execute__a_killed_run_goes_on_to_the_same_cube(
    digits, tmp_path, prune, n_tasks
):
    plan = make_plan(digits, prune=prune)
    whole = execute(plan, n_jobs=1).results.drop_vars(TIMES)
    execute_until(plan, tmp_path / "run", n_tasks)
    resumed = execute(plan, out=tmp_path / "run", n_jobs=2).results
    xr.testing.assert_equal(resumed.drop_vars(TIMES), whole)


def test_execute__a_finished_run_fits_nothing(digits, tmp_path):
    plan, ran = make_plan(digits), []
    first = execute(plan, out=tmp_path / "run").results
    second = execute(plan, faulty_threads(ran.append), out=tmp_path / "run").results
    assert ran == []
    xr.testing.assert_equal(first, second)
    xr.testing.assert_equal(dsel.open_results(tmp_path / "run").load(), first)


def test_execute__a_larger_grid_finds_its_old_cells(digits, tmp_path):
    model = LogisticRegression(max_iter=5000)
    small = make_plan(digits, model, {"C": [0.01]}, prune=False)
    large = make_plan(digits, model, {"C": [0.01, 0.1]}, prune=False)
    execute(small, out=tmp_path / "run")
    grown, jobs = execute_and_tell(large, tmp_path / "run")
    assert {job.group for job in jobs} == {1}
    assert_counts_equal(grown, execute(large).results)
    assert not dsel.select(grown).certificate.certified


def one_kernel(digits, *C):
    return make_plan(digits, grid={"C": list(C), "gamma": [1e-3]}, prune=False)


def test_execute__a_denser_grid_of_one_kernel_fits_new_candidates_only(
    digits, tmp_path
):
    execute(one_kernel(digits, 0.1, 10.0), out=tmp_path / "run")
    plan = one_kernel(digits, 0.01, 0.1, 1.0, 10.0)
    grown, jobs = execute_and_tell(plan, tmp_path / "run")
    assert {job.candidates for job in jobs} == {(0, 2)}
    assert len(jobs) == len(plan.scheme.splits)
    assert_counts_equal(grown, execute(plan).results)


def test_execute__models_that_were_lost_are_fitted_without_their_neighbours(
    digits, tmp_path
):
    small = one_kernel(digits, 10.0)
    execute_until(small, tmp_path / "run", len(small.scheme.splits))
    plan = one_kernel(digits, 0.1, 1.0, 10.0)
    grown, jobs = execute_and_tell(plan, tmp_path / "run")
    assert {job.candidates for job in jobs} == {(0, 1), (2,)}
    assert len(jobs) == 2 * len(plan.scheme.splits)
    assert_counts_equal(grown, execute(plan).results)


def test_execute__refuses_the_store_of_other_data(digits, tmp_path):
    execute(make_plan(digits), out=tmp_path / "run")
    with pytest.raises(StoreMismatchError, match="labeled"):
        execute(make_plan(digits, n_labeled=299), out=tmp_path / "run")


def test_cube__does_not_depend_on_threads_or_order(digits):
    plan = make_plan(digits)
    cubes = [execute(plan, n_jobs=n).results.drop_vars(TIMES) for n in (1, 2, 4)]
    for cube in cubes[1:]:
        xr.testing.assert_equal(cube, cubes[0])


def test_execute__keeps_the_model_of_the_last_run(digits, tmp_path):
    model = LogisticRegression(max_iter=5000)
    plans = [make_plan(digits, model, {"C": [C]}, prune=False) for C in (0.01, 0.1)]
    for plan in (plans[0], plans[1], plans[0], plans[1]):
        found = execute(plan, out=tmp_path / "run", with_model=True).model
        assert plan.axes.params(0) == {"C": found.C}
