"""Limits of the difference of two errors, from labels of rows where models differ.

Let f and g be two models, D the rows on which they differ, and

    Z = 1{f wrong} - 1{g wrong},  in {-1, 0, 1}.

Outside of D both are right or wrong together, so err(f) - err(g) = P(D) E[Z | D]. The
pool gives the first factor almost exactly, a few labels of rows in D the second.
"""

from typing import Final, NamedTuple

import numpy as np

from dsel import checks
from dsel.arrays import ArrayLike, Floats
from dsel.bounds.binomial import lower_limits, sum_outward, upper_limits

POOL_SHARE: Final = 0.05
"""Share of delta for the pool's counts in a comparison of two models; the labels of
queried rows get the rest. Like every share it is fixed before anything is counted; the
optimum is flat."""
SIGN_SHARE: Final = 0.9
"""Share of the labels' delta for the sign test; the rest is for the rate of rows on
which one of the models is right."""


class QueryShares(NamedTuple):
    """Shares of delta in a nested search with queries; fixed in advance, sum 1."""

    labeled: float = 0.78
    """For the limits of the models of all folds on labeled rows."""
    pool_only: float = 0.01
    """For the limit of the model of all rows that needs no queried label."""
    pool: float = 0.01
    """For the pool's counts that are multiplied by the limit from queried labels."""
    queries: float = 0.20
    """For the labels of queried rows."""


QUERY_SHARES: Final = QueryShares()


def mean_difference_limit(
    n_only_f_right: ArrayLike, n_queries: ArrayLike, *, delta: ArrayLike
) -> Floats:
    r"""Upper limit of the mean of Z in {-1, 0, 1} from its negative values alone.

    Where :math:`z^-` of :math:`s` queried rows have :math:`Z = -1`, it is

    .. math:: 1 - 2 b(z^-, s, \delta),

    with the lower binomial limit :math:`b`.

    Parameters
    ----------
    n_only_f_right
        Queried rows with Z = -1: f is right and g is wrong. Integers in
        ``[0, n_queries]``, any shape.
    n_queries
        Rows that a person was asked to label, broadcast against ``n_only_f_right``.
    delta
        Probability with which the limit may fail, in ``(0, 1)``.

    Returns
    -------
    ndarray
        Limits in [-1, 1]; 1 where nothing was queried.

    Raises
    ------
    TypeError
        Where the counts are not integers.
    ValueError
        Where a count exceeds its rows, or ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the mean of Z over rows on which
    the models differ is at most the returned value, whatever the labels are.
    Assumes: models fixed before independent rows on which they differ were drawn and
    labeled; a queried row without a label does not count in ``n_only_f_right``.
    Source: ``E Z = P(Z = 1) - P(Z = -1) <= 1 - 2 P(Z = -1)``, and the Clopper-Pearson
    limit of the last rate. For two classes Z is never 0, and this equals
    ``2 B(z+, s, delta) - 1``, which would be wrong where Z may be 0.

    Examples
    --------
    >>> mean_difference_limit([0, 30, 60], 60, delta=0.05).round(3).tolist()
    [1.0, 0.225, -0.903]
    """
    counts, rows = checks.check_counts_of(
        n_only_f_right, n_queries, "n_only_f_right", "n_queries"
    )
    deltas = checks.check_probabilities(delta, "delta")
    # The limit is moved outward by one step, since the subtraction may round down.
    limits = np.nextafter(1.0 - 2.0 * lower_limits(counts, rows, deltas), np.inf)
    return np.asarray(np.minimum(limits, 1.0))


