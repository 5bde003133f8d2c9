"""A least-squares search that was interrupted goes on to the same cube."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from dsel.errors import StoreMismatchError
from dsel.least_squares import (
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
    select_least_squares,
)
from dsel.least_squares import streamed as streamed_search
from dsel.least_squares.records import Records
from dsel.results import open_results
from tests.executors import Killed

WIDTHS = [0.3, 1.0, 2.0]
LAMS = [1e-3, 1e-1, 1.0]


@pytest.fixture
def records_left(monkeypatch):
    """Let a run die when it stores more than so many results."""
    keep = Records.keep

    def allow(n_records):
        left = iter(range(n_records))

        def dying(self, key, found):
            if next(left, None) is None:
                raise Killed
            keep(self, key, found)

        monkeypatch.setattr(Records, "keep", dying)

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


@pytest.mark.parametrize("n_records", [0, 1, 2])
def test_search__a_killed_run_goes_on_to_the_same_cube(
    table, tmp_path, records_left, n_records
):
    whole = search().fit(*table).results_
    records_left(n_records)
    with pytest.raises(Killed):
        search().fit(*table, out=tmp_path)
    records_left(len(WIDTHS) - n_records)
    resumed = search().fit(*table, out=tmp_path)
    xr.testing.assert_equal(without_times(resumed.results_), without_times(whole))


def test_search__a_finished_run_is_opened_again(table, tmp_path, records_left):
    first = search().fit(*table, out=tmp_path)
    records_left(0)
    second = search().fit(*table, out=tmp_path)
    xr.testing.assert_equal(first.results_, second.results_)
    stored = open_results(tmp_path).load()
    assert select_least_squares(stored) == first.choice_


def test_search__more_widths_cost_only_themselves(table, tmp_path, records_left):
    whole = search().fit(*table).results_
    search(WIDTHS[:2]).fit(*table, out=tmp_path)
    records_left(1)
    grown = search().fit(*table, out=tmp_path).results_
    xr.testing.assert_equal(without_times(grown), without_times(whole))


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"penalty": "rkhs"}, "penalty"),
        ({"cv": 4}, "splits"),
        ({"fit_intercept": True}, "fit_intercept"),
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
    monkeypatch.setattr(streamed_search, "STRETCH_ROWS", 40)


def streamed(**options):
    options = {"random_state": 0, "n_jobs": 2, "n_centers": 8} | options
    return StreamedLeastSquaresSearch(WIDTHS[:2], LAMS, **options)


@pytest.mark.usefixtures("small_stretches")
@pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])
@pytest.mark.parametrize("n_records", [0, 1, 3, 8])
def test_streamed__a_killed_run_goes_on_to_the_same_model(
    table, tmp_path, records_left, n_records, penalty
):
    X, y = da.from_array(table[0], chunks=(10, 2)), table[1]
    whole = streamed(penalty=penalty).fit(X, y)
    records_left(n_records)
    with pytest.raises(Killed):
        streamed(penalty=penalty).fit(X, y, out=tmp_path)
    records_left(1 + 2 * 2 * 3 - n_records)
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
