"""How far off a regressor can be: limits of quantiles of absolute residuals.

The *tolerance* at level .1 is a number that the absolute residuals of at most 10% of
new rows exceed. Its limits are order statistics of held-out residuals, so nothing is
assumed of the distribution of the target; ties make them conservative. The model
trained on all rows has no held-out residuals. Its limit is that of a fold's model plus
a limit of how far the two models are apart on the pool.
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from dsel import checks
from dsel.arrays import ArrayLike, Floats, Integers
from dsel.bounds.binomial import upper_limits

RESIDUAL_PART: Final = 0.85
"""Part of a level for residuals; deviations on the pool get the rest.

It is fixed before the data are seen; .85 gives limits up to 14% smaller than .8.
"""
N_BINS: Final = 256
BIN_RANGE: Final = (1e-3, 10.0)
"""Ends of the bins of deviations, as multiples of a residual: they are 3.7% wide."""
LARGEST_PART: Final = 0.98
"""Part of a level for residuals where the rows are too few for a smaller level."""
CAUTION: Final = 1.0 - 1e-9
"""Factor for delta, to cover the rounding of binomial probabilities."""
SUM_ROUNDING: Final = 2.0**-50
"""Residuals, deviations and their sum are rounded once each, by 2**-53 at most."""


def allowed_exceedances(
    n_rows: ArrayLike, *, level: float, delta: ArrayLike
) -> Integers:
    r"""Return how many held-out rows may exceed a tolerance that still holds.

    The largest :math:`K` with :math:`B(K, n, \delta) \le \beta`, where :math:`B` is
    `binomial_tail_inversion`, :math:`n` is `n_rows` >= 0, and :math:`\beta` is `level`,
    the fraction of new rows that may exceed the tolerance. `delta` is the probability
    with which it may fail. -1 where the rows are too few even if none exceeds it.

    Examples
    --------
    >>> allowed_exceedances([20, 60, 120], level=0.1, delta=0.05).tolist()
    [-1, 1, 6]
    """
    rows = checks.check_counts(n_rows, "n_rows")
    beta = checks.check_probability(level, "level")
    rows, deltas = np.broadcast_arrays(rows, checks.check_probabilities(delta, "delta"))
    # The count is found by bisection: the limit rises with every exceedance, up to 1
    # where all rows exceed. `low` is only ever set to a count that fits, so the result
    # needs no second check.
    low, high = np.full(rows.shape, -1), rows.astype(np.int64) - 1
    while (low < high).any():
        middle = -((-low - high) // 2)  # rounded up, so that `low` moves
        fits = upper_limits(np.maximum(middle, 0), rows, deltas) <= beta
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return np.asarray(low)


@lru_cache(maxsize=1024)
def _allowed_of_size(n_rows: int, level: float, delta: float) -> int:
    """Return `allowed_exceedances` of one size, which many models share."""
    return int(allowed_exceedances(n_rows, level=level, delta=delta))


def minimum_rows(*, level: float, delta: float) -> int:
    """Return the smallest n with ``B(0, n, delta) <= level``.

    With fewer held-out rows the tolerance of `tolerance_limit` is infinite.

    Examples
    --------
    >>> minimum_rows(level=0.1, delta=0.05)
    29
    """
    beta = checks.check_probability(level, "level")
    checks.check_probability(delta, "delta")
    # Without an exceedance the limit of n rows is 1 - delta ** (1 / n), up to rounding.
    n_rows = max(1, int(np.log(delta) / np.log1p(-beta)) - 1)
    while allowed_exceedances(n_rows, level=beta, delta=delta) < 0:
        n_rows += 1
    return n_rows


def tolerance_limit(residuals: ArrayLike, *, level: float, delta: float) -> float:
    r"""Upper limit of the absolute residual that a fraction of new rows exceeds.

    The smallest residual :math:`t` of the held-out rows with

    .. math:: B(\#\{i : r_i > t\}, n, \delta) \le \beta ,

    which is the order statistic that :math:`K` rows may exceed, see
    `allowed_exceedances`.

    Parameters
    ----------
    residuals
        Absolute residuals :math:`r_i \ge 0` of held-out rows, shape (n,), n >= 1, in
        the units of the target. Infinite, or NaN, where a prediction was no finite
        number.
    level
        Fraction :math:`\beta` of new rows that may be off by more, in ``(0, 1)``.
    delta
        Probability with which the limit may fail, in ``(0, 1)``.

    Returns
    -------
    float
        One of the residuals, in the units of the target; infinite where the rows are
        too few (see `minimum_rows`), or too many residuals are infinite.

    Raises
    ------
    ValueError
        Where there is no residual, one is negative, or there are several dimensions.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the draw of the held-out
    rows, at most a fraction `level` of new rows has an absolute residual above the
    returned value.
    Assumes: a model fixed before independent held-out rows were drawn; nothing about
    the distribution of the target.
    Source: distribution-free limits of quantiles by order statistics [1]_, with the
    binomial tail inverted as :func:`dsel.bounds.binomial_tail_inversion` does. Let
    :math:`q = \inf\{t : P(r > t) \le \beta\}` and :math:`\pi = P(r \ge q) \ge \beta`.
    If :math:`t < q`, then :math:`\#\{r \ge q\} \le \#\{r > t\}`, so that the limit of
    the former count is at most :math:`\beta`, which is below 1 and at most
    :math:`\pi`: it fails, with probability at most :math:`\delta`. See
    docs/theory/tolerances.md.

    References
    ----------
    .. [1] S. S. Wilks, "Determination of sample sizes for setting tolerance limits",
       Annals of Mathematical Statistics 12, 1941.

    Examples
    --------
    >>> tolerance_limit(np.arange(60) / 10, level=0.1, delta=0.05)
    5.8
    >>> tolerance_limit(np.arange(20) / 10, level=0.1, delta=0.05)
    inf
    """
    values = checks.as_array(residuals, "residuals", np.float64)
    if values.ndim != 1 or not values.size or (values < 0).any():
        negative = " with negative ones" if (values < 0).any() else ""
        raise ValueError(
            f"`residuals` must hold at least one absolute residual >= 0 in one "
            f"dimension, got shape {values.shape}{negative}."
        )
    allowed = _allowed_of_size(
        values.size,
        checks.check_probability(level, "level"),
        checks.check_probability(delta, "delta"),
    )
    if allowed < 0:
        return np.inf
    ordered = np.sort(np.where(np.isnan(values), np.inf, values))
    # At most `allowed` rows lie above the next largest one, and fewer if it is tied.
    return float(ordered[values.size - 1 - allowed])


class DividedLevel(NamedTuple):
    """How the level of one fold is divided; see `divide_level`."""

    n_exceeding: int
    """Rows that may exceed the tolerance of the residuals; -1 where it is infinite."""
    deviation_level: float
    """Part of the level for deviations on the pool; residuals have the rest."""


def divide_level(
    n_rows: int, *, level: float, delta: float, extra_delta: float
) -> DividedLevel:
    r"""Divide a level between residuals of a fold's model and deviations from it.

    A row is off by more than :math:`t + u` only if the fold's model is off by more than
    :math:`t` or both models are more than :math:`u` apart, so the levels of both add
    up. The tolerance of the fold's model at the whole level and that of the residuals
    at the smaller level are two order statistics of the same rows, so they fail mostly
    together. Only the probability that the latter fails alone has to be added to
    `delta`.

    Parameters
    ----------
    n_rows
        Held-out rows of the fold, n >= 0.
    level
        Fraction of new rows that may be off by more than the sum, :math:`\beta`, in
        ``(0, 1)``.
    delta
        Probability with which the tolerance of the fold's model at the whole level may
        fail; it allows :math:`K` exceedances.
    extra_delta
        Probability with which that at the smaller level may fail where the other one
        holds.

    Returns
    -------
    DividedLevel
        Functions of sizes alone. With :math:`N(b) \sim \mathrm{Bin}(n, b)` of uniform
        numbers below :math:`b`, :math:`K_1` is the largest count for which a level
        :math:`\beta_1 \le .85 \beta` has

        .. math:: P(N(\beta_1) \le K_1, N(\beta) > K) \le \delta_{extra} ,

        and :math:`\beta_1` the smallest such level. Where there is none,
        :math:`K_1 = 0`, with the smallest level up to :math:`.98 \beta`.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta - extra_delta``, at most a share
    `level` of new rows exceeds the residual that K rows exceed, and at most a share
    ``level - deviation_level`` that which `n_exceeding` rows exceed.
    Assumes: a model fixed before independent held-out rows were drawn.
    Source: with :math:`U_i = P(r > r_i) + V_i P(r = r_i)`, uniform, the former fails
    only if :math:`\#\{U_i \le \beta\} \le K`, and the latter only if
    :math:`\#\{U_i \le \beta_1\} \le K_1`.

    Examples
    --------
    >>> n, part = divide_level(120, level=0.2, delta=0.05, extra_delta=0.002)
    >>> n, round(part, 3)
    (11, 0.031)
    """
    n = checks.check_count(n_rows, "n_rows", at_least=0)
    beta = checks.check_probability(level, "level")
    extra = checks.check_probability(extra_delta, "extra_delta")
    allowed = _allowed_of_size(n, beta, checks.check_probability(delta, "delta"))

    def failure_probability(count: int, first_level: float) -> float:
        """Return the probability that only the tolerance at the smaller level fails."""
        # A number that is not below the first level is uniform above it.
        below = np.arange(count + 1)
        tail = stats.binom.sf(
            allowed - below, n - below, (beta - first_level) / (1.0 - first_level)
        )
        return float(stats.binom.pmf(below, n, first_level) @ tail)

    low, high = -1, n - 1  # the largest count that fits at the largest level
    while low < high:
        middle = -((-low - high) // 2)
        if failure_probability(middle, RESIDUAL_PART * beta) <= extra * CAUTION:
            low = middle
        else:
            high = middle - 1
    count = max(low, 0)
    most = RESIDUAL_PART * beta
    if low < 0:
        most = LARGEST_PART * beta
        if not n or failure_probability(0, most) > extra * CAUTION:
            return DividedLevel(-1, 0.0)
    least = 0.0
    # `most` always fits, so a bisection that stops early is on the safe side; 60 steps
    # reach the last digit.
    for _ in range(60):  # the smallest level: failures fall where it rises
        middle_level = (least + most) / 2
        if failure_probability(count, middle_level) <= extra * CAUTION:
            most = middle_level
        else:
            least = middle_level
    return DividedLevel(count, beta - most)


def deviation_edges(scale: float) -> Floats:
    """Return the edges of bins in which deviations of two models are counted.

    They are 0, then the edges of 256 geometric bins from 1e-3 to 10 times `scale`, a
    residual, finite and > 0; rising, shape (258,). Each bin begins above its edge, the
    last one has no end.

    Examples
    --------
    >>> edges = deviation_edges(2.0)
    >>> edges[:2].tolist(), float(edges[-1])
    ([0.0, 0.002], 20.0)
    """
    first, last = BIN_RANGE
    steps = np.linspace(np.log(first), np.log(last), N_BINS + 1)
    inner = np.exp(steps)
    inner[0], inner[-1] = first, last
    # The smallest numbers have few digits: edges would be equal, or 0.
    floor = np.finfo(np.float64).tiny / first
    ceiling = np.finfo(np.float64).max / last
    return np.append(
        0.0, inner * np.clip(checks.check_positive(scale, "scale"), floor, ceiling)
    )


def count_deviations(deviations: Floats, edges: Floats) -> Integers:
    """Return how many deviations lie above each edge, up to the next: (n_edges,).

    Deviations of 0 are in no bin. NaN, of predictions that are no finite numbers, lies
    above all edges.

    Examples
    --------
    >>> count_deviations(np.array([0.0, 0.5, 1.0, 1.5, np.nan]), np.array([0.0, 1.0]))
    array([2, 2])
    """
    # Sorting is vectorized, and edges are few: this takes a tenth of the time of a
    # search of the edges for each deviation.
    up_to = np.searchsorted(np.sort(deviations), edges, side="right")
    return np.diff(up_to, append=len(deviations))


def deviation_limit(
    counts: ArrayLike,
    edges: ArrayLike,
    n_rows: ArrayLike,
    *,
    level: float,
    delta: float,
) -> float:
    r"""Upper limit of how far two models are apart, but for a fraction of new rows.

    The smallest edge :math:`u` such that it and all larger edges have

    .. math:: B(\#\{r : |f(x_r) - g(x_r)| > u\}, m_u, \delta) \le \beta .

    With one number of rows, or those of :func:`dsel.bounds.upper_pool_rows`, limits
    fall from edge to edge, so that it is the first edge that fits.

    Parameters
    ----------
    counts
        Pool rows by their deviation: those above each edge, up to the next one, and
        last those above all. Integers >= 0, shape (n_edges,).
    edges
        Rising, >= 0, shape (n_edges,); fixed before the pool was read.
    n_rows
        Number of rows that a count above each edge is out of, :math:`m_u`: one number,
        or shape (n_edges,), see :func:`dsel.bounds.upper_pool_rows`.
    level
        Fraction :math:`\beta` of new rows on which they may be further apart, in
        ``[0, 1]``.
    delta
        Probability with which the limit may fail, in ``(0, 1)``.

    Returns
    -------
    float
        One of the edges; infinite where too many rows lie above all of them, or the
        pool is too small.

    Raises
    ------
    ValueError
        Where `counts` and `edges` differ in shape, edges do not rise, a count exceeds
        its rows, or a number is out of range.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the draw of the pool, the
    models are further apart than the returned value on at most a share `level` of new
    rows.
    Assumes: models and edges that do not depend on the pool.
    Source: let :math:`u'` be the last edge beyond which a larger fraction of new rows
    lies than `level`. It is fixed, and the returned edge is at most :math:`u'` only if
    that of :math:`u'` fits, so only if the binomial limit at this one edge fails.

    Examples
    --------
    >>> deviation_limit([90, 9, 1], [0.0, 0.5, 2.0], 1000, level=0.02, delta=0.05)
    0.5
    """
    bin_counts = checks.check_counts(counts, "counts")
    ends = checks.check_between(edges, "edges", 0.0, np.inf)
    checks.check_axes(ends, "edges", 1, "numbers that rise, in one dimension")
    if (np.diff(ends) <= 0.0).any():
        raise ValueError(f"`edges` must rise, got {checks.show(ends)}.")
    above = np.cumsum(bin_counts[..., ::-1], axis=-1)[..., ::-1]
    above, rows = checks.check_counts_of(above, n_rows, "counts", "n_rows")
    if bin_counts.shape != ends.shape or above.shape != ends.shape:
        raise ValueError(
            f"`counts` must hold one number for each of the {len(ends)} `edges`, and "
            f"`n_rows` one or as many, got shapes {bin_counts.shape}, "
            f"{np.shape(n_rows)}."
        )
    beta = checks.check_between(level, "level", 0.0, 1.0)
    checks.check_axes(beta, "level", 0, "one number")
    deltas = np.full(above.shape, checks.check_probability(delta, "delta"))
    fits = upper_limits(above, rows, deltas) <= beta
    # Limits at several edges do not hold at once. The last edge beyond which too many
    # new rows lie is fixed; all edges from the returned one on fit, so the returned
    # one is too small only where the limit at that fixed edge fails.
    fits = np.logical_and.accumulate(fits[::-1])[::-1]
    return float(ends[int(fits.argmax())]) if fits.any() else np.inf


def add_tolerances(residual: ArrayLike, deviation: ArrayLike) -> Floats:
    """Return upper limits of the sums of two tolerances, rounded up.

    Examples
    --------
    >>> bool(add_tolerances(1.0, 0.5) >= 1.5), add_tolerances([1.0], [np.inf])
    (True, array([inf]))
    """
    total = np.add(residual, deviation) * (1.0 + SUM_ROUNDING)
    return np.asarray(np.nextafter(total, np.inf))


def tolerance_distribution(
    residuals: ArrayLike, n_rows: int, n_exceeding: int
) -> tuple[Floats, Floats]:
    """Return the values of a tolerance over draws of rows, and their probabilities.

    The tolerance is the residual that `n_exceeding` >= 0 of the drawn rows exceed.
    `residuals` are absolute ones of rows that stand for all rows, shape (n,), n >= 1;
    `n_rows` are drawn from them with replacement. Values are in increasing order.

    Examples
    --------
    >>> values, probabilities = tolerance_distribution([1.0, 2.0], 2, 0)
    >>> values.tolist(), probabilities.tolist()
    ([1.0, 2.0], [0.25, 0.75])
    """
    ordered = np.sort(checks.as_array(residuals, "residuals", np.float64))
    # It is at most a residual where at most `n_exceeding` drawn rows lie above it.
    fractions_above = 1.0 - np.arange(1, len(ordered) + 1) / len(ordered)
    at_most = stats.binom.cdf(n_exceeding, n_rows, fractions_above)
    probabilities = np.diff(at_most, prepend=0.0)
    # An infinite residual that is hardly ever drawn must not make an average infinite.
    is_likely = probabilities > 1e-12
    return ordered[is_likely], probabilities[is_likely]


def expected_tolerance(
    residuals: ArrayLike, n_rows: int, *, level: float, delta: float
) -> float:
    """Return the average of `tolerance_limit` over draws of rows with such residuals.

    `residuals` are absolute ones of rows that stand for all rows, shape (n,), n >= 1;
    `n_rows` are drawn from them with replacement. An estimate, no bound. Infinite where
    these rows give no finite tolerance, or infinite residuals are drawn too often.

    Examples
    --------
    >>> round(expected_tolerance(np.arange(100.0), 60, level=0.1, delta=0.05), 1)
    96.2
    """
    allowed = int(allowed_exceedances(n_rows, level=level, delta=delta))
    if allowed < 0:
        return np.inf
    values, probabilities = tolerance_distribution(residuals, n_rows, allowed)
    return float(values @ probabilities)
