"""The cube that a run returns: dimensions, coordinates, types, and its ways to disk."""

import json
from importlib.metadata import version

import numpy as np
import pytest
import xarray as xr
from sklearn.svm import SVC

import dsel
from tests.contract.runs import (
    DIGITS_GRID,
    TREES,
    choice_from,
    choice_of,
    digits,
    dimensions_of,
    results_of,
    run_search,
)

pytestmark = pytest.mark.contract

COUNTS = {
    "nested": {"fold_errors": ("C", "gamma", "fold"), "fold_rows": ("fold",)},
    "cv_bound": {
        "fold_errors": ("C", "gamma", "fold"),
        "fold_rows": ("fold",),
        "disagreements": ("C", "gamma", "fold"),
        "pool_rows": ("C", "gamma", "fold"),
    },
}


@pytest.fixture(scope="module", params=COUNTS)
def run(request):
    rows = digits(200)
    return run_search(SVC(), DIGITS_GRID, *rows, certificate=request.param, cv=5)


@pytest.fixture
def cube(run):
    return results_of(run)


def test_cube__has_a_dimension_for_each_parameter_and_no_others(run, cube):
    assert dimensions_of(run) == {"C": 4, "gamma": 4, "fold": 5} | {
        "criterion": cube.sizes["criterion"]
    }
    assert cube["C"].values.tolist() == DIGITS_GRID["C"]
    assert cube["gamma"].values.tolist() == DIGITS_GRID["gamma"]
    assert cube["fold"].values.tolist() == [0, 1, 2, 3, 4]
    assert cube["criterion"].values[0] in ("cv_error", "cv_bound")


def answers_of(cube):
    """Return in how many answers the errors of each fold were counted."""
    return cube["fold_answers"] if "fold_answers" in cube else cube["fold_rows"]


def test_cube__counts_are_whole_numbers_by_candidate_and_fold(run, cube):
    for name, dims in COUNTS[run.certificate].items():
        assert cube[name].dims == dims
        assert cube[name].dtype == np.float64
        assert (cube[name] == np.rint(cube[name])).all()
    assert cube["fold_rows"].sum() == 200
    assert (cube["fold_errors"] <= answers_of(cube)).all()


def test_cube__has_a_status_for_each_candidate_and_texts_where_one_failed(cube):
    assert cube["status"].dims == ("C", "gamma")
    assert cube["status"].dtype.kind == "i"
    assert (cube["status"] == 0).all()
    assert "message" not in cube


def test_cube__estimates_stand_by_criterion(run, cube):
    estimates = cube["estimate"]
    assert estimates.dims == ("criterion", "C", "gamma")
    assert estimates.dtype == np.float64
    error = (cube["fold_errors"] / answers_of(cube)).mean("fold")
    xr.testing.assert_allclose(estimates.sel(criterion="cv_error", drop=True), error)
    if run.certificate == "cv_bound":
        terms = cube["label_term"] + cube["disagreement_term"]
        both = [each.sel(criterion="cv_bound") for each in (terms, estimates)]
        xr.testing.assert_allclose(*both)


def test_cube__disagreements_are_counted_once_a_pool_row():
    rows = digits(200)
    run = run_search(SVC(), DIGITS_GRID, *rows, certificate="cv_bound", cv=5)
    cube = results_of(run)
    assert (cube["pool_rows"].sum("fold") == len(rows[2])).all()
    assert (cube["disagreements"] <= cube["pool_rows"]).all()
    assert int(cube["n_unlabeled"]) == 1597
    assert int(cube["n_labeled"]) == 200


def test_cube__pruned_candidates_keep_their_cells():
    rows = digits(200)
    options = {"certificate": "cv_bound", "cv": 5, "prune": True}
    cube = results_of(run_search(SVC(), DIGITS_GRID, *rows, **options))
    pruned = cube["status"] == 1
    assert pruned.any()
    assert cube["fold_errors"].sizes == {"C": 4, "gamma": 4, "fold": 5}
    assert cube["estimate"].sel(criterion="cv_bound").where(pruned).isnull().all()


def test_cube__kept_by_dsel_opens_as_zarr(cube, tmp_path):
    dsel.save_results(cube, tmp_path)
    [place] = (tmp_path / "cube").glob("*.zarr")
    opened = xr.open_zarr(place, consolidated=False).load()
    assert opened.equals(cube)
    assert opened["status"].where(opened["status"] == 0).notnull().all()


def test_cube__says_where_it_comes_from(cube):
    assert cube.attrs["seed"] == "7"
    assert cube.attrs["creation_library"] == "dsel"
    assert cube.attrs["version_scikit-learn"] == version("scikit-learn")
    assert json.loads(cube.attrs["classes"]) == [str(label) for label in range(10)]
    names = [each["name"] for each in json.loads(cube.attrs["assumptions"])]
    assert names == ["A1", "A3", "A4", "A5", "A7"]


def test_save_results__gives_back_the_same_cube(run, cube, tmp_path):
    dsel.save_results(cube, tmp_path / "cube")
    opened = dsel.open_results(tmp_path / "cube")
    assert opened.load().identical(cube)
    assert {name: opened[name].dtype for name in opened.variables} == {
        name: cube[name].dtype for name in cube.variables
    }
    assert choice_from(opened) == choice_of(run)


def test_save_results__replaces_the_cube_that_is_there(cube, tmp_path):
    dsel.save_results(cube.assign_attrs(seed="8"), tmp_path)
    dsel.save_results(cube, tmp_path)
    assert dsel.open_results(tmp_path).load().identical(cube)


def test_open_results__after_a_run_is_what_the_run_returned(tmp_path):
    rows = digits(200)
    run = run_search(*TREES, *rows, cv=3, out=tmp_path / "out")
    opened = dsel.open_results(tmp_path / "out")
    assert set(opened.data_vars) == set(results_of(run).data_vars)
    for name in opened.data_vars:
        assert opened[name].equals(results_of(run)[name]), name


def test_cube__of_a_list_has_one_dimension_of_candidates():
    grid = [{"C": [1.0, 8.0]}, {"kernel": ["linear"]}]
    run = run_search(SVC(), grid, *digits(200), certificate="cv_bound", cv=3)
    cube = results_of(run)
    assert cube["fold_errors"].dims == ("candidate", "fold")
    assert cube["candidate"].values.tolist() == [0, 1, 2]
    assert choice_of(run).candidate in (0, 1, 2)


def test_cube__grid_values_may_be_texts_and_none():
    grid = {"criterion": ["gini", "entropy"], "max_depth": [2, None]}
    run = run_search(TREES[0], grid, *digits(200), certificate="cv_bound", cv=3)
    cube = results_of(run)
    assert cube["fold_errors"].dims == ("param_criterion", "max_depth", "fold")
    assert set(choice_of(run).params) == {"criterion", "max_depth"}
    assert choice_of(run).params["criterion"] in ("gini", "entropy")


def test_accessor__selects_and_makes_a_table(run, cube):
    assert cube.dsel.select() == choice_of(run)
    table = cube.dsel.table()
    assert len(table) == 16
    assert {"C", "gamma", "status"} <= {*table.columns, *table.index.names}
