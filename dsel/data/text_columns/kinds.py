"""Kinds of columns, and the forms in which their values are written."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

TRUTH_PAIRS: Final = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))
"""Words of truth values in any case, the true one first."""


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
