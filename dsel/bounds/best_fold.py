"""The bound through the single best fold model instead of the average one."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import checks
from dsel.bounds.binomial import Floats
from dsel.bounds.semi_supervised import (
    BoundTerms,
    check_folds,
    divide_delta,
    fold_limits,
    with_disagreement,
)
from dsel.bounds.stopping import WHOLE_POOL, StoppingRule


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

    The limits of all fold models hold at once. So the fold of smallest error rate,
    :math:`i^*`, may be taken in the place of their mean, and disagreement is counted
    against its model alone:

    .. math::
        B\Big(c_{i^*}, n_{i^*}, \frac{\gamma\delta}{k}\Big)
        + B\big(a^*, m, (1-\gamma)\delta\big).

    Parameters
    ----------
    fold_errors, fold_rows, n_unlabeled, delta, label_share, reading
        As :func:`cv_bound` takes them, with the same errors.
    n_disagreements
        Pool rows on which the full model differs from that of :func:`best_fold_number`,
        :math:`a^*`. Integers in the shape of the candidates.
    disagreement_delta
        Probability with which the second term may fail, in the place of
        :math:`(1-\gamma)\delta`. Where one candidate was chosen by the labeled rows
        alone, it need not be divided among the candidates.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool,
    the error of the full model is at most `bound`. With one share for each
    candidate, summing to at most delta, all bounds hold at once. `label_term`
    alone bounds the error of the best fold's model. With a `disagreement_delta` the
    bound may fail with ``label_share * delta + disagreement_delta``.
    Assumes: what :func:`cv_bound` assumes, with no draw of folds;
    the fold is a function of labeled rows, so it is picked before the pool is read.
    The label term is a read-out of the same limits as that of the mean, the
    disagreement term is another event and needs a share of its own.
    Source: union bound over folds and the triangle inequality for one fold; not
    in the papers that dsel follows. More errors can make another fold the best one
    and the bound smaller, so no candidate can be pruned by it.

    Examples
    --------
    >>> terms = best_fold([4, 6], [100, 100], 30, 10_000, delta=0.05)
    >>> [round(float(term), 4) for term in terms]
    [0.113, 0.1087, 0.0043]
    """
    first, second = divide_delta(delta, label_share)
    if disagreement_delta is not None:
        second = checks.check_probabilities(disagreement_delta, "disagreement_delta")
    label_term = best_fold_model(fold_errors, fold_rows, delta=first)
    return with_disagreement(
        label_term, n_disagreements, n_unlabeled, share=second, reading=reading
    )


def best_fold_model(
    fold_errors: ArrayLike, fold_rows: ArrayLike, *, delta: ArrayLike
) -> Floats:
    r"""Error bound of the best fold's model, where that is the one handed over.

    The limits of all fold models hold at once, so the smallest may be picked after the
    counts were seen. No pool is needed:

    .. math:: \min_i B\Big(c_i, n_i, \frac{\delta}{k}\Big).

    Parameters
    ----------
    fold_errors, fold_rows, delta
        As :func:`cv_bound` takes them, with the same errors.

    Returns
    -------
    ndarray
        Bounds in ``(0, 1]``, in the shape of the candidates.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the labeled rows, the error
    of the model of :func:`best_fold_number` is at most the bound. With one share for
    each candidate, summing to at most delta, all bounds hold at once.
    Assumes: i.i.d. labeled rows in random folds whose sizes are fixed in advance and
    differ by at most one. The model of fold i may come of any selection, adaptive
    or by hand, that has not seen the rows of fold i.
    Source: union bound of the test-set bound over folds; not in the papers that dsel
    follows.

    Examples
    --------
    >>> float(best_fold_model([8, 5, 7], [100, 100, 100], delta=0.05).round(4))
    0.1187
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    share = checks.check_probabilities(delta, "delta")
    # The k limits hold at once, so the smallest may be taken after they are seen.
    limits = fold_limits(errors, rows, share)
    return at_fold(limits, smallest_rate(errors, rows)[..., np.newaxis])


def best_fold_number(fold_errors: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.intp]:
    r"""Return the fold of smallest error rate, the smallest number among equals.

    Where the sizes of the folds differ by at most one and the larger folds come first,
    this fold also has the smallest limit, whatever ``delta`` is. So disagreements that
    were counted against its model can be used with another ``delta``.

    Parameters
    ----------
    fold_errors, fold_rows
        As :func:`cv_bound` takes them, with the same errors.

    Returns
    -------
    ndarray
        Numbers of folds, from 0, in the shape of the candidates.

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
    # Rates of folds of n and n + 1 rows differ by far more than they round. A fold
    # without rows tested nothing.
    rates = np.full(errors.shape, np.inf)
    first = np.argmin(np.divide(errors, rows, where=rows > 0, out=rates), axis=-1)
    return np.where((errors < 0).any(axis=-1), -1, first)


def at_fold(values: NDArray[Any], fold: NDArray[np.intp]) -> NDArray[Any]:
    """Return the value of each candidate's fold; folds are on the last axis."""
    # With several shares for one candidate, values have axes that folds have not.
    fold = np.broadcast_to(fold, (*values.shape[:-1], 1))
    return np.asarray(np.take_along_axis(values, fold, -1)[..., 0])
