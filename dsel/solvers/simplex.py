"""Points on probability simplices: projection, and a quadratic's minimum."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ROUNDING = 1e-15
_RELATIVE_RIDGE = 1e-13


def project_to_simplex(values: ArrayLike) -> NDArray[np.float64]:
    r"""Return the point of the simplex that is nearest to each row.

    With a row :math:`v` sorted in descending order and
    :math:`\tau_j = (\sum_{l \le j} v_{(l)} - 1) / j`, the projection is
    :math:`\max(v - \tau_\rho, 0)` for the largest :math:`\rho` with
    :math:`v_{(\rho)} > \tau_\rho`.

    Parameters
    ----------
    values
        Rows to project, shape (n_rows, n_columns) with at least one column.

    Returns
    -------
    ndarray
        Nonnegative rows that sum to 1, same shape.

    Raises
    ------
    ValueError
        Where a value is not finite, or the array has not two dimensions.

    Examples
    --------
    >>> project_to_simplex([[0.6, 0.6], [5.0, 0.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"`values` must have rows and at least one column, got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ValueError("`values` must be finite, got NaN or infinity; clip them.")
    # Shifting a row does not move its projection, and keeps the sums exact.
    shifted = rows - rows.max(axis=1, keepdims=True)
    descending = -np.sort(-shifted, axis=1)
    thresholds = (np.cumsum(descending, axis=1) - 1.0) / np.arange(
        1, rows.shape[1] + 1, dtype=np.float64
    )
    # The inequality holds for a leading run of places: their number is rho.
    n_positive = np.count_nonzero(descending > thresholds, axis=1)
    chosen = np.take_along_axis(thresholds, n_positive[:, None] - 1, axis=1)
    return np.asarray(np.maximum(shifted - chosen, 0.0))


def minimize_quadratic_on_simplices(
    hessian: NDArray[np.float64],
    linear: NDArray[np.float64],
    start: NDArray[np.float64],
    *,
    parts: NDArray[np.intp],
    tol: float = 0.0,
) -> NDArray[np.float64]:
    r"""Minimise :math:`w'Hw/2 + c'w` over simplices side by side, by an active set.

    Parameters
    ----------
    hessian
        Positive semidefinite H, shape (n, n).
    linear
        Slope c at the origin, shape (n,).
    start
        Point to start from, its weights of each simplex adding up to 1, shape (n,).
    parts
        Which simplex each weight belongs to, 0 to P - 1, shape (n,).
    tol
        How far above its minimum the value may be.

    Returns
    -------
    ndarray
        Weights, those of each simplex adding up to 1. Where H is singular, those of
        about the least distance from `start`.

    Examples
    --------
    >>> H, c = np.diag([1.0, 1.0, 1.0]), np.array([0.0, 0.0, 9.0])
    >>> parts = np.array([0, 0, 0])
    >>> minimize_quadratic_on_simplices(H, c, np.ones(3) / 3, parts=parts)
    array([0.5, 0.5, 0. ])
    >>> parts = np.array([0, 0, 1])
    >>> minimize_quadratic_on_simplices(H, c, np.array([1.0, 0.0, 1.0]), parts=parts)
    array([0.5, 0.5, 1. ])
    """
    size = len(linear)
    scale = max(float(np.abs(np.diag(hessian)).max()), np.finfo(np.float64).tiny)
    # A tiny ridge makes equal vertices, which share one direction, harmless.
    matrix = hessian / scale + _RELATIVE_RIDGE * np.eye(size)
    # About the start: without curvature nothing but rounding would set the step.
    slope = linear / scale - _RELATIVE_RIDGE * start
    sums = (parts == np.arange(parts.max() + 1)[:, None]).astype(np.float64)
    negligible = max(tol / scale / len(sums), _ROUNDING)
    weights = start.astype(np.float64, copy=True)
    free = weights > 0.0
    for _ in range(10 * size + 20):
        target, multipliers = _equality_minimum(matrix, slope, sums, free)
        if (target[free] >= 0.0).all():
            weights = target
            reduced = matrix @ weights + slope - multipliers[parts]
            reduced[free] = 0.0
            lowest = np.zeros(len(sums))
            np.minimum.at(lowest, parts, reduced)
            # Some weight moved there gains no more than this multiplier.
            if lowest.min() >= -negligible:
                break
            # Those that would leave at once go one by one; the last one gains.
            free |= (reduced == lowest[parts]) & (reduced < -negligible)
        else:
            weights, free = _step_to_boundary(weights, target, free)
    return normalize_weights(weights, parts)


def normalize_weights(
    weights: NDArray[np.float64], parts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scale nonnegative weights so that those of each part add up to 1."""
    return np.asarray(weights / np.bincount(parts, weights)[parts])


def _equality_minimum(
    matrix: NDArray[np.float64],
    slope: NDArray[np.float64],
    sums: NDArray[np.float64],
    free: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimise over the free weights with sums of 1; also return the multipliers."""
    index = np.flatnonzero(free)
    size = len(index)
    block = np.zeros((size + len(sums),) * 2)
    block[:size, :size] = matrix[np.ix_(index, index)]
    # Karush-Kuhn-Tucker system of the weights that are not held at 0.
    block[size:, :size] = sums[:, index]
    block[:size, size:] = sums[:, index].T
    right = np.append(-slope[index], np.ones(len(sums)))
    try:
        solved = np.linalg.solve(block, right)
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(block, right, rcond=None)[0]
    target = np.zeros(len(slope))
    target[index] = solved[:size]
    return target, np.negative(solved[size:])


def _step_to_boundary(
    weights: NDArray[np.float64],
    target: NDArray[np.float64],
    free: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Go towards the target until the first free weight is 0, and fix that one."""
    falling = np.flatnonzero(free & (target < 0.0))
    # Part of the way at which each falling weight meets 0.
    lengths = weights[falling] / (weights[falling] - target[falling])
    blocking = int(np.argmin(lengths))
    moved = weights + lengths[blocking] * (target - weights)
    moved[falling[blocking]] = 0.0
    remaining = free.copy()
    remaining[falling[blocking]] = False
    return np.maximum(moved, 0.0), remaining
