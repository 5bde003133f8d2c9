"""Pool rows that nearly equal a labeled row: rounded or noisy copies of its record.

Rows of distinct records come near by chance too, the more often the fewer columns and
the more rows there are. So rows are looked for in a small box around a labeled row and
in a ten times larger one: by chance the larger one holds nine times as many at least,
copies lie in the small one alone. Labeled rows with another one so near tell nothing.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.arrays import Floats
from dsel.data.row_random import row_random

NEAR: Final = 1e-4
"""How much two copies may differ in a column, in units of its spread."""
SHELL: Final = 10.0
"""How many times as large the box is in which chance is looked for."""
MOST_ROWS: Final = 10_000  # labeled rows that are looked for
_SEED: Final = 0x6E_65_61_72
_PROJECTIONS: Final = 4
_NEIGHBOURS: Final = (-1, 0)
_WINDOW: Final = 3.0  # deviations of a projected difference


@dataclass(frozen=True)
class NearCopies:
    """Labeled rows with a pool row in the small box, and in the shell around it."""

    n_searched: int
    copied: dict[int, int]
    """Labeled rows with a near copy, and one pool row that is it."""
    beside: frozenset[int]
    """Labeled rows with a pool row in the shell."""

    @property
    def n_copied(self) -> int:
        """Labeled rows with near copies; 0 where they come by chance."""
        return len(self.copied) if len(self.copied) > len(self.beside) else 0

    def plus(self, later: "NearCopies") -> "NearCopies":
        """Return what two parts of the pool hold."""
        return NearCopies(
            self.n_searched, {**later.copied, **self.copied}, self.beside | later.beside
        )


@dataclass(frozen=True)
class NearSearch:
    """Looks for labeled rows, in each block by their projections on a few lines."""

    rows: Any
    """Labeled rows that are looked for, in the order of their first projection."""
    numbers: NDArray[np.int64]
    scale: Floats
    """Spread of each column, shape (n_columns,)."""
    lines: Floats
    """Directions, shape (n_columns, 4)."""
    places: Floats
    """Projections of the rows, shape (n_rows, 4)."""

    def __call__(self, X: Any, rows: NDArray[np.int64]) -> NearCopies:
        """Return what a block holds."""
        copied: dict[int, int] = {}
        beside: set[int] = set()
        for at, found, distance in self.pairs(X):
            small = (distance > 0) & (distance <= NEAR)
            numbers = self.numbers[found]
            # Backwards, so that the first row of several stays.
            copied.update(zip(numbers[small][::-1], rows[at[small]][::-1], strict=True))
            beside.update(numbers[(distance > NEAR) & (distance <= SHELL * NEAR)])
        return NearCopies(
            len(self.numbers),
            {int(number): int(row) for number, row in copied.items()},
            frozenset(map(int, beside)),
        )

    def pairs(
        self, X: Any, steps: tuple[int, ...] = _NEIGHBOURS
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]]:
        """Return likely pairs: rows of `X`, places of labeled ones, and how far."""
        if not len(self.numbers):
            return []
        projected = _finite(X) @ self.lines
        after = np.searchsorted(self.places[:, 0], projected[:, 0])
        window = (
            SHELL
            * NEAR
            * _WINDOW
            * np.linalg.norm(self.lines * self.scale[:, np.newaxis], axis=0)
        )
        found = []
        for step in steps:
            near = np.clip(after + step, 0, len(self.numbers) - 1)
            is_likely = (np.abs(projected - self.places[near]) <= window).all(axis=1)
            at = np.flatnonzero(is_likely)
            distance = _distance(X[at], self.rows[near[at]], self.scale)
            found.append((at, near[at], distance))
        return found


def near_search(X: Any, numbers: NDArray[np.int64]) -> NearSearch:
    """Return the search for distinct labeled rows, given in the type of the pool.

    Only rows are looked for that have no other labeled row in the larger box.
    """
    n_rows, n_columns = X.shape
    scale = _spread(X)
    drawn = row_random(_SEED, 0, 0, n_columns * _PROJECTIONS) / 2.0**63 - 1.0
    lines = drawn.reshape(n_columns, _PROJECTIONS) / scale[:, np.newaxis]
    places = _finite(X) @ lines
    order = np.argsort(places[:, 0], kind="stable")
    every = NearSearch(X[order], numbers[order], scale, lines, places[order])
    alone = np.ones(n_rows, dtype=bool)
    # Each row stands among the places itself: its neighbours are one further.
    for at, found, distance in every.pairs(every.rows, steps=(-2, -1, 1, 2)):
        alone[at[(at != found) & (distance <= SHELL * NEAR)]] = False
    kept = np.flatnonzero(alone)
    kept = kept[:: max(-(-len(kept) // MOST_ROWS), 1)]
    return NearSearch(
        every.rows[kept], every.numbers[kept], scale, lines, every.places[kept]
    )


def _finite(X: Any) -> Any:
    return X if sparse.issparse(X) else np.nan_to_num(np.asarray(X, dtype=float))


def _spread(X: Any) -> Floats:
    """Return a spread of each column that a few large values do not determine."""
    if not X.shape[0]:
        return np.ones(X.shape[1])
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        columns = np.ma.masked_invalid(np.asarray(X, dtype=float))
        spread = columns.std(axis=0).filled(0.0)
        quarters = np.percentile(_finite(X), [25, 75], axis=0)
        range_ = quarters[1] - quarters[0]
        spread = np.where(range_ > 0, range_, spread)
    return np.asarray(np.where(spread > 0, spread, 1.0), dtype=np.float64)


def _distance(first: Any, second: Any, scale: Floats) -> Floats:
    """Return the largest difference of two rows in any column, in its spread."""
    if sparse.issparse(first):
        apart = abs(sparse.csr_matrix(first, dtype=float) - second).tocsr()
        apart.data /= scale[apart.indices]
        return np.asarray(apart.max(axis=1).toarray().ravel(), dtype=np.float64)
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    gap = np.abs(one - other) / scale
    gap[np.isnan(one) & np.isnan(other)] = 0.0
    gap[np.isnan(gap)] = np.inf
    return np.asarray(gap.max(axis=1, initial=0.0), dtype=np.float64)
