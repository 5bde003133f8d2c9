"""Conformity of rows to labels: margins, p-values, counts and their bound.

The bound is on P(a_k(X, Y) <= t), the probability that a fresh row conforms to its
label at most t under model k, from the number c of n validation scores up to t. For
t = -m this is the probability that model k errs with margin m or more, not that at one
test row.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import upper_limits
from dsel.checks import check_counts_of, check_integer, check_probability


def conformal_p_value(
    validation_scores: ArrayLike, test_scores: ArrayLike, *, smoothing: bool = True
) -> NDArray[np.float64]:
    r"""P-value of a label: fraction of validation rows that conform no better.

    With :math:`n` validation scores :math:`a_j` and a test score :math:`a` the
    count is :math:`c = \#\{j : a_j \le a\}`, the p-value

    .. math:: p = \frac{c + 1}{n + 1} \quad\text{or, as printed,}\quad \frac{c}{n}.

    Parameters
    ----------
    validation_scores
        Conformity of held-out rows to their own labels, larger is more typical,
        shape ``(..., n)`` with n >= 1. Leading axes are models.
    test_scores
        Conformity of test rows to a label, shape ``(..., n_rows)`` with the same
        leading axes (or any shape where `validation_scores` is one-dimensional).
    smoothing
        Whether the test row is counted too. Without it the p-value is the printed
        one: it can be 0, and its regions miss more often than they say.

    Returns
    -------
    ndarray
        P-values in the shape of `test_scores`: in (0, 1] with smoothing, in [0, 1]
        without.

    Raises
    ------
    ValueError
        Where a score is NaN, there is no validation score, or the leading axes differ.

    Notes
    -----
    Guarantee: with smoothing, for one model fixed in advance and the true label of a
    fresh row, ``P(p <= epsilon) <= epsilon`` over validation and test row jointly.
    Assumes: exchangeable rows; a model that saw none of them. The guarantee does not
    cover a model chosen by its p-value at the test row.
    Source: Hardoon, Hussain and Shawe-Taylor (2009), section 3; the +1 is the
    correction that their Proposition 3.2 needs.

    Examples
    --------
    The six validation rows of Figure 1 of the paper, two of them errors, and a test
    row with f(x) = 0.5, taken as positive and as negative:

    >>> validation = [-1.5, -0.2, 0.3, 0.8, 1.2, 2.0]
    >>> (6 * conformal_p_value(validation, [0.5, -0.5], smoothing=False)).round(12)
    array([3., 1.])
    """
    ascending = sort_scores(validation_scores)
    scores = _finite_or_infinite(test_scores, "test_scores")
    if ascending.ndim > 1 and scores.shape[:-1] != ascending.shape[:-1]:
        raise ValueError(
            f"`test_scores` must have the leading axes {ascending.shape[:-1]} of "
            f"`validation_scores`, got shape {scores.shape}."
        )
    # Ties count as conforming no better, which is the conservative side.
    counts = count_not_above(ascending, scores)
    n = ascending.shape[-1]
    p_values = (counts + 1.0) / (n + 1.0) if smoothing else counts / n
    return np.asarray(p_values)


def sort_scores(validation_scores: ArrayLike) -> NDArray[np.float64]:
    """Return validation scores ascending along the last axis, checked."""
    scores = _finite_or_infinite(validation_scores, "validation_scores")
    if scores.ndim == 0 or scores.shape[-1] == 0:
        raise ValueError(
            "`validation_scores` must hold at least one score on its last axis, "
            f"got shape {scores.shape}; hold out a larger validation part."
        )
    return np.sort(scores, axis=-1)


def _finite_or_infinite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    scores = np.asarray(values, dtype=np.float64)
    if np.isnan(scores).any():
        raise ValueError(
            f"`{name}` must not be NaN, got {int(np.isnan(scores).sum())} NaN of "
            f"{scores.size}; look for columns or fits that overflow."
        )
    return scores


def count_not_above(
    ascending: NDArray[np.float64], scores: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Count the validation scores <= each score, model by model.

    `ascending` has shape (n,) or (..., n); then `scores` shares its leading axes.
    """
    if ascending.ndim == 1:
        return np.searchsorted(ascending, scores, side="right")
    n = ascending.shape[-1]
    rows = scores.reshape(-1, scores.shape[-1])
    pairs = zip(ascending.reshape(-1, n), rows, strict=True)
    counts = [np.searchsorted(one, row, side="right") for one, row in pairs]
    return np.array(counts, dtype=np.int64).reshape(scores.shape)


