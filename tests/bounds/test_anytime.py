from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import special

from dsel.bounds import (
    FixedStages,
    anytime_limit,
    binomial_tail_inversion,
    stage_schedule,
)
from tests.bounds.exact_tails import log_factorial

SHARE = 0.05 * 0.01 / 225


@pytest.mark.parametrize(
    ("n_rows", "expected", "in_ten_stages"),
    [
        (10**3, 0.0569, 0.0519),
        (10**4, 0.0295, 0.0280),
        (10**5, 0.0229, 0.0223),
        (10**6, 0.02090, 0.02072),
    ],
)
def test_anytime_limit__gives_the_numbers_of_the_table(n_rows, expected, in_ten_stages):
    count = n_rows // 50
    limit = anytime_limit(count, n_rows, delta=SHARE)
    assert limit == pytest.approx(expected, abs=0.6 * 10 ** -(len(str(expected)) - 2))
    limit = binomial_tail_inversion(count, n_rows, delta=SHARE / 10)
    assert limit == pytest.approx(in_ten_stages, rel=0.002)


def test_anytime_limit__has_its_closed_form_without_disagreements():
    t, delta = 500, 0.03
    log_mixture = special.betaln(0.5, 0.5 + t) - special.betaln(0.5, 0.5)
    expected = -np.expm1((log_mixture + np.log(delta)) / t)
    assert anytime_limit(0, t, delta=delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("count", "rows"), [(0, 0), (7, 7)])
def test_anytime_limit__says_nothing_without_agreement(count, rows):
    assert anytime_limit(count, rows, delta=0.1) == 1.0


def test_anytime_limit__refuses_a_prior_that_is_none():
    with pytest.raises(ValueError, match="`prior` must be positive"):
        anytime_limit(1, 10, delta=0.1, prior=(0.0, 1.0))


def test_anytime_limit__holds_at_every_row_where_the_repeated_limit_fails(rng):
    # A rate of 0.2, 500 rows, delta 0.3; the fixed-size limit is read at every row.
    rate, n_rows, delta, draws = 0.2, 500, 0.3, 2000
    counts = (rng.random((draws, n_rows)) < rate).cumsum(axis=1)
    rows = np.arange(1, n_rows + 1)
    sequence = (anytime_limit(counts, rows, delta=delta) < rate).any(axis=1).mean()
    repeated = binomial_tail_inversion(counts, rows, delta=delta) < rate
    assert sequence <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)
    assert repeated.any(axis=1).mean() > 2 * delta


def test_fixed_stages__have_limits_that_hold_at_all_of_them(rng):
    rate, delta, draws = 0.2, 0.4, 3000
    stages = stage_schedule(400, 4)
    steps = np.diff(stages, prepend=0)
    counts = rng.binomial(steps, rate, (draws, len(stages))).cumsum(axis=1)
    limits = FixedStages(len(stages)).limits(counts, stages, delta)
    fails = (limits < rate).any(axis=1).mean()
    assert 0.03 < fails <= delta


def test_stage_schedule__ends_with_the_whole_pool():
    for n_rows, n_stages in [(1, 5), (2, 2), (10**6, 1), (999_999, 7)]:
        stages = stage_schedule(n_rows, n_stages)
        assert stages[-1] == n_rows
        assert (np.diff(stages) > 0).all()
        assert len(stages) <= n_stages


def test_anytime_limit__does_not_round_to_the_unsafe_side():
    s, rest = 10_000, 10**7 - 10_000
    limit = Decimal(float(anytime_limit(s, s + rest, delta=0.05)))

    with localcontext() as context:
        context.prec = 40
        # B(s + 1/2, t - s + 1/2) / B(1/2, 1/2) from factorials.
        mixture = sum(
            log_factorial(2 * n) - n * Decimal(4).ln() - log_factorial(n)
            for n in (s, rest)
        ) - log_factorial(s + rest)
        wealth = mixture - s * limit.ln() - rest * (1 - limit).ln()
        assert 0 <= wealth + Decimal("0.05").ln() < Decimal("1e-5")
