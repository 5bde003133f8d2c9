"""Kinds of the columns of a text table, by strict rules over whole columns.

A column has a kind only if every value that is not a gap follows the rule of that kind.
Values are Arrow strings without surrounding blanks; an empty cell is null.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dsel.arrays import Bools, Integers
from dsel.data.amounts import (
    BLANK,
    GROUPED,
    SIGN_AFTER,
    SIGN_BEFORE,
    UNGROUPED,
    AmountScan,
    plain_numbers,
)
from dsel.errors import UndecidedError
from dsel.option_values import join_names, quote_names

GAP_WORDS: Final = (
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "null",
    "NULL",
    "None",
    "?",
    "-",
    ".",
    "#N/A",
)
"""Words for a missing value in columns of numbers, truth values and dates, like the
empty cell. In columns of text they are values."""
TRUTH_PAIRS: Final = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))
"""Words of truth values in any case, the true one first."""
LARGEST_EXACT: Final = 2**53 - 1
"""Largest integer to which float64 rounds no other one: 2**53 + 1 becomes 2**53."""

# RE2 has no look-ahead, so leading zeros are excluded by the alternatives.
NUMBER: Final = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
COMMA_NUMBER: Final = r"^-?(?:0|[1-9][0-9]*),[0-9]+(?:[eE][+-]?[0-9]+)?$"
WHOLE: Final = r"^(?:0|-?[1-9][0-9]*)$"
CODE: Final = r"^[0-9]+[eE][0-9]+$"
"""Numbers that may be codes, such as 3E5: programs that write exponents also write a
point or a sign, as in 3.0E5 and 3e+05."""
_NOT_ZERO: Final = r"^-?[0.,]*[1-9]"
"""Numbers other than 0, however near to it."""
_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"
_ZONE: Final = r" ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
DATE: Final = f"{_DAY}$"
TIME: Final = f"{_DAY}(?:{_CLOCK})?$"
ZONED: Final = f"{_DAY}{_CLOCK}{_ZONE}$"
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
_BEFORE: Final = rf"(?:{SIGN_BEFORE}|N[or]\.? |n[or]\.? |#|№) ?"
_BASE_16: Final = "^[+-]?0[xX][0-9a-fA-F]+$"
LIKE_NUMBER: Final = (
    rf"^[<>~≈≤≥]? ?\(?[+\x{{2212}}-]?{BLANK}?(?:{_BEFORE})?-?"
    rf"(?:{GROUPED}|{UNGROUPED}(?:[dDeE][+-]?[0-9]+)?)"
    rf"{BLANK}?(?:(?:[*+-]|{SIGN_AFTER})\.?)?\)?$"
    r"|^[+-]?(?:inf|Inf|INF|Infinity|infinity|1\.#(?:INF|IND|QNAN))$"
    rf"|{_BASE_16}|^[+-]?\p{{Nd}}+(?:[.,\x{{66b}}]\p{{Nd}}+)?$"
)
"""Numbers with thousands separators, units, signs of currencies, a decimal comma or the
minus sign of print; negative numbers in parentheses, as in accounts; numbers of base
16, in digits of other scripts, and in the formats of C and Fortran."""
_TO_255: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS: Final = rf"^{_TO_255}(?:\.{_TO_255}){{3}}$"
"""Addresses of the internet, which may look like grouped digits."""
IN_OTHER_QUOTES: Final = (
    "(?s)^(?:'.*'|\".*\"|`.*`|\u2018.*\u2019|\u201c.*\u201d"
    "|\u201e.*\u201c|\u00ab.*\u00bb)$"
)
"""Texts in quotes that do not enclose the values of a text table."""
_LEADING_ZERO: Final = r"^-?0[0-9]"
SUM_WORD: Final = (
    r"^(?i:(?:grand |sub ?|sous-)?tota(?:l|ls|le|al)|sums?|gesamt(?:summe)?|summe|"
    r"insgesamt|somme|suma|合计|总计) ?:?$"
)
"""Words with which sheets begin a last row of sums."""
_SHAPES_OF_DATES: Final = (
    (r"[T ,]+[0-9]{1,2}:.*$", ""),
    ("[0-9]{4}", "Y"),
    ("[0-9]{1,2}", "9"),
    (r"\p{L}+", "a"),
    ("[.,]? +", " "),
)
"""Replacements that turn a date into its format: 26/09/2023 9:05 and 1/1/2024 become
9/9/Y."""
DATE_ORDERS: Final = {True: "--dayfirst", False: "--monthfirst"}
"""Options of the shell for the order of day and month, by whether the day is first."""
_NANOSECONDS: Final = r":[0-9]{2}\.[0-9]{7,}"

_OF_WORDS: Final = np.zeros(256, dtype=np.bool_)
"""First bytes of words: letters with which no number, time or gap word begins."""
_OF_WORDS[list(range(ord("A"), ord("Z") + 1)) + list(range(ord("a"), ord("z") + 1))] = 1
_OF_WORDS[list(b"NnIi")] = False

MOST_EXCEPTIONS: Final = 0.1
"""Part of a column's values up to which those of another form are counted."""
MOST_GAPS_OFFERED: Final = 8
"""Most words of a column of numbers that are offered as gaps."""
_ROWS_IN_CACHE: Final = 2**15
"""Texts whose bytes, and what is computed of them, stay in the second cache."""


class Kind(StrEnum):
    """Kinds of the values of a column."""

    WHOLE = "whole numbers"
    NUMBERS = "numbers"
    TRUTH = "true/false"
    DATES = "dates"
    TIMES = "dates and times"
    ZONED_TIMES = "times with a zone"
    TEXT = "text"
    GAPS = "nothing but gaps"
    OTHER = "other values"

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        return self in (Kind.WHOLE, Kind.NUMBERS)

    @property
    def is_time(self) -> bool:
        """Whether the values are dates or times."""
        return self in (Kind.DATES, Kind.TIMES, Kind.ZONED_TIMES)


@dataclass(frozen=True)
class Form:
    """How the values of a column are written, where its kind does not say it."""

    words: tuple[str, str] | None = None
    """Words for truth values, the true one first; None where any pair is accepted."""
    day_first: bool | None = None
    """Whether the day, and not the month, comes first in dates such as 5/9/2023; None
    if all dates are written like 2023-09-05."""
    sign: str | None = None
    """Sign of amounts, such as $, "" for amounts without one; None for plain numbers"""
    decimal: str = "."
    """Decimal mark of amounts, by which other tables are read that do not show theirs.
    """

    @property
    def is_amount(self) -> bool:
        """Whether the values are amounts, which may have a sign and grouped digits."""
        return self.sign is not None


