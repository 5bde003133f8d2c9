"""Tolerances of regression: known values, ties, and coverage without assumptions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dsel.bounds import (
    binomial_tail_inversion,
    deviation_limit,
    tolerance_limit,
    upper_pool_rows,
)
from dsel.bounds.tolerance import (
    RESIDUAL_PART,
    add_tolerances,
    allowed_exceedances,
    count_deviations,
    deviation_edges,
    divide_level,
    expected_tolerance,
    minimum_rows,
)

LEVELS = st.floats(0.01, 0.9)
DELTAS = st.floats(1e-4, 0.5)


def upper(count, rows, delta):
    """Clopper-Pearson's limit, by another route."""
    return stats.beta.ppf(1 - delta, count + 1, rows - count) if count < rows else 1.0


@pytest.mark.parametrize("n_rows", [0, 1, 28, 29, 60, 61, 120, 400, 5_000])
@pytest.mark.parametrize(("level", "delta"), [(0.1, 0.05), (0.5, 0.2), (0.02, 0.01)])
def test_allowed_exceedances__is_the_largest_count_that_fits(n_rows, level, delta):
    allowed = int(allowed_exceedances(n_rows, level=level, delta=delta))
    if allowed >= 0:
        assert upper(allowed, n_rows, delta) <= level
    assert allowed == n_rows or upper(allowed + 1, n_rows, delta) > level


def test_rows_needed__is_where_a_tolerance_becomes_finite(rng):
    for level, delta in [(0.1, 0.05), (0.5, 0.5), (0.05, 0.01), (0.01, 0.05 / 16)]:
        n_rows = minimum_rows(level=level, delta=delta)
        residuals = rng.random(n_rows)
        assert np.isfinite(tolerance_limit(residuals, level=level, delta=delta))
        fewer = residuals[1:]
        assert not len(fewer) or np.isinf(
            tolerance_limit(fewer, level=level, delta=delta)
        )


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf, np.nan]), min_size=1),
    LEVELS,
    DELTAS,
)
def test_tolerance_limit__is_the_smallest_residual_by_definition(given_, level, delta):
    residuals = np.nan_to_num(given_, nan=np.inf, posinf=np.inf)
    fitting = [
        t
        for t in residuals
        if binomial_tail_inversion((residuals > t).sum(), len(residuals), delta=delta)
        <= level
    ]
    limit = tolerance_limit(given_, level=level, delta=delta)
    assert limit == min(fitting, default=np.inf)


def test_tolerance_limit__does_not_depend_on_order_and_grows_with_ties(rng):
    residuals = np.abs(rng.standard_cauchy(200))
    limit = tolerance_limit(residuals, level=0.1, delta=0.05)
    allowed = int(allowed_exceedances(200, level=0.1, delta=0.05))
    assert (residuals > limit).sum() == allowed
    assert tolerance_limit(np.ceil(residuals), level=0.1, delta=0.05) >= limit
    shuffled = rng.permutation(residuals)
    assert tolerance_limit(shuffled, level=0.1, delta=0.05) == limit
    residuals[: allowed + 1] = np.nan  # predictions that are no numbers
    assert np.isinf(tolerance_limit(residuals, level=0.1, delta=0.05))


@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("level", [0.1, 0.5])
@pytest.mark.parametrize("kind", ["heavy tails", "rounded", "an atom above the level"])
def test_tolerance_limit__fails_at_most_delta_of_the_time(rng, kind, level, delta):
    draws, n_rows = 500, 60
    if kind == "an atom above the level":
        # A share just above the level has the residual 1: 0 would be too small.
        atom = min(1.0, level + 0.002)
        residuals = (rng.random((draws, n_rows)) < atom).astype(float)
        exceeds = lambda t: np.where(t < 1, atom, 0.0)  # noqa: E731
    else:
        residuals = np.abs(rng.standard_cauchy((draws, n_rows)))
        exceeds = lambda t: 2 * stats.cauchy.sf(t)  # noqa: E731
        if kind == "rounded":
            residuals = np.ceil(residuals)
            exceeds = lambda t: 2 * stats.cauchy.sf(np.floor(t))  # noqa: E731
    limits = np.array([tolerance_limit(r, level=level, delta=delta) for r in residuals])
    failures = int((exceeds(limits) > level + 1e-12).sum())
    assert stats.binom.sf(failures - 1, draws, delta) > 1e-4


