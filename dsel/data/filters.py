"""Row filters of a pool: which global row numbers remain, known without the data."""

from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.data.row_random import PART_STREAM, row_random


class RowFilter(Protocol):
    """A rule about row numbers."""

    @property
    def token(self) -> str:
        """Text that tells the rule from others."""

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which of the rows ``start`` to ``stop - 1`` remain."""

    def within(self, start: int, stop: int) -> "RowFilter | None":
        """Return the rule for these rows only, or None where it drops none of them."""


@dataclass(frozen=True)
class Excluded:
    """Leaves out listed rows."""

    rows: NDArray[np.int64]
    """Ascending global row numbers without repeats."""

    @property
    def token(self) -> str:
        """Hash of the row numbers."""
        return "excluded-" + blake2b(self.rows.tobytes(), digest_size=16).hexdigest()

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which rows are not listed."""
        remains = np.ones(stop - start, dtype=np.bool_)
        remains[self._listed(start, stop) - start] = False
        return remains

    def within(self, start: int, stop: int) -> "Excluded | None":
        """Return the filter with only the row numbers of this range."""
        listed = self._listed(start, stop)
        return Excluded(listed) if len(listed) else None

    def _listed(self, start: int, stop: int) -> NDArray[np.int64]:
        first, last = np.searchsorted(self.rows, [start, stop])
        return self.rows[first:last]


@dataclass(frozen=True)
class RandomFraction:
    """Keeps rows whose random number, divided by 2**64, lies in ``[lower, upper)``."""

    lower: float
    upper: float
    seed: int
    stream: int = PART_STREAM

    @property
    def token(self) -> str:
        """Limits, seed, and the stream unless it is that of parts."""
        stream = "" if self.stream == PART_STREAM else f"-{self.stream}"
        return f"part-{self.lower!r}-{self.upper!r}-{self.seed}{stream}"

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which rows' random numbers lie between the limits."""
        drawn = row_random(self.seed, self.stream, start, stop)
        return _below(drawn, self.upper) & ~_below(drawn, self.lower)

    def rows(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the rows whose random numbers lie between the limits."""
        return start + np.flatnonzero(self.mask(start, stop))

    def within(self, start: int, stop: int) -> "RandomFraction":
        """Return the filter itself: it is small for any range."""
        return self


@dataclass(frozen=True)
class RowRange:
    """Keeps consecutive rows."""

    first: int
    last: int
    """One past the number of the last."""

    @property
    def token(self) -> str:
        """Both ends."""
        return f"between-{self.first}-{self.last}"

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which rows lie between the ends."""
        rows = np.arange(start, stop)
        return (rows >= self.first) & (rows < self.last)

    def within(self, start: int, stop: int) -> "RowRange | None":
        """Return the filter, or None where all of the rows lie between the ends."""
        return None if self.first <= start and stop <= self.last else self


def _below(drawn: NDArray[np.uint64], limit: float) -> NDArray[np.bool_]:
    """Compare in integers: as floats, numbers near a limit would be rounded."""
    least = -int(-Fraction(limit) * 2**64 // 1)
    if least >= 2**64:
        return np.ones(len(drawn), dtype=np.bool_)
    below: NDArray[np.bool_] = drawn < np.uint64(least)
    return below


def joint_mask(
    filters: tuple[RowFilter, ...], start: int, stop: int
) -> NDArray[np.bool_]:
    """Tell which rows pass every filter."""
    mask = np.ones(stop - start, dtype=np.bool_)
    for rule in filters:
        mask &= rule.mask(start, stop)
    return mask
