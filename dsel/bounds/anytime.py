"""Limits on a rate that hold after every row at once, so reading may stop any time."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dsel import checks
from dsel.bounds.binomial import Floats, bracket_root

JEFFREYS = (0.5, 0.5)


def anytime_limit(
    n_disagreements: ArrayLike,
    n_rows: ArrayLike,
    *,
    delta: ArrayLike,
    prior: tuple[float, float] = JEFFREYS,
) -> Floats:
    r"""Upper limit of a rate, valid at every row at once.

    With :math:`s` disagreements in :math:`t` rows and a Beta(:math:`u, v`) prior it
    is the root :math:`q > s/t` of

    .. math::
        \ln\frac{B(u + s, v + t - s)}{B(u, v)} - s \ln q - (t - s) \ln(1 - q)
        = \ln(1/\delta).

    Parameters
    ----------
    n_disagreements
        Disagreements so far, :math:`s`. Integers in ``[0, n_rows]``, any shape.
    n_rows
        Rows read so far, :math:`t`. Integers >= 0, broadcast against `n_disagreements`.
    delta
        Probability with which any of the limits may fail, in ``(0, 1)``; an array is
        broadcast against the counts.
    prior
        Parameters :math:`u, v > 0` of the Beta distribution, fixed in advance. Where
        the rate is expected to be near :math:`d`, ``(1, 1 / d)`` gives small limits.

    Returns
    -------
    ndarray
        Limits in ``(0, 1]``, in the broadcast shape; 1 where no row was read or all
        disagree. The smallest of the limits up to a row is valid too.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, ``delta`` lies outside ``(0, 1)``, or a
        parameter of the prior is not positive.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the rate is at most the limit
    at every number of rows, so at any that was picked after looking.
    Assumes: independent rows in an order that does not depend on the models; `prior`
    fixed in advance.
    Source: the Beta-binomial mixture martingale and Ville's inequality (Robbins,
    1970). A repeated :func:`binomial_tail_inversion` has no such guarantee.

    Examples
    --------
    >>> float(anytime_limit(200, 10_000, delta=0.05).round(4))
    0.026
    """
    counts, rows = checks.check_counts_of(
        n_disagreements, n_rows, "n_disagreements", "n_rows"
    )
    shares = checks.check_probabilities(delta, "delta")
    u, v = (checks.check_positive(value, "prior") for value in prior)
    counts, rows, shares = np.broadcast_arrays(counts, rows, shares)
    # Where every row disagrees, and before any row, no rate is too large.
    is_inner = counts < rows
    limits = np.ones(counts.shape)
    s, t = counts[is_inner].astype(np.float64), rows[is_inner].astype(np.float64)
    log_mixture = special.betaln(u + s, v + t - s)
    # The threshold is raised by more than the rounding of these large terms.
    threshold = -np.log(shares[is_inner]) + 1e-15 * (1.0 + np.abs(log_mixture))
    constant = log_mixture - special.betaln(u, v) - threshold

    def is_unlikely(q: Floats) -> NDArray[np.bool_]:
        # Whether the martingale of rate q has crossed 1 / delta; 0 ln 0 is 0.
        log_likelihood = special.xlogy(s, q) + special.xlog1py(t - s, -q)
        return np.asarray(constant - log_likelihood > 0)

    rate = s / t
    # The martingale rises in q above s/t; the upper end of the bracket is the safe one.
    limits[is_inner] = bracket_root(is_unlikely, rate, np.ones_like(rate))[1]
    return limits[()]
