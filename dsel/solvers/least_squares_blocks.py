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
        roots = np.sqrt(solution.inverse[order[n_null:], column])
        scaled = block[:, n_null:] * roots
        inner = scaled @ scaled.T
        if n_null:
            inner += null / lam
        yield int(column), inner


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
