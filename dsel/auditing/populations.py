"""Populations whose error rates are known exactly, and learners that fit in no time.

A population is a distribution on finitely many cells, so the error of a model is a sum
over cells. A fit is a table lookup, so a whole search takes some hundredths of a
second.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from dsel.arrays import Estimator, Floats, Integers
from dsel.losses.by_class import ClassTable, TableLoss
from dsel.typing import ClassCodes, Model

UNSEEN = -1.0
"""Last column of rows that stand for a cell; drawn rows have a random number there."""
REFUSED = -1
"""Prediction of a model that raises."""


@dataclass(frozen=True)
class Population:
    """A joint distribution of cells and classes 0, 1, ..."""

    cells: Floats
    """Features of each cell, (n_cells, n_features)."""
    probabilities: Floats
    """Probability of each cell and class, (n_cells, n_classes); they sum to 1."""
    has_duplicates: bool = False
    """Whether rows of a cell are equal; else they differ in a random last column."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[Floats, ClassCodes]:
        """Return independent rows and their classes."""
        cell_and_class = rng.choice(
            self.probabilities.size, n_rows, p=self.probabilities.ravel()
        )
        cell, y = np.divmod(cell_and_class, self.probabilities.shape[1])
        return self._rows(self.cells[cell], rng.random(n_rows)), y

    def draw_labeled_rows(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Floats, ClassCodes, Integers | None]:
        """Return labeled rows, their classes, and their groups where they have some."""
        return (*self.draw(n, rng), None)

    def misses_class(self, y: ClassCodes) -> bool:
        """Return whether labels miss a class; a search refuses a loss that names it."""
        return bool(len(np.unique(y)) < self.probabilities.shape[1])

    def error(self, model: Estimator) -> float:
        """Return the exact error rate of a model; rows where it raises are errors."""
        return float(1.0 - np.trace(self.confusion(model)[:-1, :-1]))

    def disagreement(self, model: Model, other: Model) -> float:
        """Return the exact rate at which two models differ on new rows."""
        rows = self._rows(self.cells, np.full(len(self.cells), UNSEEN))
        differ = np.asarray(model.predict(rows)) != np.asarray(other.predict(rows))
        return float(self.probabilities[differ].sum())

    def loss(self, model: Estimator, loss: TableLoss) -> float:
        """Return the exact loss of a model on new rows."""
        codes = tuple(range(self.probabilities.shape[1]))
        table = ClassTable(codes, positions=codes)
        confusion = table.narrow(self.confusion(model), loss.classes)
        return loss.rate(confusion)

    def where(self, column_number: int, value: float) -> Self:
        """Return the population of the rows with a value in a column."""
        is_there = self.cells[:, column_number] == value
        probabilities = np.where(is_there[:, np.newaxis], self.probabilities, 0.0)
        return replace(self, probabilities=probabilities / probabilities.sum())

    def confusion(self, model: Any) -> Floats:
        """Return the probability of each true class and prediction.

        The last row and column are for predictions that are no class.
        """
        rows = self._rows(self.cells, np.full(len(self.cells), UNSEEN))
        predictions = np.full(len(rows), REFUSED)
        try:
            predictions[:] = model.predict(rows)
        except ValueError:
            for row_number, row in enumerate(rows):
                with suppress(ValueError):
                    predictions[row_number] = model.predict(row[np.newaxis])[0]
        n_classes = self.probabilities.shape[1]
        table = np.zeros((n_classes + 1, n_classes + 1))
        is_class = (predictions >= 0) & (predictions < n_classes)
        codes = np.where(is_class, predictions, n_classes)
        np.add.at(table[:n_classes].T, codes, self.probabilities)
        return table

    def _rows(self, cells: Floats, last: Floats) -> Floats:
        return cells if self.has_duplicates else np.column_stack([cells, last])


@dataclass(frozen=True)
class GroupedPopulation(Population):
    """A population of rows in groups.

    Each row is like its group, or is drawn by itself. A random row of a new group has
    the probabilities of the population for any sizes of groups, so errors are those of
    the population. Groups differ in the last column.
    """

    sizes: tuple[int, ...] = (5,)
    """Rows of a group: one number, or one for each class that is drawn for a group."""
    correlation: float = 0.6
    """Probability that two rows of one group are both like the group."""

    def draw_labeled_rows(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Floats, ClassCodes, Integers]:
        """Return all rows of `n` groups, their classes and groups."""
        probabilities = self.probabilities.ravel()
        n_classes = self.probabilities.shape[1]
        group_cells = rng.choice(probabilities.size, n, p=probabilities)
        sizes = np.resize(self.sizes, n_classes)[group_cells % n_classes]
        keys = np.repeat(np.arange(n), sizes)
        alone = rng.choice(probabilities.size, len(keys), p=probabilities)
        # Each row is like its group with the same probability, independently, so that
        # two rows both are with probability `correlation`.
        is_like = rng.random(len(keys)) < np.sqrt(self.correlation)
        cell, y = np.divmod(np.where(is_like, group_cells[keys], alone), n_classes)
        return self._rows(self.cells[cell], rng.random(n)[keys]), y, keys


def group_rows(population: Population, *sizes: int) -> GroupedPopulation:
    """Return a population with rows in groups: of one size, or one for each class."""
    return GroupedPopulation(
        population.cells, population.probabilities, population.has_duplicates, sizes
    )


def step(n_cells: int = 16, *, has_duplicates: bool = False) -> Population:
    """Return a population of two halves of a line, without noise."""
    upper = np.arange(n_cells) >= n_cells / 2
    return Population(
        _line(n_cells), np.stack([~upper, upper], axis=1) / n_cells, has_duplicates
    )


