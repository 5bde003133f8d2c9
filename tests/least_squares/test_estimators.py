"""The estimators: scikit-learn's contract, and known equals of the models."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsel.errors import GuaranteeWarning
from dsel.least_squares import (
    KernelLeastSquares,
    KernelLeastSquaresClassifier,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning")
@parametrize_with_checks(
    [
        KernelLeastSquares(),
        KernelLeastSquaresClassifier(),
        KernelLeastSquares(penalty="rkhs", fit_intercept=True),
        KernelLeastSquaresClassifier(penalty="rkhs", n_centers=20, random_state=0),
        LeastSquaresSearch([1.0, 3.0], [0.01, 0.1], cv=None, n_jobs=1),
        LeastSquaresSearch(
            [1.0], [0.1], penalty="rkhs", fit_intercept=True, cv=2, random_state=0
        ),
        StreamedLeastSquaresSearch(
            [5.0], [0.1], n_centers=50, random_state=0, n_jobs=1
        ),
    ]
)
def test_estimators__pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def table(rng):
    X = rng.uniform(-2, 2, (40, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_rkhs__is_kernel_ridge(table, make):
    X, y = table
    theirs = KernelRidge(alpha=0.01, kernel="rbf", gamma=1 / (2 * 0.7**2)).fit(X, y)
    ours = KernelLeastSquares(0.7, 0.01, penalty="rkhs").fit(make(X), y)
    found, expected = ours.predict(make(X[::-1] / 2)), theirs.predict(X[::-1] / 2)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_coefficients__are_ridge_on_the_kernel_columns(table, fit_intercept):
    X, y = table
    gram = rbf_kernel(X, gamma=1 / (2 * 0.7**2))
    ridge = Ridge(alpha=0.1, fit_intercept=fit_intercept, solver="svd").fit(gram, y)
    ours = KernelLeastSquares(0.7, 0.1, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(gram), rtol=1e-9)
    np.testing.assert_allclose(ours.dual_coef_, ridge.coef_, rtol=1e-8)


def test_centers__at_all_rows_are_the_default(table, penalty, fit_intercept):
    X, y = table
    settings = {"penalty": penalty, "fit_intercept": fit_intercept}
    default = KernelLeastSquares(0.5, 0.1, **settings).fit(X, y)
    fixed = KernelLeastSquares(0.5, 0.1, centers=X, **settings).fit(X, y)
    np.testing.assert_allclose(default.predict(X), fixed.predict(X), rtol=1e-7)


def test_n_centers__draws_rows_and_approaches_the_full_model(table, penalty):
    X, y = table
    model = KernelLeastSquares(
        1.0, 0.01, penalty=penalty, n_centers=30, random_state=0
    ).fit(X, y)
    assert model.dual_coef_.shape == (30,)
    assert {tuple(row) for row in model.centers_} <= {tuple(row) for row in X}
    full = KernelLeastSquares(1.0, 0.01, penalty=penalty).fit(X, y)
    assert np.median(np.abs(model.predict(X) - full.predict(X))) < 0.1


def test_predict__several_outputs_are_fitted_one_by_one(table):
    X, y = table
    both = KernelLeastSquares(fit_intercept=True).fit(X, np.column_stack([y, -3 * y]))
    one = KernelLeastSquares(fit_intercept=True).fit(X, -3 * y)
    assert both.predict(X).shape == (40, 2)
    np.testing.assert_allclose(both.predict(X)[:, 1], one.predict(X), rtol=1e-10)


def test_predict__works_in_blocks(table, monkeypatch):
    X, y = table
    model = KernelLeastSquares().fit(X, y)
    whole = model.predict(X)
    monkeypatch.setattr(
        "dsel.least_squares.estimators.PREDICT_BLOCK_NBYTES", 8 * 40 * 7
    )
    np.testing.assert_allclose(model.predict(X), whole, rtol=1e-12)


def test_fit__warns_of_regularizations_below_the_kernels_rounding(table):
    model = KernelLeastSquares(5.0, 1e-16, penalty="rkhs", fit_intercept=True)
    with pytest.warns(GuaranteeWarning, match="below the rounding of the kernel"):
        model.fit(*table)


def test_fit__without_regularization_interpolates():
    X, y = np.array([[0.0], [1.5], [4.0]]), np.array([1.0, -1.0, 2.0])
    model = KernelLeastSquares(regularization=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-10)


def test_fit__refuses_more_rows_than_memory_holds(monkeypatch):
    monkeypatch.setattr("dsel.least_squares.closed_form.MACHINE_MEMORY", 10_000)
    with pytest.raises(ValueError, match=r"30 rows.*n_centers"):
        KernelLeastSquares().fit(np.arange(30.0)[:, np.newaxis], np.arange(30.0))


def test_classifier__two_classes_are_the_sign_of_the_regression(table):
    X, y = table
    labels = np.where(y > 0, "up", "down")
    model = KernelLeastSquaresClassifier(0.5, 0.1, penalty="rkhs").fit(X, labels)
    regression = KernelLeastSquares(0.5, 0.1, penalty="rkhs")
    values = regression.fit(X, np.where(y > 0, 1.0, -1.0)).predict(X)
    np.testing.assert_allclose(model.decision_function(X), values, rtol=1e-12)
    assert (model.predict(X) == np.where(values > 0, "up", "down")).all()


@pytest.mark.parametrize(
    ("y", "fresh", "expected"),
    [
        ([3, 8], [[0.0], [1e9]], [3, 3]),
        (["b", "a", "c"], [[0.0], [1e9], [5.0]], ["a", "a", "c"]),
        ([7, 7, 7], [[0.0], [5.0]], [7, 7]),
    ],
    ids=["two", "three", "one"],
)
def test_classifier__ties_go_to_the_first_class(y, fresh, expected):
    X = np.array([[-1.0], [1.0], [5.0]])
    model = KernelLeastSquaresClassifier(penalty="rkhs").fit(X[: len(y)], y)
    assert model.predict(fresh).tolist() == expected
