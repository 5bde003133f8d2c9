"""The promised agreement of closed forms and refits, for few rows and for thousands."""

import numpy as np
import pytest

from dsel.kernels.eigen import decompose_gram, gaussian_gram
from dsel.solvers.least_squares import leave_one_out_residuals, solve_dual
from dsel.solvers.least_squares_blocks import block_residuals
from tests.solvers.exact_refits import ExactRefits

PROMISED = {1e-8: 1e-8, 1e-6: 1e-8, 1e-3: 1e-10, 1.0: 1e-10}
LAMS = np.array(list(PROMISED))

both_penalties = pytest.mark.parametrize("penalty", ["coefficients", "rkhs"])


def table(n, n_columns):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_columns))
    y = np.sin(X[:, 0]) * X[:, -1] + 0.1 * rng.standard_normal(n)
    return X, y, np.array_split(rng.permutation(n), 10)


def assert_promise_holds(X, y, folds, rows, *, width, penalty):
    gram = gaussian_gram(X, width=width)
    refits = ExactRefits(gram, y, penalty)
    for column, (lam, tolerance) in enumerate(PROMISED.items()):
        fold_losses = [np.square(refits.residuals(fold, lam)).sum() for fold in folds]
        single = [refits.residuals(rows[i : i + 1], lam)[0] for i in range(len(rows))]
        expected = np.array([*fold_losses, np.square(single).sum()])
        for lams in (LAMS, LAMS[column:]):  # with smaller ones in the grid, and without
            spectrum = decompose_gram(gram, penalty=penalty, least=lams.min())
            solution = solve_dual(spectrum, y[:, np.newaxis], lams)
            place = list(lams).index(lam)
            parts = [block_residuals(solution, fold)[:, :, place] for fold in folds]
            parts.append(leave_one_out_residuals(solution)[rows, :, place])
            losses = np.array([np.square(part).sum() for part in parts])
            np.testing.assert_allclose(losses, expected, rtol=tolerance)


@both_penalties
@pytest.mark.parametrize("width", [0.01, 0.1, 1.0, 10.0])
def test_closed_forms__equal_refits_of_hundreds_of_rows(width, penalty):
    X, y, folds = table(150, 1)
    rows = np.arange(0, 150, 15)
    assert_promise_holds(X, y, folds, rows, width=width, penalty=penalty)


@pytest.mark.slow
@pytest.mark.timeout(600)
@both_penalties
@pytest.mark.parametrize("width", [0.5, 1.4, 10.0])
def test_closed_forms__equal_refits_of_thousands_of_rows(width, penalty):
    X, y, folds = table(2000, 5)
    rows = np.array([0, 1400])
    assert_promise_holds(X, y, folds[:1], rows, width=width, penalty=penalty)


@both_penalties
def test_exact_refits__are_what_elimination_finds(penalty, rng):
    gram = gaussian_gram(rng.uniform(-1, 1, (12, 1)), width=1.0)
    y, rows = rng.standard_normal(12), np.array([0, 5])
    others = np.setdiff1d(np.arange(12), rows)
    matrix = gram @ gram if penalty == "coefficients" else gram
    system = matrix[np.ix_(others, others)] + 0.1 * np.eye(10)
    fitted = matrix[np.ix_(rows, others)] @ np.linalg.solve(system, y[others])
    found = ExactRefits(gram, y, penalty).residuals(rows, 0.1)
    np.testing.assert_allclose(found, y[rows] - fitted, rtol=1e-11)
