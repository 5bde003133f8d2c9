"""What disagreement between independently trained models says about their errors."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr

from dsel.bounds.binomial import bracket_root, lower_limits, upper_limits
from dsel.checks import (
    check_counts,
    check_counts_of,
    check_integer,
    check_probability,
)


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
    rate = _rates(disagreement)
    # C / (C - 1), the reciprocal of the largest disagreement that C labels allow.
    stretch = check_integer(n_classes, "n_classes", at_least=2) / (n_classes - 1.0)
    # A sample may lie above that; the root is 0 there.
    capped = np.minimum(rate, 1.0 / stretch)
    root = np.sqrt(np.maximum(1.0 - stretch * capped, 0.0))
    return np.asarray(capped / (1.0 + root))  # no cancellation at tiny rates


def _rates(disagreement: ArrayLike) -> NDArray[np.float64]:
    rate = np.asarray(disagreement, dtype=np.float64)
    if np.any((rate < 0) | (rate > 1)):
        raise ValueError(
            f"`disagreement` must be a rate in [0, 1], got values from "
            f"{np.nanmin(rate)} to {np.nanmax(rate)}."
        )
    return rate


def row_disagreement(label_counts: ArrayLike) -> NDArray[np.float64]:
    r"""Fraction of the pairs of models that differ on a row, from its label counts.

    Where :math:`s_c` of :math:`B` models predict label :math:`c`, it is
    :math:`d_x = 1 - \sum_c s_c (s_c - 1) / (B (B - 1))`. Half of it estimates the
    variance of the 0/1 error at the row.

    Parameters
    ----------
    label_counts
        Number of models that predict each label. Integers, shape
        ``(..., n_classes)``; every row sums to the same B >= 2.

    Returns
    -------
    ndarray
        Rates in [0, 1], shape ``(...)``.

    Raises
    ------
    ValueError
        Where the rows sum to different numbers, or to less than two.

    Notes
    -----
    Guarantee: none at one row; unbiased for the probability that two models trained on
    independent samples differ there. Half of it is unbiased for the variance of the
    error with two classes; with more classes its expectation is at least that variance.
    Assumes: independent models, none of which was trained on the row. Models from
    different halvings of one table are not independent.
    Source: Madani, Pennock and Flake (2004), equation (2); it equals the average over
    all pairs of models, and needs only one count for each label.

    Examples
    --------
    >>> row_disagreement([[4, 0], [2, 2]]).round(4).tolist()
    [0.0, 0.6667]
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


def error_variance_bound(disagreement: ArrayLike) -> NDArray[np.float64]:
    r"""Upper bound on the variance of a learner's error: half the disagreement.

    Parameters
    ----------
    disagreement
        Expected disagreement d of two independent models, in [0, 1], any shape, else a
        ValueError; half of it is returned.

    Notes
    -----
    Guarantee: none at a sample; at the true d, the variance over training samples of
    the true error is at most the value.
    Assumes: independent trainings.
    Source: Madani, Pennock and Flake (2004), Theorem 1.
    :func:`error_variance_bound_sharp` is never larger at the true disagreements.

    Examples
    --------
    >>> error_variance_bound(0.05).round(4).tolist()
    0.025
    """
    return _rates(disagreement) / 2.0


def error_variance_bound_sharp(
    disagreements: ArrayLike, pool_rows: ArrayLike
) -> NDArray[np.float64]:
    r"""Upper bound on the variance of a learner's error: half the mean square.

    With :math:`D` the disagreement of a random pair of models, the bound is
    :math:`E[D^2] / 2`. Where a pair differs on :math:`s` of :math:`m` rows,
    :math:`s (s-1) / (m (m-1))` is unbiased for :math:`D^2`; half its mean over the
    pairs is returned.

    Parameters
    ----------
    disagreements
        Pool rows on which each pair differs, :math:`s`. Integers, shape
        ``(..., n_pairs)``.
    pool_rows
        Pool rows compared, :math:`m` >= 2, broadcast against `disagreements`.

    Returns
    -------
    ndarray
        Values in [0, 1/2], shape ``(...)``.

    Raises
    ------
    TypeError, ValueError
        As :func:`binomial_tail_inversion`, and where fewer than two rows were compared.

    Notes
    -----
    Guarantee: none at a sample; its expectation is at least the variance over
    training samples of the true error, for any number of classes and noisy labels.
    Assumes: pairs of independent models, pool rows from the test distribution.
    Source: with e1 and e2 the errors of the two models, the variance is
    E[(e1 - e2)^2] / 2, and the errors differ by at most D. Where D is near 0.05, the
    bound is a twentieth of d / 2.

    Examples
    --------
    >>> error_variance_bound_sharp([50, 60], 1000).round(6).tolist()
    0.001499
    """
    counts, rows = check_counts_of(
        np.atleast_1d(disagreements), pool_rows, "disagreements", "pool_rows"
    )
    if not counts.shape[-1] or np.any(rows < 2):
        raise ValueError(
            f"`disagreements` must be of one pair of models or more, and `pool_rows` "
            f"at least 2, got {counts.shape[-1]} pairs and {rows.tolist()} rows."
        )
    # (s / m)^2 would be biased upwards by the draw of the pool rows.
    squares = counts * (counts - 1.0) / (rows * (rows - 1.0))
    return np.asarray(squares.mean(axis=-1) / 2.0)


