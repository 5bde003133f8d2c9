"""Limits that hold wherever reading stopped."""

import numpy as np
import pytest

from dsel.bounds import (
    AnyTime,
    FixedStages,
    anytime_limit,
    best_fold,
    binomial_tail_inversion,
    cv_bound,
    cv_interval,
    merged_folds,
    select_then_certify,
    stage_schedule,
)
from dsel.bounds.stopping import stopping_rule


def test_fixed_looks__divide_the_share():
    rows = stage_schedule(10_000, 4)
    counts = rows // 50
    np.testing.assert_array_equal(
        FixedStages(4).limits(counts, rows, 0.05),
        binomial_tail_inversion(counts, rows, delta=0.05 / 4),
    )


def test_any_time__is_the_confidence_sequence():
    assert AnyTime().limits(20, 1000, 0.05) == anytime_limit(20, 1000, delta=0.05)


@pytest.mark.parametrize("reading", [FixedStages(), FixedStages(7), AnyTime()])
def test_stopping_rule__is_that_of_the_number_of_stages(reading):
    assert stopping_rule(reading.n_stages) == reading


@pytest.mark.parametrize("bound", [cv_bound, merged_folds, best_fold])
@pytest.mark.parametrize("reading", [FixedStages(5), AnyTime()])
def test_bounds__take_the_limit_of_the_stopping_rule(bound, reading):
    counts = ([4, 6, 5], [100, 100, 100], 30, 10_000)
    plain = bound(*counts, delta=0.05)
    stopped = bound(*counts, delta=0.05, reading=reading)
    assert stopped.label_term == plain.label_term
    assert stopped.disagreement_term == reading.limits(30, 10_000, 0.025)
    assert stopped.bound > plain.bound


def test_select_then_certify__takes_the_limit_of_the_reading():
    terms = select_then_certify(10, 100, 30, 10_000, delta=0.05, reading=FixedStages(5))
    assert terms.disagreement_term == binomial_tail_inversion(30, 10_000, delta=0.005)


def test_cv_interval__is_wider_where_reading_may_have_stopped():
    counts = ([12, 9], [100, 100], 30, 10_000)
    plain = cv_interval(*counts, delta=0.05)
    stopped = cv_interval(*counts, delta=0.05, reading=AnyTime())
    assert stopped.lower < plain.lower < plain.upper < stopped.upper


def test_fixed_looks__refuses_no_look():
    with pytest.raises(ValueError, match="`n_stages` must be >= 1"):
        FixedStages(0)


@pytest.mark.parametrize("reading", [FixedStages(8), AnyTime()])
def test_limits__hold_at_the_stage_that_was_picked_afterwards(reading):
    rng = np.random.default_rng(7)
    rows = stage_schedule(4000, 8)
    seen = rng.random((2000, rows[-1])) < 0.1
    counts = seen.cumsum(axis=1)[:, rows - 1]
    failed = (reading.limits(counts, rows, 0.3).min(axis=1) < 0.1).mean()
    naive = (binomial_tail_inversion(counts, rows, delta=0.3).min(axis=1) < 0.1).mean()
    assert failed < 0.3 + 0.03
    assert naive > 0.45
