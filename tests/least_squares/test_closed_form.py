"""Closed forms of least squares against refits and definitions, and their limits."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, LeaveOneOut, TimeSeriesSplit

from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)
from dsel.least_squares.closed_form import (
    block_residuals,
    decompose_gram,
    gaussian_gram,
    gcv_losses,
    leave_one_out_residuals,
    solve_dual,
    whitening,
)

LAMS = np.array([1e-8, 1e-3, 1.0])


def tolerances(gram, penalty):
    """How far sums of squares may be from those of refits, on any machine.

    Both are off by up to n eps ||K||, beside lam for the RKHS penalty and beside its
    root for the other one, whose M is K^2. The factor is for the number of such terms
    in a residual.
    """
    off = len(gram) * np.finfo(float).eps * np.linalg.norm(gram, 2)
    return 1e-10 + 100 * off / (LAMS if penalty == "rkhs" else np.sqrt(LAMS))


@pytest.fixture(params=[0.4, 10.0], ids=["medium", "wide"])
def problem(rng, request):
    X = rng.uniform(-1.5, 1.5, (23, 1))
    y = np.column_stack([np.sin(3 * X), np.cos(X)]) + 0.2 * rng.standard_normal((23, 2))
    return X, y, request.param, gaussian_gram(X, width=request.param)


@pytest.mark.parametrize("cv", [KFold(5, shuffle=True, random_state=0),
                                TimeSeriesSplit(3)])  # fmt: skip
def test_losses__equal_those_of_refits(problem, penalty, fit_intercept, cv):
    X, y, width, gram = problem
    options = {"penalty": penalty, "fit_intercept": fit_intercept}
    # The centres stay where they are only if they are penalised one by one.
    fixed = {"centers": X} if penalty == "coefficients" else {}
    cube = LeastSquaresSearch([width], LAMS, cv=cv, **options).fit(X, y).results_
    for name, splitter in (("loo_loss_sum", LeaveOneOut()), ("fold_loss_sum", cv)):
        found = cube[name].values.reshape(len(LAMS), -1).sum(axis=1)
        expected = np.zeros(len(LAMS))
        for train, test in splitter.split(X):
            for place, lam in enumerate(LAMS):
                model = KernelLeastSquares(width, lam, **options, **fixed)
                gap = model.fit(X[train], y[train]).predict(X[test]) - y[test]
                expected[place] += np.square(gap).sum()
        assert (abs(found / expected - 1) < tolerances(gram, penalty)).all()


def test_gcv__equals_the_definition_by_the_hat_matrix(problem, penalty, fit_intercept):
    X, y, width, gram = problem
    n, lam = len(y), 0.1
    matrix = gram @ gram if penalty == "coefficients" else gram
    if fit_intercept:  # a column that costs nothing
        matrix = matrix + 1e9
    hat = np.linalg.solve(matrix + lam * np.eye(n), matrix).T
    expected = n**2 * np.square(y - hat @ y).sum() / np.trace(np.eye(n) - hat) ** 2
    options = {"penalty": penalty, "fit_intercept": fit_intercept, "cv": None}
    cube = LeastSquaresSearch([width], [lam], **options).fit(X, y).results_
    np.testing.assert_allclose(cube["gcv_loss_sum"].item(), expected, rtol=1e-5)


@pytest.mark.parametrize("width", [0.3, 3.0, 300.0])
def test_closed_forms__stay_finite_at_tiny_regularizations(rng, penalty, width):
    X, y = rng.uniform(-1, 1, (60, 1)), rng.standard_normal((60, 1))
    spectrum = decompose_gram(gaussian_gram(X, width=width), penalty=penalty)
    solution = solve_dual(spectrum, y, np.array([1e-12]))
    assert np.isfinite(leave_one_out_residuals(solution)).all()
    assert np.isfinite(gcv_losses(solution)).all()
    [[residuals]] = block_residuals(solution, [np.arange(7)])
    assert np.isfinite(residuals).all()


def test_losses__without_regularization_use_the_inverse(rng):
    X, y = rng.uniform(-9, 9, (8, 1)), rng.standard_normal(8)
    inverse = np.linalg.inv(gaussian_gram(X, width=0.5))
    search = LeastSquaresSearch([0.5], [0.0], penalty="rkhs", cv=None).fit(X, y)
    expected = np.square(inverse @ y / np.diag(inverse)).sum()
    np.testing.assert_allclose(
        search.results_["loo_loss_sum"].item(), expected, rtol=1e-6
    )


def test_streamed__without_regularization_uses_the_pseudo_inverse(rng):
    X, y = rng.uniform(-2, 2, (30, 1)), rng.standard_normal(30)
    centers = np.array([[-1.0], [0.0], [1.0], [0.0]])
    search = StreamedLeastSquaresSearch([0.7], [0.0], centers=centers).fit(X, y)
    design = np.exp(-np.square(X - centers.T) / (2 * 0.7**2))
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(search.predict(X), expected, atol=1e-9)


@pytest.mark.parametrize(("width", "expected"), [(1e-200, np.eye(3)), (1e200, 1.0)])
def test_gaussian_gram__has_exact_limits(width, expected):
    gram = gaussian_gram(np.array([[0.0], [1.0], [3.0]]), width=width)
    np.testing.assert_array_equal(gram, np.broadcast_to(expected, (3, 3)))


def test_whitening__drops_the_null_space_of_duplicate_centers(rng):
    centers = rng.standard_normal((6, 3))
    root, gram = whitening(centers, width=0.8), gaussian_gram(centers, width=0.8)
    np.testing.assert_allclose(root @ root.T @ gram, np.eye(6), atol=1e-10)
    assert whitening(centers[[0, 0, 1]], width=0.8).shape == (3, 2)


@pytest.mark.parametrize("n_folds", [3, 5, 12], ids=["formed once", "5", "in blocks"])
def test_block_residuals__of_pairs_of_folds_equal_those_of_refits(
    rng, fit_intercept, n_folds
):
    X, y = rng.uniform(-2, 2, (60, 2)), rng.standard_normal((60, 1))
    regularizations, fold_of = (
        np.array([1e-3, 0.1, 10.0]),
        rng.permutation(60) % n_folds,
    )
    pairs = list(combinations(range(n_folds), 2))[:10]
    blocks = [np.flatnonzero(np.isin(fold_of, pair)) for pair in pairs]
    spectrum = decompose_gram(gaussian_gram(X, width=0.7), penalty="rkhs")
    solution = solve_dual(spectrum, y, regularizations, fit_intercept=fit_intercept)
    for lam, found in zip(
        regularizations, block_residuals(solution, blocks), strict=True
    ):
        model = KernelLeastSquares(
            0.7, lam, penalty="rkhs", fit_intercept=fit_intercept
        )
        for rows, residuals in zip(blocks, found, strict=True):
            train = np.setdiff1d(np.arange(60), rows)
            expected = y[rows] - model.fit(X[train], y[train]).predict(X[rows])
            np.testing.assert_allclose(residuals, expected, rtol=0, atol=1e-10)


def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40), 0.8


def flowers():
    X = load_iris().data[::4]
    return X[:, :3], X[:, 3], 2.0


def patients():
    X, y = load_diabetes(return_X_y=True)
    return X[:60] / X.std(axis=0), y[:60], 3.0


@pytest.mark.parametrize("table", [waves, flowers, patients])
def test_fold_sums__of_each_fold_equal_those_of_kernel_ridge(table):
    X, y, width = table()
    cv, lams = KFold(4, shuffle=True, random_state=1), [1e-3, 0.1, 10.0]
    search = LeastSquaresSearch([width], lams, penalty="rkhs", cv=cv)
    sums = search.fit(X, y).results_["fold_loss_sum"].values.reshape(len(lams), 4)
    for sums_of_lam, lam in zip(sums, lams, strict=True):
        model = KernelRidge(alpha=lam, kernel="rbf", gamma=1 / (2 * width**2))
        expected = [
            np.square(model.fit(X[train], y[train]).predict(X[test]) - y[test]).sum()
            for train, test in cv.split(X)
        ]
        np.testing.assert_allclose(sums_of_lam, expected, rtol=1e-7)
