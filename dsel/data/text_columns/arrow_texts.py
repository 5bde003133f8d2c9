"""Small functions of texts in Arrow arrays, and of masks."""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

IN_OTHER_QUOTES: Final = (
    "(?s)^(?:'.*'|\".*\"|`.*`|\u2018.*\u2019|\u201c.*\u201d"
    "|\u201e.*\u201c|\u00ab.*\u00bb)$"
)
"""Texts in quotes that do not enclose the values of a text table."""


def matches(values: pa.Array, pattern: str) -> pa.Array:
    """Return a mask of values that match a pattern; null where a value is missing."""
    return pc.match_substring_regex(values, pattern)


def all_true(mask: pa.Array) -> bool:
    """Return whether no value of a mask is False; missing ones do not count."""
    return bool(pc.all(mask, min_count=0).as_py())


def any_true(mask: pa.Array) -> bool:
    """Return whether a value of a mask is True."""
    return bool(pc.any(mask, min_count=0).as_py())


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
