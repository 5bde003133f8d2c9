"""Generalised cross-validation of least squares."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.criteria.losses import LossCriterion


def generalised_cross_validation(
    gcv_losses: ArrayLike, n_labeled: ArrayLike
) -> NDArray[np.float64]:
    r"""Leave-one-out with the mean of the diagonal of H in the place of its entries.

    .. math:: n \|H y\|^2 / (\mathrm{tr}\, H)^2.

    Parameters
    ----------
    gcv_losses
        The score times n.
    n_labeled
        Rows, :math:`n`, broadcast against `gcv_losses`.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none; it equals leave-one-out where all entries of the diagonal are
    equal, and approximates it elsewhere.
    Assumes: as leave-one-out.
    Source: [1]_.

    References
    ----------
    .. [1] G. Golub, M. Heath and G. Wahba, "Generalized cross-validation as a method
       for choosing a good ridge parameter", Technometrics 21, 1979.

    Examples
    --------
    >>> generalised_cross_validation([2.0, 3.0], 10)
    array([0.2, 0.3])
    """
    return np.asarray(np.asarray(gcv_losses) / n_labeled, np.float64)


GCV: Final = LossCriterion(
    "gcv", (names.GCV_LOSSES, names.N_LABELED), generalised_cross_validation
)
