"""Fold errors merged by the geometric mean: a factor e in place of the folds' number.

With ``g_i(p) = -ln P(Bin(n_i, p) <= c_i)``, convex and increasing, the true errors
satisfy ``sum_i g_i(err_i) <= k (ln(1 / delta) + 1)`` with probability 1 - delta: all
folds together may spend so much. The rate of a fold is concave in what it spends, so
the mean error that is allowed lies below tangents wherever they touch, and where it is
largest need not be known exactly. There ``ln g_i'`` is the same, `slope`, in all folds
that spend. Rates are held as their logit, `x`, which keeps the digits of ``1 - p``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dsel.bounds.binomial import Floats, distinct
from dsel.bounds.semi_supervised import (
    BoundTerms,
    check_folds,
    divide_delta,
    with_disagreement,
)
from dsel.bounds.stopping import WHOLE_POOL, StoppingRule

_BUDGET_SHIFT = 1e-10
_SMALLEST_STEP = 1e-9
_MOST_STEPS = 100
_SMALLEST_TAIL = 1e-200


def merged_folds(
    fold_errors: ArrayLike,
    fold_rows: ArrayLike,
    n_disagreements: ArrayLike,
    n_unlabeled: ArrayLike,
    *,
    delta: ArrayLike,
    label_share: float = 0.5,
    reading: StoppingRule = WHOLE_POOL,
) -> BoundTerms:
    r"""Error bound whose label term merges the folds by a geometric mean.

    The label term is the largest mean error that the fold errors allow together,

    .. math::
        \max\Big\{\frac1k \sum_i p_i :
        \sum_i -\ln P(\mathrm{Bin}(n_i, p_i) \le c_i)
        \le k \big(\ln\tfrac{1}{\gamma\delta} + 1\big)\Big\},

    and the disagreement term is that of :func:`cv_bound`.

    Parameters
    ----------
    fold_errors, fold_rows, n_disagreements, n_unlabeled, delta, label_share, reading
        As :func:`cv_bound` takes them, with the same errors.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over labeled rows, pool and
    draws, the error of the full model is at most `bound`. With one share for
    each candidate, summing to at most delta, all bounds hold at once.
    Assumes: what :func:`cv_bound` assumes; folds may depend on
    each other in any way. It is mostly smaller than that bound with three folds or
    more, but larger where the folds' counts differ much. Decide for one of them before
    the counts are seen: the smaller of both is no bound at ``delta``.
    Source: merging of p-values by their geometric mean (Vovk and Wang, 2020),
    bounded by tangents of the program, so that rounding errs upwards.

    Examples
    --------
    >>> terms = merged_folds([4, 6, 5], [100, 100, 100], 30, 10_000, delta=0.05)
    >>> [round(float(term), 4) for term in terms]
    [0.1312, 0.1269, 0.0043]
    """
    errors, rows = check_folds(fold_errors, fold_rows)
    first, second = divide_delta(delta, label_share)
    label_term = largest_mean(errors, rows, first)
    return with_disagreement(
        label_term, n_disagreements, n_unlabeled, share=second, reading=reading
    )


def largest_mean(
    counts: NDArray[np.int64], rows: NDArray[np.int64], share: Floats | float
) -> Floats:
    """Return the largest mean rate along the last axis that the counts allow."""
    shape = np.broadcast_shapes(counts.shape[:-1], np.shape(share))
    n_folds = counts.shape[-1]
    c = np.broadcast_to(counts, (*shape, n_folds)).reshape(-1, n_folds)
    n = np.broadcast_to(rows, (*shape, n_folds)).reshape(-1, n_folds)
    a = np.broadcast_to(share, shape).reshape(-1)
    # Grids repeat counts: each distinct row of counts is solved once.
    columns, inverse = distinct(*np.column_stack([c, n, a]).astype(np.float64).T)
    errors, tested, each = columns[:n_folds].T, columns[n_folds:-1].T, columns[-1]
    means = np.ones(len(each))
    # Where no fold had a right answer, every rate is possible.
    is_open = (errors < tested).any(axis=1)
    if is_open.any():
        budget = n_folds * (1.0 - np.log(each[is_open])) + _BUDGET_SHIFT
        means[is_open] = _solve(errors[is_open], tested[is_open], budget)
    return means[inverse].reshape(shape)[()]


@dataclass(frozen=True)
class _Counts:
    """Counts with at least one error and one row without, as flat arrays."""

    c: Floats
    """Errors."""
    n: Floats
    """Rows."""
    log_beta: Floats
    """Logarithm of the Beta function of (c + 1, n - c)."""

    def start(self, each: Floats) -> Floats:
        """Return the logits at which folds spend `each`, or those of their means."""
        p = special.betainccinv(self.c + 1, self.n - self.c, np.exp(-each))
        mean = (self.c + 1) / (self.n + 1)
        return np.asarray(special.logit(np.where((p > 0) & (p < 1), p, mean)))

    def cost(self, x: Floats) -> tuple[Floats, Floats]:
        """Return g and the logarithm of its derivative in p, at p = expit(x)."""
        c, n = self.c, self.n
        # All terms as logarithms: their factors underflow for large n.
        log_p, log_rest = special.log_expit(x), special.log_expit(-x)
        log_density = c * log_p + (n - c - 1) * log_rest - self.log_beta
        # P(Bin(n, p) <= c) as a function of 1 - p, which the logit keeps exact near 1.
        tail = special.betainc(n - c, c + 1, special.expit(-x))
        is_tiny = tail < _SMALLEST_TAIL
        with np.errstate(divide="ignore"):
            log_tail = np.log(tail)
        # Below the smallest float: the largest term times the sum of the ratios to it.
        if is_tiny.any():
            log_largest = log_density + log_rest - np.log(n - c)
            log_tail[is_tiny] = log_largest[is_tiny] + np.log(
                _terms_over_largest(c[is_tiny], n[is_tiny], np.exp(-x[is_tiny]))
            )
        return -log_tail, log_density - log_tail

    def logit_slope(self, x: Floats, rise: Floats) -> Floats:
        """Return the derivative of ln g' in x, `rise` that of g; kept positive."""
        # d ln g' / dx = c - (n - 1) p + g' p (1 - p), by the chain rule p' = p (1 - p).
        p = special.expit(x)
        return np.asarray(np.maximum(self.c - (self.n - 1) * p + rise, 1e-3))


