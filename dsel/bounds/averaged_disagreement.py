"""Disagreement averaged over all fold models at each row, instead of drawing one.

At a pool row, ``D`` is the fraction of the k fold models that differ from the full one;
its mean is the disagreement with a randomly drawn fold model. ``D`` has a smaller
variance than the draw, so fewer pool rows give the same limit; a row costs k + 1
predictions instead of two. The limits need only the histogram of ``k D`` over the pool.
"""

import numpy as np
from numpy.typing import ArrayLike

from dsel import checks
from dsel.bounds.betting import betting_limit, check_histogram
from dsel.bounds.binomial import Floats
from dsel.bounds.merged_folds import largest_mean
from dsel.bounds.semi_supervised import BoundTerms, check_folds, mean_of_limits


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

    Returns
    -------
    BoundTerms
        `bound`, `label_term` and `disagreement_term`, not clipped.

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
    counts = check_histogram(histogram)
    if counts.shape[-1] != errors.shape[-1] + 1:
        raise ValueError(
            f"`histogram` must have {errors.shape[-1] + 1} entries on its last axis, "
            f"for 0 to {errors.shape[-1]} folds, got {counts.shape[-1]}."
        )
    shares = checks.check_probabilities(delta, "delta")
    gamma = checks.check_probability(label_share, "label_share")
    # The mean of the errors bounded here is that of a randomly drawn fold model, and
    # the mean of D is how often the full model differs from it.
    label_term = mean_of_limits(errors, rows, gamma * shares)
    second = betting_limit(counts, delta=(1.0 - gamma) * shares)
    return BoundTerms(label_term + second, label_term, second)


def bernstein_limit(histogram: ArrayLike, *, delta: ArrayLike) -> Floats:
    r"""Upper limit of the mean of a fraction, from sample mean and sample variance.

    With the mean :math:`\bar D` and the unbiased variance :math:`V` of :math:`m` rows,

    .. math::
        \bar D + \sqrt{2 V \ln(2/\delta) / m} + \frac{7 \ln(2/\delta)}{3 (m - 1)}.

    Parameters
    ----------
    histogram, delta
        As :func:`betting_limit` takes them, with the same errors.

    Returns
    -------
    ndarray
        Limits, not clipped, in the shape of the histogram without its last axis; 1
        where there are fewer than two rows.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the rows, the expected
    fraction is at most the limit. More disagreement can give a smaller limit.
    Assumes: independent rows, at least two.
    Source: Maurer and Pontil (2009), theorem 4.

    Examples
    --------
    >>> float(bernstein_limit([9_950, 40, 10], delta=0.025).round(4))
    0.0053
    """
    counts = check_histogram(histogram)
    shares = checks.check_probabilities(delta, "delta")
    values = np.linspace(0.0, 1.0, counts.shape[-1])
    m = counts.sum(axis=-1)
    # The formula needs two rows; with fewer 1 is returned below.
    rows = np.maximum(m, 2)
    mean = counts @ values / rows
    spread = (values - mean[..., np.newaxis]) ** 2
    variance = (counts * spread).sum(axis=-1) / (rows - 1)
    log_term = np.log(2.0 / shares)
    slack = np.sqrt(2.0 * variance * log_term / rows) + 7 * log_term / (3 * (rows - 1))
    return np.where(m >= 2, mean + slack, 1.0)[()]


def merged_disagreement_limit(
    fold_disagreements: ArrayLike, n_unlabeled: ArrayLike, *, delta: ArrayLike
) -> Floats:
    r"""Upper limit of the mean disagreement with all fold models, merged.

    The label term of :func:`merged_folds`, with disagreements on the pool in the place
    of errors on held-out rows. All fold models are compared on the same pool rows: the
    counts depend on each other, which that bound allows.

    Parameters
    ----------
    fold_disagreements
        Pool rows on which the full model differs from each fold's model. Integers;
        folds on the last axis.
    n_unlabeled
        Pool rows visited, the same for every fold.
    delta
        As :func:`cv_bound` takes it; errors are the same, too.

    Returns
    -------
    ndarray
        Limits in ``(0, 1]``, in the shape of the candidates.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the pool, the mean over
    folds of the disagreement with the full model is at most the limit.
    Assumes: independent pool rows; fold models and a full model that were fixed before
    they were drawn.
    Source: as :func:`merged_folds`.

    Examples
    --------
    >>> float(merged_disagreement_limit([30, 25, 34], 1_000, delta=0.05).round(4))
    0.043
    """
    counts, rows = checks.check_counts_of(
        fold_disagreements,
        np.asarray(n_unlabeled)[..., np.newaxis],
        "fold_disagreements",
        "n_unlabeled",
    )
    return largest_mean(counts, rows, checks.check_probabilities(delta, "delta"))
