"""Populations whose error rates are known exactly, and learners that cost nothing.

A population is a distribution on finitely many cells: the error of a model is a sum
over cells. A fit is a table lookup, so a whole search takes some hundredths of a
second.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from dsel.arrays import Estimator, Floats
from dsel.losses.by_class import ClassTable, TableLoss

Codes = NDArray[np.int64]

UNSEEN = -1.0
"""In the last column of rows that stand for a cell and were not drawn."""
REFUSED = -1
"""Stands for the answer of a model that raises."""


@dataclass(frozen=True)
class Law:
    """A joint distribution of cells and classes 0, 1, ..."""

    cells: Floats
    """Features of each cell, (n_cells, n_features)."""
    chances: Floats
    """Chance of each cell and class, (n_cells, n_classes); they sum to 1."""
    has_twins: bool = False
    """Whether rows of a cell are equal; else a random last column tells them apart."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[Floats, Codes]:
        """Return independent rows and their classes."""
        drawn = rng.choice(self.chances.size, n_rows, p=self.chances.ravel())
        cell, y = np.divmod(drawn, self.chances.shape[1])
        return self._rows(self.cells[cell], rng.random(n_rows)), y

    def draw_labeled(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Floats, Codes, Codes | None]:
        """Return labeled rows, their classes, and their groups where they have some."""
        return (*self.draw(n, rng), None)

    def lacks_class(self, y: Codes) -> bool:
        """Return whether rows lack a class, which a search would refuse to be named."""
        return bool(len(np.unique(y)) < self.chances.shape[1])

    def error(self, model: Estimator) -> float:
        """Return how often a model errs on a new row, exactly; to raise is to err."""
        return float(1.0 - np.trace(self.confusion(model)[:-1, :-1]))

    def disagreement(self, model: Any, other: Any) -> float:
        """Return how often two models differ on a new row, exactly."""
        rows = self._rows(self.cells, np.full(len(self.cells), UNSEEN))
        differ = np.asarray(model.predict(rows)) != np.asarray(other.predict(rows))
        return float(self.chances[differ].sum())

    def loss(self, model: Estimator, loss: TableLoss) -> float:
        """Return the loss of a model on new rows, exactly."""
        codes = np.arange(self.chances.shape[1])
        table = ClassTable(tuple(codes.tolist()))
        confusion = table.narrow(self.confusion(model), loss.classes)
        return loss.rate(confusion)

    def where(self, column: int, value: float) -> Self:
        """Return the law of the rows with a value in a column."""
        there = self.cells[:, column] == value
        chances = np.where(there[:, np.newaxis], self.chances, 0.0)
        return replace(self, chances=chances / chances.sum())

    def confusion(self, model: Any) -> Floats:
        """Return the chance of each true class and answer; no class is last."""
        rows = self._rows(self.cells, np.full(len(self.cells), UNSEEN))
        answers = np.full(len(rows), REFUSED)
        try:
            answers[:] = model.predict(rows)
        except ValueError:
            for place, row in enumerate(rows):
                with suppress(ValueError):
                    answers[place] = model.predict(row[np.newaxis])[0]
        n_classes = self.chances.shape[1]
        table = np.zeros((n_classes + 1, n_classes + 1))
        known = (answers >= 0) & (answers < n_classes)
        places = np.where(known, answers, n_classes)
        np.add.at(table[:n_classes].T, places, self.chances)
        return table

    def _rows(self, cells: Floats, last: Floats) -> Floats:
        return cells if self.has_twins else np.column_stack([cells, last])


@dataclass(frozen=True)
class GroupedLaw(Law):
    """A law of rows in groups; each row is like its group, or is drawn by itself.

    A random row of a new group has the law's chances, whatever the sizes of groups are,
    so errors are those of that law. The last column tells groups apart.
    """

    sizes: tuple[int, ...] = (5,)
    """Rows of a group, by the class that is drawn for it; one for all, or of each."""
    correlation: float = 0.6
    """Of what two rows of one group are."""

    def draw_labeled(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Floats, Codes, Codes]:
        """Return all rows of `n` groups, their classes and groups."""
        chances, n_classes = self.chances.ravel(), self.chances.shape[1]
        of_groups = rng.choice(chances.size, n, p=chances)
        sizes = np.resize(self.sizes, n_classes)[of_groups % n_classes]
        keys = np.repeat(np.arange(n), sizes)
        alone = rng.choice(chances.size, len(keys), p=chances)
        # Two rows are both like their group with the probability `correlation`.
        is_like = rng.random(len(keys)) < np.sqrt(self.correlation)
        cell, y = np.divmod(np.where(is_like, of_groups[keys], alone), n_classes)
        return self._rows(self.cells[cell], rng.random(n)[keys]), y, keys


def in_groups(law: Law, *sizes: int) -> GroupedLaw:
    """Return a law with rows in groups: of one size, or one for each class."""
    return GroupedLaw(law.cells, law.chances, law.has_twins, sizes)


def step(n_cells: int = 16, *, has_twins: bool = False) -> Law:
    """Return a law of two halves of a line, without noise."""
    upper = np.arange(n_cells) >= n_cells / 2
    return Law(_line(n_cells), np.stack([~upper, upper], axis=1) / n_cells, has_twins)