PLAIN: Final = Form()


class TextReason(NamedTuple):
    """Reason why a column is read as text, though another kind was likely."""

    text: str
    options: tuple[tuple[str, str], ...] = ()
    """Options of the shell, all of which together make it numbers or dates; () if none
    do."""
    date_orders: tuple[str, ...] = ()
    """Options of the shell, each of which makes it dates."""
    way: str = ""
    """End of the text that says which options these are."""

    @property
    def brief(self) -> str:
        """The text without the options, for a message that a whole command follows."""
        return self.text.removesuffix(self.way)

    def after(self, start: str) -> "TextReason":
        """Return the reason with a text before its own."""
        return self._replace(text=f"{start}{self.text}")


class WrongValue(NamedTuple):
    """A value that is not of the kind of its column."""

    row: int
    value: str
    others: tuple[str, ...] = ()
    """Other values of these rows that are not of the kind either, the first ones."""


MOST_ZEROS: Final = 9
"""Most zeros behind the point of a whole number that is a word for a gap."""
MOST_WRONG: Final = 20
"""Most values of one column that an error names, so that one error lists them all."""


def trim(values: pa.Array, gaps: Sequence[str] = ()) -> pa.Array:
    """Return texts without surrounding blanks; empty ones, and `gaps`, become null."""
    trimmed = _trim_blanks(values)
    if not gaps:
        return trimmed
    is_gap = pc.is_in(trimmed, value_set=pa.array(forms_of_gaps(gaps), trimmed.type))
    return pc.if_else(is_gap, pa.scalar(None, trimmed.type), trimmed)


def forms_of_gaps(words: Iterable[str]) -> list[str]:
    """Return words for a gap, and whole numbers among them with zeros behind a point.

    Examples
    --------
    >>> forms_of_gaps(["unknown", "-999"])[:4]
    ['unknown', '-999', '-999.', '-999.0']
    """
    zeros = [mark + "0" * n for mark in ".," for n in range(MOST_ZEROS + 1)]
    forms = list[str]()
    for word in words:
        ends = ["", *zeros] if re.match(WHOLE, word) else [""]
        forms += [word + end for end in ends]
    return forms


def _trim_blanks(values: pa.Array) -> pa.Array:
    # Most columns have no blank at all, and a search of the bytes is twenty times
    # faster.
    if isinstance(values, pa.StringArray) and not values.null_count:
        starts, stops, content = text_bytes(values)
        # Bytes other than "!" to "~".
        has_blanks = (content - np.uint8(0x21) > 0x5D).any()
        if not has_blanks:
            return _empty_to_null(values, starts < stops)
    # Trimming Unicode takes twelve times as long, and few columns need it. If a batch
    # does, all its values are trimmed so, which changes no ASCII value: the result of a
    # row does not depend on its batch.
    trimmed = pc.ascii_trim_whitespace(values)
    if not pc.all(pc.string_is_ascii(trimmed), min_count=0).as_py():
        trimmed = pc.utf8_trim_whitespace(trimmed)
    lengths = pc.min_max(pc.binary_length(trimmed))
    if lengths["min"].as_py() == 0:
        empty = pc.equal(trimmed, "")
        trimmed = pc.if_else(empty, pa.scalar(None, trimmed.type), trimmed)
    return trimmed


def _empty_to_null(values: pa.StringArray, is_full: Bools) -> pa.StringArray:
    """Return texts of which those that are not full, which are empty, become null."""
    n_full = int(np.count_nonzero(is_full))
    if n_full == len(values):
        return values
    _, offsets, content = values.buffers()
    # The texts stay where they are: selecting values would copy all of them.
    return pa.StringArray.from_buffers(
        len(values),
        offsets.slice(4 * values.offset),
        content,
        pa.py_buffer(np.packbits(is_full, bitorder="little")),
        len(values) - n_full,
    )