def error_variance_limit(
    disagreements: ArrayLike, pool_rows: ArrayLike, *, delta: float
) -> float:
    r"""Upper confidence limit for the variance of a learner's error.

    The disagreement of each of R independent pairs of models is at most its binomial
    limit :math:`U_r` at :math:`\delta / (2R)`. The expected square is then bounded at
    :math:`\delta / 2` from the mean of the :math:`U_r^2`. The result is half the root
    :math:`q`, above that mean, of

    .. math:: R \, \mathrm{kl}\Big(\tfrac1R \sum_r U_r^2, q\Big) = \ln(2/\delta).

    Parameters
    ----------
    disagreements
        Pool rows on which each pair differs, shape (R,) with R >= 1.
    pool_rows, delta
        As :func:`pair_error_bound` takes them, with the same errors.

    Returns
    -------
    float
        A value in (0, 1/2]. With 10 pairs and ``delta=0.05`` it is 0.15 or more: one
        labeled table rarely has enough rows for a useful limit.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over training and pool rows the
    variance over training samples of the true error is at most the value.
    Assumes: pairs independent of each other, two disjoint blocks of independent
    training rows each; independent pool rows. Repeated halvings do not qualify.
    Source: Hoeffding (1963), Theorem 1, for the squares; the binomial limits of Clopper
    and Pearson (1934) for the disagreements.

    Examples
    --------
    >>> round(error_variance_limit([50] * 200, 1000, delta=0.05), 4)
    0.0177
    """
    counts, rows = check_counts_of(
        np.atleast_1d(disagreements), pool_rows, "disagreements", "pool_rows"
    )
    share = check_probability(delta, "delta")
    n_pairs = check_integer(counts.size, "len(disagreements)", at_least=1)
    # Given the models their disagreements are binomial, also on shared rows: union
    # bound.
    mean = float(np.mean(upper_limits(counts, rows, share / (2 * n_pairs)) ** 2))
    # P(mean <= x) <= exp(-R kl(x, q)) for x below the expectation q of R values in [0,
    # 1].
    budget = math.log(2.0 / share) / n_pairs

    def is_above(q: NDArray[np.float64]) -> NDArray[np.bool_]:
        entropy = rel_entr(mean, q) + rel_entr(1.0 - mean, 1.0 - q)
        return np.asarray(entropy >= budget)

    _, high = bracket_root(is_above, np.array([mean]), np.array([1.0]))
    return float(high[0]) / 2.0


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
        Probability with which the bound may fail, one number. Ranges, shapes and
        errors are those of :func:`binomial_tail_inversion`.

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
    counts, rows = check_counts_of(
        disagreements, pool_rows, "disagreements", "pool_rows"
    )
    return lower_limits(counts, rows, check_probability(delta, "delta")) / 2.0


def disagreement_limits(
    total: float, n_pool: int, n_models: int, *, delta: float
) -> tuple[float, float]:
    r"""Confidence limits for the expected disagreement of a learner.

    :math:`n` models are trained on disjoint blocks of rows, and :math:`d_x` is the
    fraction of their pairs that differ at row :math:`x` of :math:`m`. Half of
    :math:`\delta` is spent on the draw of the models, which adds
    :math:`\sqrt{\ln(4/\delta) / (2 \lfloor n/2 \rfloor)}` on each side. The other half
    is spent on the draw of the rows, by Bentkus' limit
    :math:`B(\lceil \sum_x d_x \rceil, m, \delta / (4e))` with :math:`B` the
    :func:`binomial_tail_inversion`, and the same for the agreement.

    Parameters
    ----------
    total
        Sum of :math:`d_x` over the pool rows, in [0, n_pool].
    n_pool
        Pool rows, m >= 1.
    n_models
        Models, n >= 2, each trained on rows that no other has.
    delta
        Probability with which either limit may fail, in (0, 1).

    Returns
    -------
    tuple of float
        Lower and upper limit in [0, 1]. For 20 models and ``delta`` up to 1/2 the draw
        of the models alone adds 0.32 or more on each side: one labeled table rarely has
        enough rows for a useful limit.

    Raises
    ------
    TypeError, ValueError
        Where an argument is of another type or lies outside its range.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over training blocks and pool
    rows the expected disagreement lies within the limits.
    Assumes: independent training rows in disjoint blocks, independent pool rows.
    Repeated halvings of one table do not qualify.
    Source: Hoeffding (1963) for U-statistics; Bentkus (2004).

    Examples
    --------
    >>> lower, upper = disagreement_limits(5_000.0, 100_000, 1_000, delta=0.05)
    >>> round(lower, 3), round(upper, 3)
    (0.0, 0.118)
    """
    share = check_probability(delta, "delta")
    rows = check_integer(n_pool, "n_pool", at_least=1)
    models = check_integer(n_models, "n_models", at_least=2)
    if not 0.0 <= total <= rows:
        raise ValueError(f"`total` must be in [0, {rows}] (`n_pool`), got {total}.")
    # Two sides and two sources of chance share delta: a quarter each. A U-statistic of
    # pairs of B models is as good as B // 2 independent values.
    slack = math.sqrt(math.log(4.0 / share) / (2.0 * (models // 2)))
    differing = _bentkus(total, rows, share / 4.0)
    # The lower limit of a mean is 1 less the upper limit of its complement.
    agreeing = _bentkus(rows - total, rows, share / 4.0)
    return max(0.0, 1.0 - agreeing - slack), min(1.0, differing + slack)


def _bentkus(total: float, rows: int, delta: float) -> float:
    # Rounded up, but for what the sum of the shares may have rounded itself.
    count = min(rows, math.ceil(total - 1e-12 * max(1.0, total)))
    return float(upper_limits(count, rows, delta / math.e))
