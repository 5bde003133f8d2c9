"""Conformity of rows to labels: margins, counts, and a bound.

The bound is on P(a_k(X, Y) <= t), the probability that a fresh row conforms to its
label at most t under model k, from the number c of n validation scores up to t. For
t = -m this is the probability that model k errs with margin m or more, not that at one
test row.
"""

from functools import partial

import numpy as np

from dsel.arrays import ArrayLike, Floats, Integers
from dsel.bounds.binomial import upper_limits
from dsel.checks import check_count, check_counts_of, check_probability


def count_not_above(ascending: Floats, scores: Floats) -> Integers:
    """Count the validation scores <= each score, model by model.

    `ascending` has shape (n,) or (..., n); then `scores` shares its leading axes.
    """
    count = np.vectorize(
        partial(np.searchsorted, side="right"), [np.int64], signature="(n),(m)->(m)"
    )
    return np.asarray(count(ascending, scores))


def margin_conformity(scores: ArrayLike) -> Floats:
    r"""Conformity by margin: :math:`a(y) = f_y - \max_{c \ne y} f_c`.

    `scores` have at least two classes on their last axis. A class that the model does
    not know has the score -inf and the conformity -inf; if only one class is known,
    its conformity is +inf. Two-class margins f are passed as the pair (-f, f), so the
    conformity is (-2f, 2f), which changes no p-value.

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
) -> Floats:
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
    n = check_count(n_validation, "n_validation", at_least=1)
    count, _ = check_counts_of(counts, n, "counts", "n_validation")
    models = check_count(n_models, "n_models", at_least=1)
    whole = check_probability(delta, "delta")
    # Small counts, which matter, get nearly all of delta.
    return upper_limits(count, n, whole / (models * (count + 1.0) * (count + 2.0)))
