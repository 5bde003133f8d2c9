"""Bounds on errors from the disagreement of independently trained models."""

import numpy as np

from dsel.arrays import ArrayLike, Floats
from dsel.bounds.binomial import lower_limits
from dsel.checks import (
    as_array,
    check_count,
    check_counts,
    check_counts_of,
    check_probability,
)


def error_from_disagreement(disagreement: ArrayLike, *, n_classes: int) -> Floats:
    r"""Lower bound on a learner's expected error from the disagreement of its models.

    For :math:`C` classes and disagreement :math:`d`

    .. math:: e_l(d; C) = \frac{C-1}{C} \Bigl(1 - \sqrt{1 - \tfrac{C}{C-1} d}\Bigr),

    for two classes :math:`(1 - \sqrt{1 - 2d}) / 2`.

    Parameters
    ----------
    disagreement
        Expected rate at which two independently trained models differ, in [0, 1],
        any shape. A sample may exceed (C-1)/C; the root is then taken as 0.
    n_classes
        Labels that the learner can output, C >= 2.

    Returns
    -------
    ndarray
        Values in [0, (C-1)/C], rising in `disagreement`; NaN stays NaN.

    Raises
    ------
    ValueError
        Where a disagreement lies outside [0, 1].

    Notes
    -----
    Guarantee: none at a sample; at the true disagreement d of models trained on
    independent samples of one size, the learner's expected error at that size is at
    least the value, also with noisy labels.
    Assumes: independent trainings and rows from the test distribution. A stable
    learner may err far more: a constant one never disagrees.
    Source: Madani, Pennock and Flake (2004), equation (4), for two classes; for more
    classes that equation is wrong, and this formula is right.

    Examples
    --------
    >>> error_from_disagreement([0.0, 0.18, 0.5], n_classes=2).round(12).tolist()
    [0.0, 0.1, 0.5]
    """
    rate = _check_rates(disagreement)
    n = check_count(n_classes, "n_classes", at_least=2)
    # C / (C - 1), the reciprocal of the largest disagreement that C labels allow.
    stretch = n / (n - 1.0)
    # The disagreement of a sample may exceed that; the root is 0 there.
    capped = np.minimum(rate, 1.0 / stretch)
    root = np.sqrt(np.maximum(1.0 - stretch * capped, 0.0))
    # This form has no cancellation at tiny rates.
    return np.asarray(capped / (1.0 + root))


def error_ends_from_disagreement(disagreement: ArrayLike) -> tuple[Floats, Floats]:
    r"""Lower and upper end of a two-class learner's error, given its disagreement.

    .. math:: \frac{1 - \sqrt{1 - 2d}}{2} \le e \le \frac{1 + \sqrt{1 - 2d}}{2}.

    Parameters
    ----------
    disagreement
        Expected rate at which two independently trained models differ, in [0, 1],
        any shape. A sample may exceed 1/2; the root is then taken as 0.

    Returns
    -------
    lower, upper : ndarray
        Values in [0, 1/2] and in [1/2, 1]; they sum to 1. NaN stays NaN.

    Raises
    ------
    ValueError
        Where a disagreement lies outside [0, 1].

    Notes
    -----
    Guarantee: none at a sample; at the true disagreement the learner's expected error
    lies between both values.
    Assumes: two classes, labels that are a function of the row (the upper end fails
    with noisy labels), independent trainings, rows from the test distribution.
    Source: Madani, Pennock and Flake (2004), equation (4). The upper end is at least
    1/2, so it says something only of a learner that may be worse than chance.

    Examples
    --------
    >>> lower, upper = error_ends_from_disagreement([0.0, 0.18, 0.5])
    >>> lower.round(12).tolist(), upper.round(12).tolist()
    ([0.0, 0.1, 0.5], [1.0, 0.9, 0.5])
    """
    lower = error_from_disagreement(disagreement, n_classes=2)
    return lower, 1.0 - lower


def error_variance_from_disagreement(disagreement: ArrayLike) -> Floats:
    r"""Upper bound on the variance of a learner's error over training sets, d/2.

    With :math:`e_f` the error of the model :math:`f` of a random training set,

    .. math:: \sigma^2 = \operatorname{Var}_f(e_f) \le d / 2.

    For two classes and labels that are a function of the row, :math:`d/2` is also the
    mean over rows of the variance of the 0/1 error,
    :math:`d/2 = e - E_x e_x^2` with :math:`e_x` the probability to err on the row.

    Parameters
    ----------
    disagreement
        Expected rate at which two independently trained models differ, in [0, 1],
        any shape.

    Returns
    -------
    ndarray
        Half the disagreement.

    Raises
    ------
    ValueError
        Where a disagreement lies outside [0, 1].

    See Also
    --------
    error_variance_from_pairs : A smaller bound from the same counts.

    Notes
    -----
    Guarantee: none at a sample; at the true disagreement the variance of the error is
    at most the value, for any number of classes and with noisy labels.
    Assumes: independent trainings on samples of one size, rows from the test
    distribution.
    Source: Madani, Pennock and Flake (2004), Theorem 1 and equation (3). Errors of two
    models differ by at most the rate D at which the models differ, so
    ``sigma^2 = E(e_1 - e_2)^2 / 2 <= E D^2 / 2 <= d / 2``. Where errors of models are
    not correlated, d/2 is far larger than the variance; with more labels both fall.

    Examples
    --------
    >>> error_variance_from_disagreement([0.0, 0.18]).tolist()
    [0.0, 0.09]
    """
    return _check_rates(disagreement) / 2.0


