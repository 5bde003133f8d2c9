"""k-fold cross-validation of a squared error."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.criteria.losses import LossCriterion


def kfold_error(fold_losses: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.float64]:
    r"""Mean over folds of the mean squared residual on the held-out fold.

    .. math:: \frac{1}{k} \sum_j \frac{1}{|T_j|}
              \sum_{i \in T_j} (\hat f_{T_j}(x_i) - y_i)^2.

    Parameters
    ----------
    fold_losses
        Sums of squared residuals; the folds on the last axis.
    fold_rows
        Rows of each fold, :math:`|T_j|`, broadcast against `fold_losses`.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none. Its expectation is that of G + sigma^2 for training size n - n_j.
    Assumes: as leave-one-out.
    Source: [1]_, "k-Fold Cross-Validation"; a mean of means where sizes differ.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> kfold_error([[2.0, 3.0]], [10, 5])
    array([0.4])
    """
    return np.asarray((np.asarray(fold_losses) / fold_rows).mean(axis=-1), np.float64)


KFOLD: Final = LossCriterion("kfold", (names.FOLD_LOSSES, names.FOLD_ROWS), kfold_error)
