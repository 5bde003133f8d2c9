"""Fold errors merged by the geometric mean: a factor e in place of the folds' number.

With ``g_i(p) = -ln P(Bin(n_i, p) <= c_i)``, convex and increasing, the true errors
satisfy ``sum_i g_i(err_i) <= k (ln(1 / delta) + 1)`` with probability 1 - delta. The
largest mean error under this constraint is a concave program with one multiplier,
``mu``; its dual bounds it from above at every ``mu``, so it need not be solved
exactly to be valid. Rates are held as their logit, ``x``, which keeps the digits of
``1 - p``; the logarithm of ``1 / mu`` is ``slope``.
"""

from dataclasses import dataclass

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
_DUAL_TOLERANCE = 1e-13
_SMALLEST_TAIL = 1e-280
_LARGEST_LOGIT = 690.0


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
    solved through the dual of the program, so that rounding errs upwards.

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

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "_Counts":
        return _Counts(self.c[chosen], self.n[chosen], self.log_beta[chosen])

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

    def logit_slope(self, x: Floats, log_derivative: Floats) -> Floats:
        """Return the derivative of ln g' in x, kept positive against rounding."""
        # d ln g' / dx = c - (n - 1) p + g' p (1 - p), by the chain rule p' = p (1 - p).
        p = special.expit(x)
        rise = np.exp(log_derivative) * p * special.expit(-x)
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
    """Find the multiplier of each candidate, then evaluate the dual there."""
    program = _Program(c, n)
    # The multiplier is 1 / g' at the optimum, so its logarithm is searched as `slope`.
    lowest, highest, x = program.start(budget)
    slope = (lowest + highest) / 2
    active = np.arange(budget.size)
    for _ in range(100):
        part = program.at(active)
        x[active] = part.maximisers(slope[active], x[active])
        spent, growth = part.spending(slope[active], x[active])
        # Newton in the slope; `spent` rises with it, so the sign moves the bracket.
        missing = budget[active] - spent
        step = missing / growth
        # The dual is flat at its minimum: this is what a better multiplier gains there.
        gain = np.exp(-slope[active]) * np.abs(missing * step) / 2.0
        highest[active] = np.where(missing < 0, slope[active], highest[active])
        lowest[active] = np.where(missing < 0, lowest[active], slope[active])
        proposed = slope[active] + step
        middle = (lowest[active] + highest[active]) / 2
        is_inside = (proposed > lowest[active]) & (proposed < highest[active])
        goes_on = (gain > _DUAL_TOLERANCE * c.shape[1]) | (np.abs(step) > 0.1)
        following = np.where(is_inside, proposed, middle)
        slope[active] = np.where(goes_on, following, slope[active])
        active = active[goes_on]
        if not active.size:
            break
    x = program.maximisers(slope, x)
    # Valid for any slope by weak duality; a better one only makes it smaller.
    return program.dual(slope, x, budget)


