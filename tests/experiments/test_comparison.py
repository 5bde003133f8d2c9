import math

import numpy as np
import pytest

from dsel.experiments.comparison import (
    AGREES,
    DIFFERS,
    OPEN,
    compare_number,
    compare_order,
    in_short,
    mean_of,
    share_of,
)

CELL = ("Table 3", "votes", "error")


@pytest.mark.parametrize(
    ("ours", "n", "verdict"),
    [(0.13, 10**6, AGREES), (0.07, 10**6, AGREES), (0.131, 10**6, DIFFERS),
     (0.141, 10, AGREES), (0.142, 10, DIFFERS)],
)  # fmt: skip
def test_compare_number__agrees_up_to_the_quantile_of_the_repetitions(ours, n, verdict):
    found = compare_number(*CELL, printed=0.1, ours=(ours, 0.008), spread=0.0101, n=n)
    assert found.verdict == verdict
    assert found.why.endswith("s.e.")


@pytest.mark.parametrize("spread", [math.nan, 0.0])
def test_compare_number__without_a_standard_error_is_not_compared(spread):
    found = compare_number(*CELL, printed=0.1, ours=mean_of([0.1]), spread=spread, n=99)
    assert found.verdict == OPEN
    assert "no standard error" in found.why


def test_compare__few_repetitions_say_nothing():
    few = {"ours": (9.0, 0.1), "n": 9}
    number = compare_number(*CELL, printed=0.1, spread=0.1, **few)
    for found in (number, compare_order(*CELL, **few)):
        assert found.verdict == OPEN
        assert found.why == "too few to say: 9 of at least 10"


def test_compare_number__rarely_differs_where_the_law_is_the_same():
    rng = np.random.default_rng(0)
    drawn = [mean_of(rng.normal(size=10)) for _ in range(4000)]
    found = [
        compare_number(*CELL, printed=0.0, ours=each, spread=each[1], n=10).verdict
        for each in drawn
    ]
    # 0.27 % of 4000 are 11; three standard errors alone would call 60 different.
    assert found.count(DIFFERS) < 25


def test_compare_number__says_why_it_is_not_compared():
    found = compare_number(
        *CELL, printed=0.1, ours=(9.0, 0.1), spread=0.1, n=20, why_open="other data"
    )
    assert (found.verdict, found.why) == (OPEN, "other data")


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.4, AGREES), (0.1, OPEN), (-0.1, OPEN), (-0.4, DIFFERS)]
)
def test_compare_order__clearly_above_0_agrees(ours, verdict):
    assert compare_order(*CELL, ours=(ours, 0.1), n=30).verdict == verdict
    smallest = compare_order(*CELL, ours=(ours, math.nan), n=30)
    assert smallest.verdict == (AGREES if ours > 0 else DIFFERS)


def test_mean_of__has_the_standard_error_of_the_mean():
    mean, error = mean_of([1.0, 2.0, 3.0, 6.0])
    assert mean == 3.0
    assert error == pytest.approx(math.sqrt(14 / 3) / 2)


def test_share_of__its_error_never_vanishes():
    assert share_of(5, 5)[1] > 0
    assert share_of(50, 100)[1] == pytest.approx(0.05)


def test_in_short__counts_verdicts():
    lines = [compare_order(*CELL, ours=(x, 0.1), n=30) for x in (0.4, 0.5, -0.1, -0.4)]
    assert in_short(lines) == (
        "Agree with the paper: 2 of 4; differ: 1; not compared: 1."
    )