def biased_coin(share: float, n_cells: int = 16) -> Law:
    """Return a law whose classes do not depend on features; class 1 has `share`."""
    return dice([1.0 - share, share], n_cells)


def dice(chances: Sequence[float], n_cells: int = 16) -> Law:
    """Return a law whose classes have these chances, whatever the features are."""
    return Law(_line(n_cells), np.tile(np.array(chances) / n_cells, (n_cells, 1)))


def noisy_copies(n_copies: int, noise: float) -> Law:
    """Return a law whose features are copies of the class, each wrong that often.

    All are equally good, and they err independently. A learner that picks the column
    that looks best sees an error far below the true one, which is `noise`.
    """
    cells = np.array(list(product([0.0, 1.0], repeat=n_copies)))
    wrong = np.stack([(cells != label).sum(axis=1) for label in (0, 1)], axis=1)
    return Law(cells, 0.5 * noise**wrong * (1.0 - noise) ** (n_copies - wrong))


def with_values(law: Law) -> Law:
    """Return a law with one more column, of values of 1, 2, 4, ... cells."""
    values = np.floor(np.log2(1.0 + np.arange(len(law.cells))))
    return replace(law, cells=np.column_stack([law.cells, values]))


def _line(n_cells: int) -> Floats:
    return np.arange(n_cells, dtype=np.float64)[:, np.newaxis]


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
        """Fit: keep what predictions need of the training rows."""

    def _answer(self, X: Floats) -> Any:
        raise NotImplementedError


class RandomTable(Learner):
    """Answers at random for each cell, whatever the labels were.

    Without a seed no second fit is the first one.
    """

    def __init__(
        self, number: int = 0, n_classes: int = 2, has_seed: bool = True
    ) -> None:
        self.number = number
        self.n_classes = n_classes
        self.has_seed = has_seed

    def _learn(self, X: Floats, y: Codes) -> None:
        rng = np.random.default_rng(self.number if self.has_seed else None)
        self.table_ = rng.integers(self.n_classes, size=16)

    def _answer(self, X: Floats) -> Any:
        return self.table_[X[:, 0].astype(np.int64)]


class BestColumn(Learner):
    """Answers as the column does that was right most often, of the first ones."""

    def __init__(self, n_columns: int = 10) -> None:
        self.n_columns = n_columns

    def _learn(self, X: Floats, y: Codes) -> None:
        wrong = (X[:, : self.n_columns] != y[:, np.newaxis]).sum(axis=0)
        self.column_ = int(wrong.argmin())

    def _answer(self, X: Floats) -> Any:
        return X[:, self.column_]


class Parity(Learner):
    """Answers one class everywhere, which one label more or less changes."""

    def __init__(self, divisor: int = 1) -> None:
        self.divisor = divisor

    def _learn(self, X: Floats, y: Codes) -> None:
        self.answer_ = int(y.sum()) // self.divisor % 2

    def _answer(self, X: Floats) -> Any:
        return np.full(len(X), self.answer_)


class Memory(Learner):
    """Knows every row that it has seen, and answers one class for all others."""

    def __init__(self, otherwise: int = 0) -> None:
        self.otherwise = otherwise

    def _learn(self, X: Floats, y: Codes) -> None:
        self.known_ = dict(zip(X[:, -1].tolist(), y.tolist(), strict=True))

    def _answer(self, X: Floats) -> Any:
        return [self.known_.get(key, self.otherwise) for key in X[:, -1].tolist()]


class Turncoat(Learner):
    """Knows the step, and errs on cells that it knows once it has seen all rows.

    No fold model ever errs, so only the pool can show what the model of all rows does.
    """

    def __init__(self, n_rows: int, half: float, only_below: float) -> None:
        self.n_rows = n_rows
        self.half = half
        self.only_below = only_below

    def _learn(self, X: Floats, y: Codes) -> None:
        has_turned = len(X) >= self.n_rows
        known = np.unique(X[:, 0])
        self.wrong_ = known[known < self.only_below] if has_turned else np.zeros(0)

    def _answer(self, X: Floats) -> Any:
        return (X[:, 0] > self.half) ^ np.isin(X[:, 0], self.wrong_)


class Forgetful(Learner):
    """Knows the step, and once it has all rows errs on others, in some of the cells.

    On records that it has seen it agrees with all models, so a pool that holds the
    labeled records makes it look much more like them than it is.
    """

    def __init__(self, n_rows: int, half: float, every: int) -> None:
        self.n_rows = n_rows
        self.half = half
        self.every = every

    def _learn(self, X: Floats, y: Codes) -> None:
        self.has_all_ = len(X) >= self.n_rows
        self.known_ = X[:, -1]

    def _answer(self, X: Floats) -> Any:
        is_new = ~np.isin(X[:, -1], self.known_)
        errs = self.has_all_ & is_new & (X[:, 0] % self.every == 0)
        return (X[:, 0] > self.half) ^ errs


class Refusing(Learner):
    """Knows the step of 32 cells, and raises where rows of one cell are among others.

    Seldom has a fold none of them: then it seems never to err.
    """

    def __init__(self, cell: int = 0) -> None:
        self.cell = cell

    def _answer(self, X: Floats) -> Any:
        if (X[:, 0] == self.cell).any():
            raise ValueError(f"cell {self.cell} is unknown")
        return X[:, 0] > 15.5
