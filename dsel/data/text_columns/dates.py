"""Dates and times as texts: their forms, and which of them are real."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsel.arrays import Bools
from dsel.data.text_columns.arrow_texts import any_true, matches

ISO_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"
_ZONE: Final = r" ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
DATE: Final = f"{ISO_DAY}$"
TIME: Final = f"{ISO_DAY}(?:{_CLOCK})?$"
ZONED: Final = f"{ISO_DAY}{_CLOCK}{_ZONE}$"
_ONE_TO_12: Final = r"(?:0?[1-9]|1[0-2])"
_ONE_TO_31: Final = r"(?:0?[1-9]|[12][0-9]|3[01])"
LIKE_NUMERIC_DATE: Final = (
    rf"^(?:(?:{_ONE_TO_31}[./-]{_ONE_TO_12}|{_ONE_TO_12}[./-]{_ONE_TO_31})[./-]"
    rf"(?:[0-9]{{4}}|[0-9]{{2}})|[0-9]{{2}}[./-]{_ONE_TO_12}[./-]{_ONE_TO_31})"
    r"(?:[ T,].*)?$"
)
_MINUTES: Final = r":[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"
_TO_12: Final = rf"{_ONE_TO_12}{_MINUTES} ?[AaPp][Mm]"
NUMERIC_DATE: Final = (
    r"^(?:[0-9]{1,2}\.[0-9]{1,2}\.|[0-9]{1,2}/[0-9]{1,2}/|[0-9]{1,2}-[0-9]{1,2}-)"
    rf"[0-9]{{4}}(?:(?:,? |T)(?:[0-9]{{1,2}}{_MINUTES}|{_TO_12}))?$"
)
"""Dates of day, month and year as numbers, with or without a time. If dots separate the
numbers, the day comes first in every country; otherwise it is the day or the month."""
_REAL_MONTH: Final = r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_MONTHS: Final = (
    r"(?i:jan|ene|feb|fév|mar|mär|mrz|apr|avr|abr|may|mai|jun|jui|jul|aug|aoû|ago|sep|"
    r"oct|okt|ott|nov|dec|dez|déc|dic)\p{L}*"
)
OTHER_DATE: Final = (
    rf"^(?:[0-9]{{4}}[./-]{_ONE_TO_12}[./-]{_ONE_TO_31}"
    r"|(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])|[0-9]{4}年[0-9]{1,2}月(?:[0-9]{1,2}日)?"
    rf"|(?:\p{{L}}{{2,9}}\.?,? )?[0-9]{{1,2}}[. -]{{0,2}}{_MONTHS}"
    r"[., -]{0,2}(?:[0-9]{4}|[0-9]{2})"
    rf"|{_MONTHS}[. ]{{0,2}}[0-9]{{1,2}}, ?[0-9]{{4}}"
    r"|[0-9]{8}T[0-9]{2,6})(?:[ T:,].*|Z|[+-][0-9:]{4,5})?$"
)
"""Dates and times of other forms than ISO's extended one, year first or with names."""
_SHAPES_OF_DATES: Final = (
    (r"[T ,]+[0-9]{1,2}:.*$", ""),
    ("[0-9]{4}", "a"),
    ("[0-9]{1,2}", "9"),
    (r"\p{L}+", "a"),
    ("[.,]? +", " "),
)
"""Replacements that turn a date into its format; see `date_formats`."""


def date_formats(dates: pa.Array) -> pa.Array:
    """Return the format of each date: 9 is a number, and a is a year or a word.

    Examples
    --------
    >>> dates = pa.array(["26/09/2023 9:05", "1/1/2024", "2 May 2024"])
    >>> date_formats(dates).to_pylist()
    ['9/9/a', '9/9/a', '9 a a']
    """
    formats = dates
    for pattern, text in _SHAPES_OF_DATES:
        formats = pc.replace_substring_regex(formats, pattern, text)
    return formats


def write_iso_dates(values: pa.Array, *, day_first: bool | None) -> pa.Array:
    """Return texts in which dates of numbers are written as ISO writes them.

    Nothing is changed if the order is None, and no dotted date if the month comes
    first.

    Examples
    --------
    >>> texts = pa.array(["5/9/2023", "26/09/2023 9:05", "2023-09-26", "soon"])
    >>> write_iso_dates(texts, day_first=True).to_pylist()
    ['2023-09-05', '2023-09-26 09:05', '2023-09-26', 'soon']
    >>> write_iso_dates(pa.array(["9/5/2023, 12:30 AM"]), day_first=False).to_pylist()
    ['2023-09-05 00:30']
    """
    if day_first is None:
        return values
    mask = matches(values, NUMERIC_DATE)
    if not any_true(mask):
        return values
    texts = values
    for pattern, text in (
        (r"^([0-9])([./-])", r"0\1\2"),
        (r"^([0-9]{2}[./-])([0-9])([./-])", r"\10\2\3"),
        (r"^([0-9]{2})[./-]([0-9]{2})[./-]([0-9]{4})", r"\3-\2-\1")
        if day_first
        else (r"^([0-9]{2})[/-]([0-9]{2})[/-]([0-9]{4})", r"\3-\1-\2"),
        (r"^(.{10}),", r"\1"),
        (r"^(.{10}[ T])([0-9]):", r"\10\2:"),
    ):
        texts = pc.replace_substring_regex(texts, pattern, text)
    if any_true(matches(texts, "[Mm]$")):
        # Arrow reads no 12-hour clock: 12 AM is 0, and PM adds 12 to 1 to 11.
        hours = [("12", "00", "A"), ("12", "12", "P")]
        hours += [(f"{hour:02}", f"{hour + 12}", "P") for hour in range(1, 12)]
        for hour, of_24, letter in (*hours, ("", "", "A")):
            pattern = f"^(.{{11}}){hour}(.*?) ?(?i:{letter}m)$"
            texts = pc.replace_substring_regex(texts, pattern, rf"\1{of_24}\2")
    return pc.if_else(mask, texts, values)


def are_real_dates(texts: pa.Array, *, day_first: bool) -> Bools:
    """Return which texts such as 13/01/2024 are days that exist, in this order."""
    iso = write_iso_dates(texts, day_first=day_first)
    is_right = pc.and_(matches(iso, TIME), matches(iso, _REAL_MONTH))
    is_real: Bools = is_right.to_numpy(zero_copy_only=False).copy()
    places = np.flatnonzero(is_real)
    is_real[places[find_invalid_times(iso.filter(is_right), zoned=False)]] = False
    return is_real


def find_invalid_times(texts: pa.Array, *, zoned: bool) -> Any:
    """Return the positions of texts in the form of a time that are no real time."""
    outside = matches(texts, "^0000-")
    if not any_true(outside):
        try:
            parse_times(texts, zoned=zoned)
            return np.empty(0, np.int64)
        except pa.ArrowInvalid:  # it names only one of them, so each is tried alone
            pass
    bad = []
    for place in range(len(texts)):
        try:
            if texts[place].as_py().startswith("0000-"):
                raise pa.ArrowInvalid
            parse_times(texts.slice(place, 1), zoned=zoned)
        except pa.ArrowInvalid:
            bad.append(place)
    return np.array(bad, dtype=np.int64)


def parse_times(values: pa.Array, *, zoned: bool) -> pa.Array:
    """Return texts of the right form as timestamps, or raise ArrowInvalid."""
    # Arrow accepts no blank before a zone, but SQL databases write one.
    texts = pc.replace_substring_regex(values, r" ([Z+-])", r"\1") if zoned else values
    return pc.cast(texts, pa.timestamp("us", "UTC" if zoned else None))
