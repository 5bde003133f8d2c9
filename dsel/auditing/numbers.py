"""Populations of numbers, whose residuals are known exactly, and regressors for them.

As for classes a population is a distribution on finitely many cells, here with finitely
many targets in each: how often a model is off by more than a tolerance is a sum.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin

from dsel.arrays import Floats
from dsel.auditing.laws import UNSEEN, GroupedLaw

HEAVY = stats.cauchy.ppf((np.arange(401) + 0.5) / 401)
"""Targets with heavy tails, all equally likely."""


@dataclass(frozen=True)
class NumberLaw(GroupedLaw):
    """A joint distribution of cells and numbers; rows may come in groups."""

    targets: Floats = field(default_factory=lambda: np.zeros((1, 1)))
    """Target of each entry of `chances`, (n_cells, n_targets)."""
    in_groups: bool = False

    def draw(
        self, n_rows: int, rng: np.random.Generator
    ) -> tuple[Floats, NDArray[Any]]:
        """Return independent rows and their targets."""
        X, codes = super().draw(n_rows, rng)
        return X, self.targets[X[:, 0].astype(int), codes]

    def draw_labeled(self, n: int, rng: np.random.Generator) -> Any:
        """Return rows, or all rows of `n` groups, with targets and keys of groups."""
        if not self.in_groups:
            return (*self.draw(n, rng), None)
        X, codes, keys = super().draw_labeled(n, rng)
        return X, self.targets[X[:, 0].astype(int), codes], keys

    def lacks_class(self, y: NDArray[np.generic]) -> bool:
        """Return False: numbers are no classes."""
        return False

    @property
    def rows(self) -> Floats:
        """Rows that stand for the cells, (n_cells, n_features)."""
        return self._rows(self.cells, np.full(len(self.cells), UNSEEN))

    def beyond(self, model: Any, tolerance: float) -> float:
        """Return how often a model is off by more on new rows, exactly."""
        predicted = np.asarray(model.predict(self.rows), np.float64)[:, np.newaxis]
        off = np.abs(self.targets - predicted)
        return float(self.chances[~(off <= tolerance)].sum())  # NaN is beyond

    def outside(self, ends: Floats) -> float:
        """Return how often targets of new rows lie outside of the cells' intervals."""
        low, high = ends.T[:, :, np.newaxis]
        inside = (low <= self.targets) & (self.targets <= high)
        return float(self.chances[~inside].sum())


def noise_around(
    levels: Any, noise: Any, weights: Any = None, **kind: Any
) -> NumberLaw:
    """Return a law of equally likely cells with these levels, and noise added.

    The noise is the same in all cells, or has a line for each.
    """
    values = np.asarray(noise, np.float64)
    n_targets = values.shape[-1]
    shares = np.full(n_targets, 1 / n_targets) if weights is None else weights
    n = len(levels)
    return NumberLaw(
        np.arange(n, dtype=np.float64)[:, np.newaxis],
        np.tile(np.asarray(shares) / n, (n, 1)),
        targets=np.asarray(levels)[:, np.newaxis] + values,
        **kind,
    )


class RandomNumber(RegressorMixin, BaseEstimator):
    """Predicts a random number for each cell, whatever the targets were."""

    def __init__(self, number: int = 0, spread: float = 1.0) -> None:
        self.number = number
        self.spread = spread

    def fit(self, X: Floats, y: Floats) -> Self:
        """Draw the numbers."""
        rng = np.random.default_rng(self.number)
        self.table_ = self.spread * rng.normal(size=64)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the numbers of the cells."""
        return np.asarray(self.table_[X[:, 0].astype(int)])


class NumberMemory(RegressorMixin, BaseEstimator):
    """Knows the target of every row that it has seen, and else predicts a constant."""

    def __init__(self, otherwise: float = 0.0) -> None:
        self.otherwise = otherwise

    def fit(self, X: Floats, y: Floats) -> Self:
        """Learn by heart."""
        self.known_ = dict(zip(X[:, -1].tolist(), y.tolist(), strict=True))
        return self

    def predict(self, X: Floats) -> Floats:
        """Return what is known."""
        keys = X[:, -1].tolist()
        return np.array([self.known_.get(key, self.otherwise) for key in keys])


class Overshoot(RegressorMixin, BaseEstimator):
    """Predicts 0, and too much in some cells once it has seen all labeled rows.

    Only the pool can show what the model of all rows does. Rows that it knows it
    predicts well, so that copies of them in a pool hide it.
    """

    def __init__(self, n_rows: int = 39, last_cell: float = 9.0) -> None:
        self.n_rows = n_rows
        self.last_cell = last_cell

    def fit(self, X: Floats, y: Floats) -> Self:
        """Learn which rows are known."""
        self.known_ = set(X[:, -1].tolist())
        self.has_all_ = len(X) >= self.n_rows
        return self

    def predict(self, X: Floats) -> Floats:
        """Return 0, or 5."""
        is_known = np.array([key in self.known_ for key in X[:, -1].tolist()], bool)
        is_off = self.has_all_ & (X[:, 0] <= self.last_cell) & ~is_known
        return np.where(is_off, 5.0, 0.0)


class NoNumber(RandomNumber):
    """Predicts no finite number in some cells."""

    def predict(self, X: Floats) -> Floats:
        """Return the numbers of the cells."""
        return np.where(X[:, 0] < self.number % 3, np.nan, super().predict(X))
