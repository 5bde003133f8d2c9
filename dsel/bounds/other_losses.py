"""What disagreement says about error ranges, precision, recall, numbers and votes.

All but the vote's bound are statements about expectations over training samples; at the
counts of one sample they are estimates.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import Floats
from dsel.bounds.co_validation import error_from_disagreement


class ErrorRange(NamedTuple):
    """The smallest and the largest value that a learner's expected error can have."""

    lower: Floats
    upper: Floats


def error_range_from_disagreement(
    disagreement: ArrayLike, *, n_classes: int
) -> ErrorRange:
    r"""Range of a learner's expected error from the disagreement of its models.

    .. math:: \frac{C-1}{C} \Bigl(1 - \sqrt{1 - \tfrac{C}{C-1} d}\Bigr) \le e \le
              \frac{C-1}{C} \Bigl(1 + \sqrt{1 - \tfrac{C}{C-1} d}\Bigr),

    the upper end at most 1; for two classes :math:`(1 \pm \sqrt{1 - 2d}) / 2`.

    Parameters
    ----------
    disagreement, n_classes
        As :func:`error_from_disagreement` takes them, with the same errors.

    Returns
    -------
    ErrorRange
        Lower and upper end, in the shape of `disagreement`.

    Notes
    -----
    Guarantee: none at a sample; at the true disagreement the expected error lies in the
    range. The upper end is above (C-1)/C, so it says little.
    Assumes: independent trainings, rows from the test distribution; for the upper end
    also labels without noise that the learner can output.
    Source: Madani, Pennock and Flake (2004), equation (4), for two classes; both are
    roots of :math:`d = 2e - \tfrac{C}{C-1} e^2`, which no learner exceeds.

    Examples
    --------
    >>> found = error_range_from_disagreement([0.0, 0.18], n_classes=2)
    >>> found.lower.round(12).tolist(), found.upper.round(12).tolist()
    ([0.0, 0.1], [1.0, 0.9])
    """
    lower = error_from_disagreement(disagreement, n_classes=n_classes)
    # The two roots sum to 2 (C - 1) / C.
    upper = 2.0 * (n_classes - 1.0) / n_classes - lower
    return ErrorRange(lower, np.minimum(upper, 1.0))


class ClassRates(NamedTuple):
    """The largest values that precision and recall of a class can have."""

    precision: Floats
    recall: Floats


def precision_recall_from_disagreement(
    disagreement: ArrayLike, *, predicted_share: ArrayLike, class_share: ArrayLike
) -> ClassRates:
    r"""Largest precision and recall of a class that the disagreement about it allows.

    Models answer whether a row belongs to the class. Let :math:`d` be the rate at which
    two of them differ about that, :math:`p` the rate at which they predict the class,
    and :math:`\pi` the rate at which it occurs. The rates of false positives and false
    negatives have a sum of at least :math:`e_l(d; 2)`, the lower bound of
    :func:`error_from_disagreement`, and a difference of :math:`p - \pi`, so that

    .. math:: \text{precision} \le 1 - \frac{e_l(d; 2) + p - \pi}{2 p}, \qquad
              \text{recall} \le 1 - \frac{e_l(d; 2) - p + \pi}{2 \pi}.

    Parameters
    ----------
    disagreement
        Rate d at which one of two models predicts the class and the other does not, in
        [0, 1], measured on the pool.
    predicted_share
        Rate p at which models predict the class, in (0, 1], measured on the pool.
    class_share
        Rate at which the class occurs, in (0, 1], from the labeled rows.

    Returns
    -------
    ClassRates
        `precision` and `recall`: upper ends in [0, 1], in the broadcast shape.

    Raises
    ------
    ValueError
        Where a disagreement lies outside [0, 1], or a share outside (0, 1].

    Notes
    -----
    Guarantee: none at a sample; at the true rates precision and recall, as ratios of
    expectations over training samples, are at most the values.
    Assumes: independent trainings, and a pool from the test distribution.
    Source: :func:`error_from_disagreement` for the class against all others; Madani,
    Pennock and Flake (2004) name precision and recall as future work.

    Examples
    --------
    >>> found = precision_recall_from_disagreement(
    ...     0.18, predicted_share=0.3, class_share=0.2)
    >>> round(float(found.precision), 3), round(float(found.recall), 3)
    (0.667, 1.0)
    """
    error = error_from_disagreement(disagreement, n_classes=2)
    predicted, present = (
        np.asarray(each, np.float64) for each in (predicted_share, class_share)
    )
    for name, each in {"predicted_share": predicted, "class_share": present}.items():
        if not ((each > 0.0) & (each <= 1.0)).all():
            raise ValueError(
                f"`{name}` must be in (0, 1], got values from {each.min()} to "
                f"{each.max()}; a class that nobody predicts has no precision."
            )
    surplus = predicted - present
    precision = 1.0 - np.maximum((error + surplus) / 2.0, 0.0) / predicted
    recall = 1.0 - np.maximum((error - surplus) / 2.0, 0.0) / present
    return ClassRates(np.clip(precision, 0.0, 1.0), np.clip(recall, 0.0, 1.0))


