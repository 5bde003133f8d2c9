"""Comparisons in which the same models answer every pool row, and all of it counts.

A draw, or one fold, asks two models a row. These ask as many as they name, so they are
made only for criteria that read them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class AllAnswers:
    """The first trainings of a scheme answer every row; a function counts."""

    n_asked: int
    """How many trainings, in the order of their numbers."""
    n_bins: int
    """Bins a candidate has."""
    variable: str
    """Name of the cube's variable that the counts become."""
    count: Callable[[Codes], Codes]
    """From codes (n_asked, n_candidates, n_rows) to counts (n_candidates, n_bins)."""

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is in every bin."""
        del rows
        return None

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Ask all of them."""
        del rows, candidates
        return [np.array(number) for number in range(self.n_asked)]

    def tally(self, codes: Codes, rows: NDArray[np.int64]) -> Codes:
        """Count what the function counts."""
        del rows
        return self.count(codes)


def halves(n_repeats: int) -> AllAnswers:
    """Compare the two models of each halving, 2r and 2r + 1, with each other."""
    return AllAnswers(2 * n_repeats, n_repeats, names.DISAGREEMENTS, by_halving)


def every_fold(n_folds: int) -> AllAnswers:
    """Compare each fold model with the full one, which is training `n_folds`."""
    return AllAnswers(n_folds + 1, n_folds, names.FOLD_DISAGREEMENTS, by_fold)


def differing_folds(n_folds: int) -> AllAnswers:
    """Count how many fold models differ from the full one, row by row."""
    return AllAnswers(n_folds + 1, n_folds, names.DIFFERING_FOLDS, by_number)


def by_halving(codes: Codes) -> Codes:
    """Count by halving the rows on which its two models differ."""
    return np.asarray(np.count_nonzero(codes[0::2] != codes[1::2], axis=2).T)


def by_fold(codes: Codes) -> Codes:
    """Count by fold the rows on which its model and the last one differ."""
    return np.asarray(np.count_nonzero(codes[:-1] != codes[-1], axis=2).T)


def by_number(codes: Codes) -> Codes:
    """Count in bin i the rows on which i + 1 models differ from the last one."""
    how_many = (codes[:-1] != codes[-1]).sum(axis=0)
    n_folds = len(codes) - 1
    return np.stack([np.bincount(row, minlength=n_folds + 1)[1:] for row in how_many])
