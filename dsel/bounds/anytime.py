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
    return _limits(n_disagreements, n_rows, delta, prior, is_upper=True)


def anytime_limit_lower(
    n_disagreements: ArrayLike,
    n_rows: ArrayLike,
    *,
    delta: ArrayLike,
    prior: tuple[float, float] = JEFFREYS,
) -> Floats:
    """Lower limit of a rate, valid at every row at once.

    The root :math:`q < s/t` of the equation of :func:`anytime_limit`.

    Parameters
    ----------
    n_disagreements, n_rows, delta, prior
        As :func:`anytime_limit` takes them, with the same errors.

    Returns
    -------
    ndarray
        Limits in ``[0, 1)``, in the broadcast shape; 0 where no row disagrees.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the rate is at least the limit,
    and at most :func:`anytime_limit` with the same prior, at every number of rows.
    Assumes: as :func:`anytime_limit`.
    Source: the same event as :func:`anytime_limit`, so both sides cost delta once.

    Examples
    --------
    >>> float(anytime_limit_lower(200, 10_000, delta=0.05).round(4))
    0.015
    """
    return _limits(n_disagreements, n_rows, delta, prior, is_upper=False)


def _limits(
    n_disagreements: ArrayLike,
    n_rows: ArrayLike,
    delta: ArrayLike,
    prior: tuple[float, float],
    *,
    is_upper: bool,
) -> Floats:
    """Return the root on one side of s/t, or the end of [0, 1] where there is none."""
    counts, rows = checks.check_counts_of(
        n_disagreements, n_rows, "n_disagreements", "n_rows"
    )
    shares = checks.check_probabilities(delta, "delta")
    u, v = (checks.check_positive(value, "prior") for value in prior)
    counts, rows, shares = np.broadcast_arrays(counts, rows, shares)
    # Where every row disagrees, and before any row, no rate is too large; without a
    # disagreement none is too small.
    is_inner = counts < rows if is_upper else counts > 0
    limits = np.full(counts.shape, float(is_upper))
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
    # The martingale rises in q above s/t and falls below it, so one bracket on each
    # side holds the one root; its outer end is the safe one.
    if is_upper:
        limits[is_inner] = bracket_root(is_unlikely, rate, np.ones_like(rate))[1]
    else:
        low = np.zeros_like(rate)
        limits[is_inner] = bracket_root(lambda q: ~is_unlikely(q), low, rate)[0]
    return limits[()]
