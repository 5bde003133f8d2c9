"""Populations of numbers, whose residuals are known exactly, and regressors for them.

A population is a distribution on finitely many cells, with finitely many targets in
each, so the probability that a model is off by more than a tolerance is a sum.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin

from dsel.arrays import Floats
from dsel.auditing.populations import UNSEEN, GroupedPopulation
from dsel.typing import Model

HEAVY = stats.cauchy.ppf((np.arange(401) + 0.5) / 401)
"""Targets with heavy tails, all equally likely."""


@dataclass(frozen=True)
class NumberPopulation(GroupedPopulation):
    """A joint distribution of cells and numbers; rows may come in groups."""

    targets: Floats = field(default_factory=lambda: np.zeros((1, 1)))
    """Target of each entry of `probabilities`, (n_cells, n_targets)."""
    in_groups: bool = False

    def draw(
        self, n_rows: int, rng: np.random.Generator
    ) -> tuple[Floats, NDArray[Any]]:
        """Return independent rows and their targets."""
        X, codes = super().draw(n_rows, rng)
        return X, self.targets[X[:, 0].astype(int), codes]

    def draw_labeled_rows(self, n: int, rng: np.random.Generator) -> Any:
        """Return rows, or all rows of `n` groups, with targets and keys of groups."""
        if not self.in_groups:
            return (*self.draw(n, rng), None)
        X, codes, keys = super().draw_labeled_rows(n, rng)
        return X, self.targets[X[:, 0].astype(int), codes], keys

    def misses_class(self, y: NDArray[np.generic]) -> bool:
        """Return False, since targets have no classes."""
        return False

    @property
    def rows(self) -> Floats:
        """Rows that stand for the cells, (n_cells, n_features)."""
        return self._rows(self.cells, np.full(len(self.cells), UNSEEN))

    def beyond(self, model: Model, tolerance: float) -> float:
        """Return the exact rate at which a model is off by more on new rows."""
        predicted = np.asarray(model.predict(self.rows), np.float64)[:, np.newaxis]
        off = np.abs(self.targets - predicted)
        return float(self.probabilities[~(off <= tolerance)].sum())  # NaN is beyond

    def rate_outside(self, ends: Floats) -> float:
        """Return the exact rate of targets outside of the intervals of their cells."""
        low, high = ends.T[:, :, np.newaxis]
        inside = (low <= self.targets) & (self.targets <= high)
        return float(self.probabilities[~inside].sum())


def noise_around(
    levels: Any, noise: Any, weights: Any = None, **kind: Any
) -> NumberPopulation:
    """Return a population of equally likely cells with these levels, and noise added.

    `noise` has the values that are added in all cells, or a row of values for each.
    """
    values = np.asarray(noise, np.float64)
    n_targets = values.shape[-1]
    fractions = np.full(n_targets, 1 / n_targets) if weights is None else weights
    n = len(levels)
    return NumberPopulation(
        np.arange(n, dtype=np.float64)[:, np.newaxis],
        np.tile(np.asarray(fractions) / n, (n, 1)),
        targets=np.asarray(levels)[:, np.newaxis] + values,
        **kind,
    )


@dataclass(eq=False, repr=False)
class RandomNumber(RegressorMixin, BaseEstimator):
    """Predicts a random number for each cell, independent of the targets."""

    number: int = 0
    spread: float = 1.0

    def fit(self, X: Floats, y: Floats) -> Self:
        """Draw the numbers."""
        rng = np.random.default_rng(self.number)
        self.table_ = self.spread * rng.normal(size=64)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the numbers of the cells."""
        return np.asarray(self.table_[X[:, 0].astype(int)])


@dataclass(eq=False, repr=False)
class NumberMemory(RegressorMixin, BaseEstimator):
    """Knows the target of every training row, and predicts a constant for others."""

    otherwise: float = 0.0

    def fit(self, X: Floats, y: Floats) -> Self:
        """Keep the targets of the training rows."""
        self.known_ = dict(zip(X[:, -1].tolist(), y.tolist(), strict=True))
        return self

    def predict(self, X: Floats) -> Floats:
        """Return known targets, or the constant."""
        keys = X[:, -1].tolist()
        return np.array([self.known_.get(key, self.otherwise) for key in keys])


@dataclass(eq=False, repr=False)
class Overshoot(RegressorMixin, BaseEstimator):
    """Predicts 0, but a fit to all labeled rows predicts too much in some cells.

    Only the pool can reveal the errors of the model of all rows. It predicts training
    rows well, so that copies of them in a pool hide its errors.
    """

    n_rows: int = 39
    last_cell: float = 9.0

    def fit(self, X: Floats, y: Floats) -> Self:
        """Keep the keys of the training rows."""
        self.known_ = set(X[:, -1].tolist())
        self.has_all_ = len(X) >= self.n_rows
        return self

    def predict(self, X: Floats) -> Floats:
        """Return 0, or 5."""
        is_known = np.array([key in self.known_ for key in X[:, -1].tolist()], bool)
        is_off = self.has_all_ & (X[:, 0] <= self.last_cell) & ~is_known
        return np.where(is_off, 5.0, 0.0)


class NoNumber(RandomNumber):
    """Predicts NaN in some cells."""

    def predict(self, X: Floats) -> Floats:
        """Return the numbers of the cells."""
        return np.where(X[:, 0] < self.number % 3, np.nan, super().predict(X))