def margin_conformity(scores: ArrayLike) -> NDArray[np.float64]:
    r"""Conformity by margin: :math:`a(y) = f_y - \max_{c \ne y} f_c`.

    Parameters
    ----------
    scores
        Scores of the classes, shape ``(..., n_classes)``, larger is more likely;
        -inf for a class that the model does not know. At least two classes.

    Returns
    -------
    ndarray
        Conformity to every class, in the same shape; -inf for unknown classes, and
        +inf for the only known one. Two-class margins f are given as the pair (-f, f),
        so the conformity is (-2f, 2f), which changes no p-value.

    Notes
    -----
    Guarantee: none by itself; it is a measure for :func:`conformal_p_value`.
    Assumes: nothing.
    Source: Hardoon, Hussain and Shawe-Taylor (2009), equation (3), with the usual
    extension to more than two classes.

    Examples
    --------
    >>> margin_conformity([[0.2, 1.0, 0.5]])
    array([[-0.8,  0.5, -0.5]])
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] < 2:
        raise ValueError(
            f"`scores` must have at least two classes on the last axis, got shape "
            f"{values.shape}."
        )
    # For every class but the best the rival is the best; for the best the runner-up.
    first = np.argmax(values, axis=-1)[..., np.newaxis]
    two_best = np.partition(values, values.shape[-1] - 2, axis=-1)[..., -2:]
    best, runner_up = two_best[..., 1:], two_best[..., :1]
    rival = np.broadcast_to(best, values.shape).copy()
    np.put_along_axis(rival, first, runner_up, axis=-1)
    # -inf less -inf is NaN where several classes are unknown; they get -inf below.
    with np.errstate(invalid="ignore"):
        conformity = values - rival
    return np.where(np.isneginf(values), -np.inf, conformity)


def threshold_bound(
    counts: ArrayLike, n_validation: int, *, n_models: int, delta: float
) -> NDArray[np.float64]:
    r"""Bound on the rate of errors with a large margin: sharp at small counts.

    With :math:`c` of :math:`n` validation scores at or below the threshold, :math:`K`
    models and :math:`B` the :func:`binomial_tail_inversion`, the bound is
    :math:`B(c, n, \delta / (K (c+1)(c+2)))`.

    Parameters
    ----------
    counts
        Validation scores at or below the threshold, :math:`c`, in [0, n], any shape.
    n_validation
        Validation rows, :math:`n` >= 1.
    n_models
        Models that the choice is made from, :math:`K` >= 1.
    delta
        Probability with which any of the bounds may fail, in (0, 1).

    Returns
    -------
    ndarray
        Bounds in (0, 1], in the shape of `counts`; 1 at c = n.

    Raises
    ------
    ValueError
        Where a count exceeds `n_validation`, or ``delta`` lies outside (0, 1).

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the validation rows, for
    every model k and threshold t at once, ``P(a_k(X, Y) <= t)`` is at most the value
    at the count of t. At t = -margin this is the probability that model k errs on a
    fresh row with at least that margin; it does not bound the error at a test row.
    Assumes: independent validation rows that no model was trained on.
    Source: order statistics and a union over counts and models, with
    sum over c of 1/((c+1)(c+2)) <= 1.

    Examples
    --------
    >>> threshold_bound([0, 1, 5], 50, n_models=110, delta=0.05).round(3)
    array([0.154, 0.216, 0.377])
    """
    n = check_integer(n_validation, "n_validation", at_least=1)
    count, _ = check_counts_of(counts, n, "counts", "n_validation")
    models = check_integer(n_models, "n_models", at_least=1)
    share = check_probability(delta, "delta")
    # sum over c of 1 / ((c + 1) (c + 2)) is at most 1, so small counts, which matter,
    # get nearly all of delta.
    return upper_limits(count, n, share / (models * (count + 1.0) * (count + 2.0)))
