"""Populations whose error rates are known exactly, and learners that cost nothing.

A population is a distribution on finitely many cells: the error of a model is a sum
over cells. Every drawn row has a random number in its last column, so that no two rows
are equal; learners use it only to recognise rows that they have seen. A fit is a table
lookup, so a whole search takes some 40 ms.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

UNSEEN = -1.0
"""In the last column of rows that stand for a cell and were not drawn."""


@dataclass(frozen=True)
class Law:
    """A joint distribution of cells and classes 0, 1, ..."""

    cells: Floats
    """Features of each cell, (n_cells, n_features)."""
    chances: Floats
    """Chance of each cell and class, (n_cells, n_classes); they sum to 1."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[Floats, Codes]:
        """Return independent rows and their classes."""
        drawn = rng.choice(self.chances.size, n_rows, p=self.chances.ravel())
        cell, y = np.divmod(drawn, self.chances.shape[1])
        return np.column_stack([self.cells[cell], rng.random(n_rows)]), y

    def error(self, model: Any) -> float:
        """Return how often a model errs on a new row, exactly."""
        answers = np.asarray(model.predict(self._unseen), dtype=np.int64)
        right: Floats = self.chances[np.arange(len(answers)), answers]
        return float(1.0 - right.sum())

    @cached_property
    def _unseen(self) -> Floats:
        return np.column_stack([self.cells, np.full(len(self.cells), UNSEEN)])


def step(noise: float, n_cells: int = 16) -> Law:
    """Return a law of two halves of a line, with some labels flipped."""
    upper = np.arange(n_cells) >= n_cells / 2
    second = np.where(upper, 1.0 - noise, noise) / n_cells
    return Law(
        np.arange(n_cells, dtype=np.float64)[:, np.newaxis],
        np.column_stack([1.0 / n_cells - second, second]),
    )


def biased_coin(share: float, n_cells: int = 16) -> Law:
    """Return a law whose classes do not depend on features; class 1 has `share`."""
    row = np.array([1.0 - share, share]) / n_cells
    cells = np.arange(n_cells, dtype=np.float64)[:, np.newaxis]
    return Law(cells, np.tile(row, (n_cells, 1)))


def noisy_copies(n_copies: int, noise: float) -> Law:
    """Return a law whose features are copies of the class, each wrong that often.

    All are equally good, and they err independently. A learner that picks the column
    that looks best sees an error far below the true one, which is `noise`.
    """
    cells = np.array(list(product([0.0, 1.0], repeat=n_copies)))
    wrong = np.stack([(cells != label).sum(axis=1) for label in (0, 1)], axis=1)
    return Law(cells, 0.5 * noise**wrong * (1.0 - noise) ** (n_copies - wrong))


class Learner(ClassifierMixin, BaseEstimator):
    """A learner that fits a table."""

    classes_: Codes

    def fit(self, X: Floats, y: Codes) -> Self:
        """Learn."""
        self.classes_ = np.unique(y)
        self._learn(X, y)
        return self

    def predict(self, X: Floats) -> Codes:
        """Answer."""
        return np.asarray(self._answer(X), dtype=np.int64)

    def _learn(self, X: Floats, y: Codes) -> None:
        raise NotImplementedError

    def _answer(self, X: Floats) -> Any:
        raise NotImplementedError


class RandomTable(Learner):
    """Answers at random for each cell, whatever the labels were."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def _learn(self, X: Floats, y: Codes) -> None:
        del X, y
        self.table_ = np.random.default_rng(self.number).integers(2, size=64)

    def _answer(self, X: Floats) -> Any:
        return self.table_[X[:, 0].astype(np.int64)]


class BestColumn(Learner):
    """Answers as the column does that was right most often, of some columns."""

    def __init__(self, first: int = 0, n_columns: int = 10) -> None:
        self.first = first
        self.n_columns = n_columns

    def _learn(self, X: Floats, y: Codes) -> None:
        columns = X[:, self.first : self.first + self.n_columns]
        wrong = (columns != y[:, np.newaxis]).sum(axis=0)
        self.column_ = self.first + int(wrong.argmin())

    def _answer(self, X: Floats) -> Any:
        return X[:, self.column_]


class Parity(Learner):
    """Answers one class everywhere: 1 where an odd number of labels were 1.

    One label more or less changes all answers, so only the disagreement on the pool
    shows how the full model differs from fold models.
    """

    def _learn(self, X: Floats, y: Codes) -> None:
        del X
        self.answer_ = int(y.sum()) % 2

    def _answer(self, X: Floats) -> Any:
        return np.full(len(X), self.answer_)


class Turncoat(Learner):
    """Knows the step, and errs on three cells once it has seen so many rows.

    No fold model ever errs, so all that is known of the full one is the disagreement.
    """

    def __init__(self, n_rows: int = 400) -> None:
        self.n_rows = n_rows

    def _learn(self, X: Floats, y: Codes) -> None:
        del y
        self.has_turned_ = len(X) >= self.n_rows

    def _answer(self, X: Floats) -> Any:
        return (X[:, 0] > 7) ^ (self.has_turned_ & (X[:, 0] < 3))


class Memory(Learner):
    """Knows every row that it has seen, and answers one class for all others."""

    def __init__(self, otherwise: int = 0) -> None:
        self.otherwise = otherwise

    def _learn(self, X: Floats, y: Codes) -> None:
        self.known_ = dict(zip(X[:, -1].tolist(), y.tolist(), strict=True))

    def _answer(self, X: Floats) -> Any:
        return [self.known_.get(key, self.otherwise) for key in X[:, -1].tolist()]


def _last_column(X: Floats, rows: Codes) -> list[Floats]:
    del rows
    return [X[:, -1]]


class PoolMemory(Learner):
    """Predicts well on rows of its pool, and the opposite class on all others."""

    def fit(self, X: Floats, y: Codes, pool: Any = None) -> Self:
        """Learn from labeled rows and remember the pool."""
        self.classes_ = np.unique(y)
        read = [] if pool is None else pool.reduce(_last_column, add)
        self.met_ = np.concatenate([np.zeros(0), *read])
        self.half_ = 7.5
        return self

    def _answer(self, X: Floats) -> Any:
        return (X[:, 0] > self.half_) == np.isin(X[:, -1], self.met_)
