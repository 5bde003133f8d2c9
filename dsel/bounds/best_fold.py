"""The bound through the single best fold model instead of the average one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import upper_limits
from dsel.bounds.reading import WHOLE_POOL, StoppingRule
from dsel.bounds.semi_supervised import (
    BoundTerms,
    check_folds,
    divide_delta,
    with_disagreement,
)

Floats = NDArray[np.float64]


def best_fold(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    n_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
    reading: StoppingRule = WHOLE_POOL,
    disagreement_delta: ArrayLike | None = None,
) -> BoundTerms:
    r"""Error bound through the fold whose model errs least.

    All fold models have limits at once, so instead of averaging them the best,
    :math:`i^*`, is taken, and disagreement is counted against its model alone:

    .. math::
        B\Big(c_{i^*}, n_{i^*}, \frac{\gamma\delta}{k}\Big)
        + B\big(a^*, m, (1-\gamma)\delta\big).

    Parameters
    ----------
    fold_errors, fold_rows, n_unlabeled, delta, label_share, reading
        As :func:`semi_supervised_cv_bound` takes them.
    n_disagreements
        Pool rows on which the full model differs from that of :func:`best_fold_number`,
        :math:`a^*`. Integers in the shape of the candidates.
    disagreement_delta
        What the second term may spend, if not :math:`(1-\gamma)\delta`. A candidate
        that was chosen by labeled rows alone may spend what all of them may.

    Returns
    -------
    BoundTerms
        `bound`, `label_term` and `disagreement_term`, not clipped.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or a probability lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool,
    the error of the full model is at most `bound`. With one share for each
    candidate, summing to at most delta, all bounds hold at once. `label_term`
    alone bounds the error of the best fold's model.
    Assumes: what :func:`semi_supervised_cv_bound` assumes, with no draw of folds;
    the fold is a function of labeled rows, so it is picked before the pool is read.
    The label term is a read-out of the same limits as that of the mean, the
    disagreement term is another event and needs a share of its own.
    Source: union bound over folds and the triangle inequality for one fold; not
    in the literature that dsel follows. It is not monotone in the counts, so it
    cannot prune.

    Examples
    --------
    >>> terms = best_fold([4, 6], [100, 100], 30, 10_000, delta=0.05)
    >>> [round(float(term), 4) for term in terms]
    [0.113, 0.1087, 0.0043]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    first, second = divide_delta(delta, label_share)
    if disagreement_delta is not None:
        second = checks.check_probabilities(disagreement_delta, "disagreement_delta")
    limits = fold_limits(errors, rows, first)
    number = smallest_rate(errors, rows)
    label_term = np.take_along_axis(limits, np.expand_dims(number, -1), -1)[..., 0]
    return with_disagreement(
        label_term, n_disagreements, n_unlabeled, share=second, reading=reading
    )


def best_fold_number(fold_errors: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.intp]:
    r"""Return the fold of smallest error rate, the smallest number among equals.

    For folds whose sizes differ by at most one, the larger first, it is the fold
    with the smallest limit too, at every ``delta``; so counts against its model can
    be read at another ``delta``.

    Parameters
    ----------
    fold_errors
        Errors of each fold's model on its held-out rows. Integers; the last axis
        is the fold, the others are candidates of any shape.
    fold_rows
        Held-out rows of each fold, >= 1, broadcast against `fold_errors`.

    Returns
    -------
    ndarray
        Numbers of folds, from 0, in the shape of the candidates.

    Raises
    ------
    ValueError
        Where a count exceeds its rows.

    Notes
    -----
    Guarantee: none of its own; it picks the limit that :func:`best_fold` reports.
    Assumes: it is called before the pool is read, so that the pool is fresh; any
    other function of the labeled rows would do as well.
    Source: as :func:`best_fold`.

    Examples
    --------
    >>> int(best_fold_number([6, 4, 4], [100, 100, 100]))
    1
    """
    return smallest_rate(*check_folds(fold_errors, fold_rows))[()]


def smallest_rate(
    errors: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Return the fold of smallest rate; -1 where a fold is not counted yet (-1)."""
    # Rates of folds of n and n + 1 rows differ by far more than they round.
    first = np.argmin(errors / rows, axis=-1)
    return np.where((errors < 0).any(axis=-1), -1, first)


def fold_limits(
    errors: NDArray[np.int64], rows: NDArray[np.int64], share: Floats | float
) -> Floats:
    """Return the limits of all fold models, which hold at once at the share given."""
    per_fold = np.asarray(share)[..., np.newaxis] / errors.shape[-1]
    return np.asarray(upper_limits(errors, rows, per_fold))