def sign_test_limit(
    n_only_g_right: ArrayLike,
    n_only_f_right: ArrayLike,
    n_queries: ArrayLike,
    *,
    delta: ArrayLike,
) -> Floats:
    r"""Upper limit of the mean of Z in {-1, 0, 1} by a sign test.

    Of :math:`t = z^+ + z^-` rows on which exactly one model is right,
    :math:`z^+` has a binomial distribution with :math:`\theta = P(Z = 1 | Z \ne 0)`.
    With :math:`\Theta = B(z^+, t, .9 \delta)` the limit is

    .. math:: (2 \Theta - 1) B(t, s, .05 \delta) \text{ if } \Theta \ge 1/2,
              \quad (2 \Theta - 1) b(t, s, .05 \delta) \text{ else.}

    Parameters
    ----------
    n_only_g_right, n_only_f_right
        Queried rows with Z = 1 (f is wrong and g is right) and with Z = -1. Integers
        >= 0, any shape, their sum at most ``n_queries``.
    n_queries
        Rows that a person was asked to label, broadcast against the counts.
    delta
        Probability with which each limit may fail, in ``(0, 1)``, broadcast against
        the counts.

    Returns
    -------
    ndarray
        Limits in [-1, 1]; 1 where nothing was queried.

    Raises
    ------
    TypeError
        Where the counts are not integers.
    ValueError
        Where the counts exceed the rows, or ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` the mean of Z over rows on which
    the models differ is at most the returned value. It is negative exactly when the
    one-sided sign test at level ``.9 delta`` rejects.
    Assumes: models fixed before independent rows on which they differ were drawn and
    labeled; a queried row without a label counts in ``n_only_g_right``.
    Source: the sign test given t, a Clopper-Pearson interval of P(Z != 0), and the
    union bound. With many classes it has several times the power of
    :func:`mean_difference_limit`, which pays for rows on which both models are wrong.

    Examples
    --------
    >>> sign_test_limit([5, 10, 0], [20, 10, 0], 100, delta=0.05).round(3).tolist()
    [-0.034, 0.135, 0.058]
    """
    only_g, only_f = checks.broadcast(
        n_only_g_right=checks.check_counts(n_only_g_right, "n_only_g_right"),
        n_only_f_right=checks.check_counts(n_only_f_right, "n_only_f_right"),
    )
    decided, rows = checks.check_counts_of(
        only_g + only_f, n_queries, "n_only_g_right + n_only_f_right", "n_queries"
    )
    deltas = checks.check_probabilities(delta, "delta")
    theta = upper_limits(only_g, decided, SIGN_SHARE * deltas)
    rate_delta = (1.0 - SIGN_SHARE) / 2 * deltas
    most, least = (
        upper_limits(decided, rows, rate_delta),
        lower_limits(decided, rows, rate_delta),
    )
    balance = np.nextafter(2.0 * theta - 1.0, np.inf)
    # Without a decided row theta is 1, and without a queried row the rate is at most 1.
    limits = np.nextafter(balance * np.where(balance >= 0, most, least), np.inf)
    return np.asarray(np.minimum(limits, 1.0))


def queried_difference(
    mean_limit: ArrayLike,
    n_differ: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: float,
    n_duplicates: int | None = None,
    n_duplicates_differ: ArrayLike = 0,
) -> Floats:
    r"""Upper limit of err(f) - err(g) from a limit of E[Z | D] and counts on the pool.

    With :math:`U` the limit of the mean, :math:`a` of :math:`m` pool rows in D and no
    duplicates it is :math:`B(a, m, \delta/2) U` where :math:`U \ge 0`, and
    :math:`b(a, m, \delta/2) U` else.

    Parameters
    ----------
    mean_limit
        Upper limit of the mean of Z over rows on which the models differ, in [-1, 1]:
        `mean_difference_limit` or `sign_test_limit`. Any shape.
    n_differ
        Pool rows on which the models differ, without those that are duplicates of rows
        that a model was trained on; queried rows are drawn from these.
    n_unlabeled
        All pool rows, duplicates included.
    delta
        Probability with which the pool's counts may fail, in ``(0, 1)``; that of
        ``mean_limit`` is added to it.
    n_duplicates
        Pool rows that equal a training row; None where no such rows are known, which is
        decided before the pool is read.
    n_duplicates_differ
        Those of them on which the models differ.

    Returns
    -------
    ndarray
        Limits in [-1, 2], in the broadcast shape.

    Raises
    ------
    TypeError
        Where the counts are not integers.
    ValueError
        Where a count exceeds its rows, or ``mean_limit`` or ``delta`` is out of range.

    Notes
    -----
    Guarantee: where the mean of Z is at most ``mean_limit``, the error of f exceeds
    that of g by at most the returned value, with probability at least ``1 - delta``
    over the draw of the pool. The labels decide which of the two pool limits is used;
    both hold at once.
    Assumes: models that do not depend on the pool rows, but for ``n_duplicates`` of
    them, and pool rows drawn from the distribution that the errors are about.
    Source: ``err(f) - err(g) = P(D) E[Z | D]``; Clopper-Pearson limits of P(D). With
    duplicates, e of which a_e are in D, the other rows of D have the limits
    ``B(a, m - e, delta/4)`` and ``b(a, m, delta/4)``: any of the e rows may be fresh
    draws, so that the upper limit leaves them out and the lower one does not. The rest
    of D adds at most ``B(a_e, m - e + a_e, delta/2)``, as Z <= 1. Derived for dsel:
    docs/theory/queries.md.

    Examples
    --------
    >>> queried_difference([-0.5, 0.2], 2_000, 100_000, delta=0.05).round(5).tolist()
    [-0.00957, 0.00418]
    """
    limit_delta = checks.check_probability(delta, "delta") / 2
    mean = checks.check_between(mean_limit, "mean_limit", -1.0, 1.0)
    differ, rows = checks.check_counts_of(
        n_differ, n_unlabeled, "n_differ", "n_unlabeled"
    )
    mean, differ, rows = checks.broadcast(
        mean_limit=mean, n_differ=differ, n_unlabeled=rows
    )
    unqueried: Floats | float = 0.0
    fresh = rows
    if n_duplicates is not None:
        # The shares are the same whatever was counted: a choice by counts would spend
        # delta.
        same, _ = checks.check_counts_of(
            n_duplicates, rows, "n_duplicates", "n_unlabeled"
        )
        same_differ, _ = checks.check_counts_of(
            n_duplicates_differ, same, "n_duplicates_differ", "n_duplicates"
        )
        unqueried = upper_limits(same_differ, rows - same + same_differ, limit_delta)
        limit_delta /= 2
        differ, fresh = checks.check_counts_of(
            differ, rows - same, "n_differ", "n_unlabeled - n_duplicates"
        )
    most = upper_limits(differ, fresh, limit_delta)
    least = lower_limits(differ, rows, limit_delta)
    # Each rounded operation moves the limit outward by one step.
    product = np.nextafter(mean * np.where(mean >= 0, most, least), np.inf)
    return sum_outward(product, unqueried)