@dataclass(frozen=True)
class _Program:
    """The inner maximisations: rows are candidates, columns folds."""

    c: Floats
    """Errors, (n_candidates, n_folds)."""
    n: Floats
    """Rows."""

    def at(self, active: NDArray[np.intp]) -> "_Program":
        return _Program(self.c[active], self.n[active])

    @property
    def is_inner(self) -> NDArray[np.bool_]:
        """Where the maximiser has no closed form."""
        return (self.c > 0) & (self.c < self.n)

    def inner_counts(self) -> _Counts:
        c, n = self.c[self.is_inner], self.n[self.is_inner]
        return _Counts(c, n, special.betaln(c + 1, n - c))

    def start(self, budget: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a bracket of the slope: those of limits that spend the same each.

        At the smallest of them every fold spends at most that, at the largest at least;
        folds without a right answer spend nothing. Where such a limit underflows,
        the bracket is as wide as the exponent of a float.
        """
        n_spending = (self.c < self.n).sum(axis=1)
        # If every fold spent the same, its limit would be a binomial one at exp(-each).
        each = np.broadcast_to((budget / n_spending)[:, None], self.c.shape)
        inner, counts = self.is_inner, self.inner_counts()
        p = special.betainccinv(counts.c + 1, counts.n - counts.c, np.exp(-each[inner]))
        mean = (counts.c + 1) / (counts.n + 1)
        usable = (p > 0) & (p < 1)
        x = np.zeros(self.c.shape)
        x[inner] = special.logit(np.where(usable, p, mean))
        slopes = np.full(self.c.shape, np.nan)
        slopes[inner] = counts.cost(x[inner])[1]
        slopes[inner] = np.where(usable, slopes[inner], np.inf)
        none = (self.c == 0) & (self.n > 0)
        slopes[none] = np.log(self.n[none]) + each[none] / self.n[none]
        lowest, highest = np.nanmin(slopes, axis=1), np.nanmax(slopes, axis=1)
        is_safe = np.isfinite(highest)
        lowest = np.where(is_safe, lowest - 1e-6, -_LARGEST_LOGIT)
        return lowest, np.where(is_safe, highest + 1e-6, _LARGEST_LOGIT), x

    def maximisers(self, slope: Floats, x: Floats) -> Floats:
        """Solve ln g'(p) = slope for every fold by Newton's method in the logit."""
        inner, counts = self.is_inner, self.inner_counts()
        target = np.broadcast_to(slope[:, None], self.c.shape)[inner]
        result = x.copy()
        result[inner] = _invert(counts, target, x[inner])
        return result

    def spending(self, slope: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the sum of g over folds and its derivative in the slope."""
        inner, counts = self.is_inner, self.inner_counts()
        spent, growth = np.zeros(self.c.shape), np.zeros(self.c.shape)
        spent[inner], log_derivative = counts.cost(x[inner])
        p_rest = special.expit(x[inner]) * special.expit(-x[inner])
        rise = np.exp(log_derivative) * p_rest
        growth[inner] = rise / counts.logit_slope(x[inner], log_derivative)
        none, exponent = self._without_errors(slope)
        spent[none] = self.n[none] * exponent
        growth[none] = np.where(exponent > 0, self.n[none], 0.0)
        return spent.sum(axis=1), np.maximum(growth.sum(axis=1), 1e-300)

    def _without_errors(self, slope: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Return where no row erred, and -ln(1 - p) of the maximiser there."""
        none = (self.c == 0) & (self.n > 0)
        target = np.broadcast_to(slope[:, None], self.c.shape)[none]
        return none, np.maximum(0.0, target - np.log(self.n[none]))

    def dual(self, slope: Floats, x: Floats, budget: Floats) -> Floats:
        """Return an upper bound on the program that holds whatever the slope is."""
        mu = np.exp(-slope)
        height = np.ones(self.c.shape)
        inner, counts = self.is_inner, self.inner_counts()
        target = np.broadcast_to(slope[:, None], self.c.shape)[inner]
        height[inner] = _height(counts, target, x[inner])
        none, exponent = self._without_errors(slope)
        mu_none = np.broadcast_to(mu[:, None], self.c.shape)[none]
        height[none] = -np.expm1(-exponent) - mu_none * self.n[none] * exponent
        # Lagrangian: sum of max(p - mu g(p)) over folds, plus mu times the budget.
        total = height.sum(axis=1) + mu * budget
        return np.asarray(np.minimum(total / self.c.shape[1], 1.0))


def _invert(counts: _Counts, target: Floats, x: Floats) -> Floats:
    """Solve ln g'(p) = target; g' rises, so a bracket keeps Newton's method safe."""
    x = x.copy()
    lo, hi = np.full_like(x, -_LARGEST_LOGIT), np.full_like(x, _LARGEST_LOGIT)
    active = np.arange(x.size)
    for _ in range(200):
        part, here = counts.at(active), x[active]
        log_derivative = part.cost(here)[1]
        # g is convex, so ln g' rises and the sign of the excess says on which side x
        # lies.
        excess = log_derivative - target[active]
        lo[active] = np.where(excess < 0, here, lo[active])
        hi[active] = np.where(excess < 0, hi[active], here)
        proposed = here - excess / part.logit_slope(here, log_derivative)
        is_inside = (proposed > lo[active]) & (proposed < hi[active])
        middle = (lo[active] + hi[active]) / 2
        x[active] = np.where(is_inside, proposed, middle)
        active = active[np.abs(x[active] - here) > 1e-9]
        if not active.size:
            break
    return x


def _height(counts: _Counts, target: Floats, x: Floats) -> Floats:
    """Return at least max over p of p - mu g(p), from a bracket of the maximiser.

    The function is concave: its tangent at the lower end of the bracket lies above
    it, up to the upper end. Its value at a point would be too small.
    """
    mu = np.exp(-target)
    width = np.full_like(x, 1e-7)
    for _ in range(12):
        low, high = x - width, x + width
        cost, log_derivative = counts.cost(low)
        is_bracket = (log_derivative <= target) & (counts.cost(high)[1] >= target)
        if is_bracket.all():
            break
        width = np.where(is_bracket, width, 10 * width)
    p, span = special.expit(low), special.expit(high) - special.expit(low)
    # h'(p) = 1 - mu g'(p) at the lower end; positive there, as h still rises.
    climb = -np.expm1(log_derivative - target)
    tangent = p - mu * cost + climb * span
    return np.where(is_bracket, np.minimum(tangent, 1.0), 1.0)