def error_variance_from_pairs(disagreements: ArrayLike, pool_rows: ArrayLike) -> Floats:
    r"""Estimate an upper bound on the variance of a learner's error, :math:`E[D^2]/2`.

    With :math:`D` the rate at which a random pair of models differs,
    :math:`\sigma^2 \le E[D^2]/2 \le d/2`. From :math:`s` of :math:`m` rows,
    :math:`s (s - 1) / (m (m - 1))` is unbiased for :math:`D^2`; the mean over the last
    axis, the pairs, is taken.

    Parameters
    ----------
    disagreements
        Pool rows on which the models of each pair differ; the last axis is the pair.
    pool_rows
        Pool rows that were compared, >= 2, broadcast against the counts.

    Returns
    -------
    ndarray
        Values in [0, 1/2], without the last axis.

    Raises
    ------
    TypeError
        Where the counts are not integers.
    ValueError
        Where a count exceeds its rows, or fewer than 2 rows were compared.

    Notes
    -----
    Guarantee: none; the expected value is at least the variance of the error over
    training sets, for any number of classes and with noisy labels.
    Assumes: independent models within each pair, as the two halves of a random halving,
    and pool rows from the test distribution.
    Source: as :func:`error_variance_from_disagreement`, whose second inequality this
    leaves out: near a disagreement of .05 it is 20 times smaller.

    Examples
    --------
    >>> error_variance_from_pairs([50, 60], 1000).round(5).tolist()
    0.0015
    """
    counts, rows = check_counts_of(
        disagreements, pool_rows, "disagreements", "pool_rows"
    )
    if not counts.ndim:
        raise ValueError(
            f"`disagreements` must have the pairs on its last axis, got a single count "
            f"{counts}; pass [{counts}]."
        )
    if np.any(rows < 2):
        raise ValueError(
            f"`pool_rows` must be at least 2, got {rows.min()}: a square is not "
            f"estimated from one row."
        )
    squares = counts * (counts - 1.0) / (rows * (rows - 1.0))
    return np.asarray(squares.mean(axis=-1) / 2.0)


def row_disagreement(label_counts: ArrayLike) -> Floats:
    r"""Fraction of the pairs of models that differ on a row, from its label counts.

    Where :math:`s_c` of :math:`B` models predict label :math:`c`, it is
    :math:`d_x = 1 - \sum_c s_c (s_c - 1) / (B (B - 1))`. Half of it estimates the
    variance of the 0/1 error at the row. The last axis is the label, and every row sums
    to the same B >= 2.

    Guarantee: none at one row; unbiased for the probability that two models trained on
    independent samples differ there. Half of it is unbiased for the variance of the
    error with two classes; with more classes its expectation is at least that variance.
    Assumes: independent models, none of which was trained on the row. Models from
    different halvings of one table are not independent.
    Source: Madani, Pennock and Flake (2004), equation (2); it equals the average over
    all pairs of models, and needs only one count for each label.
    """
    counts = check_counts(label_counts, "label_counts")
    totals = counts.sum(axis=-1)
    n_models = int(totals.flat[0]) if totals.size else 2
    if np.any(totals != n_models) or n_models < 2:
        raise ValueError(
            "`label_counts` must sum to one number of models >= 2 in every row, got "
            f"sums from {totals.min()} to {totals.max()}."
        )
    # Count the ordered pairs of models with the same label: s_c (s_c - 1) of each
    # label.
    agreeing = (counts * (counts - 1)).sum(axis=-1)
    return np.asarray(1.0 - agreeing / (n_models * (n_models - 1.0)))


def pair_error_bound(
    disagreements: ArrayLike, pool_rows: ArrayLike, *, delta: float
) -> Floats:
    r"""Lower bound on the mean error of two given models from their disagreement.

    Half the lower binomial limit of the disagreement: two models that differ on a
    row cannot both be right there.

    Parameters
    ----------
    disagreements, pool_rows
        Pool rows on which the two models differ, and those compared.
    delta
        One number, as :func:`binomial_tail_inversion` takes it, with the same errors.

    Returns
    -------
    ndarray
        Lower bounds on ``(err(f_1) + err(f_2)) / 2`` in the broadcast shape.

    Raises
    ------
    TypeError
        If counts are no integers.
    ValueError
        If counts are below 0 or above their rows, shapes do not fit each other, or
        `delta` is outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the pool rows the mean
    true error of this pair is at least the value. Any number of classes.
    Assumes: models fixed before independent pool rows were drawn; nothing about how
    their training rows were chosen, so it holds under active learning too.
    Source: the triangle inequality; the lower limit of Clopper and Pearson (1934).

    Examples
    --------
    >>> pair_error_bound(100, 1000, delta=0.05).round(4).tolist()
    0.0424
    """
    counts, rows = check_counts_of(
        disagreements, pool_rows, "disagreements", "pool_rows"
    )
    return lower_limits(counts, rows, check_probability(delta, "delta")) / 2.0


def _check_rates(disagreement: ArrayLike) -> Floats:
    """Return rates in [0, 1] as floats, or raise."""
    rate = as_array(disagreement, "disagreement", np.float64)
    if np.any((rate < 0) | (rate > 1)):
        raise ValueError(
            f"`disagreement` must be a rate in [0, 1], got values from "
            f"{np.nanmin(rate)} to {np.nanmax(rate)}."
        )
    return rate
