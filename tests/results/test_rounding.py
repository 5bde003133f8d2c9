"""Limits as text are never on the wrong side, and near."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsel.results import Certificate, Choice
from dsel.results.rounding import at_least, at_most, confidence

RATES = st.floats(0, 1, allow_subnormal=False)


def last_digit(shown, decimals=None):
    if decimals is not None:
        return Decimal(1).scaleb(-decimals)
    return Decimal(1).scaleb(Decimal(shown).adjusted() - 3)


@pytest.mark.parametrize("percent", [False, True])
@pytest.mark.parametrize("decimals", [None, 2, 4])
@given(rate=RATES)
def test_at_most__is_no_less_and_within_a_last_digit(rate, decimals, percent):
    shown = at_most(rate, decimals=decimals, percent=percent)
    value = Decimal(repr(rate)) * (100 if percent else 1)
    assert 0 <= Decimal(shown) - value <= last_digit(shown, decimals)


@pytest.mark.parametrize("percent", [False, True])
@pytest.mark.parametrize("decimals", [None, 2, 4])
@given(rate=RATES)
def test_at_least__is_no_more_and_within_a_last_digit(rate, decimals, percent):
    shown = at_least(rate, decimals=decimals, percent=percent)
    value = Decimal(repr(rate)) * (100 if percent else 1)
    assert 0 <= value - Decimal(shown) <= last_digit(str(value), decimals)


@pytest.mark.parametrize("text", ["0.25", "0.07", "0.29", "0.5675", "1", "0"])
def test_at_most__leaves_what_fits_as_it_is(text):
    assert at_most(float(text)) == text
    assert at_least(float(text)) == text
    assert Decimal(at_most(float(text), percent=True)) == 100 * Decimal(text)


def test_summary__leaves_seven_percent_as_it_is():
    assert "7.0 %" in Certificate(0.07, 0.05, "cv_bound").facts()[0][1]


@given(delta=st.floats(1e-12, 1, exclude_max=True))
def test_confidence__is_no_more_than_it_was(delta):
    assert 0 <= 1 - Decimal(repr(delta)) - Decimal(confidence(delta)) <= Decimal("1e-6")


def test_certificate__rounds_its_bound_up_and_its_lower_limit_down():
    certificate = Certificate(0.2546496, 0.05, "cv_bound", lower=0.1234567)
    assert "error <= 0.2547," in repr(certificate)
    choice = Choice(0, {}, "cv_bound", 0.2546496, certificate)
    assert "error <= 0.2547," in repr(choice)
    reading = certificate.reading().replace("\n", " ")
    assert "on at least 12.34 % and at most 25.47 % of new rows" in reading
