"""Bounds from the errors of cross-validation, and from disagreement on the pool.

Each function bounds the models of all folds at once. They differ in which of these
limits they use, and in whether the deployed model is that of a fold or the one trained
on all labeled rows; in the latter case its disagreement with a fold's model is counted
on the pool.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel import checks
from dsel.arrays import ArrayLike, Floats, Integers
from dsel.bounds.binomial import mean_outward, sum_outward, upper_limits
from dsel.bounds.shares import LABEL_SHARE, fold_deltas
from dsel.old_names import read_old_arguments


class BoundTerms(NamedTuple):
    """A bound and the two terms whose sum it is, rounded up; not clipped.

    It is of the error, or of another loss, such as a tolerance.
    """

    bound: Floats
    """Upper bound on the loss of the model trained on all labeled rows."""
    label_term: Floats
    """Upper bound on the loss of the models that the labeled rows tested."""
    disagreement_term: Floats
    """Upper bound on how much larger that of all rows is, from pool counts."""


@read_old_arguments(equal_rows="n_duplicates", counted="counted_duplicates")
def upper_pool_rows(
    n_unlabeled: ArrayLike, n_duplicates: ArrayLike, counted_duplicates: ArrayLike = 0
) -> Integers:
    r"""Return the pool rows to use in an upper limit where some equal labeled rows.

    Of :math:`m` rows :math:`e` equal a labeled row, and :math:`e_a` of these are among
    the :math:`a` rows counted. The limit of the count is that of :math:`a` errors in
    :math:`m - e + e_a` rows, :math:`B(a, m - e + e_a, \delta)`. Where only :math:`e` is
    known, :math:`e_a = 0`, and the limit is 1 where :math:`a > m - e`.

    Parameters
    ----------
    n_unlabeled, n_duplicates
        Pool rows on which models were compared, :math:`m`, and how many of them have
        the content of some labeled row, :math:`e`. Integers >= 0, any shape.
    counted_duplicates
        How many of these are among the counted rows, :math:`e_a`. Integers in
        ``[0, n_duplicates]``; 0 where this is not known.

    Returns
    -------
    ndarray
        `pool_rows` of the bounds below.

    Raises
    ------
    TypeError
        Where the counts are not integers.
    ValueError
        Where there are more duplicates than rows, or more counted ones than duplicates.

    Notes
    -----
    Guarantee: none of its own; upper limits that use this number of rows hold.
    Assumes: a pool of fresh rows and, besides, at most `n_duplicates` records of the
    labeled rows themselves, repeated or not; or a pool of fresh rows all of which may
    by chance equal labeled ones.
    Source: in the first case :math:`r \le e_a` records were counted and :math:`q \le e
    - e_a` were not, so that the limit of the fresh rows is :math:`B(a - r, m - r - q,
    \delta) \le B(a, m - q, \delta)`: a record that leaves a count and its total lowers
    the limit. In the second :math:`B(a, m - e + e_a, \delta) \ge B(a, m, \delta)`.
    Leaving equal rows out instead would be wrong in the second case: models that know
    their rows by heart differ exactly there. Derived for dsel:
    docs/theory/equal_rows.md.

    Examples
    --------
    >>> int(upper_pool_rows(10_000, 250)), int(upper_pool_rows(10_000, 250, 30))
    (9750, 9780)
    """
    e, m = checks.check_counts_of(
        n_duplicates, n_unlabeled, "n_duplicates", "n_unlabeled"
    )
    e_a, e = checks.check_counts_of(
        counted_duplicates, e, "counted_duplicates", "n_duplicates"
    )
    _, fresh = checks.broadcast(n_duplicates=e, n_unlabeled=m - e)
    return np.asarray(fresh + e_a)[()]


def cv_bound(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    disagreements: ArrayLike,
    pool_rows: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = LABEL_SHARE,
) -> BoundTerms:
    r"""Error bound from the mean of the folds' limits and disagreement on the pool.

    With :math:`B(c, m, \delta)` the :func:`binomial_tail_inversion`,
    :math:`\delta_1` the label share of delta and :math:`\delta_2 = \delta - \delta_1`,
    the error of the model trained on all labeled rows is at most

    .. math::
        \frac1k \sum_{i=1}^k B\Big(c_i, n_i, \frac{\delta_1}{k}\Big)
        + B(a, m, \delta_2).

    Parameters
    ----------
    fold_errors
        Errors of each fold's model on its held-out rows, :math:`c_i`. Integers;
        the last axis is the fold, the others are candidates of any shape.
    fold_rows
        Held-out rows of each fold, :math:`n_i`; broadcast against `fold_errors`.
    disagreements
        Pool rows on which the model of all rows differs from the fold model drawn for
        the row, :math:`a`. Integers in the shape of the candidates.
    pool_rows
        Number of pool rows, :math:`m`, from :func:`upper_pool_rows`. Where it is
        smaller than `disagreements`, the second term is 1.
    delta
        Probability with which the bound may fail, in ``(0, 1)``; or one
        for each candidate.
    label_share
        Share of ``delta`` for the first term, :math:`\delta_1 / \delta`, in ``(0, 1)``.
        Kaariainen (2005) takes one half.

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
        Where a fold has more errors than rows, or a probability lies outside
        ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows, pool and
    draws, the error of the model of all rows is at most `bound`. With one for each
    candidate, which sum to at most delta, all bounds hold at once.
    Assumes: i.i.d. labeled rows in folds drawn at random, never stratified; fold
    models that saw nothing of their fold; a pool of fresh rows that no model saw; the
    fold model of each pool row drawn uniformly, independent of the rows; shares fixed
    in advance.
    Source: [1]_, theorem 1. The model of all rows may be any function of the labeled
    rows: only the disagreement counted relates it to the fold models.

    References
    ----------
    .. [1] M. Kääriäinen, "Semi-supervised model selection based on
       cross-validation", ICSI technical report TR-05-010, 2005.

    Examples
    --------
    >>> terms = cv_bound([4, 6], 100, 30, 10_000, delta=0.05, label_share=0.5)
    >>> [round(float(term), 4) for term in terms]
    [0.1268, 0.1226, 0.0043]
    """
    errors, rows = _check_folds(
        fold_errors,
        fold_rows,
        disagreements=disagreements,
        pool_rows=pool_rows,
        delta=delta,
    )
    label_delta, pool_delta = _divide_delta(delta, label_share)
    # Floating-point sums depend on the memory order; pruning compares these numbers, so
    # it is always the same.
    limits = np.ascontiguousarray(_equal_limits(errors, rows, label_delta))
    # err(f_rand) is the mean of the fold errors; err(f) <= err(f_rand) + d(f, f_rand).
    label_term = mean_outward(limits, -1)
    return _add_pool_limit(label_term, disagreements, pool_rows, pool_delta)


def best_fold(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    disagreements: ArrayLike,
    pool_rows: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = LABEL_SHARE,
) -> BoundTerms:
    r"""Error bound through the fold whose model errs least.

    The limits of all folds hold at once, so that of the fold with the smallest error
    rate, :math:`i^*`, may replace their mean; disagreement is then counted against the
    model of this fold. Its limit is the smallest one where folds have as many rows, or
    the larger ones come first and have one row more, as those that dsel draws:

    .. math::
        B\Big(c_{i^*}, n_{i^*}, \frac{\delta_1}{k}\Big)
        + B(a^*, m, \delta_2).

    Parameters
    ----------
    fold_errors, fold_rows, pool_rows, delta, label_share
        As :func:`cv_bound` takes them, with the same errors.
    disagreements
        Pool rows on which the model of all rows differs from that of
        :func:`best_fold_number`, :math:`a^*`. Integers in the shape of the candidates.

    Returns
    -------
    BoundTerms
        ``bound``, ``label_term`` and ``disagreement_term``, in the shape of the
        candidates.

    Raises
    ------
    TypeError
        If counts are no integers.
    ValueError
        If the last axis has no folds, counts are below 0 or above their rows, shapes do
        not fit each other, or `delta` or `label_share` is outside ``(0, 1)``.

    Notes
    -----
    Guarantee: that of :func:`cv_bound`; `label_term` alone bounds the error of the best
    fold's model.
    Assumes: what :func:`cv_bound` assumes, with no draw of folds; the fold is a
    function of labeled rows, so it is picked before the pool is counted.
    Source: union bound over folds and the triangle inequality for one fold;
    derived for dsel: docs/theory/best_fold.md. More errors can make another fold
    the best one and the bound smaller, so no candidate can be pruned by it.

    Examples
    --------
    >>> terms = best_fold([4, 6], 100, 30, 10_000, delta=0.05, label_share=0.5)
    >>> [round(float(term), 4) for term in terms]
    [0.113, 0.1087, 0.0043]
    """
    errors, rows = _check_folds(
        fold_errors,
        fold_rows,
        disagreements=disagreements,
        pool_rows=pool_rows,
        delta=delta,
    )
    label_delta, pool_delta = _divide_delta(delta, label_share)
    limits = _equal_limits(errors, rows, label_delta)
    label_term = _at_fold(limits, best_fold_number(errors, rows))
    return _add_pool_limit(label_term, disagreements, pool_rows, pool_delta)


def best_fold_number(fold_errors: ArrayLike, fold_rows: ArrayLike) -> NDArray[np.intp]:
    r"""Return the fold with the smallest error rate; ties go to the smallest number.

    Where sizes differ by at most one and the larger folds come first, this fold also
    has the smallest limit at equal shares for every ``delta``. Disagreements that were
    counted against its model can therefore be used with another ``delta``.
    """
    errors, rows = _check_folds(fold_errors, fold_rows)
    # Rates of folds of n and n + 1 rows differ by far more than their rounding. A fold
    # without rows has tested nothing and is never the best one.
    rates = np.full(errors.shape, np.inf)
    np.divide(errors, rows, where=rows > 0, out=rates)
    return np.asarray(rates.argmin(axis=-1))[()]


def nested_one_fold(
    fold_errors: ArrayLike, fold_rows: ArrayLike, *, delta: ArrayLike
) -> tuple[NDArray[np.intp], Floats]:
    r"""Smallest error limit of models that were chosen and trained without one fold.

    The k limits hold at once, so a fold may be picked after the errors were counted.
    This function picks the fold of the smallest limit. A search may deploy the model of
    another fold, whose limit is at most 5% larger, and reports that limit; see
    docs/theory/nested.md. No pool is needed, and the number of candidates plays no
    role:

    .. math:: \min_i B(c_i, n_i, w_i \delta).

    The shares :math:`w_i` are part of the formula, those of
    :func:`~dsel.bounds.fold_shares`: 1/2, 1/4, ..., the last two equal. So the smallest
    limit need not be that of the fold with the fewest errors.

    Parameters
    ----------
    fold_errors
        Errors, on the rows of each fold, of what was chosen without them, :math:`c_i`.
        Integers; the last axis is the fold.
    fold_rows, delta
        As :func:`cv_bound` takes them, with the same errors.

    Returns
    -------
    fold
        Number of the fold of smallest limit, the smallest number among equals.
    limit
        Its limit, in ``(0, 1]``.

    Raises
    ------
    TypeError
        If counts are no integers.
    ValueError
        If the last axis has no folds, counts are below 0 or above their rows, shapes do
        not fit each other, or `delta` is outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the labeled rows, the error
    of this fold's model is at most the limit.
    Assumes: i.i.d. labeled rows in random folds, numbered and sized in advance. The
    model of fold i may come of any selection, adaptive or by hand, that has seen
    nothing of the rows of fold i.
    Source: union bound of the test-set bound over folds, at unequal shares;
    derived for dsel: docs/theory/nested.md.

    Examples
    --------
    >>> fold, limit = nested_one_fold([8, 5, 7], 100, delta=0.05)
    >>> int(fold), float(limit.round(4))
    (1, 0.1228)
    """
    errors, rows = _check_folds(fold_errors, fold_rows, delta=delta)
    limits = nested_fold_limits(
        errors, rows, checks.check_probabilities(delta, "delta")
    )
    return np.asarray(limits.argmin(axis=-1))[()], np.asarray(limits.min(axis=-1))[()]


def nested_all_rows(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    disagreements: ArrayLike,
    pool_rows: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = LABEL_SHARE,
) -> tuple[NDArray[np.intp], BoundTerms]:
    r"""Error bound of the model trained on all rows, through the model of one fold.

    The model of all rows errs at most as often as that of any fold :math:`i` and as
    often as it differs from it, on :math:`a_i` of :math:`m` pool rows. All 2k limits
    hold at once, so the smallest sum may be taken:

    .. math::
        \min_i \; B(c_i, n_i, w_i \delta_1)
        + B\Big(a_i, m, \frac{\delta_2}{k}\Big),

    with the shares :math:`w_i` of :func:`nested_one_fold`. The pool gets equal shares:
    it is large, so that its limits hardly depend on them.

    Parameters
    ----------
    fold_errors, fold_rows
        As :func:`nested_one_fold` takes them.
    disagreements
        Pool rows on which the model of all rows differs from each fold's, :math:`a_i`.
        Integers in the shape of `fold_errors`.
    pool_rows
        Number of pool rows from :func:`upper_pool_rows`: one number, or one for each
        count of `disagreements`.
    delta, label_share
        As :func:`cv_bound` takes them, with the same errors.

    Returns
    -------
    fold
        Number of the fold of the smallest sum, the smallest number among equals.
    terms
        `bound`, not clipped, and the two limits whose sum it is.

    Raises
    ------
    TypeError
        If counts are no integers.
    ValueError
        If the last axis has no folds, counts are below 0 or above their rows, shapes do
        not fit each other, or `delta` or `label_share` is outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows and pool, the
    error of the model of all rows is at most `bound`, and that of the model of
    :func:`nested_one_fold` at ``label_share * delta`` at most its limit, both at once:
    they hold on the same event, so either model may be taken after looking at both.
    Assumes: what :func:`nested_one_fold` assumes; a pool of fresh rows that no model
    saw. The model of all rows may be any function of the labeled rows.
    Source: union bound over folds and the triangle inequality; derived for dsel:
    docs/theory/nested.md.

    Examples
    --------
    >>> fold, terms = nested_all_rows(
    ...     [8, 5, 7], 100, [200, 900, 150], 10_000, delta=0.05)
    >>> int(fold), [round(float(term), 4) for term in terms]
    (2, [0.1696, 0.1504, 0.0192])
    """
    errors, rows = _check_folds(fold_errors, fold_rows, delta=delta)
    counts = checks.check_counts(disagreements, "disagreements")
    if counts.shape[-1:] != errors.shape[-1:]:
        raise ValueError(
            f"`disagreements` must have one count for each of {errors.shape[-1]} folds "
            f"on the last axis, got shape {counts.shape}; count where the model of all "
            f"rows differs from the model of each fold."
        )
    checks.broadcast(disagreements=counts, fold_errors=errors)
    checks.broadcast(
        pool_rows=checks.check_counts(pool_rows, "pool_rows"), disagreements=counts
    )
    label_delta, pool_delta = _divide_delta(delta, label_share)
    return bound_by_folds(
        errors, rows, counts, pool_rows, label_delta=label_delta, pool_delta=pool_delta
    )


def bound_by_folds(
    errors: Integers,
    n_rows: Integers,
    counts: Integers,
    pool_rows: ArrayLike,
    *,
    label_delta: ArrayLike,
    pool_delta: ArrayLike,
) -> tuple[NDArray[np.intp], BoundTerms]:
    """Return the result of :func:`nested_all_rows`, with delta divided already."""
    label_terms = nested_fold_limits(errors, n_rows, np.asarray(label_delta))
    per_fold = np.asarray(pool_delta)[..., np.newaxis] / errors.shape[-1]
    disagreement_terms = _pool_limits(counts, pool_rows, per_fold)
    sums = sum_outward(label_terms, disagreement_terms)
    fold = np.asarray(sums.argmin(axis=-1))[()]
    terms = (sums, label_terms, disagreement_terms)
    return fold, BoundTerms(*(_at_fold(term, fold) for term in terms))


def _check_folds(
    fold_errors: ArrayLike, fold_rows: ArrayLike, **per_candidate: ArrayLike
) -> tuple[Integers, Integers]:
    """Return both counts as integers, checked to have folds on the last axis."""
    errors, rows = checks.check_counts_of(
        fold_errors, fold_rows, "fold_errors", "fold_rows"
    )
    if errors.ndim == 0 or errors.shape[-1] == 0:
        raise ValueError(
            f"`fold_errors` must have the folds on its last axis, got shape "
            f"{errors.shape}; for one held-out set call `holdout_bound`."
        )
    # Options by candidate have the shape of the errors without their axis of folds.
    values = {name: checks.as_array(v, name) for name, v in per_candidate.items()}
    checks.broadcast(**values, fold_errors=errors[..., 0])
    return errors, rows


def _divide_delta(delta: ArrayLike, label_share: float) -> tuple[Floats, Floats]:
    deltas = checks.check_probabilities(delta, "delta")
    share = checks.check_probability(label_share, "label_share")
    return share * deltas, (1.0 - share) * deltas


def nested_fold_limits(errors: Integers, n_rows: Integers, delta: Floats) -> Floats:
    """Return the limits of :func:`nested_one_fold` for all folds, which hold at once.

    Parameters
    ----------
    errors
        Errors of each fold's model on its rows. Integers; the last axis is the fold.
    n_rows
        Rows of each fold, broadcast against `errors`.
    delta
        Probability that any limit fails, in ``(0, 1)``: the shape of the other axes.

    Returns
    -------
    ndarray
        Limits in ``(0, 1]``, in the shape of `errors`.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the labeled rows, the error
    of every fold's model is at most its limit.
    Assumes: as :func:`nested_one_fold` does.
    Source: union bound of the test-set bound over folds, at unequal shares;
    derived for dsel: docs/theory/nested.md.
    """
    per_fold = fold_deltas(delta, errors.shape[-1])
    return np.asarray(upper_limits(errors, n_rows, per_fold))


def _equal_limits(errors: Integers, n_rows: Integers, delta: Floats) -> Floats:
    # The shares are equal, and not those of `fold_shares`, in two cases: for a mean of
    # limits, and where the best fold is fixed by its rate before delta is known; only
    # with equal shares does that fold have the smallest limit at every delta.
    per_fold = delta[..., np.newaxis] / errors.shape[-1]
    return np.asarray(upper_limits(errors, n_rows, per_fold))


def _add_pool_limit(
    label_term: Floats,
    disagreements: ArrayLike,
    pool_rows: ArrayLike,
    pool_delta: Floats,
) -> BoundTerms:
    # Given the labeled rows every model is fixed, so the count is binomial.
    disagreement_term = _pool_limits(disagreements, pool_rows, pool_delta)
    bound = sum_outward(label_term, disagreement_term)
    return BoundTerms(bound, label_term, disagreement_term)


def _pool_limits(
    disagreements: ArrayLike, pool_rows: ArrayLike, delta: Floats
) -> Floats:
    counts = checks.check_counts(disagreements, "disagreements")
    rows = checks.check_counts(pool_rows, "pool_rows")
    # The count may exceed the rows, because rows that equal labeled rows were
    # subtracted from the rows alone; the limit is 1 there.
    return upper_limits(np.minimum(counts, rows), rows, delta)


def _at_fold(values: Floats, folds: NDArray[np.intp]) -> Floats:
    """Return the value of one fold for each candidate."""
    # With several shares for one candidate, values have axes that `folds` lacks.
    shape = np.broadcast_shapes(np.shape(folds), values.shape[:-1])
    values = np.broadcast_to(values, (*shape, values.shape[-1]))
    indices = np.broadcast_to(np.asarray(folds)[..., np.newaxis], (*shape, 1))
    return np.asarray(np.take_along_axis(values, indices, -1)[..., 0])[()]
