"""The hold-out estimate of a squared error: one fold held out, once."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.criteria.losses import LossCriterion


def holdout_error(fold_losses: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.float64]:
    r"""Mean squared residual on the first fold of the model trained without it.

    .. math:: \frac{1}{|T|} \sum_{i \in T} (\hat f_T(x_i) - y_i)^2.

    Parameters
    ----------
    fold_losses
        Sums of squared residuals; the folds on the last axis.
    fold_rows
        Rows of each fold.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none. Unbiased for G + sigma^2 of the model trained without the fold.
    Assumes: as leave-one-out; it depends heavily on which rows are held out.
    Source: [1]_, "Holdout Method", with several rows held out.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> holdout_error([[2.0, 3.0]], [10, 5])
    array([0.2])
    """
    first = np.asarray(fold_losses)[..., 0] / np.asarray(fold_rows)[0]
    return np.asarray(first, np.float64)


HOLDOUT: Final = LossCriterion(
    "holdout",
    (names.FOLD_LOSSES, names.FOLD_ROWS),
    holdout_error,
    holds_out_one_fold=True,
)
