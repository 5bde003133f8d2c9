"""Numbers as texts: their forms, and what float64 holds of them."""

import re
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dsel.arrays import Bools
from dsel.data.text_columns.arrow_texts import any_true, matches, text_bytes

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
_ROWS_IN_CACHE: Final = 2**15
"""Texts whose bytes, and what is computed of them, stay in the second cache."""
_PLAIN_LABEL: Final = re.compile(r"(?:0|-?[1-9][0-9]*)(\.0)?")


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


class PlainNumbers(NamedTuple):
    """Floats of texts that all match `NUMBER`, and where the known ones are."""

    floats: pa.Array
    content: NDArray[np.uint8]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    digits: NDArray[np.int32]
    """Where they begin without their sign."""
    has_exponents: bool


def read_plain_numbers(texts: pa.StringArray) -> PlainNumbers | None:
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
    if (has_letters or longest > 300) and any_true(is_underflow(texts, floats)):
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
    return PlainNumbers(floats, content, starts, stops, digits, has_letters)


def _forms_of_part(values: pa.StringArray) -> NumberForms | None:
    """Return the forms of plain decimal numbers; None where a text is none."""
    numbers = read_plain_numbers(values)
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


def is_underflow(texts: pa.Array, floats: pa.Array) -> pa.Array:
    """Return where float64 made 0 of texts of other numbers, such as 1e-400."""
    return pc.and_(pc.equal(floats, 0.0), matches(texts, _NOT_ZERO))


def parse_numbers(values: pa.Array, decimal: str = ".") -> pa.Array:
    """Return texts of the right form as float64."""
    if decimal == ",":
        values = pc.replace_substring(values, ",", ".")
    return pc.cast(values, pa.float64())


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