@pytest.mark.parametrize("n_rows", [0, 5, 40, 60, 120, 400, 5_000])
@pytest.mark.parametrize("delta", [0.2, 0.024])
def test_divide_level__divides_it_and_allows_as_many_as_fit(n_rows, delta):
    made = divide_level(n_rows, level=0.1, delta=delta, extra_delta=delta / 25)
    allowed = int(allowed_exceedances(n_rows, level=0.1, delta=delta))
    if made.n_exceeding < 0:
        assert allowed < 1
        assert made.deviation_level == 0
        return
    assert 0 < made.deviation_level < 0.1
    assert made.n_exceeding <= max(0, allowed)
    if made.n_exceeding:
        assert 0.1 - made.deviation_level <= RESIDUAL_PART * 0.1 + 1e-12


def failure(n_rows, count, first_level, level, allowed):
    """P(count rows are below the first level at most, and more than allowed below it).

    By the chances of all numbers of rows below both levels.
    """
    first, second = np.meshgrid(*[np.arange(n_rows + 1)] * 2, indexing="ij")
    is_failure = (first <= count) & (first + second > allowed)
    is_failure &= first + second <= n_rows
    numbers = np.stack([first, second, n_rows - first - second], axis=-1)[is_failure]
    parts = [first_level, level - first_level, 1.0 - level]
    return stats.multinomial.pmf(numbers, n_rows, parts).sum()


@pytest.mark.parametrize("extra_part", [0.002, 0.02, 0.04, 0.3])
@pytest.mark.parametrize(("level", "delta"), [(0.2, 0.05), (0.1, 0.2), (0.5, 0.01)])
@pytest.mark.parametrize("n_rows", [*range(7, 40, 3), 60])
def test_divide_level__has_the_largest_count_and_then_the_smallest_level(
    n_rows, level, delta, extra_part
):
    extra = extra_part * delta
    allowed = int(allowed_exceedances(n_rows, level=level, delta=delta))
    fits = lambda count, part: (  # noqa: E731
        failure(n_rows, count, part * level, level, allowed) <= extra
    )
    counts = [count for count in range(n_rows) if fits(count, 0.85)]
    made = divide_level(n_rows, level=level, delta=delta, extra_delta=extra)
    if not counts and not fits(0, 0.98):
        assert made == (-1, 0.0)
        return
    assert made.n_exceeding == max(counts, default=0)
    part = 1.0 - made.deviation_level / level
    assert fits(made.n_exceeding, part + 1e-9)
    assert not fits(made.n_exceeding, part - 1e-6)


@pytest.mark.parametrize(("n_rows", "level"), [(60, 0.1), (120, 0.1), (60, 0.5)])
@pytest.mark.parametrize("delta", [0.4, 0.2])
def test_divide_level__both_tolerances_fail_at_most_as_often_as_is_paid_for(
    rng, n_rows, level, delta
):
    # Of uniform residuals a row is beyond t with probability 1 - t.
    extra, draws = delta / 10, 20_000
    made = divide_level(n_rows, level=level, delta=delta, extra_delta=extra)
    allowed = int(allowed_exceedances(n_rows, level=level, delta=delta))
    ordered = np.sort(rng.random((draws, n_rows)), axis=1)
    whole, part = (
        1 - ordered[:, n_rows - 1 - count] for count in (allowed, made.n_exceeding)
    )
    first, second = whole > level, part > level - made.deviation_level
    assert stats.binom.sf((first | second).sum() - 1, draws, delta + extra) > 1e-4
    # What is paid for is used: nearly the extra failures are there.
    assert (second & ~first).mean() > 0.7 * extra


