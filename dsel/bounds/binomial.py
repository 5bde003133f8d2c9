"""The inverse of the binomial tail: Clopper-Pearson limits, rounded conservatively."""

from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dsel import checks
from dsel.arrays import ArrayLike, Floats

SMALLEST_TAIL: Final = 1e-290
"""Below it tails underflow; deltas that small come from dividing too often."""

_LARGEST_TABLE: Final = 16_384  # rows, since a table solves for all counts
_MANY_TABLES: Final = 8
# The logarithm of the tail is solved for a value that is smaller by the shift. A root
# within half of it still has a tail below delta, so rounding never makes a limit too
# small.
_TARGET_SHIFT: Final = 1e-10
_ACCEPTED_GAP: Final = 5e-11
_LOG_ROUNDING: Final = (
    1 + 8e-16
)  # covers the rounding of logarithms in the closed forms


def binomial_tail_inversion(
    n_errors: ArrayLike, n_samples: ArrayLike, *, delta: ArrayLike
) -> Floats:
    r"""Upper bound on an error rate by inverting the binomial tail.

    The bound is the largest rate :math:`p` under which at most :math:`c`
    errors in :math:`m` rows still have probability :math:`\delta` or more:

    .. math:: \max\{p : P(\mathrm{Bin}(m, p) \le c) \ge \delta\}.

    Parameters
    ----------
    n_errors
        Errors counted, :math:`c`. Integers in ``[0, n_samples]``, any shape.
    n_samples
        Rows tested, :math:`m`. Integers >= 0, broadcast against ``n_errors``.
    delta
        Probability with which the bound may fail, in ``(0, 1)``; an array of
        deltas is broadcast against the counts.

    Returns
    -------
    ndarray
        Bounds in ``(0, 1]``, in the broadcast shape; 1 where every row erred or
        none was tested.

    Raises
    ------
    TypeError
        Where the counts are rates or other non-integers.
    ValueError
        Where a count exceeds its rows, or ``delta`` lies outside ``(0, 1)`` or
        is so small that the tail underflows.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the draw of the
    test rows, the true error rate is at most the returned value.
    Assumes: a classifier fixed before independent test rows were drawn.
    Source: [1]_. Equals the one-sided Clopper-Pearson limit, and exceeds it by
    at most 1e-9 (relative) for up to 1e9 rows and ``delta`` in ``[1e-12, 1/2]``.
    With ``delta`` above one half the value may lie below the observed rate. How it is
    computed: docs/theory/binomial_tail.md.

    References
    ----------
    .. [1] C. Clopper and E. Pearson, "The use of confidence or fiducial limits
       illustrated in the case of the binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> float(binomial_tail_inversion(0, 100, delta=0.05).round(4))
    0.0295
    >>> binomial_tail_inversion([0, 5, 100], 100, delta=0.05).round(3).tolist()
    [0.03, 0.102, 1.0]
    """
    counts, rows = checks.check_counts_of(n_errors, n_samples, "n_errors", "n_samples")
    deltas = checks.check_probabilities(delta, "delta")
    return upper_limits(counts, rows, deltas)


def binomial_tail_inversion_lower(
    n_errors: ArrayLike, n_samples: ArrayLike, *, delta: ArrayLike
) -> Floats:
    r"""Lower bound on an error rate by inverting the upper binomial tail.

    The smallest rate :math:`p` under which at least :math:`c` errors in :math:`m` rows
    have probability :math:`\delta` or more:

    .. math:: \min\{p : P(\mathrm{Bin}(m, p) \ge c) \ge \delta\}.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the draw of the
    test rows, the true error rate is at least the returned value.
    Assumes: a classifier fixed before independent test rows were drawn.
    Source: as :func:`binomial_tail_inversion`, solved on its own so that small
    limits keep their digits. At most 1e-9 + 6e-17 m too small (relative).

    Examples
    --------
    >>> float(binomial_tail_inversion_lower(5, 100, delta=0.05).round(4))
    0.0199
    >>> float(binomial_tail_inversion_lower(1, 10**9, delta=0.01))  # doctest: +ELLIPSIS
    1.0050335...e-11
    """
    counts, rows = checks.check_counts_of(n_errors, n_samples, "n_errors", "n_samples")
    deltas = checks.check_probabilities(delta, "delta")
    return lower_limits(counts, rows, deltas)


