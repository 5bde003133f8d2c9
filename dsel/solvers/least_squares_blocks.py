"""k-fold cross-validation of least squares: block residuals and fold models.

The letters, formulas (*) and (**) and their proofs stand in
`dsel.solvers.least_squares`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from dsel.solvers.least_squares import UNDEFINED, DualSolution, apply_inverse

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

NEGLIGIBLE = 1e-12
"""Share of lam below which an eigenvalue changes nothing that is promised."""


@dataclass(frozen=True)
class DualModels:
    """The models of all lam trained without some rows."""

    dual: Floats
    """beta, shape (n, n_outputs, n_lam), zero on the rows left out."""
    intercept: Floats
    """Shape (n_outputs, n_lam); zero where there is none."""


def block_residuals(solution: DualSolution, rows: Rows) -> Floats:
    """Return e_T = (G_TT)^-1 (G y)_T for the rows T left out together.

    Parameters
    ----------
    solution
        G y of all rows.
    rows
        T: not empty, and with an intercept not all rows.

    Returns
    -------
    ndarray
        Shape (len(rows), n_outputs, n_lam); inf where the model is not defined.
    """
    is_limit = solution.is_limit
    residuals = np.empty_like(solution.values[rows])
    for column, inner in _blocks(solution, rows):
        if solution.ones is not None:
            # The block of G~ instead of G.
            ones = solution.ones[:, column]
            inner -= np.outer(ones[rows], ones[rows] / ones.sum())
        values = solution.values[rows, :, column]
        residuals[:, :, column] = _solve(inner, values, is_limit=is_limit[column])
    return residuals


def _blocks(solution: DualSolution, rows: Rows) -> Iterator[tuple[int, Floats]]:
    """Yield G_TT = Q_T diag(r) Q_T' for every lam, the smallest first, and its place.

    Where mu is nothing beside lam, r = 1 / lam: these columns of Q_T are multiplied
    once for all larger lam, which for wide kernels is most of the work.
    """
    sizes = abs(solution.spectrum.values)
    order = np.argsort(sizes)
    sizes, block = sizes[order], solution.spectrum.vectors[np.ix_(rows, order)]
    null, n_null = np.zeros((len(rows), len(rows))), 0
    for column in np.argsort(solution.regularizations):
        lam = solution.regularizations[column]
        start, n_null = n_null, int(np.searchsorted(sizes, NEGLIGIBLE * lam))
        null += block[:, start:n_null] @ block[:, start:n_null].T
        # As a square, so that the block is symmetric to the last digit.
        roots = np.sqrt(solution.inverse[order[n_null:], column])
        scaled = block[:, n_null:] * roots
        inner = scaled @ scaled.T
        if n_null:
            inner += null / lam
        yield int(column), inner


NO_ROWS: Rows = np.array([], np.int64)


def dual_models(
    solution: DualSolution, rows: Rows = NO_ROWS, residuals: Floats | None = None
) -> DualModels:
    """Return beta_(-T) = G y~ and the intercepts, for all lam at once.

    Parameters
    ----------
    solution
        G y of all rows.
    rows
        T; empty for the models trained on all rows.
    residuals
        e_T of `block_residuals`; None where T is empty.
    """
    vectors = solution.spectrum.vectors
    rotated = solution.rotated[:, :, np.newaxis]
    if residuals is not None:
        n_outputs, n_lam = residuals.shape[1:]
        # y~ differs from y by e_T on T: Q'y~ = z - Q_T' e_T.
        moved = vectors[rows].T @ residuals.reshape(len(rows), n_outputs * n_lam)
        rotated = rotated - moved.reshape(-1, n_outputs, n_lam)
    dual = apply_inverse(vectors, solution.inverse, rotated)
    intercept = np.zeros(dual.shape[1:])
    if solution.ones is not None:
        # (1'G y~) / (1'G 1), of the targets less their shift.
        intercept = dual.sum(axis=0) / solution.ones.sum(axis=0)
        dual = dual - solution.ones[:, np.newaxis, :] * intercept
        intercept = intercept + solution.shift[:, np.newaxis]
    # Zero by (**), but for rounding.
    dual[rows] = 0.0
    return DualModels(dual, intercept)


def _solve(inner: Floats, values: Floats, *, is_limit: bool) -> Floats:
    """Solve with a positive definite block, else by least squares."""
    if is_limit and np.linalg.eigvalsh(inner)[0] < UNDEFINED:
        return np.full_like(values, np.inf)
    _, solved, info = lapack.dposv(inner, values)
    if info != 0:
        # Not positive definite to rounding: the solution of least norm.
        solved = np.linalg.lstsq(inner, values, rcond=None)[0]
    return np.asarray(solved)


def refitted_residuals(
    matrix: Floats,
    y: Floats,
    regularizations: Floats,
    rows: Rows,
    *,
    fit_intercept: bool = False,
) -> Floats:
    """Return e_T of models trained on the rows outside T, one linear system each.

    Slow: what the closed forms must equal.

    Parameters
    ----------
    matrix
        M, shape (n, n); the letters are those of `dsel.solvers.least_squares`.
    y
        Targets, shape (n, n_outputs).
    regularizations
        lam > 0, shape (n_lam,).
    rows
        T.
    fit_intercept
        Whether the model has an unpenalised constant.

    Returns
    -------
    ndarray
        Shape (len(rows), n_outputs, n_lam).
    """
    others = np.setdiff1d(np.arange(len(y)), rows)
    n = len(others)
    # Rows of M + lam I, bordered by the condition that the dual vector sums to 0;
    # without an intercept the last row says b = 0.
    system = np.zeros((n + 1, n + 1))
    system[n, :n] = system[:n, n] = fit_intercept
    system[n, n] = not fit_intercept
    values = np.vstack([y[others], np.zeros((1, y.shape[1]))])
    residuals = np.empty((len(rows), y.shape[1], len(regularizations)))
    for column, lam in enumerate(regularizations):
        system[:n, :n] = matrix[np.ix_(others, others)]
        system[np.arange(n), np.arange(n)] += lam
        solved = np.linalg.solve(system, values)
        fitted = matrix[np.ix_(rows, others)] @ solved[:n] + solved[n]
        residuals[:, :, column] = y[rows] - fitted
    return residuals
