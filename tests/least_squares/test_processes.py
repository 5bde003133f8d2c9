"""Streamed least squares in other processes, with stretches as long as they are."""

import dask.array as da
import numpy as np
import pytest

from dsel.least_squares import StreamedLeastSquaresSearch


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])
def test_fit__other_processes_give_the_same_digits(penalty, processes):
    random = da.random.default_rng(0)
    X = random.uniform(-2, 2, (140_000, 3), chunks=(20_000, 3))
    y = da.sin(X[:, 0]) + random.standard_normal(140_000, chunks=20_000)
    search = StreamedLeastSquaresSearch(
        [1.0], [1e-3, 1.0], n_centers=30, penalty=penalty, fit_intercept=True,
        random_state=0,
    )  # fmt: skip
    local = search.fit(X, y).results_["loo_losses"]
    coefficients = search.best_estimator_.dual_coef_
    with processes.as_current():
        remote = search.fit(X, y).results_["loo_losses"]
    np.testing.assert_array_equal(local, remote)
    np.testing.assert_array_equal(coefficients, search.best_estimator_.dual_coef_)
