"""k-fold cross-validation of least squares: block residuals and fold models.

The letters, formulas (*) and (**) and their proofs stand in
`dsel.solvers.least_squares`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from dsel.solvers.least_squares import UNDEFINED, DualSolution, apply_inverse

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


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
    block = np.ascontiguousarray(solution.spectrum.vectors[rows])
    is_limit = solution.is_limit
    residuals = np.empty_like(solution.values[rows])
    for column, inverse in enumerate(solution.inverse.T):
        scaled = block * np.sqrt(inverse)
        inner = scaled @ scaled.T
        if solution.ones is not None:
            ones = solution.ones[:, column]
            inner -= np.outer(ones[rows], ones[rows] / ones.sum())
        values = solution.values[rows, :, column]
        residuals[:, :, column] = _solve(inner, values, is_limit=is_limit[column])
    return residuals


def dual_models(
    solution: DualSolution, rows: Rows, residuals: Floats | None = None
) -> DualModels:
    """Return beta_(-T) = G y~ and the intercepts, for all lam at once.

    Parameters
    ----------
    solution
        G y of all rows.
    rows
        T; empty for the models trained on all rows.
    residuals
        e_T of `block_residuals`; computed where not given.
    """
    if residuals is None and len(rows):
        residuals = block_residuals(solution, rows)
    vectors = solution.spectrum.vectors
    rotated = solution.rotated[:, :, np.newaxis]
    if residuals is not None and len(rows):
        n_outputs, n_lam = residuals.shape[1:]
        moved = vectors[rows].T @ residuals.reshape(len(rows), n_outputs * n_lam)
        rotated = rotated - moved.reshape(-1, n_outputs, n_lam)
    dual = apply_inverse(vectors, solution.inverse, rotated)
    intercept = np.zeros(dual.shape[1:])
    if solution.ones is not None:
        intercept = dual.sum(axis=0) / solution.ones.sum(axis=0)
        dual = dual - solution.ones[:, np.newaxis, :] * intercept
        intercept = intercept + solution.shift[:, np.newaxis]
    dual[rows] = 0.0
    return DualModels(dual, intercept)


def _solve(inner: Floats, values: Floats, *, is_limit: bool) -> Floats:
    """Solve with a positive definite block, else by least squares."""
    if is_limit and np.linalg.eigvalsh(inner)[0] < UNDEFINED:
        return np.full_like(values, np.inf)
    _, solved, info = lapack.dposv(inner, values)
    if info != 0:
        solved = np.linalg.lstsq(inner, values, rcond=None)[0]
    return np.asarray(solved)
