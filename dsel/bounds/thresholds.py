r"""Bounds on the probability of an error with a large margin, for all margins at once.

They bound P(a_k(X, Y) <= t), the probability that a fresh row conforms to its label at
most t under model k, from the number c of n validation scores up to t. For t = -m this
is the probability that model k errs with margin m or more, not that at one test row.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.bounds.binomial import upper_limits
from dsel.checks import check_counts_of, check_integer, check_probability


class SelectiveRisk(NamedTuple):
    """Limits at each threshold, where rows with a score up to it keep their answer."""

    joint: NDArray[np.float64]
    """Upper limit of P(kept and wrong)."""
    coverage: NDArray[np.float64]
    """Lower limit of P(kept)."""
    conditional: NDArray[np.float64]
    """Upper limit of P(wrong | kept); 1 where the lower limit of P(kept) is 0."""


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
    count, n, models, share = _checked(counts, n_validation, n_models, delta)
    # sum over c of 1 / ((c + 1) (c + 2)) is at most 1, so small counts, which matter,
    # get nearly all of delta.
    return upper_limits(count, n, share / (models * (count + 1.0) * (count + 2.0)))


def threshold_bound_even(
    counts: ArrayLike, n_validation: int, *, n_models: int, delta: float
) -> NDArray[np.float64]:
    r"""Bound on the rate of errors with a large margin: delta divided evenly.

    It is :math:`B(c, n, \delta / (K n))`, smaller than :func:`threshold_bound` where
    many validation scores lie below the threshold, larger where few do.

    Parameters
    ----------
    counts, n_validation, n_models, delta
        As `threshold_bound` takes them; what is returned is alike, too.

    Notes
    -----
    Guarantee: that of `threshold_bound`.
    Assumes: independent validation rows that no model was trained on.
    Source: as `threshold_bound`, with the union over n counts of equal shares.

    Examples
    --------
    >>> threshold_bound_even([0, 1, 5], 50, n_models=110, delta=0.05).round(3)
    array([0.207, 0.252, 0.38 ])
    """
    count, n, models, share = _checked(counts, n_validation, n_models, delta)
    # Counts 0 to n - 1 share equally; at c = n the bound is 1 and costs nothing.
    return upper_limits(count, n, share / (models * n))


def threshold_bound_dkw(
    counts: ArrayLike, n_validation: int, *, n_models: int, delta: float
) -> NDArray[np.float64]:
    r"""Bound on the rate of errors with a large margin: one term for all counts.

    It is :math:`c/n + \sqrt{\ln(K/\delta) / (2n)}`, not clipped at 1.

    Parameters
    ----------
    counts, n_validation, n_models, delta
        As `threshold_bound` takes them, with ``delta / n_models <= 1/2``.

    Returns
    -------
    ndarray
        Bounds in the shape of `counts`; vacuous from 1 on.

    Raises
    ------
    ValueError
        Where ``delta / n_models`` exceeds one half.

    Notes
    -----
    Guarantee: that of `threshold_bound`.
    Assumes: independent validation rows that no model was trained on.
    Source: Massart (1990), the one-sided inequality, and a union over the models.

    Examples
    --------
    >>> threshold_bound_dkw([0, 5], 50, n_models=110, delta=0.05).round(3)
    array([0.277, 0.377])
    """
    count, n, models, share = _checked(counts, n_validation, n_models, delta)
    return count / n + _dkw_slack(n, models, share, "delta")


def threshold_bound_vc(
    counts: ArrayLike, n_validation: int, *, n_models: int, delta: float, d: int = 1
) -> NDArray[np.float64]:
    r"""Bound on the rate of errors with a large margin, as the paper prints it.

    It is :math:`c/n + 5.66 \sqrt{(d \ln(en/d) + \ln(8K/\delta)) / n}`, not clipped.

    Parameters
    ----------
    counts, n_validation, n_models, delta
        As `threshold_bound` takes them.
    d
        Vapnik-Chervonenkis dimension of the sets whose rows are counted, at most n; 1
        for thresholds.

    Returns
    -------
    ndarray
        Bounds in the shape of `counts`; vacuous from 1 on.

    Notes
    -----
    Guarantee: that of :func:`threshold_bound` with d = 1; with another d, for all sets
    of a system of that dimension at once.
    Assumes: independent validation rows that no model was trained on.
    Source: Hardoon, Hussain and Shawe-Taylor (2009), Theorem 4.1, with delta divided
    by the number of models. With 110 models it is above 3 for n = 50; it is here to be
    compared with the sharper bounds.

    Examples
    --------
    >>> threshold_bound_vc([0, 0], 50, n_models=110, delta=0.05).round(2)
    array([3.07, 3.07])
    """
    count, n, models, share = _checked(counts, n_validation, n_models, delta)
    dimension = check_integer(d, "d", at_least=1, at_most=n)
    # d ln(e n / d) + ln(8 K / delta), as printed.
    complexity = dimension * (1.0 + math.log(n / dimension))
    complexity += math.log(8.0 * models / share)
    return count / n + 5.66 * math.sqrt(complexity / n)


def printed_error_bound(
    counts: ArrayLike, n_validation: int, *, n_models: int, delta: float
) -> NDArray[np.float64]:
    """Return the number that the paper calls a bound on the error; it is not one.

    Proposition 4.2 takes :func:`threshold_bound_vc` at the critical epsilon for a bound
    on the probability that the prediction at the test row is wrong.

    Parameters
    ----------
    counts
        Critical counts of the test rows, ``n * epsilon_crit``, any shape.
    n_validation, n_models, delta
        As `threshold_bound` takes them; the paper's delta.

    Returns
    -------
    ndarray
        Numbers in the shape of `counts`, for reproduction only.

    Notes
    -----
    Guarantee: none. The proof bounds the joint probability of an error and a margin;
    the model and the margin are chosen at the test row. On labels that are pure noise
    (true error 0.50) with 110 models and 10,000 validation rows it reports 0.26.
    Assumes: model and margin fixed before the test row, against what the method does.
    Source: Hardoon, Hussain and Shawe-Taylor (2009), Proposition 4.2, as printed.

    Examples
    --------
    >>> printed_error_bound([0, 70], 10_000, n_models=110, delta=0.05).round(2)
    array([0.25, 0.26])
    """
    return threshold_bound_vc(counts, n_validation, n_models=n_models, delta=delta)


def selective_error_bound(
    counts: ArrayLike,
    n_validation: int,
    selected: ArrayLike,
    n_pool: int,
    *,
    n_models: int,
    delta: float,
    pool_delta: float,
) -> NDArray[np.float64]:
    r"""Bound on the error of a model among the rows on which its margin is large.

    With :math:`c` validation errors of margin :math:`\tau` or more, and :math:`s` of
    :math:`m` pool rows of that margin,

    .. math:: \frac{B(c, n, \delta / (K (c+1)(c+2)))}
              {s / m - \sqrt{\ln(K / \delta') / (2m)}}.

    Parameters
    ----------
    counts, n_validation, n_models, delta
        As `threshold_bound` takes them, at the threshold :math:`-\tau`.
    selected
        Pool rows whose margin is :math:`\tau` or more, in [0, m]; broadcast.
    n_pool
        Pool rows, m >= 1.
    pool_delta
        Probability with which the denominator may fail, in (0, 1), with
        ``pool_delta / n_models <= 1/2``.

    Returns
    -------
    ndarray
        Bounds in (0, 1] in the broadcast shape; 1 where nothing is bounded.

    Raises
    ------
    ValueError
        Where more rows are selected than the pool has, or ``pool_delta / n_models``
        exceeds one half.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta - pool_delta`` over validation
    rows and pool, for every model k and margin tau at once, the value is at least
    P(f_k errs on X, given that its margin at X is tau or more).
    Assumes: independent validation rows and pool rows from one distribution, none of
    them used in training. It holds for each model, not for one chosen row by row.
    Source: `threshold_bound` over a one-sided Massart limit of the selected share.

    Examples
    --------
    >>> selective_error_bound(
    ...     [0, 4], 500, [60_000, 90_000], 100_000,
    ...     n_models=110, delta=0.04, pool_delta=0.01,
    ... ).round(4)
    array([0.0288, 0.045 ])
    """
    m = check_integer(n_pool, "n_pool", at_least=1)
    chosen, _ = check_counts_of(selected, m, "selected", "n_pool")
    limit = threshold_bound(counts, n_validation, n_models=n_models, delta=delta)
    slack = _dkw_slack(
        m, n_models, check_probability(pool_delta, "pool_delta"), "pool_delta"
    )
    # A lower limit of P(margin >= tau), for all tau at once (Massart).
    share = chosen / m - slack
    # P(error | margin) = P(error and margin) / P(margin): upper over lower limit.
    return _ratio(limit, share)


def selective_risk_bound(
    n_wrong: ArrayLike, n_kept: ArrayLike, n_rows: int, *, delta: float
) -> SelectiveRisk:
    r"""Bound the error rate among the answers kept, at every threshold at once.

    An answer is kept where its score is at most :math:`t`: for :math:`k_t` of :math:`n`
    fresh labeled rows, :math:`c_t` of them wrong. With :math:`B` the inverse tail,

    .. math:: P(\text{wrong}, s \le t)
        \le B\Big(c_t, n, \frac{\delta/2}{(c_t+1)(c_t+2)}\Big) = J_t,\qquad
        P(s > t) \le B\Big(n - k_t, n, \frac{\delta/2}{(n-k_t+1)(n-k_t+2)}\Big) = R_t,

    so that :math:`P(\text{wrong} \mid s \le t) \le J_t / (1 - R_t)`.

    Parameters
    ----------
    n_wrong
        Wrong answers among the rows kept at each threshold, any shape.
    n_kept
        Rows kept at each threshold, in the same shape.
    n_rows
        Labeled rows, n >= 1.
    delta
        Probability with which any of the bounds may fail, in (0, 1).

    Returns
    -------
    SelectiveRisk
        Upper limits `joint` and `conditional`, lower limit `coverage`.

    Raises
    ------
    ValueError
        Where more rows are kept than there are, or more are wrong than are kept.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the labeled rows, all three
    hold at every threshold at once, so also at one that was picked after seeing them.
    Assumes: labeled rows drawn like future ones, which no model was trained on and no
    score was calibrated on.
    Source: :func:`threshold_bound` with one model, of the score where the answer is
    wrong (plus infinity where it is right), and of minus the score.

    Examples
    --------
    >>> found = selective_risk_bound([2, 30], [200, 500], 500, delta=0.05)
    >>> found.joint.round(3).tolist(), found.conditional.round(3).tolist()
    ([0.021, 0.114], [0.07, 0.115])
    """
    n = check_integer(n_rows, "n_rows", at_least=1)
    wrong, kept = check_counts_of(n_wrong, n_kept, "n_wrong", "n_kept")
    check_counts_of(kept, n, "n_kept", "n_rows")
    half = check_probability(delta, "delta") / 2.0
    joint = threshold_bound(wrong, n, n_models=1, delta=half)
    coverage = 1.0 - threshold_bound(n - kept, n, n_models=1, delta=half)
    return SelectiveRisk(joint, coverage, _ratio(joint, coverage))


def _ratio(
    above: NDArray[np.float64], below: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a ratio of limits, at most 1, which it is where the lower one is none."""
    most = np.ones(np.broadcast_shapes(above.shape, below.shape))
    return np.minimum(np.divide(above, below, where=below > 0, out=most), 1.0)


def _checked(
    counts: ArrayLike, n_validation: int, n_models: int, delta: float
) -> tuple[NDArray[np.int64], int, int, float]:
    n = check_integer(n_validation, "n_validation", at_least=1)
    count, _ = check_counts_of(counts, n, "counts", "n_validation")
    models = check_integer(n_models, "n_models", at_least=1)
    return count, n, models, check_probability(delta, "delta")


def _dkw_slack(n: int, n_models: int, delta: float, name: str) -> float:
    if delta > 0.5 * n_models:
        raise ValueError(
            f"`{name}` must be at most half of `n_models` = {n_models}, got {delta}; "
            "the one-sided inequality needs it."
        )
    return math.sqrt(math.log(n_models / delta) / (2.0 * n))
