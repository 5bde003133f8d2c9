"""Conversion of the texts of a column to the Arrow type of its kind."""

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dsel.data.text_columns.amounts import plain_numbers
from dsel.data.text_columns.arrow_texts import all_true, any_true, matches
from dsel.data.text_columns.dates import (
    TIME,
    ZONED,
    find_invalid_times,
    parse_times,
    write_iso_dates,
)
from dsel.data.text_columns.gaps import is_gap_word
from dsel.data.text_columns.kinds import PLAIN, TRUTH_PAIRS, Form, Kind
from dsel.data.text_columns.numbers import (
    CODE,
    COMMA_NUMBER,
    LARGEST_EXACT,
    NUMBER,
    WHOLE,
    is_underflow,
    parse_numbers,
    read_plain_numbers,
)

MOST_WRONG: Final = 20
"""Most values of one column that an error names, so that one error lists them all."""


class WrongValue(NamedTuple):
    """A value that is not of the kind of its column."""

    row: int
    value: str
    others: tuple[str, ...] = ()
    """Other values of these rows that are not of the kind either, the first ones."""


def convert(
    values: pa.Array,
    kind: Kind,
    decimal: str = ".",
    form: Form = PLAIN,
    *,
    is_sure: bool = False,
) -> tuple[pa.Array | None, WrongValue | None]:
    """Return values in the Arrow type of a kind, or the first that does not fit.

    With `is_sure`, a scan has shown that all numbers are valid and none is a gap word,
    so they are parsed without checks.
    """
    if kind in (Kind.TEXT, Kind.OTHER):
        return values, None
    if form.sign is not None:
        return _convert_amounts(values, kind, decimal, form.sign)
    if is_sure and kind.is_number:
        return parse_numbers(values, decimal), None
    if kind.is_number and decimal == ".":
        floats = _plain_floats(values, kind)
        if floats is not None:
            return floats, None
    texts = values
    gaps = is_gap_word(texts)
    if any_true(gaps):
        texts = pc.if_else(gaps, pa.scalar(None, pa.string()), texts)
    if kind is Kind.GAPS:  # no model uses such a column, so values do not matter
        return pa.nulls(len(texts)), None
    if kind is Kind.TRUTH:
        return _convert_truths(texts, form.words)
    if kind.is_number:
        return _convert_numbers(texts, kind, decimal)
    zoned = kind is Kind.ZONED_TIMES
    times = write_iso_dates(texts, day_first=form.day_first)
    right = matches(times, ZONED if zoned else TIME)
    if not all_true(right):
        return None, _first(texts, pc.invert(right))
    if len(bad_days := find_invalid_times(times.drop_null(), zoned=zoned)):
        value = times.drop_null()[int(bad_days[0])].as_py()
        return None, _first(texts, pc.equal(times, value))
    return parse_times(times, zoned=zoned), None


def _convert_numbers(
    texts: pa.Array, kind: Kind, decimal: str
) -> tuple[pa.Array | None, WrongValue | None]:
    """Return texts as numbers, or the first that is none or would be rounded."""
    right = matches(texts, NUMBER)
    if kind is Kind.WHOLE:  # 3E5 is a code rather than a whole number
        right = pc.and_not(right, matches(texts, CODE))
    if decimal == ",":
        right = pc.or_(matches(texts, WHOLE), matches(texts, COMMA_NUMBER))
    if not all_true(right):
        return None, _first(texts, pc.invert(right))
    numbers = parse_numbers(texts, decimal)
    # Larger integers would become other numbers.
    wrong = pc.or_(pc.invert(pc.is_finite(numbers)), is_underflow(texts, numbers))
    large = pc.greater(pc.abs(numbers), float(LARGEST_EXACT))
    if any_true(large):
        wrong = pc.or_(wrong, pc.and_(large, pc.invert(matches(texts, "[.,eE]"))))
    if any_true(wrong):
        return None, _first(texts, wrong)
    return numbers, None


def _convert_amounts(
    values: pa.Array, kind: Kind, decimal: str, sign: str
) -> tuple[pa.Array | None, WrongValue | None]:
    """Return amounts with this sign as numbers, or the first that is none."""
    known = pc.if_else(is_gap_word(values), pa.scalar(None, pa.string()), values)
    plain = plain_numbers(known, sign, decimal)
    wrong = pc.and_(pc.is_valid(known), pc.is_null(plain))
    if any_true(wrong):
        return None, _first(values, wrong)
    numbers, bad = convert(plain, kind)  # amounts have decimal points by now
    # A message shows the value as it stands in the table, with its sign.
    return numbers, bad and WrongValue(bad.row, values[bad.row].as_py(), bad.others)


def _plain_floats(texts: pa.Array, kind: Kind) -> pa.Array | None:
    """Return numbers that float64 holds; None if patterns must decide, as above."""
    if not isinstance(texts, pa.StringArray) or texts.null_count == len(texts):
        return None
    numbers = read_plain_numbers(texts)
    if numbers is None or (numbers.has_exponents and kind is Kind.WHOLE):
        return None
    if numbers.has_exponents or (numbers.stops - numbers.starts).max() > 15:
        ends = pc.min_max(numbers.floats)
        if max(-ends["min"].as_py(), ends["max"].as_py()) > LARGEST_EXACT:
            return None
    return numbers.floats


def _convert_truths(
    texts: pa.Array, words: tuple[str, str] | None
) -> tuple[pa.Array | None, WrongValue | None]:
    """Return texts as truth values, or the first that is none of the words."""
    lower = pc.utf8_lower(texts)
    pairs = TRUTH_PAIRS if words is None else (words,)
    for yes, no in pairs:
        is_true, is_false = pc.equal(lower, yes), pc.equal(lower, no)
        right = pc.or_(is_true, is_false)
        if all_true(right):
            return is_true, None
    every = [word for pair in pairs for word in pair]
    wrong = pc.invert(pc.is_in(lower, value_set=pa.array(every)))
    bad = _first(texts, pc.and_(wrong, pc.is_valid(texts)))
    return None, bad or _first(texts, pc.invert(right))  # words of several pairs


def _first(texts: pa.Array, wrong: pa.Array) -> WrongValue | None:
    place = pc.index(wrong, True).as_py()
    if place < 0:
        return None
    value = texts[place].as_py()
    values = texts.filter(wrong).unique().slice(0, MOST_WRONG).to_pylist()
    return WrongValue(place, value, tuple(v for v in values if v not in (value, None)))
