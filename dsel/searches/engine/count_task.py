"""What the blocks of one span of the pool add to the counts of some candidates."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.base import Block
from dsel.data.chunking import stacked
from dsel.models.family import FittedGroup
from dsel.searches.engine.scheme import Comparison

NO_ROWS: Final = np.empty(0, dtype=np.int64)


class SpanTally:
    """Differences by candidate and bin, the rows compared, and rows brought along.

    Parameters
    ----------
    comparisons
        Of the scheme.
    candidates
        Candidate numbers.
    drawn
        Ascending numbers of the rows that are brought along; None for none.
    """

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        candidates: Sequence[int],
        drawn: NDArray[np.int64] | None = None,
    ) -> None:
        self._comparisons, self._drawn = comparisons, drawn
        self._place = {number: i for i, number in enumerate(candidates)}
        n, bins = len(candidates), [c.n_bins for c in comparisons]
        self._differences = tuple(np.zeros((n, n_bins), np.int64) for n_bins in bins)
        self._rows = tuple(np.zeros(n_bins, np.int64) for n_bins in bins)
        self._brought: list[Any] = []
        readings = sum(len(c.readings(NO_ROWS, candidates)) for c in comparisons)
        self.row_nbytes = 16 * readings * n
        """Bytes of a row's answers: codes, and what comparing them makes."""

    @property
    def counts(
        self,
    ) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.int64], ...]]:
        """Differences, (n_candidates, n_bins), and rows, (n_bins,), per comparison."""
        return self._differences, self._rows

    @property
    def sample(self) -> Any:
        """The rows brought along, (n_drawn, n_columns), or None."""
        return stacked(self._brought) if self._brought else None

    def add(self, block: Block, parts: Sequence[FittedGroup]) -> None:
        """Count a block with models that together are those of all candidates."""
        for part in parts:
            mine = [self._place[number] for number in part.candidates]
            found = _differences(part, block, self._comparisons)
            for total, more in zip(self._differences, found, strict=True):
                total[mine] += more
        for comparison, rows in zip(self._comparisons, self._rows, strict=True):
            rows += _rows_by_bin(comparison, block.rows)
        if self._drawn is not None:
            self._brought.append(block.X[_places(self._drawn, block.rows)])


def _places(wanted: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where wanted numbers stand among others; both ascend."""
    first, last = np.searchsorted(wanted, [rows[0], rows[-1] + 1])
    near = wanted[first:last]
    places = np.searchsorted(rows, near)
    return np.asarray(places[rows[places] == near])


def _rows_by_bin(comparison: Comparison, rows: NDArray[np.int64]) -> Any:
    bins = comparison.bins(rows)
    if bins is None:
        return len(rows)
    return np.bincount(bins, minlength=comparison.n_bins)


def _differences(
    part: FittedGroup, block: Any, comparisons: Sequence[Comparison]
) -> list[NDArray[np.int64]]:
    """Ask each distinct reading once, then let every comparison count its own."""
    readings: list[NDArray[np.int64]] = []
    places: list[list[int]] = []
    for comparison in comparisons:
        places.append([])
        for reading in comparison.readings(block.rows, part.candidates):
            found = next(
                (i for i, known in enumerate(readings) if _same(known, reading)), None
            )
            if found is None:
                found = len(readings)
                readings.append(reading)
            places[-1].append(found)
    codes = part.predict(block.X, readings)
    return [
        comparison.tally(codes[place], block.rows)
        for comparison, place in zip(comparisons, places, strict=True)
    ]


def _same(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one, other))
