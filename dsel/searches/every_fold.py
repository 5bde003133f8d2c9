"""Comparisons of the full model with all fold models: k + 1 answers to every pool row.

They cost (k + 1) / 2 times what a draw or one fold costs, so they are made only for
criteria that read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names


def _every_training(n_folds: int) -> list[NDArray[np.int64]]:
    return [np.array(number) for number in range(n_folds + 1)]


def _differs(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Compare (fold models and the full one last, candidates, rows) with the last."""
    return np.asarray(codes[:-1] != codes[-1])


@dataclass(frozen=True)
class EveryFold:
    """The full model against each fold model, on all rows."""

    n_folds: int
    """Folds; training k is the full one."""
    variable: str = names.FOLD_DISAGREEMENTS
    """Counted by the fold."""

    @property
    def n_bins(self) -> int:
        """One bin a fold."""
        return self.n_folds

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is compared with every fold."""
        del rows
        return None

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Ask all models."""
        del rows, candidates
        return _every_training(self.n_folds)

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count by fold."""
        del rows
        return np.asarray(np.count_nonzero(_differs(codes), axis=2).T)


@dataclass(frozen=True)
class DifferingFolds:
    """How many fold models differ from the full one, on all rows."""

    n_folds: int
    """Folds; training k is the full one."""
    variable: str = names.DIFFERING_FOLDS
    """Bin i counts the rows on which i + 1 fold models differ."""

    @property
    def n_bins(self) -> int:
        """One bin for each number of folds but 0."""
        return self.n_folds

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row counts."""
        del rows
        return None

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Ask all models."""
        del rows, candidates
        return _every_training(self.n_folds)

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count by how many folds differ."""
        del rows
        how_many = _differs(codes).sum(axis=0)
        return np.stack(
            [np.bincount(row, minlength=self.n_folds + 1)[1:] for row in how_many]
        )