def _terms_over_largest(c: Floats, n: Floats, odds: Floats) -> Floats:
    """Sum P(X = j) / P(X = c) over j <= c; each term is well below the one before."""
    total = term = np.ones_like(c)
    for j in range(int(c.max())):
        term = term * np.maximum(c - j, 0.0) * odds / (n - c + 1 + j)
        total = total + term
        if (term <= 1e-17 * total).all():
            break
    return total


def _solve(c: Floats, n: Floats, budget: Floats) -> Floats:
    """Return the mean rate where every fold gains alike, by the tangents there.

    Newton's method: what a fold spends, and ln g', are taken for linear in the logit.
    """
    inner, none = (c > 0) & (c < n), np.where((c == 0) & (n > 0), n, np.nan)
    row, each = np.nonzero(inner)[0], budget / (c < n).sum(axis=1)
    counts = _Counts(c[inner], n[inner], special.betaln(c[inner] + 1, (n - c)[inner]))

    def total(values: NDArray[Any]) -> Floats:
        return np.bincount(row, values, len(budget)).astype(np.float64)

    x, is_done = counts.start(each[row]), np.zeros(len(budget), dtype=bool)
    for _ in range(_MOST_STEPS):
        cost, log_derivative = counts.cost(x)
        rise = np.exp(log_derivative) * special.expit(x) * special.expit(-x)
        bend = counts.logit_slope(x, rise)
        left = budget - total(cost - rise * log_derivative / bend)
        slope = _common_slope(left, total(rise / bend), none)
        step = np.clip((slope[row] - log_derivative) / bend, -5.0, 5.0)
        x = x + np.where(is_done[row], 0.0, step)
        is_done |= total(np.abs(step) > _SMALLEST_STEP) == 0
        if is_done.all():
            break
    rate, spent, gain = np.ones(c.shape), np.zeros(c.shape), np.zeros(c.shape)
    spent[inner], log_derivative = counts.cost(x)
    rate[inner], gain[inner] = special.expit(x), np.exp(-log_derivative)
    # Folds without errors have a closed form.
    exponent = np.maximum(0.0, slope[:, None] - np.log(none))
    rate = np.where(np.isnan(none), rate, -np.expm1(-exponent))
    spent = np.where(np.isnan(none), spent, none * exponent)
    gain = np.where(np.isnan(none), gain, np.exp(-exponent) / none)
    # The most that the tangents allow: all of the budget goes to the steepest one.
    largest = (rate - gain * spent).sum(axis=1) + gain.max(axis=1) * budget
    return np.asarray(np.minimum(largest / c.shape[1], 1.0))


def _common_slope(left: Floats, weight: Floats, none: Floats) -> Floats:
    """Solve weight s + sum of n max(0, s - ln n) = left, n the folds without errors.

    The sum is the largest one over any of these folds, so s is the smallest solution;
    those of the fewest rows come first.
    """
    n = np.nan_to_num(np.sort(none, axis=1))
    n = np.column_stack([np.zeros(len(n)), n])
    spent = np.cumsum(special.xlogy(n, n), axis=1)
    with np.errstate(divide="ignore"):
        slopes = (left[:, None] + spent) / (weight[:, None] + np.cumsum(n, axis=1))
    return np.asarray(slopes.min(axis=1))
