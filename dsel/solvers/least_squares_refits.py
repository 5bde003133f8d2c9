"""Held-out residuals by training again: slow, and what the closed forms must equal."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def refitted_residuals(
    matrix: Floats,
    y: Floats,
    regularizations: Floats,
    rows: NDArray[np.int64],
    *,
    fit_intercept: bool = False,
) -> Floats:
    """Return e_T of models trained on the rows outside T, one linear system each.

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
