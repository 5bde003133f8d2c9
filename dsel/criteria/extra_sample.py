"""The extra-sample estimate of a squared error: fresh labeled rows."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.criteria.losses import LossCriterion


def extra_sample_error(extra_loss: ArrayLike) -> NDArray[np.float64]:
    r"""Mean squared residual of the full model on rows that it was not trained on.

    .. math:: (\hat f(x') - y')^2, \text{ averaged over the extra rows.}

    Parameters
    ----------
    extra_loss
        The mean squared residuals.

    Returns
    -------
    ndarray
        One estimate per candidate, in squared units of the target.

    Notes
    -----
    Guarantee: none with a probability; unbiased for G + sigma^2, exactly.
    Assumes: extra rows drawn like the others and independent of them. Rows used to
    choose are no longer fresh for the candidate that was chosen.
    Source: [1]_, "Extra-Sample Method".

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> extra_sample_error([0.2, 0.3])
    array([0.2, 0.3])
    """
    return np.asarray(extra_loss, np.float64)


EXTRA_SAMPLE: Final = LossCriterion(
    "extra_sample", (names.EXTRA_LOSS,), extra_sample_error
)
