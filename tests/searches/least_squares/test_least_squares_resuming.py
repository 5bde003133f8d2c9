"""A least-squares search that was interrupted goes on to the same cube."""

import shutil
import threading

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from dsel.errors import StoreMismatchError
from dsel.results import open_results
from dsel.runtime.local import LocalExecutor
from dsel.searches import (
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
    keeping,
    select_least_squares,
)
from dsel.searches.least_squares import passes as least_squares_passes
from dsel.searches.least_squares import plan as least_squares_plan

WIDTHS = [0.3, 1.0, 2.0]
LAMS = [1e-3, 1e-1, 1.0]


class Killed(BaseException):
    """Ends a run in the middle, as a signal would."""


@pytest.fixture
def notes_left(monkeypatch):
    """Let a run die when it notes more than so many results."""
    note = keeping.Notebook.note

    def allow(n_notes):
        left = iter(range(n_notes))

        def dying(self, key, found):
            if next(left, None) is None:
                raise Killed
            note(self, key, found)

        monkeypatch.setattr(keeping.Notebook, "note", dying)

    return allow


@pytest.fixture
def table(rng):
    X = rng.uniform(-2, 2, (90, 2))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(90)


def search(widths=WIDTHS, **options):
    options = {"random_state": 0, "n_jobs": 1, "cv": 5} | options
    return LeastSquaresSearch(widths, LAMS, **options)


def without_times(cube):
    return cube.drop_vars("full_fit_seconds")


@pytest.mark.parametrize("n_notes", [0, 1, 2])
def test_search__a_killed_run_goes_on_to_the_same_cube(
    table, tmp_path, notes_left, n_notes
):
    whole = search().fit(*table).results_
    notes_left(n_notes)
    with pytest.raises(Killed):
        search().fit(*table, out=tmp_path)
    notes_left(len(WIDTHS) - n_notes)
    resumed = search().fit(*table, out=tmp_path)
    xr.testing.assert_equal(without_times(resumed.results_), without_times(whole))


def test_search__a_finished_run_is_opened_again(table, tmp_path, notes_left):
    first = search().fit(*table, out=tmp_path)
    notes_left(0)
    second = search().fit(*table, out=tmp_path)
    xr.testing.assert_equal(first.results_, second.results_)
    stored = open_results(tmp_path).load()
    assert select_least_squares(stored) == first.choice_


def test_search__more_widths_cost_only_themselves(table, tmp_path, notes_left):
    whole = search().fit(*table).results_
    search(WIDTHS[:2]).fit(*table, out=tmp_path)
    notes_left(1)
    grown = search().fit(*table, out=tmp_path).results_
    xr.testing.assert_equal(without_times(grown), without_times(whole))


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"penalty": "rkhs"}, "penalty"),
        ({"cv": 4}, "trainings"),
        ({"fit_intercept": True}, "fit_intercept"),
        ({"criterion": "kfold_refits"}, "folds"),
        ({"random_state": 1}, "seed"),
    ],
)
def test_search__refuses_the_store_of_another(table, tmp_path, options, difference):
    search().fit(*table, out=tmp_path)
    with pytest.raises(StoreMismatchError, match=difference):
        search(**options).fit(*table, out=tmp_path)


def test_search__refuses_the_store_of_other_targets(table, tmp_path):
    X, y = table
    search().fit(X, y, out=tmp_path)
    with pytest.raises(StoreMismatchError, match="targets"):
        search().fit(X, 2 * y, out=tmp_path)


@pytest.fixture
def small_stretches(monkeypatch):
    monkeypatch.setattr(least_squares_passes, "SPAN_ROWS", 10)
    monkeypatch.setattr(least_squares_passes, "STRETCH_SPANS", 4)


def streamed(**options):
    options = {"random_state": 0, "n_jobs": 2, "n_centers": 8} | options
    return StreamedLeastSquaresSearch(WIDTHS[:2], LAMS, **options)


@pytest.mark.usefixtures("small_stretches")
@pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])
@pytest.mark.parametrize("n_notes", [0, 1, 3, 8])
def test_streamed__a_killed_run_goes_on_to_the_same_model(
    table, tmp_path, notes_left, n_notes, penalty
):
    X, y = da.from_array(table[0], chunks=(10, 2)), table[1]
    whole = streamed(penalty=penalty).fit(X, y)
    notes_left(n_notes)
    with pytest.raises(Killed):
        streamed(penalty=penalty).fit(X, y, out=tmp_path)
    notes_left(1 + 2 * 2 * 3 - n_notes)
    resumed = streamed(penalty=penalty).fit(X, y, out=tmp_path)
    xr.testing.assert_equal(resumed.results_, whole.results_)
    np.testing.assert_array_equal(resumed.predict(table[0]), whole.predict(table[0]))


@pytest.mark.usefixtures("small_stretches")
def test_streamed__refuses_the_store_of_other_rows(table, tmp_path):
    X, y = table
    streamed().fit(X, y, out=tmp_path)
    with pytest.raises(StoreMismatchError, match="labeled"):
        streamed().fit(X[1:], y[1:], out=tmp_path)
    with pytest.raises(StoreMismatchError, match="centers"):
        streamed(n_centers=9).fit(X, y, out=tmp_path)


def test_search__whose_place_is_removed_ends_before_its_tasks_do(
    table, tmp_path, monkeypatch
):
    over, in_vain, judge = threading.Event(), [], least_squares_plan.judge_width

    def lasting(work, payloads, *arguments):
        if arguments[0] == WIDTHS[0]:
            shutil.rmtree(tmp_path / "run")
            return judge(work, payloads, *arguments)
        in_vain.append(not over.wait(20.0))
        raise RuntimeError("nobody waits for this task")

    monkeypatch.setattr(least_squares_plan, "judge_width", lasting)
    monkeypatch.setattr(LocalExecutor, "close", lambda self: over.set())
    with pytest.raises(OSError, match=r"cannot write to .*choose another `out`"):
        search(n_jobs=2).fit(*table, out=tmp_path / "run")
    assert True not in in_vain
