"""Leave-one-out cross-validation of least squares, in closed form."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.criteria.losses import LossCriterion


def leave_one_out_error(
    loo_losses: ArrayLike, n_labeled: ArrayLike
) -> NDArray[np.float64]:
    r"""Mean squared residual of the models trained without one row, on that row.

    .. math:: \frac{1}{n} \sum_j (\hat f_j(x_j) - y_j)^2
              = \frac{1}{n} \|\tilde H^{-1} H y\|^2.

    Parameters
    ----------
    loo_losses
        Sum of the squared residuals, over rows and outputs.
    n_labeled
        Rows, :math:`n`, broadcast against `loo_losses`.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none. Its expectation is that of G + sigma^2 for training size n - 1,
    where G is the squared error against the target function.
    Assumes: i.i.d. inputs and zero-mean noise of equal variance, independent of all.
    Source: [1]_, "Closed Form of LOOCV"; the proof is in
    `dsel.solvers.least_squares`.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> leave_one_out_error([2.0, 3.0], 10)
    array([0.2, 0.3])
    """
    return np.asarray(np.asarray(loo_losses) / n_labeled, np.float64)


LOO: Final = LossCriterion(
    "loo", (names.LOO_LOSSES, names.N_LABELED), leave_one_out_error
)
