"""Streamed least squares: the same numbers as in memory, in two passes."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

from dsel.errors import StoreMismatchError
from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)
from tests.executors import Killed

WIDTHS = [0.5, 1.5]
LAMS = np.array([1e-3, 1e-1, 10.0])


@pytest.fixture
def table(rng):
    X = rng.uniform(-2, 2, (311, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(311)
    return X, y


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for name in ("SMALL_SLICE_NBYTES", "SMALL_BLOCK_NBYTES"):
        monkeypatch.setattr(f"dsel.data.pool.{name}", 1000)
    monkeypatch.setattr("dsel.least_squares.streamed.STREAM_BLOCK_NBYTES", 8 * 20 * 25)


def searched(X, y, centers, **options):
    options = {"n_jobs": 2, "centers": centers} | options
    return StreamedLeastSquaresSearch(WIDTHS, LAMS, **options).fit(X, y)


def losses(search):
    return search.results_["loo_loss_sum"].values


def test_fit__equals_the_fit_in_memory(table, penalty, fit_intercept):
    X, y = table[0], 3.0 + table[1]
    options = {"penalty": penalty, "fit_intercept": fit_intercept}
    search = StreamedLeastSquaresSearch([0.5], [1e-3], centers=X[::16], **options)
    model = KernelLeastSquares(0.5, 1e-3, centers=X[::16], **options).fit(X, y)
    np.testing.assert_allclose(search.fit(X, y).predict(X), model.predict(X), rtol=1e-6)
    few = X[:60], y[:60]
    streamed = StreamedLeastSquaresSearch(WIDTHS, LAMS, centers=X[:60], **options)
    whole = LeastSquaresSearch(WIDTHS, LAMS, cv=None, **options).fit(*few)
    found, expected = streamed.fit(*few).results_, whole.results_
    np.testing.assert_allclose(found.estimate, expected.estimate, rtol=1e-5)
    np.testing.assert_allclose(found.fold_loss_sum, expected.fold_loss_sum, rtol=1e-5)


def test_fit__dask_chunks_and_frames_give_the_numbers_of_arrays(table):
    X, y = table
    centers = X[:15]
    whole = losses(searched(X, y, centers))
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3)
    series = dd.from_pandas(pd.Series(y), npartitions=2)
    for rows, targets in (
        (da.from_array(X, chunks=(311, 1)), da.from_array(y, chunks=71)),
        (da.from_array(X, chunks=(17, 1)), y),
        (frame, series),
        (frame, y.tolist()),
    ):
        found = losses(searched(rows, targets, centers))
        np.testing.assert_allclose(found, whole, rtol=1e-10)


def test_fit__threads_and_cores_change_no_digit(table, penalty):
    X, y = table
    lazy = da.from_array(X, chunks=(40, 2))
    found = []
    for n in (1, 2, 3):
        with threadpool_limits(n):
            search = searched(lazy, y, X[:150], n_jobs=n, penalty=penalty)
        found.append(losses(search))
    assert (found[0] == found).all()


def test_fit__targets_far_from_0_have_the_estimates_of_others(table, penalty):
    X, y = table
    options = {"penalty": penalty, "fit_intercept": True}
    near = searched(X, y, X[:20], **options)
    stamps = searched(X, y + 1.7e9, X[:20], **options)
    np.testing.assert_allclose(losses(stamps), losses(near), rtol=1e-6)
    np.testing.assert_allclose(stamps.predict(X) - 1.7e9, near.predict(X), atol=2e-6)


def test_fit__draws_centers_from_the_rows(table):
    X, y = table
    options = {"n_centers": 12, "random_state": 3}
    one = searched(X, y, None, **options)
    two = searched(da.from_array(X, chunks=(50, 2)), y, None, **options)
    assert one.centers_.shape == (12, 2)
    np.testing.assert_array_equal(one.centers_, two.centers_)
    assert {tuple(row) for row in one.centers_} <= {tuple(row) for row in X}


def test_fit__takes_several_outputs(table):
    X, y = table
    both = searched(X, np.column_stack([y, 2 * y]), X[:12])
    single = searched(X, y, X[:12])
    np.testing.assert_allclose(losses(both), 5 * losses(single), rtol=1e-9)
    assert both.predict(X).shape == (311, 2)


def test_fit__forgets_the_names_of_an_earlier_table(table):
    X, y = table
    search = StreamedLeastSquaresSearch([1.0], [0.1], n_centers=5, random_state=0)
    search.fit(pd.DataFrame(X).add_prefix("x"), y)
    search.fit(da.from_array(X, chunks=(50, -1)), y)
    assert search.predict(X[:3]).shape == y[:3].shape


N_RECORDS = 1 + 2 * 2
"""The centres; of each width the moments and losses."""


@pytest.mark.parametrize("n_records", [0, 1, 2, 4])
def test_fit__a_killed_run_goes_on_to_the_same_model(
    table, tmp_path, records_left, n_records, penalty
):
    X, y = da.from_array(table[0], chunks=(10, 2)), table[1]
    options = {"penalty": penalty, "n_centers": 8, "random_state": 0}
    whole = searched(X, y, None, **options)
    records_left(n_records)
    with pytest.raises(Killed):
        StreamedLeastSquaresSearch(WIDTHS, LAMS, **options).fit(X, y, out=tmp_path)
    records_left(N_RECORDS - n_records)
    resumed = StreamedLeastSquaresSearch(WIDTHS, LAMS, **options)
    resumed.fit(X, y, out=tmp_path)
    xr.testing.assert_equal(resumed.results_, whole.results_)
    np.testing.assert_array_equal(resumed.predict(table[0]), whole.predict(table[0]))


def test_fit__refuses_the_store_of_other_rows(table, tmp_path):
    X, y = table

    def fit(X, y, **options):
        search = StreamedLeastSquaresSearch(WIDTHS, LAMS, random_state=0, **options)
        search.fit(X, y, out=tmp_path)

    fit(X, y, n_centers=8)
    with pytest.raises(StoreMismatchError, match="labeled"):
        fit(X[1:], y[1:], n_centers=8)
    with pytest.raises(StoreMismatchError, match="centers"):
        fit(X, y, n_centers=9)


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_fit__other_processes_give_the_same_digits(penalty, processes, monkeypatch):
    monkeypatch.undo()  # blocks as long as they are
    random = da.random.default_rng(0)
    X = random.uniform(-2, 2, (140_000, 3), chunks=(20_000, 3))
    y = da.sin(X[:, 0]) + random.standard_normal(140_000, chunks=20_000)
    search = StreamedLeastSquaresSearch(
        [1.0], [1e-3, 1.0], n_centers=30, penalty=penalty, fit_intercept=True,
        random_state=0,
    )  # fmt: skip
    local = losses(search.fit(X, y))
    coefficients = search.best_estimator_.dual_coef_
    with processes.as_current():
        remote = losses(search.fit(X, y))
    np.testing.assert_array_equal(local, remote)
    np.testing.assert_array_equal(coefficients, search.best_estimator_.dual_coef_)
