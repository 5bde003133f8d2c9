"""The bound of semi-supervised cross-validation: fold errors plus disagreement."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import Floats, upper_limits
from dsel.bounds.stopping import WHOLE_POOL, StoppingRule


class BoundTerms(NamedTuple):
    """An error bound and the two terms whose sum it is, not clipped at 1."""

    bound: Floats
    """Upper bound on the error of the model trained on all labeled rows."""
    label_term: Floats
    """Upper bound on the error of the models that the labeled rows tested."""
    disagreement_term: Floats
    """Upper bound on how often the full model differs from these, from the pool."""


def cv_bound(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    n_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
    reading: StoppingRule = WHOLE_POOL,
) -> BoundTerms:
    r"""Error bound from the errors of the folds and disagreement on the pool.

    With :math:`B(c, m, a)` the :func:`binomial_tail_inversion`, and
    :math:`\gamma` the label share, the error of the model trained on all labeled
    rows is at most

    .. math::
        \frac1k \sum_{i=1}^k B\Big(c_i, n_i, \frac{\gamma\delta}{k}\Big)
        + B\big(a, m, (1-\gamma)\delta\big).

    Parameters
    ----------
    fold_errors
        Errors of each fold's model on its held-out rows, :math:`c_i`. Integers;
        the last axis is the fold, the others are candidates of any shape.
    fold_rows
        Held-out rows of each fold, :math:`n_i`; broadcast against `fold_errors`.
    n_disagreements
        Pool rows on which the full model differs from the fold model drawn for
        the row, :math:`a`. Integers in the shape of the candidates.
    n_unlabeled
        Pool rows visited, :math:`m`. Integers >= 0.
    delta
        Probability with which the bound may fail, in ``(0, 1)``; or one share
        for each candidate.
    label_share
        Part of ``delta`` spent on the first term, :math:`\gamma`, in ``(0, 1)``.
    reading
        Where reading the pool may have stopped: `FixedStages` or `AnyTime`. The default
        is for reading that went on to an end fixed in advance; it is invalid where
        reading stopped because of what was counted.

    Returns
    -------
    BoundTerms
        `bound`, `label_term` and `disagreement_term`, each in the shape of the
        candidates. They are not clipped: a bound above 1 still ranks.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or a probability lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows, pool and
    draws, the error of the full model is at most `bound`. With one share for
    each candidate, summing to at most delta, all bounds hold at once.
    Assumes: i.i.d. labeled rows in folds drawn at random, never stratified; fold
    models that saw nothing of their fold; a pool of fresh rows that no model saw; the
    fold model of each pool row drawn uniformly, independent of the rows; shares fixed
    in advance.
    Source: [1]_, theorem 1. The full model may be any function of the labeled rows:
    only the disagreement counted relates it to the fold models.

    References
    ----------
    .. [1] M. Kääriäinen, "Semi-supervised model selection based on
       cross-validation", ICSI technical report TR-05-010, 2005.

    Examples
    --------
    >>> terms = cv_bound([4, 6], [100, 100], 30, 10_000, delta=0.05)
    >>> [round(float(term), 4) for term in terms]
    [0.1268, 0.1226, 0.0043]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    first, second = divide_delta(delta, label_share)
    # err(f_rand) is the mean of the fold errors; err(f) <= err(f_rand) + d(f, f_rand).
    label_term = mean_of_limits(errors, rows, first)
    return with_disagreement(
        label_term, n_disagreements, n_unlabeled, share=second, reading=reading
    )


def divide_delta(delta: ArrayLike, label_share: float) -> tuple[Floats, Floats]:
    """Return what the label term and the disagreement term may spend, or raise."""
    shares = checks.check_probabilities(delta, "delta")
    gamma = checks.check_probability(label_share, "label_share")
    return gamma * shares, (1.0 - gamma) * shares


def with_disagreement(
    label_term: Floats,
    n_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    share: Floats,
    reading: StoppingRule,
) -> BoundTerms:
    """Return the label term and the limit of a disagreement, added up."""
    disagreements, pool = checks.check_counts_of(
        n_disagreements, n_unlabeled, "n_disagreements", "n_unlabeled"
    )
    # Given the labeled rows every model is fixed, so the count is binomial.
    disagreement_term = reading.limits(disagreements, pool, share)
    return BoundTerms(label_term + disagreement_term, label_term, disagreement_term)


def mean_of_limits(
    errors: NDArray[np.int64], rows: NDArray[np.int64], share: Floats | float
) -> Floats:
    """Return the first term: the mean of the fold limits, each at its part of share."""
    # One order of summation whatever the layout: pruning compares these numbers.
    limits = np.ascontiguousarray(fold_limits(errors, rows, share))
    return np.asarray(limits.mean(axis=-1))[()]


def fold_limits(
    errors: NDArray[np.int64],
    rows: NDArray[np.int64],
    share: Floats | float,
    *,
    limits: Callable[..., Floats] = upper_limits,
) -> Floats:
    """Return the limits of all fold models, which hold at once at the share given."""
    per_fold = np.asarray(share)[..., np.newaxis] / errors.shape[-1]
    return np.asarray(limits(errors, rows, per_fold))


def check_folds(
    fold_errors: ArrayLike, fold_rows: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return counts whose last axis is the fold, broadcast, or raise."""
    errors, rows = checks.check_counts_of(
        fold_errors, fold_rows, "fold_errors", "fold_rows"
    )
    if errors.ndim == 0 or errors.shape[-1] == 0:
        raise ValueError(
            f"`fold_errors` must have the folds on its last axis, got shape "
            f"{errors.shape}; for one held-out set call `holdout_bound`."
        )
    return errors, rows
