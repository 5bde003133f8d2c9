"""Streamed least squares: the same numbers as in memory, in two passes."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
    kmeans_centers,
    two_passes,
)
from dsel.least_squares import streamed as streamed_search
from dsel.least_squares.closed_form import (
    gcv_losses,
    leave_one_out_losses,
    solve_dual,
)
from dsel.least_squares.kernel import gaussian_kernel
from dsel.least_squares.streamed import labeled_pool
from tests.least_squares.designs import spectrum_of

WIDTHS = [0.5, 1.5]
LAMS = np.array([1e-3, 1e-1, 10.0])
both_penalties = pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])
with_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning")
@parametrize_with_checks(
    [StreamedLeastSquaresSearch([5.0], [0.1], n_centers=50, random_state=0, n_jobs=1)]
)
def test_search__passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def table(rng):
    X = rng.uniform(-2, 2, (311, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(311)
    return X, y


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(streamed_search, "STRETCH_ROWS", 60)
    monkeypatch.setattr(streamed_search, "BLOCK_NBYTES", 8 * 20 * 25)


def searched(X, y, centers, **options):
    search = StreamedLeastSquaresSearch(
        WIDTHS, LAMS, centers=centers, n_jobs=2, **options
    )
    return search.fit(X, y)


@with_intercept
def test_count_losses__equal_the_dual_closed_form(rng, fit_intercept):
    design = rng.standard_normal((50, 7))
    y = rng.standard_normal((50, 2)) + 3.0
    dual = solve_dual(spectrum_of(design), y, LAMS, fit_intercept=fit_intercept)
    moments = two_passes.count_moments(design[:20], y[:20]) + two_passes.count_moments(
        design[20:], y[20:]
    )
    thin = two_passes.solve_moments(moments, LAMS, fit_intercept=fit_intercept)
    losses = two_passes.count_losses(thin, design, y)
    np.testing.assert_allclose(
        losses.loo, leave_one_out_losses(dual).sum(axis=0), rtol=1e-9
    )
    np.testing.assert_allclose(
        two_passes.gcv_losses(thin, losses), gcv_losses(dual), rtol=1e-9
    )


def test_solve_moments__without_regularization_uses_the_pseudo_inverse(rng):
    design = rng.standard_normal((30, 4))
    design = np.column_stack([design, design[:, 0]])
    y = rng.standard_normal((30, 1))
    thin = two_passes.solve_moments(
        two_passes.count_moments(design, y), np.array([0.0])
    )
    fitted = design @ thin.coefficients()[:, :, 0]
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(fitted, expected, atol=1e-10)


@both_penalties
@with_intercept
def test_fit__equals_the_fit_in_memory(table, penalty, fit_intercept):
    X, y = table
    centers = X[::16]
    search = searched(X, y, centers, penalty=penalty, fit_intercept=fit_intercept)
    model = KernelLeastSquares(
        **search.best_params_,
        penalty=penalty,
        fit_intercept=fit_intercept,
        centers=centers,
    ).fit(X, y)
    np.testing.assert_allclose(search.predict(X), model.predict(X), rtol=1e-6)
    params = search.best_params_
    left_out = []
    for row in range(0, 311, 31):
        others = np.arange(311) != row
        refit = model.fit(X[others], y[others])
        left_out.append((y[row] - refit.predict(X[[row]])[0]) ** 2)
    design = gaussian_kernel(X, centers, width=params["width"])
    if penalty == "coefficients":
        dual = solve_dual(
            spectrum_of(design),
            y[:, np.newaxis],
            np.array([params["regularization"]]),
            fit_intercept=fit_intercept,
        )
        losses = leave_one_out_losses(dual)
        np.testing.assert_allclose(losses[::31, 0], left_out, rtol=1e-6)
        np.testing.assert_allclose(search.choice_.estimate, losses.mean(), rtol=1e-8)
    assert search.choice_.estimate == pytest.approx(np.mean(left_out), rel=1.0)


def test_fit__dask_chunks_give_the_numbers_of_arrays(table):
    X, y = table
    centers = kmeans_centers(X, 15, random_state=0)
    whole = searched(X, y, centers).results_["loo_losses"]
    for chunks in (311, 100, 17):
        lazy = searched(
            da.from_array(X, chunks=(chunks, 1)), da.from_array(y, chunks=71), centers
        )
        np.testing.assert_allclose(lazy.results_["loo_losses"], whole, rtol=1e-10)


def test_fit__takes_dask_frames_and_lists_of_targets(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b"])
    expected = searched(X, y, X[:10]).results_["loo_losses"]
    lazy = dd.from_pandas(frame, npartitions=3)
    for targets in (dd.from_pandas(pd.Series(y), npartitions=2), y.tolist()):
        found = searched(lazy, targets, X[:10]).results_["loo_losses"]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_fit__threads_and_order_change_no_digit(table):
    X, y = table
    lazy = da.from_array(X, chunks=(40, 2))
    results = [
        StreamedLeastSquaresSearch(WIDTHS, LAMS, centers=X[:10], n_jobs=n)
        .fit(lazy, y)
        .results_["loo_losses"]
        .values
        for n in (1, 2, 3)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@both_penalties
def test_fit__targets_far_from_0_have_the_estimates_of_others(table, penalty):
    X, y = table
    options = {"penalty": penalty, "fit_intercept": True}
    near = searched(X, y, X[:20], **options)
    stamps = searched(X, y + 1.7e9, X[:20], **options)
    found, expected = (s.results_["loo_losses"] for s in (stamps, near))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(stamps.predict(X) - 1.7e9, near.predict(X), atol=2e-6)


def test_fit__draws_centers_from_the_rows(table):
    X, y = table
    options = {"n_centers": 12, "random_state": 3}
    one = StreamedLeastSquaresSearch(WIDTHS, LAMS, **options).fit(X, y)
    lazy = da.from_array(X, chunks=(50, 2))
    two = StreamedLeastSquaresSearch(WIDTHS, LAMS, **options).fit(lazy, y)
    assert one.centers_.shape == (12, 2)
    np.testing.assert_array_equal(one.centers_, two.centers_)
    assert {tuple(row) for row in one.centers_} <= {tuple(row) for row in X}


def test_fit__takes_several_outputs(table):
    X, y = table
    both = searched(X, np.column_stack([y, 2 * y]), X[:12])
    single = searched(X, y, X[:12])
    np.testing.assert_allclose(
        both.results_["loo_losses"], 5 * single.results_["loo_losses"], rtol=1e-9
    )
    assert both.predict(X).shape == (311, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "kfold"}, "`criterion` must be one of 'loo', 'gcv'"),
        ({"n_centers": 0}, "`n_centers` must be >= 1, got 0"),
        ({"centers": np.zeros((3, 5))}, "`centers` must have the 2 columns of `X`"),
        ({"centers": np.full((3, 2), np.nan)}, "`centers` contains NaN"),
        ({"centers": np.zeros((0, 2))}, r"0 sample\(s\)"),
        ({"widths": [-1.0]}, "`widths` must be positive"),
    ],
)
def test_fit__refuses_what_cannot_be_searched(table, options, message):
    grid = {"widths": WIDTHS, "regularizations": LAMS, "n_centers": 10}
    with pytest.raises(ValueError, match=message):
        StreamedLeastSquaresSearch(**(grid | options)).fit(*table)


def test_labeled_pool__wants_as_many_targets_as_rows(table):
    X, y = table
    with pytest.raises(ValueError, match=r"`y` must have its rows.*\(311, 2\)"):
        labeled_pool(X, y[:-1])


@pytest.mark.cluster
def test_fit__a_cluster_gives_the_same_digits(table):
    from distributed import Client

    X, y = table
    lazy = da.from_array(X, chunks=(40, 2))
    local = searched(lazy, y, X[:10]).results_["loo_losses"]
    with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=2):
        remote = searched(lazy, y, X[:10]).results_["loo_losses"]
    np.testing.assert_array_equal(local, remote)


def test_fit__numbers_of_cores_give_the_same_digits(rng):
    X, y = rng.uniform(-2, 2, (301, 24)), rng.standard_normal(301)
    found = []
    for n_cores in (1, 2):
        with threadpool_limits(n_cores):
            search = searched(X, y, X[:150], penalty="rkhs")
        found.append(search.results_["loo_losses"])
    np.testing.assert_array_equal(*found)


def test_fit__forgets_the_names_of_an_earlier_table(table):
    X, y = table
    search = StreamedLeastSquaresSearch([1.0], [0.1], n_centers=5, random_state=0)
    search.fit(pd.DataFrame(X).add_prefix("x"), y)
    search.fit(da.from_array(X, chunks=(50, -1)), y)
    assert search.predict(X[:3]).shape == y[:3].shape


@pytest.mark.parametrize("search", [LeastSquaresSearch, StreamedLeastSquaresSearch])
def test_fit__refuses_masked_targets(table, search):
    X, y = table
    masked = np.ma.masked_array(y, mask=np.arange(y.size).reshape(y.shape) == 3)
    with pytest.raises(ValueError, match="row 3 is masked"):
        search([1.0], [0.1]).fit(X, masked)
