"""Which rows of a pool remain: a rule about global row numbers, known without data."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from dsel.data.row_random import row_random

_EVERY = 2**62


@dataclass(frozen=True, eq=False)
class RowFilter:
    """Leaves out listed rows, those outside of a range, and a random share."""

    excluded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Ascending global row numbers without repeats."""
    first: int = 0
    last: int = _EVERY
    """One past the last row that may remain."""
    shares: tuple[tuple[float, float, int, int], ...] = ()
    """Lower and upper limit, seed and stream: a row remains whose random number,
    divided by 2**64, lies in ``[lower, upper)``."""

    @property
    def is_void(self) -> bool:
        """Whether every row remains."""
        limits = self.first, self.last
        return not len(self.excluded) and not self.shares and limits == (0, _EVERY)

    @property
    def token(self) -> str:
        """Text that tells the rule from others."""
        return str(tokenize(self.excluded, self.first, self.last, self.shares))

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Tell which of the rows ``start`` to ``stop - 1`` remain."""
        remains = np.ones(stop - start, dtype=np.bool_)
        remains[: max(self.first - start, 0)] = False
        remains[max(self.last - start, 0) :] = False
        remains[self.within(start, stop).excluded - start] = False
        for lower, upper, seed, stream in self.shares:
            drawn = row_random(seed, stream, start, stop)
            remains &= _below(drawn, upper) & ~_below(drawn, lower)
        return remains

    def within(self, start: int, stop: int) -> "RowFilter":
        """Return the filter with only the listed rows of this range."""
        first, last = np.searchsorted(self.excluded, [start, stop])
        return replace(self, excluded=self.excluded[first:last])


def _below(drawn: NDArray[np.uint64], limit: float) -> NDArray[np.bool_]:
    """Compare in integers: as floats, numbers near a limit would be rounded."""
    least = -int(-Fraction(limit) * 2**64 // 1)
    if least >= 2**64:
        return np.ones(len(drawn), dtype=np.bool_)
    below: NDArray[np.bool_] = drawn < np.uint64(least)
    return below
