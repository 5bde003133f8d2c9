"""Projection on probability simplices."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
