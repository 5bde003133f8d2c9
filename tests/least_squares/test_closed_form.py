"""Closed forms of least squares against refits in extended precision."""

import numpy as np
import pytest

from dsel.least_squares.closed_form import (
    block_residuals,
    decompose_gram,
    gaussian_gram,
    gcv_losses,
    leave_one_out_residuals,
    solve_dual,
    whitening,
)
from dsel.least_squares.two_passes import (
    count_moments,
    solve_moments,
)

LAMS = np.array([1e-8, 1e-3, 1.0])
both_penalties = pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])
with_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


def loo_losses(solution):
    return np.square(leave_one_out_residuals(solution)).sum(axis=(0, 1))


def tolerances(gram, penalty):
    """How far sums of squares may be from exact refits, for each lam, on any machine.

    A decomposition is off by up to n eps ||K||, beside lam for the RKHS penalty and
    beside its root for the other one, whose M is K^2. The factor is for the number of
    such terms in a residual.
    """
    off = len(gram) * np.finfo(float).eps * np.linalg.norm(gram, 2)
    return 1e-11 + 10 * off / (LAMS if penalty == "rkhs" else np.sqrt(LAMS))


def long_solve(matrix, values):
    """Gauss elimination with pivots in extended precision, which LAPACK lacks."""
    matrix, values = matrix.copy(), values.copy()
    n = len(matrix)
    for i in range(n):
        pivot = i + np.argmax(abs(matrix[i:, i]))
        matrix[[i, pivot]], values[[i, pivot]] = matrix[[pivot, i]], values[[pivot, i]]
        factors = matrix[i + 1 :, i : i + 1] / matrix[i, i]
        matrix[i + 1 :] -= factors * matrix[i]
        values[i + 1 :] -= factors * values[i]
    for i in reversed(range(n)):
        values[i] = (values[i] - matrix[i, i + 1 :] @ values[i + 1 :]) / matrix[i, i]
    return values


def refit_residuals(matrix, y, lam, rows, *, fit_intercept):
    """Residuals on `rows` of the dual model trained on the other rows."""
    others = np.setdiff1d(np.arange(len(y)), rows)
    n = len(others)
    system = np.zeros((n + 1, n + 1), np.longdouble)
    system[:n, :n] = matrix[np.ix_(others, others)] + lam * np.eye(n)
    system[n, :n] = system[:n, n] = fit_intercept
    system[n, n] = not fit_intercept
    values = np.zeros((n + 1, y.shape[1]), np.longdouble)
    values[:n] = y[others]
    solved = long_solve(system, values)
    return y[rows] - matrix[np.ix_(rows, others)] @ solved[:n] - solved[n]


def long_matrix(gram, penalty):
    gram = gram.astype(np.longdouble)
    return gram @ gram if penalty == "coefficients" else gram


@pytest.fixture(params=[0.4, 10.0], ids=["medium", "wide"])
def problem(rng, request):
    X = rng.uniform(-1.5, 1.5, (23, 1))
    y = np.column_stack([np.sin(3 * X), np.cos(X)])
    gram = gaussian_gram(X, width=request.param)
    return gram, y + 0.2 * rng.standard_normal(y.shape)


@both_penalties
@with_intercept
@pytest.mark.parametrize("n_blocks", [23, 5])
def test_residuals__equal_refits(problem, penalty, fit_intercept, n_blocks, rng):
    gram, y = problem
    spectrum = decompose_gram(gram, penalty=penalty)
    solution = solve_dual(spectrum, y, LAMS, fit_intercept=fit_intercept)
    matrix, alone = long_matrix(gram, penalty), leave_one_out_residuals(solution)
    sums = np.zeros((2, len(LAMS)))
    for rows in np.array_split(rng.permutation(len(y)), n_blocks):
        found = alone[rows] if len(rows) == 1 else block_residuals(solution, rows)
        expected = [
            refit_residuals(matrix, y, lam, rows, fit_intercept=fit_intercept)
            for lam in LAMS
        ]
        sums[0] += np.square(found).sum(axis=(0, 1))
        sums[1] += np.square(expected).sum(axis=(1, 2)).astype(float)
    assert (abs(sums[0] / sums[1] - 1) < tolerances(gram, penalty)).all()


@both_penalties
@with_intercept
def test_gcv_losses__equal_the_definition_by_the_hat_matrix(
    problem, penalty, fit_intercept
):
    gram, y = problem
    n, lam = len(y), 0.1
    matrix = np.asarray(long_matrix(gram, penalty), float)
    if fit_intercept:  # a column that costs nothing
        matrix = matrix + 1e9
    hat = np.linalg.solve(matrix + lam * np.eye(n), matrix).T
    expected = n**2 * np.square(y - hat @ y).sum() / np.trace(np.eye(n) - hat) ** 2
    spectrum = decompose_gram(gram, penalty=penalty)
    solution = solve_dual(spectrum, y, np.array([lam]), fit_intercept=fit_intercept)
    np.testing.assert_allclose(gcv_losses(solution), expected, rtol=1e-5)


@both_penalties
@pytest.mark.parametrize("width", [0.3, 3.0, 300.0])
def test_closed_forms__stay_finite_at_tiny_regularizations(rng, penalty, width):
    X, y = rng.uniform(-1, 1, (60, 1)), rng.standard_normal((60, 1))
    spectrum = decompose_gram(gaussian_gram(X, width=width), penalty=penalty)
    solution = solve_dual(spectrum, y, np.array([1e-12]))
    assert np.isfinite(loo_losses(solution)).all()
    assert np.isfinite(gcv_losses(solution)).all()
    assert np.isfinite(block_residuals(solution, np.arange(7))).all()


def test_leave_one_out__without_regularization_uses_the_inverse(rng):
    gram = gaussian_gram(rng.uniform(-9, 9, (8, 1)), width=0.5)
    y = rng.standard_normal((8, 1))
    inverse = np.linalg.inv(gram)
    solution = solve_dual(decompose_gram(gram, penalty="rkhs"), y, np.array([0.0]))
    expected = inverse @ y[:, 0] / np.diag(inverse)
    np.testing.assert_allclose(
        leave_one_out_residuals(solution)[:, 0, 0], expected, rtol=1e-6
    )


def test_two_passes__without_regularization_use_the_pseudo_inverse(rng):
    design = rng.standard_normal((30, 4))
    design = np.column_stack([design, design[:, 0]])
    y = rng.standard_normal((30, 1))
    thin = solve_moments(count_moments(design, y), 1, np.array([0.0]))
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(
        design @ thin.coefficients[:, :, 0], expected, atol=1e-10
    )


@pytest.mark.parametrize(("width", "expected"), [(1e-200, np.eye(3)), (1e200, 1.0)])
def test_gaussian_gram__has_exact_limits(width, expected):
    rows = np.array([[0.0], [1.0], [3.0]])
    np.testing.assert_array_equal(
        gaussian_gram(rows, width=width), np.broadcast_to(expected, (3, 3))
    )


def test_whitening__drops_the_null_space_of_duplicate_centers(rng):
    centers = rng.standard_normal((6, 3))
    root, gram = whitening(centers, width=0.8), gaussian_gram(centers, width=0.8)
    np.testing.assert_allclose(root @ root.T @ gram, np.eye(6), atol=1e-10)
    assert whitening(centers[[0, 0, 1]], width=0.8).shape == (3, 2)
