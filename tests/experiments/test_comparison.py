import math

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
    ("ours", "verdict"), [(0.13, AGREES), (0.07, AGREES), (0.131, DIFFERS)]
)
def test_compare_number__three_standard_errors_agree(ours, verdict):
    found = compare_number(*CELL, printed=0.1, ours=(ours, 0.008), spread=0.0101)
    assert found.verdict == verdict
    assert found.why.endswith("s.e.")


@pytest.mark.parametrize("spread", [math.nan, 0.0])
def test_compare_number__one_repetition_is_not_compared(spread):
    found = compare_number(*CELL, printed=0.1, ours=mean_of([0.1]), spread=spread)
    assert found.verdict == OPEN
    assert "more repetitions" in found.why


def test_compare_number__says_why_it_is_not_compared():
    found = compare_number(
        *CELL, printed=0.1, ours=(9.0, 0.1), spread=0.1, why_open="other data"
    )
    assert (found.verdict, found.why) == (OPEN, "other data")


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.1, AGREES), (-0.1, OPEN), (-0.4, DIFFERS)]
)
def test_compare_order__above_0_agrees(ours, verdict):
    assert compare_order(*CELL, ours=(ours, 0.1)).verdict == verdict


def test_mean_of__has_the_standard_error_of_the_mean():
    mean, error = mean_of([1.0, 2.0, 3.0, 6.0])
    assert mean == 3.0
    assert error == pytest.approx(math.sqrt(14 / 3) / 2)


def test_share_of__its_error_never_vanishes():
    assert share_of(5, 5)[1] > 0
    assert share_of(50, 100)[1] == pytest.approx(0.05)


def test_in_short__counts_verdicts():
    lines = [compare_order(*CELL, ours=(x, 0.1)) for x in (0.1, 0.2, -0.1, -0.4)]
    assert in_short(lines) == (
        "Agree with the paper: 2 of 4; differ: 1; not compared: 1."
    )
