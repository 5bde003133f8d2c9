"""Closed forms of least squares against refits in extended precision."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies

from dsel.least_squares.closed_form import (
    block_residuals,
    gcv_losses,
    leave_one_out_losses,
    leave_one_out_residuals,
    solve_dual,
)
from dsel.least_squares.kernel import Spectrum, decompose_gram, gaussian_gram
from tests.least_squares.designs import spectrum_of

LAMS = np.array([1e-8, 1e-3, 1.0])


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


@pytest.fixture(params=[0.4, 10.0], ids=["medium", "wide"])
def problem(rng, request):
    X = rng.uniform(-1.5, 1.5, (23, 1))
    y = np.column_stack([np.sin(3 * X), np.cos(X)])
    gram = gaussian_gram(X, width=request.param)
    return gram, y + 0.2 * rng.standard_normal(y.shape)


def long_matrix(gram, penalty):
    gram = gram.astype(np.longdouble)
    return gram @ gram if penalty == "coefficients" else gram


both_penalties = pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])
with_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


def relative_error(losses, expected):
    return np.asarray(abs(losses - expected) / expected, np.float64)


@both_penalties
@with_intercept
def test_leave_one_out_losses__equal_refits(problem, penalty, fit_intercept):
    gram, y = problem
    spectrum = decompose_gram(gram, penalty=penalty)
    solution = solve_dual(spectrum, y, LAMS, fit_intercept=fit_intercept)
    losses = leave_one_out_losses(solution).mean(axis=0)
    matrix = long_matrix(gram, penalty)
    for lam, loss, tolerance in zip(
        LAMS, losses, tolerances(gram, penalty), strict=True
    ):
        residuals = [
            refit_residuals(matrix, y, lam, [j], fit_intercept=fit_intercept)
            for j in range(len(y))
        ]
        expected = np.square(residuals).sum() / len(y)
        assert relative_error(loss, expected) < tolerance


@both_penalties
@with_intercept
def test_block_residuals__equal_refits(problem, penalty, fit_intercept, rng):
    gram, y = problem
    spectrum = decompose_gram(gram, penalty=penalty)
    solution = solve_dual(spectrum, y, LAMS, fit_intercept=fit_intercept)
    matrix = long_matrix(gram, penalty)
    for rows in np.array_split(rng.permutation(len(y)), 5):
        losses = np.square(block_residuals(solution, rows)).sum(axis=(0, 1))
        for lam, loss, tolerance in zip(
            LAMS, losses, tolerances(gram, penalty), strict=True
        ):
            expected = np.square(
                refit_residuals(matrix, y, lam, rows, fit_intercept=fit_intercept)
            ).sum()
            assert relative_error(loss, expected) < tolerance


@settings(max_examples=30)
@given(
    n=strategies.integers(5, 30),
    n_folds=strategies.integers(2, 5),
    n_outputs=strategies.integers(1, 3),
    width=strategies.floats(0.05, 5.0),
    fit_intercept=strategies.booleans(),
    penalty=strategies.sampled_from(["coefficients", "rkhs"]),
    seed=strategies.integers(0, 2**32),
)
def test_block_residuals__equal_refits_for_any_fold(
    n, n_folds, n_outputs, width, fit_intercept, penalty, seed
):
    rng = np.random.default_rng(seed)
    gram = gaussian_gram(rng.uniform(-1, 1, (n, 2)), width=width)
    y = rng.standard_normal((n, n_outputs))
    lams = np.array([1e-3, 0.1])
    solution = solve_dual(
        decompose_gram(gram, penalty=penalty), y, lams, fit_intercept=fit_intercept
    )
    matrix = gram @ gram if penalty == "coefficients" else gram
    rows = np.array_split(rng.permutation(n), n_folds)[0]
    found = block_residuals(solution, rows)
    for column, lam in enumerate(lams):
        expected = refit_residuals(matrix, y, lam, rows, fit_intercept=fit_intercept)
        np.testing.assert_allclose(
            found[:, :, column], np.asarray(expected, float), rtol=1e-6, atol=1e-8
        )


@with_intercept
@pytest.mark.parametrize("shape", [(15, 4), (6, 9)])
def test_leave_one_out_residuals__hold_for_linear_ridge(rng, fit_intercept, shape):
    design, y = rng.standard_normal(shape), rng.standard_normal((shape[0], 1))
    solution = solve_dual(spectrum_of(design), y, LAMS[1:], fit_intercept=fit_intercept)
    residuals = leave_one_out_residuals(solution)
    matrix = (design @ design.T).astype(np.longdouble)
    for column, lam in enumerate(LAMS[1:]):
        expected = [
            refit_residuals(matrix, y, lam, [j], fit_intercept=fit_intercept)[0]
            for j in range(len(y))
        ]
        np.testing.assert_allclose(
            residuals[:, :, column], np.asarray(expected, float), rtol=1e-8, atol=1e-9
        )


def test_block_residuals__of_one_row_are_leave_one_out(problem):
    gram, y = problem
    solution = solve_dual(decompose_gram(gram, penalty="rkhs"), y, LAMS)
    np.testing.assert_allclose(
        block_residuals(solution, np.array([4]))[0],
        leave_one_out_residuals(solution)[4],
        rtol=1e-7,
    )


@both_penalties
@with_intercept
def test_solve_dual__is_the_model_of_all_rows(problem, penalty, fit_intercept):
    gram, y = problem
    solution = solve_dual(
        decompose_gram(gram, penalty=penalty), y, LAMS[1:], fit_intercept=fit_intercept
    )
    matrix = np.asarray(long_matrix(gram, penalty), np.float64)
    fitted = np.einsum("ij,jcl->icl", matrix, solution.values) + solution.intercept
    shrunk = y[:, :, np.newaxis] - LAMS[1:] * solution.values
    np.testing.assert_allclose(fitted, shrunk, rtol=1e-8, atol=1e-9)


@both_penalties
def test_gcv_losses__equal_leave_one_out_for_a_circulant_kernel(rng, penalty):
    angles = 2 * np.pi * np.arange(16) / 16
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    y = rng.standard_normal((16, 2))
    spectrum = decompose_gram(gaussian_gram(circle, width=0.5), penalty=penalty)
    solution = solve_dual(spectrum, y, LAMS[1:])
    np.testing.assert_allclose(
        gcv_losses(solution), leave_one_out_losses(solution).sum(axis=0), rtol=1e-9
    )


@with_intercept
def test_gcv_losses__equal_the_definition_by_the_hat_matrix(problem, fit_intercept):
    gram, y = problem
    n, lam = len(y), 0.1
    hat = np.column_stack([unit_fit(gram, i, lam, fit_intercept) for i in range(n)])
    expected = n**2 * np.square(y - hat @ y).sum() / np.trace(np.eye(n) - hat) ** 2
    solution = solve_dual(
        decompose_gram(gram, penalty="rkhs"),
        y,
        np.array([lam]),
        fit_intercept=fit_intercept,
    )
    np.testing.assert_allclose(gcv_losses(solution), expected, rtol=1e-10)


def unit_fit(gram, i, lam, fit_intercept):
    """Column i of the hat matrix: the fit to a target that is 1 at row i."""
    n = len(gram)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = gram + lam * np.eye(n)
    system[n, :n] = system[:n, n] = fit_intercept
    system[n, n] = not fit_intercept
    solved = np.linalg.solve(system, np.eye(n + 1)[i])
    return gram @ solved[:n] + solved[n]


@both_penalties
@pytest.mark.parametrize("width", [0.3, 3.0, 300.0])
def test_closed_forms__stay_finite_at_tiny_regularizations(rng, penalty, width):
    X, y = rng.uniform(-1, 1, (60, 1)), rng.standard_normal((60, 1))
    spectrum = decompose_gram(gaussian_gram(X, width=width), penalty=penalty)
    solution = solve_dual(spectrum, y, np.array([1e-12]))
    assert np.isfinite(leave_one_out_losses(solution)).all()
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


def test_leave_one_out__without_regularization_and_singular_is_infinite():
    gram = gaussian_gram(np.array([[0.0], [0.0], [4.0]]), width=1.0)
    y = np.array([[1.0], [2.0], [0.5]])
    solution = solve_dual(decompose_gram(gram, penalty="rkhs"), y, np.array([0.0, 1.0]))
    losses = leave_one_out_losses(solution).mean(axis=0)
    assert np.isinf(losses[0])
    assert np.isfinite(losses[1])


def test_leave_one_out__of_a_projection_is_ordinary_least_squares(rng):
    design, y = rng.standard_normal((12, 3)), rng.standard_normal((12, 1))
    solution = solve_dual(spectrum_of(design), y, np.array([0.0]))
    for j in range(12):
        others = np.arange(12) != j
        coef = np.linalg.lstsq(design[others], y[others], rcond=None)[0]
        residual = leave_one_out_residuals(solution)[j, 0, 0]
        np.testing.assert_allclose(residual, (y[j] - design[j] @ coef)[0], rtol=1e-9)


def test_leave_one_out__duplicate_rows_are_harmless(rng):
    X = np.repeat(rng.uniform(-1, 1, (6, 1)), 3, axis=0)
    y = rng.standard_normal((18, 1))
    gram = gaussian_gram(X, width=0.5)
    solution = solve_dual(decompose_gram(gram, penalty="rkhs"), y, np.array([0.1]))
    expected = [
        refit_residuals(gram, y, 0.1, [j], fit_intercept=False)[0, 0] for j in range(18)
    ]
    np.testing.assert_allclose(
        leave_one_out_residuals(solution)[:, 0, 0], np.float64(expected), rtol=1e-9
    )


def test_leave_one_out__constant_targets_with_an_intercept_are_met_exactly(rng):
    gram = gaussian_gram(rng.uniform(-1, 1, (9, 1)), width=0.5)
    solution = solve_dual(
        decompose_gram(gram, penalty="rkhs"),
        np.full((9, 1), 0.1),
        LAMS,
        fit_intercept=True,
    )
    assert not leave_one_out_losses(solution).any()


def test_leave_one_out__of_the_narrowest_kernel_is_the_mean_square(rng):
    y = rng.standard_normal((7, 1))
    spectrum = Spectrum(np.eye(7), np.ones(7))
    losses = leave_one_out_losses(solve_dual(spectrum, y, LAMS))
    np.testing.assert_allclose(losses, np.broadcast_to(y**2, (7, 3)), rtol=1e-14)