@given(st.lists(st.floats(0, 1e3), min_size=1), LEVELS, DELTAS)
def test_deviation_limit__is_the_first_edge_that_few_enough_rows_exceed(
    deviations, level, delta
):
    edges = deviation_edges(1.0)
    values = np.array(deviations)
    counts = count_deviations(values, edges)
    limit = deviation_limit(counts, edges, len(values), level=level, delta=delta)
    above = (values > edges[:, np.newaxis]).sum(axis=1)
    fits = binomial_tail_inversion(above, len(values), delta=delta) <= level
    assert limit == min(edges[fits], default=np.inf)
    exact = tolerance_limit(values, level=level, delta=delta)
    if 1e-3 <= exact <= 10:
        assert exact <= limit <= exact * 1.037


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2),
    st.integers(0, 60),
    LEVELS,
    DELTAS,
)
def test_deviation_limit__with_duplicates_is_the_first_edge_that_fits(
    bins, below, level, delta
):
    # Of the rows of each bin some equal labeled rows; so do some rows of no deviation.
    duplicates, others = np.array(bins).T
    counts, edges = duplicates + others, np.arange(len(bins)) / 2
    m, e = counts.sum() + 2 * below, duplicates.sum() + below
    rows = upper_pool_rows(m, e, np.cumsum(duplicates[::-1])[::-1])
    above = np.cumsum(counts[::-1])[::-1]
    limits = binomial_tail_inversion(above, rows, delta=delta)
    assert (np.diff(limits) <= 0).all()  # the lemma of docs/theory/tolerances.md
    found = deviation_limit(counts, edges, rows, level=level, delta=delta)
    fitting = edges[limits <= level]
    assert found == (fitting[0] if len(fitting) else np.inf)


def test_deviation_limit__is_no_edge_below_one_that_does_not_fit():
    # The numbers of rows are such that the first edge fits and the second does not.
    counts, rows = [10, 90, 0], [10_000, 100, 10_000]
    found = deviation_limit(counts, [0.0, 1.0, 2.0], rows, level=0.1, delta=0.05)
    assert found == 2.0


@pytest.mark.parametrize("scale", [5e-324, 1e-308, 1.0, 1e300, 1.7e308])
def test_deviation_edges__rise_whatever_the_scale_is(scale):
    edges = deviation_edges(scale)
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()


def test_count_deviations__puts_what_is_no_number_above_all_edges():
    edges = deviation_edges(1.0)
    counts = count_deviations(np.array([0.0, np.nan, np.inf, 10.0]), edges)
    assert counts.sum() == 3  # 0 is in no bin
    assert counts[[-2, -1]].tolist() == [1, 2]


@given(st.floats(0, 1e300), st.floats(0, 1e300), st.floats(0, 1e300))
def test_add_tolerances__covers_what_rounding_adds(y, f, g):
    # |y - g| and |g - f| as tolerances: |y - f| must not be above their sum.
    assert abs(y - f) <= add_tolerances(abs(y - g), abs(g - f))


def test_expected_tolerance__is_the_mean_of_tolerances(rng):
    residuals = np.abs(rng.standard_cauchy(200))
    drawn = rng.choice(residuals, (4_000, 60))
    limits = [tolerance_limit(each, level=0.2, delta=0.05) for each in drawn]
    expected = expected_tolerance(residuals, 60, level=0.2, delta=0.05)
    error = np.std(limits) / np.sqrt(len(limits))
    assert abs(np.mean(limits) - expected) < 5 * error
    assert np.isinf(expected_tolerance(residuals, 60, level=0.01, delta=0.05))


@pytest.mark.parametrize("residuals", [[], [[1.0]], [-0.5, 1.0]])
def test_tolerance_limit__refuses_what_is_no_residual(residuals):
    with pytest.raises(ValueError, match="`residuals`"):
        tolerance_limit(residuals, level=0.1, delta=0.05)


def test_deviation_limit__refuses_counts_of_other_bins():
    with pytest.raises(ValueError, match="one number for each of the 2 `edges`"):
        deviation_limit([1], [0.0, 1.0], 3, level=0.1, delta=0.05)