def _limits_of_counts(
    is_upper: bool, counts: ArrayLike, rows: ArrayLike, delta: ArrayLike
) -> Floats:
    """Solve each distinct (count, rows, delta) once, from cached tables if that pays.

    A search needs the same few thousand values many times, with one delta and two fold
    sizes. With a table for each pair of these, a limit is an indexing operation.
    """
    arrays = {"delta": delta, "counts": counts, "rows": rows}
    deltas, counts, rows = checks.broadcast(
        **{n: np.asarray(v) for n, v in arrays.items()}
    )
    flat_counts, flat_rows, flat_deltas = (
        array.ravel().astype(np.float64) for array in (counts, rows, deltas)
    )
    # Without errors the limit has a closed form that needs no tail.
    if ((flat_deltas < SMALLEST_TAIL) & (flat_counts > 0)).any():
        raise ValueError(
            f"`delta` must be at least {SMALLEST_TAIL:g} for every share, got "
            f"{float(flat_deltas.min()):g}; divide it among fewer candidates or folds."
        )
    limits = np.empty(flat_counts.size)
    pairs, inverse = distinct_columns(flat_rows, flat_deltas)
    largest = pairs[0].max(initial=0.0)
    if pairs.shape[1] <= _MANY_TABLES and largest <= min(
        _LARGEST_TABLE, 16 * flat_counts.size
    ):
        for pair, (n_rows, one_delta) in enumerate(pairs.T):
            chosen = inverse == pair
            table = _limit_table(is_upper, int(n_rows), float(one_delta))
            limits[chosen] = table[flat_counts[chosen].astype(np.intp)]
    else:
        triples, inverse = distinct_columns(flat_counts, flat_rows, flat_deltas)
        limits = _solve_limits(is_upper, *triples)[inverse]
    return limits.reshape(deltas.shape)[()]