def queried_all_rows(
    fold_limit: ArrayLike,
    mean_limit: ArrayLike,
    n_differ: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: float,
    n_duplicates: int = 0,
    n_duplicates_differ: ArrayLike = 0,
) -> Floats:
    r"""Error bound of the model trained on all rows, from queried labels.

    Let :math:`g` be the model of one fold and :math:`f` that of all rows. The
    bound is :math:`b_{i^*}` plus the limit of :math:`\operatorname{err}(f) -
    \operatorname{err}(g)` from :func:`queried_difference` at ``.01 delta``.

    Parameters
    ----------
    fold_limit
        The limit of the model of this fold at ``.78 delta``, :math:`b_{i^*}`, as in
        :func:`nested_one_fold`. In [0, 1], any shape; all arguments but ``delta`` and
        ``n_duplicates`` broadcast. Labeled rows choose the fold, by any rule; pool
        counts play no role.
    mean_limit
        Upper limit of the mean of Z over rows on which the models differ, in [-1, 1],
        at ``.20 delta``: :func:`mean_difference_limit` for two classes,
        :func:`sign_test_limit` for more.
    n_differ
        Pool rows on which the two models differ, without duplicates of labeled rows;
        queried rows are drawn from these.
    n_unlabeled
        All pool rows.
    delta
        Probability with which the bound may fail, in ``(0, 1)``.
    n_duplicates
        Pool rows that equal labeled rows.
    n_duplicates_differ
        Those of them on which the models differ.

    Returns
    -------
    ndarray
        The bound, not clipped at 1, in the broadcast shape.

    Raises
    ------
    TypeError
        Where a count is no integer.
    ValueError
        Where a count exceeds its rows, or a limit or ``delta`` is out of range.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows, pool and
    queried labels, the error of the model of all rows is at most the returned value,
    that of the fold's model is at most ``fold_limit``, and
    :func:`nested_all_rows` at ``.79 delta`` with a ``label_share`` of .78/.79 holds:
    all at once.
    Assumes: what :func:`nested_all_rows` assumes; queried rows drawn from those on
    which the models differ by random numbers that do not depend on their content, and
    labeled by the distribution that the errors are about; their number, and the choice
    between the two limits of the mean, planned before the run.
    Source: ``err(f) - err(g) = P(f differs from g) E[Z | they differ]`` and the union
    bound over four shares of delta. Derived for dsel: docs/theory/queries.md.

    Examples
    --------
    >>> mean = mean_difference_limit(30, 50, delta=0.20 * 0.05)
    >>> float(queried_all_rows(0.14, mean, 5_000, 100_000, delta=0.05).round(4))
    0.1478
    """
    difference = queried_difference(
        mean_limit,
        n_differ,
        n_unlabeled,
        delta=QUERY_SHARES.pool * checks.check_probability(delta, "delta"),
        n_duplicates=n_duplicates,
        n_duplicates_differ=n_duplicates_differ,
    )
    limit = checks.check_between(fold_limit, "fold_limit", 0.0, 1.0)
    return sum_outward(*checks.broadcast(fold_limit=limit, n_differ=difference))
