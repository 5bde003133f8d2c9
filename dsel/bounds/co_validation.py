"""What disagreement between independently trained models says about their errors."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import lower_limits
from dsel.checks import check_counts, check_counts_of, check_integer, check_probability


def error_from_disagreement(
    disagreement: ArrayLike, *, n_classes: int
) -> NDArray[np.float64]:
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
    rate = np.asarray(disagreement, dtype=np.float64)
    if np.any((rate < 0) | (rate > 1)):
        raise ValueError(
            f"`disagreement` must be a rate in [0, 1], got values from "
            f"{np.nanmin(rate)} to {np.nanmax(rate)}."
        )
    # C / (C - 1), the reciprocal of the largest disagreement that C labels allow.
    stretch = check_integer(n_classes, "n_classes", at_least=2) / (n_classes - 1.0)
    # A sample may lie above that; the root is 0 there.
    capped = np.minimum(rate, 1.0 / stretch)
    root = np.sqrt(np.maximum(1.0 - stretch * capped, 0.0))
    return np.asarray(capped / (1.0 + root))  # no cancellation at tiny rates


def row_disagreement(label_counts: ArrayLike) -> NDArray[np.float64]:
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
    # Ordered pairs of models with the same label, s_c (s_c - 1) of each label.
    agreeing = (counts * (counts - 1)).sum(axis=-1)
    return np.asarray(1.0 - agreeing / (n_models * (n_models - 1.0)))


def pair_error_bound(
    disagreements: ArrayLike, pool_rows: ArrayLike, *, delta: float
) -> NDArray[np.float64]:
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
    given = (disagreements, pool_rows, "disagreements", "pool_rows")
    counts, rows = check_counts_of(*given)
    return lower_limits(counts, rows, check_probability(delta, "delta")) / 2.0