def variance_from_disagreement(
    answers: ArrayLike, others: ArrayLike
) -> NDArray[np.float64]:
    r"""Estimate the variance of a regression learner from two models' predictions.

    It is :math:`\frac{1}{2m} \sum_x (f_1(x) - f_2(x))^2` over the :math:`m` pool rows.

    Parameters
    ----------
    answers, others
        Numbers that two independently trained models predict, of one shape; pool rows
        on the last axis, m >= 1, pairs of models on the others.

    Returns
    -------
    ndarray
        Estimates >= 0, one for each pair, in squared units of the answers.

    Raises
    ------
    ValueError
        Where there is no row, or the shapes differ.

    Notes
    -----
    Guarantee: none at a sample; its expectation is the variance over training samples,
    a lower bound of the expected squared error, whatever bias and noise are.
    Assumes: independent trainings, pool rows from the test distribution.
    Source: the decomposition of the squared error into bias, variance and noise; half
    the expected squared difference of two independent numbers is their variance.

    Examples
    --------
    >>> float(variance_from_disagreement([1.0, 2.0, 3.0], [1.0, 2.5, 3.5]).round(4))
    0.0833
    """
    one, other = np.asarray(answers, np.float64), np.asarray(others, np.float64)
    if one.shape != other.shape or not one.size or one.ndim == 0:
        raise ValueError(
            f"`others` must have the shape of `answers`, with rows on the last axis, "
            f"got {other.shape} and {one.shape}."
        )
    return np.asarray(((one - other) ** 2).mean(axis=-1) / 2.0)


def vote_error_bound(mean_error: ArrayLike, disagreement: ArrayLike) -> Floats:
    r"""Upper bound on the error of a weighted vote of two-class models.

    With :math:`r < 1/2` the expected error of a model drawn with the weights as
    probabilities, and :math:`d` the disagreement of two models that are drawn so,
    independently of each other,

    .. math:: e_{vote} \le 1 - \frac{(1 - 2r)^2}{1 - 2d}.

    Parameters
    ----------
    mean_error
        Weighted mean of the models' true errors, r in [0, 1].
    disagreement
        Rate at which two models differ that are drawn with the weights, d in [0, 1/2].
        The same model may be drawn twice; then it does not differ.

    Returns
    -------
    ndarray
        Bounds in [0, 1], in the broadcast shape; 1 where r is 1/2 or more.

    Raises
    ------
    ValueError
        Where a rate lies outside its range.

    Notes
    -----
    Guarantee: at the true rates the error of the vote is at most the value. With an
    upper limit of r and a lower limit of d in their place, it holds wherever both
    limits hold. At the same r, the bound falls as d grows.
    Assumes: two classes; weights and models fixed before these rows were seen.
    Source: A. Lacasse, F. Laviolette, M. Marchand, P. Germain and N. Usunier, PAC-Bayes
    bounds for the risk of the majority vote, NIPS 2006 (one-sided Chebyshev).

    Examples
    --------
    >>> vote_error_bound([0.3, 0.3, 0.5], [0.1, 0.4, 0.4]).round(3).tolist()
    [0.8, 0.2, 1.0]
    """
    error = np.asarray(mean_error, np.float64)
    rate = np.asarray(disagreement, np.float64)
    if ((error < 0) | (error > 1)).any() or ((rate < 0) | (rate > 0.5)).any():
        raise ValueError(
            "`mean_error` must be in [0, 1] and `disagreement` in [0, 1/2]."
        )
    margin = np.maximum(1.0 - 2.0 * error, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = 1.0 - margin**2 / (1.0 - 2.0 * rate)
    return np.clip(np.where(margin > 0.0, bound, 1.0), 0.0, 1.0)
