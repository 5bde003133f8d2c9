"""The choice of one model for each row, of a table in memory or of a pool block."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel.data.row_random import TIE_STREAM
from dsel.searches.model_set import ModelSet
from dsel.searches.nonconformity.conformity import (
    Calibration,
    Measure,
    Neighbours,
    probabilities,
    round_scores,
)
from dsel.searches.nonconformity.tie_rules import (
    LITERAL,
    TIE_RULES,
    TiedModels,
    best_label,
    choose_literally,
    drawn_label,
    row_units,
    two_best,
)


class Answer(NamedTuple):
    """Predictions of a block of rows."""

    label: NDArray[np.int64]
    critical_count: NDArray[np.int64]
    """Validation rows that conform no better to the runner-up."""
    model: NDArray[np.int64]
    """Place of the chosen model in the set."""


ANSWER_FIELDS: Final = dict.fromkeys(Answer._fields, ((), "int32", -1))
"""Arrays of a pool's predictions: shape of a row, dtype, fill value."""


@dataclass(frozen=True)
class Reader:
    """Computes the scores of all models for all labels, by a measure."""

    models: ModelSet
    measure: Measure
    """Name of the scores, or a function."""
    neighbours: Neighbours | None
    """Training rows, where the measure is ``nearest``."""

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Return one number per model, row and class."""
        if self.neighbours is not None:
            values = self.neighbours.conformity(X)
            return np.broadcast_to(values, (self.models.n_models, *values.shape))
        if self.measure == "margin":
            return self.models.scores(X)
        measure = probabilities if isinstance(self.measure, str) else self.measure
        return self.models.from_models(X, measure)


@dataclass(frozen=True)
class RowChooser:
    """Chooses models for rows; a row's prediction does not depend on its block."""

    reader: Reader
    calibration: Calibration
    """Their scores on the validation rows."""
    ties: str
    seed: int

    def values(self, X: Any) -> NDArray[np.float64]:
        """Return what the models say, rounded as the validation scores are.

        Raises ValueError where a score is NaN.
        """
        values = round_scores(self.reader(X), self.calibration.usual)
        if np.isnan(values).any():
            raise ValueError(
                "`X` has rows on which a model scores NaN; look for values that "
                "overflow in the model, or leave that candidate out of the grid."
            )
        return values

    def answer(self, X: Any, rows: NDArray[np.int64]) -> Answer:
        """Choose for each row of a block; `rows` are their global numbers."""
        return self.answer_values(self.values(X), rows)

    def answer_values(
        self, values: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> Answer:
        """Choose by what the models say of the rows."""
        units, label_units = row_units(self.seed, TIE_STREAM, rows)
        counts = self.calibration.critical_counts(values)
        smallest = counts.min(axis=0)
        if self.ties == LITERAL:
            every = self.calibration.every_count(values)
            models, labels = choose_literally(every, units)
            return Answer(labels, smallest, models)
        tied_models = TiedModels(
            counts == smallest, values, self.calibration.usual, units
        )
        models = TIE_RULES[self.ties](tied_models)
        own = values[models, np.arange(len(rows))]
        is_drawn = self.ties == "random"
        labels = drawn_label(own, label_units) if is_drawn else best_label(own)
        return Answer(labels, smallest, models)

    def fields(self, X: Any, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return predictions as the arrays that are written for a pool."""
        return self.answer(X, rows)._asdict()

    def label_counts(
        self, X: Any, rows: NDArray[np.int64], model: int | None
    ) -> NDArray[np.int64]:
        """Count for each label by one model; None is the one chosen for the row."""
        values = self.values(X)
        models = (
            self.answer_values(values, rows).model
            if model is None
            else np.full(len(rows), model)
        )
        own = values[models, np.arange(len(rows))]
        return self.calibration.label_counts(own, models)

    def blocks(self, X: Any) -> Iterator[tuple[Any, NDArray[np.int64]]]:
        """Cut rows into blocks that fit the models' working memory."""
        step = self.reader.models.block_rows
        for start in range(0, X.shape[0], step):
            stop = min(start + step, X.shape[0])
            yield X[start:stop], np.arange(start, stop)


@dataclass(frozen=True)
class GapCounter:
    """Counts the rows on which one model's two best scores differ by given gaps."""

    chooser: RowChooser
    model: int
    cuts: NDArray[np.float64]
    """Smallest gaps that count."""

    def __call__(self, X: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the rows of a block for each cut."""
        del rows
        counts = np.zeros(self.cuts.shape, dtype=np.int64)
        for part, _ in self.chooser.blocks(X):
            best, second = two_best(self.chooser.values(part)[self.model])
            gaps = (best - second)[:, np.newaxis]
            counts += np.sum(gaps >= self.cuts.ravel(), axis=0).reshape(counts.shape)
        return counts
