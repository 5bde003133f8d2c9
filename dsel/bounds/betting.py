"""Limits of the mean of a bounded variable by betting that it is smaller."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dsel import checks
from dsel.bounds.binomial import Floats, bracket_root

BETS = tuple(float(bet) for bet in np.geomspace(1.0, 1e-3, 13))
"""Default stakes: the large ones for small pools, the small ones for 1e7 rows."""


def betting_limit(
    histogram: ArrayLike,
    *,
    delta: ArrayLike,
    bets: ArrayLike = BETS,
) -> Floats:
    r"""Upper limit of the mean of a fraction, by betting that it is smaller.

    With :math:`D_r` the fraction at row :math:`r`, a bet with stake :math:`c` on a mean
    below :math:`q` ends with the capital

    .. math:: K_c(q) = \prod_r \Big(1 + c\,\frac{q - D_r}{1 - q}\Big).

    The limit is the root :math:`q` of :math:`\frac1G \sum_g K_{c_g}(q) = 1/\delta`,
    over :math:`G` stakes.

    Parameters
    ----------
    histogram
        Rows with the fractions 0, 1/k, ..., 1. Integers; the last axis has k + 1
        entries, one for each fraction.
    delta
        Probability with which the limit may fail, in ``(0, 1)``; broadcast against the
        other axes of `histogram`.
    bets
        Stakes :math:`c_g` in ``(0, 1]``, fixed in advance or from rows that are not
        in the histogram.

    Returns
    -------
    ndarray
        Limits in ``(0, 1]``, in the broadcast shape of `delta` and the histogram
        without its last axis.

    Raises
    ------
    TypeError
        Where the histogram holds no integers.
    ValueError
        Where a stake lies outside ``(0, 1]``, or ``delta`` outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the rows, the expected
    fraction is at most the limit.
    Assumes: independent rows; stakes that do not depend on them.
    Source: nonnegative martingales and Ville's (here Markov's) inequality, as in
    Waudby-Smith and Ramdas (2024).

    Examples
    --------
    >>> float(betting_limit([9_950, 40, 10], delta=0.025).round(4))
    0.0049
    """
    counts = check_histogram(histogram)
    stakes = np.atleast_1d(np.asarray(bets, dtype=np.float64))
    if not stakes.size or not ((stakes > 0) & (stakes <= 1)).all():
        raise ValueError(f"`bets` must lie in (0, 1], got {stakes.tolist()}.")
    shares = checks.check_probabilities(delta, "delta")
    shape = np.broadcast_shapes(counts.shape[:-1], shares.shape)
    # Shares and histograms broadcast: every pair is one row of a flat problem.
    spread = np.broadcast_to(counts, (*shape, counts.shape[-1]))
    flat = spread.reshape(-1, counts.shape[-1]).astype(np.float64)
    log_shares = np.log(np.broadcast_to(shares, shape).ravel())
    limits = _limits(flat, log_shares, stakes)
    return limits.reshape(shape)[()]


def check_histogram(histogram: ArrayLike) -> NDArray[np.int64]:
    """Return counts of the fractions 0 to 1 on the last axis, or raise."""
    counts = checks.check_counts(histogram, "histogram")
    if counts.ndim == 0 or counts.shape[-1] < 2:
        raise ValueError(
            f"`histogram` must have counts of the fractions 0, 1/k, ..., 1 on its last "
            f"axis, at least two, got shape {counts.shape}."
        )
    return counts


def _limits(histograms: Floats, log_shares: Floats, stakes: Floats) -> Floats:
    """Return for each histogram the rate at which the mixed wealth meets 1 / share."""
    # A row on which v of k fold models differ has D = v / k.
    values = np.linspace(0.0, 1.0, histograms.shape[-1])
    # Shares that did not occur are left out, since 0 times ln 0 would be NaN.
    occurs = histograms[:, np.newaxis, :] > 0
    counts = np.where(occurs, histograms[:, np.newaxis, :], 0.0)

    def log_wealth(q: Floats) -> Floats:
        gain = (q[:, np.newaxis] - values) / (1.0 - q[:, np.newaxis])
        with np.errstate(divide="ignore", invalid="ignore"):
            # A stake of 1 loses everything on a row where all fold models differ.
            logs = np.log1p(stakes[:, np.newaxis] * np.maximum(gain, -1.0)[:, None, :])
            each = np.where(occurs, counts * logs, 0.0).sum(axis=-1)
        # A mean of martingales is a martingale, so stakes are mixed before the
        # logarithm.
        return np.asarray(special.logsumexp(each, axis=-1, b=1.0 / stakes.size))

    # Wealth sums over rows; the threshold is raised by more than the sum rounds.
    threshold = -log_shares * (1 + 1e-12) + 1e-15 * histograms.sum(axis=1)
    ends = np.zeros(len(histograms)), np.ones(len(histograms))
    # Wealth rises in q: the upper end of the bracket has wealth above 1 / share.
    return bracket_root(lambda q: log_wealth(q) > threshold, *ends)[1]