def text_bytes(
    values: pa.StringArray,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Return where each text begins and ends in the bytes of all texts."""
    _, offsets, content = values.buffers()
    if offsets is None or content is None:
        nowhere = np.zeros(len(values), np.int32)
        return nowhere, nowhere, np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[values.offset :][: len(values) + 1]
    first, last = int(ends[0]), int(ends[-1])
    ends = ends - np.int32(first)
    return ends[:-1], ends[1:], np.frombuffer(content, np.uint8)[first:last]


class NumberForms(NamedTuple):
    """How some numbers are written, which all match `NUMBER`."""

    floats: pa.Array
    is_whole: Bools
    """Matches `WHOLE`."""
    is_short: Bools
    """A plain decimal of at most 8 digits before the point and 7 behind it.

    Up to 15 digits survive conversion to float64 and back; trailing zeros do not, and
    below 0.0001 Python writes an exponent.
    """
    n_point_zero: int
    """How many end in ".0"."""


def number_forms(values: pa.StringArray) -> NumberForms | None:
    """Return the forms of texts that are all finite numbers, else None.

    None of them may be missing or empty. Patterns give the same result, but take three
    to six times as long. Arrow reads all texts that match `NUMBER`, and also a plus,
    leading zeros and words for infinity and NaN: with these the result is None, and the
    patterns decide.

    Examples
    --------
    >>> forms = number_forms(pa.array(["7", "-0.25", "1e-7"]))
    >>> forms.is_whole.tolist(), forms.is_short.tolist()
    ([True, False, False], [False, True, False])
    >>> number_forms(pa.array(["7", "007"]))
    """
    parts = []
    for start in range(0, len(values), _ROWS_IN_CACHE):
        part = _forms_of_part(values.slice(start, _ROWS_IN_CACHE))
        if part is None:
            return None
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    floats, is_whole, is_short, n_point_zero = zip(*parts, strict=True)
    return NumberForms(
        pa.concat_arrays(floats),
        np.concatenate(is_whole),
        np.concatenate(is_short),
        sum(n_point_zero),
    )


class _PlainNumbers(NamedTuple):
    """Floats of texts that all match `NUMBER`, and where the known ones are."""

    floats: pa.Array
    content: NDArray[np.uint8]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    digits: NDArray[np.int32]
    """Where they begin without their sign."""
    has_exponents: bool


def _read_plain_numbers(texts: pa.StringArray) -> _PlainNumbers | None:
    """Return numbers, gaps as null; None if the patterns must decide."""
    # A gap may still have the bytes of the word that was written for it.
    known = texts.drop_null() if texts.null_count else texts
    starts, stops, content = text_bytes(known)
    is_other = content - np.uint8(0x2B) > 0x0E  # not + to 9
    has_letters = bool(is_other.any())
    if has_letters and not ((content[is_other] | 0x20) == ord("e")).all():
        return None  # Arrow takes long to refuse texts
    try:
        floats = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Only exponents, or hundreds of digits, write what float64 rounds to 0.
    longest = (stops - starts).max() if len(starts) else 0
    if (has_letters or longest > 300) and _any(_underflow(texts, floats)):
        return None
    # Arrow also reads a plus and leading zeros.
    first = content.take(starts)
    if (first == ord("+")).any():
        return None
    digits = starts + (first == ord("-"))
    after = np.minimum(digits + 1, stops - 1)
    is_leading = (content.take(digits) == ord("0")) & (after > digits)
    is_leading &= content.take(after) - np.uint8(ord("0")) <= 9
    if is_leading.any():
        return None
    return _PlainNumbers(floats, content, starts, stops, digits, has_letters)


def _forms_of_part(values: pa.StringArray) -> NumberForms | None:
    """Return the forms of plain decimal numbers; None where a text is none."""
    numbers = _read_plain_numbers(values)
    if numbers is None or not np.isfinite(numbers.floats.to_numpy()).all():
        return None
    floats, content, starts, stops, digits, has_exponents = numbers
    is_point = content == ord(".")
    points = np.flatnonzero(is_point)
    if len(points) == len(values):  # no number has two
        n_before = points - digits
    else:
        has_point = np.add.reduceat(is_point, starts, dtype=np.uint8) > 0
        n_before = stops - digits
        n_before[has_point] = points - digits[has_point]
    n_after = stops - digits - n_before - 1  # -1 where there is no point
    ends_by_zero = content[stops - 1] == ord("0")
    is_short = (n_after == 1) | (~ends_by_zero & (n_after > 1) & (n_after <= 7))
    n_point_zero = np.count_nonzero(ends_by_zero & (n_after == 1))
    is_short &= (n_before > 0) & (n_before <= 8)
    sizes = np.abs(floats.to_numpy())
    is_short &= (sizes >= 1e-4) | (sizes == 0.0)
    is_whole = n_after < 0
    is_whole &= ~((content[digits] == ord("0")) & (digits > starts))  # -0
    if has_exponents:
        is_exponent = (content | 0x20) == ord("e")
        has_no_exponent = np.add.reduceat(is_exponent, starts, dtype=np.uint8) == 0
        is_short &= has_no_exponent
        is_whole &= has_no_exponent
    return NumberForms(floats, is_whole, is_short, int(n_point_zero))


def round_trips(texts: pa.Array, floats: pa.Array) -> Bools:
    """Return whether `repr` of each float is its text.

    Examples
    --------
    >>> texts = pa.array(["0.25", "1e-05", "0.00001", "2.50", "3.0", "3"])
    >>> round_trips(texts, parse_numbers(texts)).tolist()
    [True, True, False, False, True, False]
    """
    # Arrow writes the shortest decimal, too, but has other rules for exponents and for
    # whole numbers.
    values = floats.to_numpy()
    same = pc.equal(texts, pc.cast(floats, pa.string())).to_numpy(zero_copy_only=False)
    sizes = np.abs(values)
    is_other = (sizes < 1e-4) | (sizes >= 1e9) | (values == np.trunc(values))
    for place in np.flatnonzero(is_other).tolist():
        same[place] = repr(float(values[place])) == texts[place].as_py()
    return np.asarray(same)


def matches(values: pa.Array, pattern: str) -> pa.Array:
    """Return a mask of values that match a pattern; null where a value is missing."""
    return pc.match_substring_regex(values, pattern)


def _all(mask: pa.Array) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


def is_gap_word(values: pa.Array) -> pa.Array:
    """Return a mask of the values that stand for a gap; false where one is missing."""
    return pc.is_in(values, value_set=pa.array(GAP_WORDS, pa.string()))


def parse_times(values: pa.Array, *, zoned: bool) -> pa.Array:
    """Return texts of the right form as timestamps, or raise ArrowInvalid."""
    # Arrow accepts no blank before a zone, but SQL databases write one.
    texts = pc.replace_substring_regex(values, r" ([Z+-])", r"\1") if zoned else values
    return pc.cast(texts, pa.timestamp("us", "UTC" if zoned else None))


def _underflow(texts: pa.Array, floats: pa.Array) -> pa.Array:
    """Return where float64 made 0 of texts of other numbers, such as 1e-400."""
    return pc.and_(pc.equal(floats, 0.0), matches(texts, _NOT_ZERO))


def parse_numbers(values: pa.Array, decimal: str = ".") -> pa.Array:
    """Return texts of the right form as float64."""
    if decimal == ",":
        values = pc.replace_substring(values, ",", ".")
    return pc.cast(values, pa.float64())


class DistinctValues(NamedTuple):
    """Distinct values of a column, and in how many cells each of them is."""

    values: pa.Array
    counts: pa.Array

    @classmethod
    def of(cls, values: pa.Array) -> "DistinctValues":
        """Return the distinct values of all cells."""
        counted = pc.value_counts(values)
        return cls(counted.field(0), counted.field(1))

    @property
    def n_cells(self) -> int:
        """Number of all cells."""
        return int(pc.sum(self.counts).as_py() or 0)

    def select(self, mask: pa.Array) -> "DistinctValues":
        """Return the values for which a mask is True."""
        return DistinctValues(self.values.filter(mask), self.counts.filter(mask))

    def split(self, mask: pa.Array) -> "tuple[DistinctValues, DistinctValues]":
        """Return the values for which a mask is True, and all others."""
        return self.select(mask), self.select(pc.invert(mask))

    def select_matching(self, pattern: str) -> "DistinctValues":
        """Return the values that match a pattern."""
        return self.select(matches(self.values, pattern))


class ColumnScan:
    """Counts of the forms of the values of a column; see `kind`.

    Values are added batch by batch, so that a table of any size takes one pass. The
    kind is decided after the last batch: a single value at the end may change it.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_empty = 0
        self.gap_words: Counter[str] = Counter()
        self.n_numbers = 0  # with or without a decimal point
        self.n_with_point = 0
        self.n_commas = 0  # decimal commas
        self.n_exact = 0  # numbers that are written back as they were
        self.n_whole = 0
        self.n_point_zero = 0  # whole numbers that are written with a point, as 3.0
        self.n_too_large = 0
        self.n_like_numbers = 0
        self.amounts = AmountScan()
        self.n_codes = 0  # whole numbers with an exponent, which may be codes
        self.n_leading_zeros = 0
        self.n_dates = 0
        self.n_times = 0
        self.n_zoned = 0
        self.n_like_dates = 0  # of numbers, in any order
        self.n_day_first = 0  # real dates if the day comes first
        self.n_month_first = 0
        self.n_with_time = 0  # those of them that have a time
        self.date_signs: set[str] = set()
        self.n_other_dates = 0
        self.date_formats: dict[str, str] = {}
        """First value of each format of dates, such as Y-9-9 and 9/9/Y; some of many.
        """
        self.n_in_quotes = 0
        self.examples: dict[str, str] = {}
        self.truth_words: set[str] | None = set()
        self._is_text = False
        self.quote: Callable[[str], str] = repr
        """Quotes a value in a note; tables in memory add its line."""
        self.no_amounts: set[str] = set()
        """Values that are no numbers in any form; not all, if they are many."""
        self.no_dates: set[str] = set()
        """Values that are neither dates nor numbers; not all, if they are many."""
        self.separator = ""
        """Separator of the file; "" where it is unknown, or there is none."""
        self.is_typed = False
        """Whether the table has types, so that texts are numbers by request only."""
        self.obstacle = ""
        """Why amounts of the column cannot be numbers of its table."""

    @property
    def n_values(self) -> int:
        """Cells that are neither empty nor a gap word."""
        return self.n_rows - self.n_empty - sum(self.gap_words.values())

    def add(self, values: pa.Array) -> None:
        """Count values, which are trimmed, with empty cells as null."""
        self.n_rows += len(values)
        self.n_empty += values.null_count
        known = values
        if values.null_count:
            known = values.drop_null()
        # Matching patterns takes most of a pass. Therefore values that are all numbers,
        # or gaps, are recognized by their bytes; otherwise only distinct values are
        # matched.
        if self._is_text:
            known = self._without_words(known)
        elif self._add_forms(known):
            return
        is_gap = is_gap_word(known)
        if _any(is_gap):
            for count_of_value in pc.value_counts(known.filter(is_gap)).to_pylist():
                self.gap_words[count_of_value["values"]] += count_of_value["counts"]
            known = known.filter(pc.invert(is_gap))
            if self._add_forms(known):
                return
        if not self._is_text:  # most of codes such as 0123 and 1234 are numbers
            is_whole = matches(known, WHOLE)
            if _any(is_whole) and self._add_forms(known.filter(is_whole)):
                known = known.filter(pc.invert(is_whole))
        if not len(known):
            return
        distinct = DistinctValues.of(known)
        is_number = matches(distinct.values, NUMBER)
        numbers, texts = distinct.split(is_number)
        n_numbers = numbers.n_cells
        if n_numbers and not self._add_forms(*numbers):  # as with 1e999
            self.examples.setdefault("number", numbers.values[0].as_py())
            self.n_numbers += n_numbers
            self.n_with_point += n_numbers
            self.n_too_large += n_numbers
        if len(texts.values):
            self._add_others(texts)
        self._is_text = not self.n_numbers

    def _without_words(self, known: pa.Array) -> pa.Array:
        """Return texts that may be counted; words are of no form that has a name."""
        is_seen = self.truth_words is None and {"other", "no time"} <= {*self.examples}
        if not is_seen or not len(known):
            return known
        starts, _, content = text_bytes(known)
        is_word = _OF_WORDS[content[starts]]
        return known.slice(0, 0) if is_word.all() else known.filter(pa.array(~is_word))

    def _add_forms(self, known: pa.Array, counts: pa.Array | None = None) -> bool:
        """Count values that are all finite numbers; False if some are not.

        `counts` has how many times each value occurs, if the values are distinct.
        """
        forms = number_forms(known) if len(known) else None
        if forms is None:
            return False
        is_whole, is_exact = forms.is_whole, forms.is_short | forms.is_whole
        weights = None if counts is None else counts.to_numpy()

        def total(mask: Bools) -> int:
            return int(np.count_nonzero(mask) if weights is None else mask @ weights)

        # float64 holds every integer of up to 15 digits.
        if is_whole.any() and pc.max(pc.binary_length(known)).as_py() > 15:
            texts = known.filter(pa.array(is_whole)).to_pylist()
            sizes = [abs(int(text)) for text in texts if len(text) > 15]
            self.n_too_large += sum(size > LARGEST_EXACT for size in sizes)
        positions = np.flatnonzero(~is_exact)
        if len(positions):
            other_texts, floats = (
                known.take(pa.array(positions)),
                forms.floats.take(positions),
            )
            # The only whole number that reaches this line is -0.
            is_whole[positions] = pc.equal(other_texts, "-0")
            is_exact[positions] = round_trips(other_texts, floats)
            is_code = np.zeros(len(known), dtype=np.bool_)
            is_code[positions] = matches(other_texts, CODE)
            if is_code.any():
                code = known[int(np.argmax(is_code))].as_py()
                self.examples.setdefault("code", code)
                self.n_codes += total(is_code)
        self.examples.setdefault("number", known[0].as_py())
        n, n_whole = total(np.ones(len(known), dtype=np.bool_)), total(is_whole)
        self.n_numbers += n
        self.n_whole += n_whole
        self.n_with_point += n - n_whole
        self.n_exact += total(is_exact)
        self.n_point_zero += forms.n_point_zero
        return True

    def _add_others(self, distinct: DistinctValues) -> None:
        """Count distinct values that are not numbers with a decimal point."""
        first = distinct.values[0].as_py()
        self.examples.setdefault("other", first)
        # Each pattern takes time, so the first value decides whether this one is tried.
        if re.match(IN_OTHER_QUOTES, first):
            self.n_in_quotes += self._count(
                distinct.select_matching(IN_OTHER_QUOTES), "quoted"
            )
        self.n_commas += self._count(distinct.select_matching(COMMA_NUMBER), "comma")
        self.n_leading_zeros += distinct.select_matching(_LEADING_ZERO).n_cells
        self._add_amounts(distinct)
        self._add_dates(distinct)
        self._add_truth_words(distinct.values)

    def _count(self, distinct: DistinctValues, form: str) -> int:
        """Return the number of cells with a form, and keep an example of it."""
        if len(distinct.values):
            self.examples.setdefault(form, distinct.values[0].as_py())
        return distinct.n_cells

    def _add_amounts(self, distinct: DistinctValues) -> None:
        """Count amounts such as $1,234.50, and keep some values that are none."""
        is_like = matches(distinct.values, LIKE_NUMBER)
        if _any(is_like):
            is_address = matches(distinct.values, _ADDRESS)
            is_like = pc.and_(is_like, pc.invert(is_address))
            like_numbers = distinct.select(is_like)
            self.n_like_numbers += self._count(like_numbers, "like")
            is_base_16 = matches(like_numbers.values, _BASE_16)
            self.amounts.add(*like_numbers.select(pc.invert(is_base_16)))
        # A few examples of a column of texts are enough, and each batch has others.
        if len(self.no_amounts) <= MOST_GAPS_OFFERED and not _all(is_like):
            no_amounts = distinct.values.filter(pc.invert(is_like))
            self.examples.setdefault("no amount", no_amounts[0].as_py())
            self.no_amounts |= {*no_amounts[: MOST_GAPS_OFFERED + 1].to_pylist()}

    def _add_truth_words(self, values: pa.Array) -> None:
        """Keep the words, in any case, of a column that has no more than two."""
        if self.truth_words is None:
            return
        words = pc.utf8_lower(values).unique()
        self.truth_words |= {*words[:9].to_pylist()}
        if len(self.truth_words) > 2:
            self.truth_words = None

    def _add_dates(self, distinct: DistinctValues) -> None:
        """Count dates and times by their forms, and keep one of each format."""
        values = distinct.values
        is_time, is_zoned = matches(values, TIME), matches(values, ZONED)
        begins_as_iso, is_numeric = (
            matches(values, _DAY),
            matches(values, LIKE_NUMERIC_DATE),
        )
        is_other = pc.and_(
            pc.invert(pc.or_(is_time, is_zoned)), matches(values, OTHER_DATE)
        )
        is_date = pc.or_(pc.or_(begins_as_iso, is_other), is_numeric)
        if _any(is_date):
            dates = values.filter(is_date)
            shapes = dates
            for pattern, text in _SHAPES_OF_DATES:
                shapes = pc.replace_substring_regex(shapes, pattern, text)
            for shape in shapes.unique().to_pylist()[:MOST_GAPS_OFFERED]:
                if shape not in self.date_formats:
                    place = pc.index(shapes, shape).as_py()
                    self.date_formats[shape] = dates[place].as_py()
        if _any(is_numeric):
            self.n_like_dates += self._count(distinct.select(is_numeric), "like a date")
            self._add_numeric_dates(distinct)
        self.n_other_dates += self._count(distinct.select(is_other), "other date")
        if len(self.no_dates) <= MOST_GAPS_OFFERED:
            no_dates = values.filter(pc.invert(pc.or_(is_date, is_zoned)))
            self.no_dates |= {*no_dates[: MOST_GAPS_OFFERED + 1].to_pylist()}
        if "no time" not in self.examples and not _all(begins_as_iso):
            no_time = values.filter(pc.invert(begins_as_iso))[0].as_py()
            self.examples["no time"] = no_time
        if _any(is_time):
            times = distinct.select(is_time)
            weights = self._weights_of_real(times, zoned=False)
            are_days = matches(times.values, DATE).to_numpy(zero_copy_only=False)
            self.n_times += int(weights.sum())
            self.n_dates += int(weights[are_days].sum())
        if _any(is_zoned):
            weights = self._weights_of_real(distinct.select(is_zoned), zoned=True)
            self.n_zoned += int(weights.sum())

    def _weights_of_real(self, times: DistinctValues, *, zoned: bool) -> Integers:
        """Return the cells of each time, 0 where it is no real one, as 2023-02-30."""
        weights: Integers = times.counts.to_numpy(zero_copy_only=False).copy()
        bad = find_invalid_times(times.values, zoned=zoned)
        if len(bad):
            self.examples.setdefault("no day", times.values[int(bad[0])].as_py())
        weights[bad] = 0
        return weights

    def _add_numeric_dates(self, distinct: DistinctValues) -> None:
        """Count what is a real date if the day comes first, and if the month does."""
        dates, other_values = distinct.split(matches(distinct.values, NUMERIC_DATE))
        self._count(other_values, "no numeric date")
        texts, weights = dates.values, dates.counts.to_numpy(zero_copy_only=False)
        signs = pc.replace_substring_regex(texts, r"^[0-9]+(.).*", r"\1")
        self.date_signs |= set(signs.unique().to_pylist())
        has_time = pc.match_substring(texts, ":").to_numpy(zero_copy_only=False)
        self.n_with_time += int(weights[has_time].sum())
        by_day, by_month = (_real_dates(texts, day_first=f) for f in (True, False))
        self.n_day_first += int(weights[by_day].sum())
        self.n_month_first += int(weights[by_month].sum())
        readings = (write_iso_dates(texts, day_first=first) for first in (True, False))
        differ = pc.not_equal(*readings).to_numpy(zero_copy_only=False)
        for name, are_so in (
            ("day first", by_day & ~by_month),
            ("month first", by_month & ~by_day),
            ("either first", by_day & by_month & differ),  # unlike 5/5/2023
            ("no numeric date", ~(by_day | by_month)),
        ):
            if name not in self.examples and are_so.any():
                self.examples[name] = texts[int(np.argmax(are_so))].as_py()

    @property
    def amount_sign(self) -> str:
        """The most frequent sign of amounts; "" where it is none."""
        n_by_sign = self.amounts.n_by_sign + Counter({"": self.n_numbers})
        return n_by_sign.most_common(1)[0][0] if n_by_sign else ""

    def decimal_marks(self, separator: str, *, is_amount: bool) -> dict[str, str]:
        """Return values by the decimal marks that they show; "" for plain numbers."""
        if is_amount:
            # 1.234 may be a thousand where 1.234.567 is in the column.
            return self.amounts.marks or ({".": ""} if self.n_with_point else {})
        if self.n_with_point and self.n_numbers == self.n_values:
            return {".": ""}
        if separator == ";" and self.n_commas:
            n_numbers = self.n_whole + self.n_commas
            if n_numbers == self.n_values:
                return {",": self.examples["comma"]}
        return {}

    def mark_of_most(self, separator: str) -> str | None:
        """Return the decimal mark of a mixed column, if most of it are numbers."""
        if self.n_with_point and 2 * self.n_numbers > self.n_values:
            return "."
        n_numbers = self.n_whole + self.n_commas
        if separator == ";" and self.n_commas and 2 * n_numbers > self.n_values:
            return ","
        return None

    def day_first(self, named: bool | None = None) -> bool | None:
        """Return whether the day comes first in dates of numbers, and not the month.

        Dots and numbers above 12 show the order; if all dates can be read in both ways,
        it is `named`. Next to ISO dates it must be `named`. None if the column does not
        hold such dates, all of one form.
        """
        orders = self.date_orders
        if self.n_times:
            return named if named in orders else None
        return named if len(orders) == 2 else next(iter(orders), None)

    @property
    def date_orders(self) -> list[bool]:
        """Possible orders of day and month, True if the day is first, of all values.

        ISO dates have no order; () where a value has another form.
        """
        if len(self.date_signs) != 1:
            return []
        n_of = {True: self.n_day_first, False: self.n_month_first}
        return [first for first, n in n_of.items() if n + self.n_times == self.n_values]

    def has_gap(self, word: str, decimal: str) -> bool:
        """Return whether a word is a gap in the column; in a text column it is none."""
        return word in self.gap_words and self.kind(decimal) is not Kind.TEXT

    def number_kind(self, decimal: str) -> Kind | None:
        """Return the kind of a column of plain numbers; None for another column."""
        n, n_numbers = self.n_values, self.n_numbers
        if decimal == ",":
            n_numbers = self.n_whole + self.n_commas
        if not n or n_numbers != n or self.n_too_large:
            return None
        return Kind.WHOLE if self.n_whole == n else Kind.NUMBERS

    def kind(self, decimal: str = ".", day_first: bool | None = None) -> Kind:
        """Return the kind of the column, given the decimal mark of numbers.

        `day_first` is the order of dates that may be read in two ways.
        """
        n = self.n_values
        if not n:
            return Kind.GAPS
        kind = self.number_kind(decimal)
        if kind is not None:
            # 1E2 and 10E1 are two codes and one number.
            are_codes = self.n_codes and self.n_codes + self.n_whole == n
            return Kind.TEXT if are_codes else kind
        if not self.n_numbers and self.truth_words:
            pair = {tuple(pair) for pair in TRUTH_PAIRS if self.truth_words == {*pair}}
            if pair:
                return Kind.TRUTH
        if self.n_zoned == n:
            return Kind.ZONED_TIMES
        if self.n_times == n:
            return Kind.DATES if self.n_dates == n else Kind.TIMES
        if self.day_first(day_first) is not None:
            has_time = self.n_with_time or self.n_times > self.n_dates
            return Kind.TIMES if has_time else Kind.DATES
        return Kind.TEXT

    def exact_kind(self, decimal: str = ".") -> Kind:
        """Return the kind if every value is written back as it was, else text."""
        kind = self.kind(decimal)
        if kind is Kind.NUMBERS and self.n_whole and self.n_point_zero:
            return Kind.TEXT  # 3 and 3.0 are one number
        are_exact = not self.gap_words and (
            kind is Kind.GAPS
            or (kind is Kind.DATES and self.n_dates == self.n_values)
            or (kind.is_number and decimal == "." and self.n_exact == self.n_values)
        )
        return kind if are_exact else Kind.TEXT

    def looks_like(self, name: str) -> TextReason | None:
        """Return why values of a text column look like another kind, or None."""
        reason = self._likeness(name) if self.n_values else None
        return reason and reason.after(f"column {name!r} ")

    def _likeness(self, name: str) -> TextReason | None:
        """Return why a column of text is not of the kind that it resembles, or None."""
        n = self.n_values
        if self.n_codes and self.n_codes + self.n_whole == n:
            code = self.examples["code"]
            way = f"; --number {quote_names(name)} reads it as numbers"
            return TextReason(
                f"is read as text: {code!r} may be a code, or the number "
                f"{float(code):.6g}{way}",
                (("--number", name),),
                way=way,
            )
        if 2 * self.n_in_quotes > n:
            return TextReason(
                f"is read as text with the quotes of its values, such as "
                f"{self.examples['quoted']}; only double quotes without blanks before "
                f"them are left out"
            )
        reason = self._likeness_to_dates()
        return self._likeness_to_numbers(name) if reason is None else reason

    def _likeness_to_dates(self) -> TextReason | None:
        """Return why a column that is mostly dates is read as text, or None."""
        n, examples, n_times = self.n_values, self.examples, self.n_times + self.n_zoned
        n_dates = n_times + self.n_like_dates + self.n_other_dates
        if 2 * n_dates > n and len(self.date_formats) > 1:
            return self._describe_mixed_dates(n - n_dates)
        if 2 * self.n_like_dates > n:
            return self._describe_numeric_dates()
        if "no day" in examples and 2 * n_times > n:
            return self._describe_wrong_date(examples["no day"])
        if n_dates > n_times and 2 * n_dates > n:
            other = examples.get("other date", examples.get("like a date"))
            if other is not None and re.search(_NANOSECONDS, other):
                return TextReason(
                    f"looks like times ({other!r}), and is read as text: a second may "
                    f"have six digits behind the point; round the times"
                )
            return TextReason(
                f"looks like dates ({other!r}), and is read as text; write YYYY-MM-DD, "
                f"and times as 2023-09-26T10:30:00+02:00"
            )
        if self.n_times and self.n_zoned and n_times == n:
            return TextReason(
                "is read as text: some of its times have a zone and some have none; "
                "write all of them in one form"
            )
        if 2 * n_times > n:
            return self._describe_wrong_date(examples.get("no time", examples["other"]))
        return None

    def _likeness_to_numbers(self, name: str) -> TextReason | None:
        """Return why a column that is mostly numbers is read as text, or None."""
        n = self.n_values
        if self.n_too_large and 2 * self.n_numbers > n:
            return TextReason(
                "is read as text: its numbers are too large, or too near to 0, to be "
                "held exactly"
            )
        n_like = self.n_numbers + self.n_like_numbers
        # Whole numbers with leading zeros are codes, such as 00123.
        if self.n_leading_zeros or 2 * n_like <= n:
            return None
        start = f"is read as text: {_part(n_like, n)} are numbers"
        are_all_commas = (
            self.separator == ";" and n_like == self.n_whole + self.n_commas
        )
        if not self.n_like_numbers or (are_all_commas and self.no_amounts):
            other = self.quote(self.examples["no amount"])
            return self._way_to_gaps(name).after(f"{start}, but not {other}")
        start += f" written as text, such as {self.examples['like']!r}"
        return self.way_to_amounts(name).after(start)

    def _way_to_gaps(self, name: str) -> TextReason:
        """How the values of a column of numbers that are none become gaps."""
        if any(re.match(SUM_WORD, word) for word in self.no_amounts):
            return TextReason("; remove that line if it has sums of the other ones")
        options = self._gap_options()
        if not options:
            return TextReason("")
        read = "reads it as a gap" if len(options) == 1 else "read them as gaps"
        if self.is_typed:
            options, read = (("--number", name), *options), "reads it as numbers"
        way = f"; {_words_of(options)} {read}"
        return TextReason(way, options, way=way)

    def _gap_options(self, more: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
        """Return `--gap` options for values that are no numbers; () if many."""
        return _as_gaps({*self.no_amounts, *more})

    def _describe_wrong_date(self, value: str) -> TextReason:
        start = (
            f"looks like dates, but {self.quote(value)} is none, and is read as text"
        )
        # All other values must be dates, and a number is no word for a gap.
        options = _as_gaps(self.no_dates)
        if self.n_numbers or value not in self.no_dates or not options:
            return TextReason(start)
        read = "reads it as a gap" if len(options) == 1 else "read them as gaps"
        way = f"; {_words_of(options)} {read}"
        return TextReason(f"{start}{way}", options, way=way)

    def way_to_amounts(self, name: str) -> TextReason:
        """Return how a column of amounts is read as numbers; no text if it has none."""
        sign, n_by_sign = self.amount_sign, self.amounts.n_by_sign
        # If no sign is frequent, they are letters of codes, such as 12A and 14C.
        if 2 * (n_by_sign[sign] + (sign == "") * self.n_numbers) <= self.n_values:
            return TextReason("")
        way = f"; --number {quote_names(name)} reads it as numbers"
        if self.obstacle:
            return TextReason(f"{way} once this is mended: {self.obstacle}")
        other_examples = {
            s: text for s, text in self.amounts.examples.items() if s != sign
        }
        wrong = [*filter(None, [self.amounts.no_number]), *other_examples.values()]
        # A plain number is no word for a gap: other columns may have it.
        has_plain = bool(sign) and self.n_numbers > 0
        is_sum = any(re.match(SUM_WORD, word) for word in self.no_amounts)
        are_known = len(wrong) == sum(n_by_sign[other] for other in other_examples)
        gaps = self._gap_options(wrong)
        are_gaps = bool(gaps) or not (wrong or self.no_amounts)
        if not (are_known and are_gaps) or has_plain or is_sum:
            wrong += filter(None, [self.examples.get("no amount")])
            wrong += [self.examples["number"]] if has_plain else []
            return TextReason(f"{way} once {self.quote(wrong[0])} is corrected")
        options = (("--number", name), *gaps)
        if not wrong:
            way = f"; {_words_of(options)} reads it as numbers"
            return TextReason(way, options, way=way)
        way += f" once {self.quote(wrong[0])} is corrected; {_words_of(gaps)} "
        way += "reads it as a gap" if len(gaps) == 1 else "read them as gaps"
        return TextReason(way, options, way=way)

    def _describe_mixed_dates(self, n_others: int) -> TextReason:
        """Return which formats of dates a column mixes, and the way out."""
        *shown, last = map(self.quote, [*self.date_formats.values()][:3])
        start = f"holds dates in several formats, such as {', '.join(shown)} and {last}"
        start += ", and is read as text"
        orders = () if n_others else self.date_orders
        options = tuple(DATE_ORDERS[day_first] for day_first in orders)
        if not options:
            return TextReason(f"{start}; write YYYY-MM-DD everywhere")
        end = " to read all" if len(options) == 1 else ""
        way = f"; write {' or '.join(options)}{end}"
        return TextReason(f"{start}{way}", (), options, way)

    def _describe_numeric_dates(self) -> TextReason:
        """Return why a column of dates of numbers is read as text, and the way out."""
        examples, example = self.examples, self.examples["like a date"]
        day, month = examples.get("day first"), examples.get("month first")
        if day is not None and month is not None:
            return TextReason(
                f"looks like dates, but the day comes first in {self.quote(day)} and "
                f"the month in {self.quote(month)}, and is read as text; write "
                f"YYYY-MM-DD"
            )
        n_either = min(self.n_day_first, self.n_month_first)
        if n_either == self.n_values and len(self.date_signs) == 1:
            either = examples.get("either first", example)
            readings = " or ".join(
                write_iso_dates(pa.array([either]), day_first=first)[0].as_py()
                for first in (True, False)
            )
            options = tuple(DATE_ORDERS.values())
            way = f"; write {' or '.join(options)}"
            return TextReason(
                f"holds dates, and is read as text: {either!r} may be {readings}{way}",
                (),
                options,
                way,
            )
        other = examples.get("no numeric date")
        if other is not None and (
            not re.match(LIKE_NUMERIC_DATE, other) or re.match(NUMERIC_DATE, other)
        ):
            return self._describe_wrong_date(other)
        return TextReason(
            f"looks like dates ({other or example!r}), and is read as text; write "
            f"YYYY-MM-DD"
        )


def _as_gaps(words: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the options that read words as gaps; () if there are many."""
    is_many = len(words) > MOST_GAPS_OFFERED
    return () if is_many else tuple(("--gap", word) for word in sorted(words))


def _words_of(options: Iterable[tuple[str, str]]) -> str:
    """Return options with one value each as words of the shell."""
    return shlex.join(
        word
        for option, value in options
        for word in (option, join_names([value]) if option == "--number" else value)
    )


def _part(n: int, n_all: int) -> str:
    """Return how many of a column's values are something; it is never rounded up.

    Examples
    --------
    >>> _part(9, 9), _part(8997, 9000), _part(2, 3)
    ('all of its values', 'all but 3 of its 9,000 values', '66% of its values')
    """
    if n == n_all:
        return "all of its values"
    if n_all - n <= MOST_EXCEPTIONS * n_all:
        return f"all but {n_all - n:,} of its {n_all:,} values"
    return f"{100 * n // n_all}% of its values"


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
    if not _any(mask):
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
    if _any(matches(texts, "[Mm]$")):
        # Arrow reads no 12-hour clock: 12 AM is 0, and PM adds 12 to 1 to 11.
        hours = [("12", "00", "A"), ("12", "12", "P")]
        hours += [(f"{hour:02}", f"{hour + 12}", "P") for hour in range(1, 12)]
        for hour, of_24, letter in (*hours, ("", "", "A")):
            pattern = f"^(.{{11}}){hour}(.*?) ?(?i:{letter}m)$"
            texts = pc.replace_substring_regex(texts, pattern, rf"\1{of_24}\2")
    return pc.if_else(mask, texts, values)


def _real_dates(texts: pa.Array, *, day_first: bool) -> Bools:
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
    if not _any(outside):
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
    if _any(gaps):
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
    if not _all(right):
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
    if not _all(right):
        return None, _first(texts, pc.invert(right))
    numbers = parse_numbers(texts, decimal)
    # Larger integers would become other numbers.
    wrong = pc.or_(pc.invert(pc.is_finite(numbers)), _underflow(texts, numbers))
    large = pc.greater(pc.abs(numbers), float(LARGEST_EXACT))
    if _any(large):
        wrong = pc.or_(wrong, pc.and_(large, pc.invert(matches(texts, "[.,eE]"))))
    if _any(wrong):
        return None, _first(texts, wrong)
    return numbers, None


def _convert_amounts(
    values: pa.Array, kind: Kind, decimal: str, sign: str
) -> tuple[pa.Array | None, WrongValue | None]:
    """Return amounts with this sign as numbers, or the first that is none."""
    known = pc.if_else(is_gap_word(values), pa.scalar(None, pa.string()), values)
    plain = plain_numbers(known, sign, decimal)
    wrong = pc.and_(pc.is_valid(known), pc.is_null(plain))
    if _any(wrong):
        return None, _first(values, wrong)
    numbers, bad = convert(plain, kind)  # amounts have decimal points by now
    # A message shows the value as it stands in the table, with its sign.
    return numbers, bad and WrongValue(bad.row, values[bad.row].as_py(), bad.others)


def _plain_floats(texts: pa.Array, kind: Kind) -> pa.Array | None:
    """Return numbers that float64 holds; None if patterns must decide, as above."""
    if not isinstance(texts, pa.StringArray) or texts.null_count == len(texts):
        return None
    numbers = _read_plain_numbers(texts)
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
        if _all(right):
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


def truth_words(scan: ColumnScan) -> tuple[str, str] | None:
    """Return the pair of words of a column of truth values, the true one first."""
    return next((pair for pair in TRUTH_PAIRS if scan.truth_words == {*pair}), None)


def decimal_mark(
    scans: Mapping[str, ColumnScan],
    separator: str,
    amounts: Mapping[str, str | None] = MappingProxyType({}),
) -> str:
    """Return the decimal mark of a file; ValueError where it uses both.

    `amounts` are the columns of amounts, with the decimal mark that they have if
    nothing in the file shows it; None if it is unknown.
    """
    shown: dict[str, tuple[str, str]] = {}
    for name, scan in scans.items():
        for mark, value in scan.decimal_marks(
            separator, is_amount=name in amounts
        ).items():
            shown.setdefault(mark, (name, value))
    if len(shown) > 1:
        by_comma, comma = shown[","]
        # Leaving out one of the columns would decide by itself what the other one
        # means.
        names = dict.fromkeys((by_comma, shown["."][0]))
        raise UndecidedError(
            f"its column {by_comma!r} has decimal commas ({comma!r}) and its column "
            f"{shown['.'][0]!r} decimal points, so that one of them separates "
            f"thousands; write one decimal mark",
            [("--drop", join_names(names))],
        )
    if shown:
        return next(iter(shown))
    # A wrong value in the one column that shows the mark does not hide it.
    marks = {scan.mark_of_most(separator) for scan in scans.values()} - {None}
    if len(marks) == 1:
        return str(marks.pop())
    for name, known in amounts.items():
        if known is not None:
            return known
        either = scans[name].amounts.ambiguous
        # Files with decimal commas usually separate values by semicolons.
        if either is not None and ("." in either or separator == ";"):
            digits = re.sub("[^0-9.,]", "", either)
            raise ValueError(
                f"its column {name!r} has {either!r}, which may be "
                f"{re.sub('[.,]', '', digits)} or {digits.replace(',', '.')}, and no "
                f"number shows which mark is the decimal one; write the column as "
                f"plain numbers, such as {re.sub('[.,]', '', digits)}"
            )
    return "."


_PLAIN_LABEL: Final = re.compile(r"(?:0|-?[1-9][0-9]*)(\.0)?")


def integer_labels(texts: list[str]) -> list[int] | None:
    """Return labels as integers if all are written as plain integers, else None.

    Examples
    --------
    >>> integer_labels(["7", "12"]), integer_labels(["7.0", "0.0"])
    ([7, 12], [7, 0])
    >>> [integer_labels(texts) for texts in (["7", "007"], ["7", "7.0"], ["-0"])]
    [None, None, None]
    """
    matched = [_PLAIN_LABEL.fullmatch(text) for text in texts]
    # If both forms were in one column, two texts would become one class.
    if not all(matched) or len({match[1] for match in matched if match}) != 1:
        return None
    numbers = [int(text.removesuffix(".0")) for text in texts]
    return numbers if all(abs(number) < 2**63 for number in numbers) else None