def distinct_columns(*columns: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the distinct columns of the stacked arrays, and their inverse index."""
    stacked = np.stack(columns)
    if all((row == row[:1]).all() for row in stacked):
        return stacked[:, :1], np.zeros(stacked.shape[1], dtype=np.intp)
    # Several times faster than `numpy.unique` along an axis, which sorts records.
    order = np.lexsort(stacked)
    ordered = stacked[:, order]
    is_new = np.ones(order.size, dtype=bool)
    is_new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    inverse = np.empty(order.size, dtype=np.intp)
    inverse[order] = np.cumsum(is_new) - 1
    return ordered[:, is_new], inverse


@lru_cache(maxsize=64)
def _limit_table(is_upper: bool, n_rows: int, delta: float) -> Floats:
    """Return the limits for 0 to n_rows errors, which rise with each error."""
    counts = np.arange(n_rows + 1.0)
    sizes = np.full((2, n_rows + 1), [[n_rows], [delta]])
    table = _solve_limits(is_upper, counts, *sizes)
    # At a delta closer to 1 the shift of the target is as large as 1 - delta, so that
    # neighboring limits may be equal.
    if delta < 1.0 - 1e-9:
        rises = (np.diff(table) > 0) | (table[1:] == 1)
        assert rises.all(), "limits must rise with every error"
    table.setflags(write=False)
    return table


def _solve_limits(
    is_upper: bool, counts: Floats, rows: Floats, deltas: Floats
) -> Floats:
    """Return limits: closed forms, or roots of the tail.

    In comments m is the number of rows, c the count, and q the limit.
    """
    end = float(is_upper)
    limits = np.full(counts.shape, end)
    n_mirrored = counts if is_upper else rows - counts
    # P(Bin(m, q) <= 0) = (1 - q)^m and P(Bin(m, q) <= m - 1) = 1 - q^m have closed
    # forms, as have their mirror images. The limit is moved outwards by one step, since
    # close to 1 a rounding error is a large part of 1 - limit.
    for where, log_tail, is_rest in (
        ((n_mirrored == 0) & (rows >= 1), np.log(deltas) * _LOG_ROUNDING, is_upper),
        (
            (n_mirrored == rows - 1) & (rows >= 2),
            np.log1p(-deltas) / _LOG_ROUNDING,
            not is_upper,
        ),
    ):
        log_root = log_tail[where] / rows[where]
        root = -np.expm1(log_root) if is_rest else np.exp(log_root)
        limits[where] = np.nextafter(root, end)
    inner = (n_mirrored >= 1) & (n_mirrored <= rows - 2)
    if inner.any():
        counts, rows, deltas = counts[inner], rows[inner], deltas[inner]
        if is_upper:
            x = counts + 1
            y = rows - counts
            start = special.betainccinv(x, y, deltas)
            otherwise = x / (rows + 1)
            target = np.log(deltas) - _TARGET_SHIFT
        else:
            x = counts
            y = rows - counts + 1
            start = special.betaincinv(x, y, deltas)
            # At rates so small that the inverse underflows, P is C(m, c) q^c.
            otherwise = np.exp(
                (np.log(deltas * counts) + special.betaln(x, y)) / counts
            )
            # `betainc` errs by 3e-17 per row, `betaincc` far less.
            target = np.log(deltas) - _TARGET_SHIFT - 5e-17 * rows
        q = np.where((start > 0) & (start < 1), start, otherwise)
        limits[inner] = _solve_tails(is_upper, x, y, target, q)
    return limits


def _solve_tails(
    is_upper: bool, x: Floats, y: Floats, log_target: Floats, q: Floats
) -> Floats:
    """Return rates whose computed tail is just below the target.

    `x` and `y` are the parameters of the Beta distributions that the tails belong to,
    `q` is where the search starts.

    SciPy's inverse is only the start: in SciPy 1.17, when a parameter is exactly 1000,
    it was seen at a fifth of the limit and at 3.4 times it. The logarithm of the
    tail is concave, so every Newton step lands where the tail is small enough.
    """
    tail, sign = (special.betaincc, -1) if is_upper else (special.betainc, 1)
    lo, hi = np.zeros_like(q), np.ones_like(q)
    gap = np.full_like(q, np.inf)
    active = np.arange(q.size)
    for _ in range(100):
        a, b, point = x[active], y[active], q[active]
        with np.errstate(all="ignore"):
            mass = tail(a, b, point)
            gap[active] = f = np.log(mass) - log_target[active]
            # The derivative of the incomplete Beta function is the Beta density.
            log_pdf = special.xlogy(a - 1, point) + special.xlog1py(b - 1, -point)
            slope = sign * np.exp(log_pdf - special.betaln(a, b))
            newton = point - f * mass / slope
        # For an upper limit the tail falls in q, for a lower one it rises.
        goes_up = (f > 0) == is_upper
        lo[active] = low = np.where(goes_up, point, lo[active])
        hi[active] = high = np.where(goes_up, hi[active], point)
        # A proposal that leaves its bracket is replaced by its arithmetic or geometric
        # middle; where `low` is still 0 or close to `high`, the former is the better.
        is_wide = (low > 0) & (high > 4 * low)
        middle = np.where(is_wide, np.sqrt(low * high), (low + high) / 2)
        is_inside = np.isfinite(newton) & (newton > low) & (newton < high)
        following = np.where(is_inside, newton, middle)
        # Close to 1 a rate cannot meet the target exactly: cross over, and stop.
        is_stuck = np.abs(following - point) < 4e-16 * point
        crossing = point * (1 + 8e-16 if is_upper else 1 - 8e-16)
        following = np.where(is_stuck & (f > 0), crossing, following)
        is_within = (following > low) & (following < high)
        goes_on = (np.abs(f) >= 1e-12) & is_within & ~(is_stuck & (f <= 0))
        q[active] = np.where(goes_on, following, point)
        active = active[goes_on]
        if not active.size:
            break
    # A root that has not converged is replaced by the end of its bracket that keeps
    # the limit valid, though a little wider.
    return np.where(np.abs(gap) < _ACCEPTED_GAP, q, hi if is_upper else lo)


def sum_outward(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return sums that are never below the exact ones; a limit stays one.

    Examples
    --------
    >>> bool(sum_outward(0.1, 0.7) > 0.1 + 0.7), float(sum_outward(0.5, np.inf))
    (True, inf)
    """
    return np.asarray(np.nextafter(np.add(first, second), np.inf))[()]


def mean_outward(limits: Floats, axis: int) -> Floats:
    """Return means along an axis that are never below the exact ones.

    Examples
    --------
    >>> tenths = np.full(10, 0.1)
    >>> bool(tenths.mean() < 0.1), float(mean_outward(tenths, 0))
    (False, 0.1)
    """
    # Each addition, the division and the product err by half an epsilon at most.
    means = limits.mean(axis=axis)
    n = limits.shape[axis]
    raised = means + np.abs(means) * (n + 2) * np.finfo(np.float64).eps
    return np.asarray(np.minimum(raised, limits.max(axis=axis)))[()]


upper_limits = partial(_limits_of_counts, True)
"""Upper limits of counts in rows at each delta, broadcast; arguments are not
checked."""
lower_limits = partial(_limits_of_counts, False)
"""Lower limits of counts in rows at each delta, broadcast; arguments are not
checked."""
