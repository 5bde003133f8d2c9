"""Blanks around values, empty cells, and words for a gap."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsel.arrays import Bools
from dsel.data.text_columns.arrow_texts import text_bytes
from dsel.data.text_columns.numbers import WHOLE

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
MOST_ZEROS: Final = 9
"""Most zeros behind the point of a whole number that is a word for a gap."""


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


def is_gap_word(values: pa.Array) -> pa.Array:
    """Return a mask of the values that stand for a gap; false where one is missing."""
    return pc.is_in(values, value_set=pa.array(GAP_WORDS, pa.string()))