def biased_coin(probability: float, n_cells: int = 16) -> Population:
    """Return a population of two classes that do not depend on features.

    Class 1 has the probability `probability`.
    """
    return independent_classes([1.0 - probability, probability], n_cells)


def independent_classes(
    probabilities: Sequence[float], n_cells: int = 16
) -> Population:
    """Return a population in which classes are independent of features."""
    return Population(
        _line(n_cells), np.tile(np.array(probabilities) / n_cells, (n_cells, 1))
    )


def noisy_copies(n_copies: int, noise: float) -> Population:
    """Return a population whose features are copies of the class with noise.

    Each copy is wrong with probability `noise`, independently of the others. A learner
    that picks the column that looks best sees an error far below the true one, `noise`.
    """
    cells = np.array(list(product([0.0, 1.0], repeat=n_copies)))
    wrong = np.stack([(cells != label).sum(axis=1) for label in (0, 1)], axis=1)
    return Population(cells, 0.5 * noise**wrong * (1.0 - noise) ** (n_copies - wrong))


def add_value_column(population: Population) -> Population:
    """Return a population with one more column, of values of 1, 2, 4, ... cells."""
    values = np.floor(np.log2(1.0 + np.arange(len(population.cells))))
    return replace(population, cells=np.column_stack([population.cells, values]))


def _line(n_cells: int) -> Floats:
    return np.arange(n_cells, dtype=np.float64)[:, np.newaxis]


class Learner(ClassifierMixin, BaseEstimator):
    """Base class of learners that fit a table."""

    classes_: ClassCodes

    def fit(self, X: Floats, y: ClassCodes) -> Self:
        """Keep the classes, and what predictions need."""
        self.classes_ = np.unique(y)
        self._learn(X, y)
        return self

    def predict(self, X: Floats) -> ClassCodes:
        """Return the predicted classes."""
        return np.asarray(self._predict_rows(X), dtype=np.int64)

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        """Keep the parts of the training rows that predictions need."""

    def _predict_rows(self, X: Floats) -> Any:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class RandomTable(Learner):
    """Predicts a random class for each cell, independent of the labels.

    Without a seed every fit draws other classes.
    """

    number: int = 0
    n_classes: int = 2
    has_seed: bool = True

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        rng = np.random.default_rng(self.number if self.has_seed else None)
        self.table_ = rng.integers(self.n_classes, size=16)

    def _predict_rows(self, X: Floats) -> Any:
        return self.table_[X[:, 0].astype(np.int64)]


@dataclass(eq=False, repr=False)
class BestColumn(Learner):
    """Predicts the value of that column, of the first ones, which errs least."""

    n_columns: int = 10

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        wrong = (X[:, : self.n_columns] != y[:, np.newaxis]).sum(axis=0)
        self.column_ = int(wrong.argmin())

    def _predict_rows(self, X: Floats) -> Any:
        return X[:, self.column_]


@dataclass(eq=False, repr=False)
class Parity(Learner):
    """Predicts one class for all rows; a single label more or less changes it."""

    divisor: int = 1

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        self.prediction_ = int(y.sum()) // self.divisor % 2

    def _predict_rows(self, X: Floats) -> Any:
        return np.full(len(X), self.prediction_)


@dataclass(eq=False, repr=False)
class Memory(Learner):
    """Knows the label of every training row, and predicts one class for all others."""

    otherwise: int = 0

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        self.known_ = dict(zip(X[:, -1].tolist(), y.tolist(), strict=True))

    def _predict_rows(self, X: Floats) -> Any:
        return [self.known_.get(key, self.otherwise) for key in X[:, -1].tolist()]


@dataclass(eq=False, repr=False)
class Turncoat(Learner):
    """Knows the true classes, but a fit to all rows errs on the cells that it knows.

    The models of folds never err, so only the pool can reveal the errors of the model
    of all rows.
    """

    n_rows: int
    half: float
    only_below: float

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        """Store the cells on which this model errs: none with few training rows."""
        has_turned = len(X) >= self.n_rows
        known = np.unique(X[:, 0])
        self.wrong_ = known[known < self.only_below] if has_turned else np.zeros(0)

    def _predict_rows(self, X: Floats) -> Any:
        return (X[:, 0] > self.half) ^ np.isin(X[:, 0], self.wrong_)


@dataclass(eq=False, repr=False)
class Forgetful(Learner):
    """Knows the true classes, but a fit to all rows errs on new rows of some cells.

    On training rows it agrees with all other models, so a pool that holds the labeled
    records hides most of its disagreement with them.
    """

    n_rows: int
    half: float
    every: int

    def _learn(self, X: Floats, y: ClassCodes) -> None:
        self.has_all_ = len(X) >= self.n_rows
        self.known_ = X[:, -1]

    def _predict_rows(self, X: Floats) -> Any:
        is_new = ~np.isin(X[:, -1], self.known_)
        errs = self.has_all_ & is_new & (X[:, 0] % self.every == 0)
        return (X[:, 0] > self.half) ^ errs


@dataclass(eq=False, repr=False)
class Refusing(Learner):
    """Knows the true classes of 32 cells, but raises where a row is of a certain cell.

    On a fold without such a row, which is rare, it seems never to err.
    """

    cell: int = 0

    def _predict_rows(self, X: Floats) -> Any:
        if (X[:, 0] == self.cell).any():
            raise ValueError(f"cell {self.cell} is unknown")
        return X[:, 0] > 15.5
