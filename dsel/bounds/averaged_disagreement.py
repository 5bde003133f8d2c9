"""Disagreement averaged over all fold models at each row, instead of drawing one.

At a pool row, ``D`` is the fraction of the k fold models that differ from the full one;
its mean is the disagreement with a randomly drawn fold model. ``D`` has a smaller
variance than the draw, so fewer pool rows give the same limit; a row costs k + 1
predictions instead of two. The limit needs only the histogram of ``k D`` over the pool.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dsel import checks
from dsel.bounds.binomial import Floats, bracket_root
from dsel.bounds.semi_supervised import (
    BoundTerms,
    check_folds,
    divide_delta,
    mean_of_limits,
)

BETS = tuple(float(bet) for bet in np.geomspace(1.0, 1e-3, 13))
"""Default stakes: the large ones for small pools, the small ones for 1e7 rows."""


def averaged_disagreement(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    histogram: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
) -> BoundTerms:
    r"""Error bound with the disagreement averaged over fold models.

    The label term is that of :func:`cv_bound`, the disagreement term
    :func:`betting_limit` at :math:`(1-\gamma)\delta`.

    Parameters
    ----------
    fold_errors, fold_rows, delta, label_share
        As :func:`cv_bound` takes them, with the same errors.
    histogram
        Pool rows on which 0, 1, ..., k fold models differ from the full one. Integers;
        the last axis has k + 1 entries, or it is a ValueError; the others are
        candidates.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    error of the full model is at most `bound`. With one share for each candidate,
    summing to at most delta, all bounds hold at once.
    Assumes: what :func:`cv_bound` assumes, with no draw of folds.
    Source: conditional expectation of the draw (Rao and Blackwell) and betting. It
    is smaller than :func:`cv_bound` mostly for fewer than 1e5 pool
    rows; for larger pools the time of k + 1 predictions is better spent on more rows.

    Examples
    --------
    >>> terms = averaged_disagreement(
    ...     [4, 6], [100, 100], [9_950, 40, 10], delta=0.05
    ... )
    >>> [round(float(term), 4) for term in terms]
    [0.1274, 0.1226, 0.0049]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    counts = _check_histogram(histogram)
    if counts.shape[-1] != errors.shape[-1] + 1:
        raise ValueError(
            f"`histogram` must have {errors.shape[-1] + 1} entries on its last axis, "
            f"for 0 to {errors.shape[-1]} folds, got {counts.shape[-1]}."
        )
    first, second = divide_delta(delta, label_share)
    # The mean of the errors bounded here is that of a randomly drawn fold model, and
    # the mean of D is how often the full model differs from it.
    label_term = mean_of_limits(errors, rows, first)
    disagreement_term = betting_limit(counts, delta=second)
    return BoundTerms(label_term + disagreement_term, label_term, disagreement_term)


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
    counts = _check_histogram(histogram)
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


def _check_histogram(histogram: ArrayLike) -> NDArray[np.int64]:
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
