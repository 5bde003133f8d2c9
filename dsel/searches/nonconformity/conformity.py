"""How well each label fits a row, by each of many models: the conformity measures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.bounds.nonconformity import (
    count_not_above,
    margin_conformity,
    nearest_neighbour_conformity,
)
from dsel.families.arrays import as_floats
from dsel.kernels.reference_rows import squared_distances
from dsel.searches.nonconformity.tie_rules import two_best

Measure = str | Callable[[Any, Any], NDArray[np.float64]]
"""``margin``, ``probability``, ``nearest``, or a function of (fitted model, rows).

The function returns one number per row and class, in the order of the model's
``classes_``; the larger the more typical.
"""

MEASURES = ("margin", "probability", "nearest")
KEPT_BITS = 40  # of scores relative to their model's median; products round after 50


@dataclass(frozen=True)
class Calibration:
    """Scores of the models on the validation rows: all that p-values need."""

    ascending: NDArray[np.float64]
    """Conformity of each validation row to its own label, models x n, ascending."""
    usual: NDArray[np.float64]
    """Median size of these, one a model; 1 where that is 0 or infinite."""
    by_margin: bool
    """Whether conformity is the margin of a label's score to the best other one."""

    @property
    def n_validation(self) -> int:
        """Validation rows."""
        return int(self.ascending.shape[1])

    def critical_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the counts at the critical epsilon, models x rows, from scores.

        The region of a model shrinks to one label at the second largest of its
        p-values. These rise with the conformity, so that is the p-value of the label
        with the second largest one; of margins it is minus the gap of the two best
        scores, and validation scores above 0 never count.
        """
        best, second = two_best(values)
        runner_up = second - best if self.by_margin else second
        return count_not_above(self.ascending, runner_up)

    def label_counts(
        self, values: NDArray[np.float64], models: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count for each label of each row by the row's own model, rows x classes."""
        conformity = margin_conformity(values) if self.by_margin else values
        counts = np.empty(values.shape, dtype=np.int64)
        for model in np.unique(models):
            mine = models == model
            counts[mine] = count_not_above(self.ascending[model], conformity[mine])
        return counts

    def every_count(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count for each label of each row by each model, as `values` is shaped."""
        conformity = margin_conformity(values) if self.by_margin else values
        flat = conformity.reshape(len(values), -1)
        return count_not_above(self.ascending, flat).reshape(values.shape)


def make_calibration(
    values: NDArray[np.float64], y: NDArray[np.int64], *, by_margin: bool
) -> Calibration:
    """Return the calibration of models by their scores on validation rows.

    `values` are these scores, (n_models, n_validation, n_classes), `y` their class
    codes.
    """
    usual = _usual_size(_own(values, y, by_margin))
    own = _own(round_scores(values, usual), y, by_margin)
    return Calibration(np.sort(own, axis=1), usual, by_margin)


def _own(
    values: NDArray[np.float64], y: NDArray[np.int64], by_margin: bool
) -> NDArray[np.float64]:
    """Return the conformity of each row to its own label, models x rows."""
    conformity = margin_conformity(values) if by_margin else values
    return np.take_along_axis(conformity, y[np.newaxis, :, np.newaxis], axis=2)[..., 0]


def _usual_size(own: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = np.abs(np.where(np.isfinite(own), own, np.nan))
    known = np.isfinite(sizes).any(axis=1)
    usual = np.ones(len(own))
    usual[known] = np.nanmedian(sizes[known], axis=1)
    usual[usual == 0] = 1.0
    return usual


def round_scores(
    scores: NDArray[np.float64], usual: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Round away what a matrix product of another size would change.

    Equal rows then tie, however they are cut into blocks. The first axis is models.
    """
    quantum = np.exp2(np.floor(np.log2(usual)) - KEPT_BITS)
    quantum = quantum.reshape(-1, *(1,) * (scores.ndim - 1))
    return np.asarray(np.rint(scores / quantum) * quantum)


def probabilities(model: Any, X: Any) -> NDArray[np.float64]:
    """Return the class probabilities that a fitted model gives, or raise TypeError."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f'`measure="probability"` needs `predict_proba`, which '
            f'{type(model).__name__} lacks; use `measure="margin"` or calibrate it.'
        )
    return np.asarray(model.predict_proba(X), dtype=np.float64)


@dataclass(frozen=True)
class Neighbours:
    """The training rows, for the nearest-neighbour measure; the same for all models."""

    X: Any
    y: NDArray[np.int64]
    n_classes: int
    """Classes, those without a training row included."""

    def conformity(self, X: Any) -> NDArray[np.float64]:
        """Return the measure, rows x classes; -inf for classes without a row."""
        distances = np.sqrt(squared_distances(as_floats(X), as_floats(self.X)))
        nearest = np.full((X.shape[0], self.n_classes), np.inf)
        for label in np.unique(self.y):
            nearest[:, label] = distances[:, self.y == label].min(axis=1)
        best, second = (-part for part in two_best(-nearest))
        others = np.where(
            nearest == best[:, np.newaxis], second[:, np.newaxis], best[:, np.newaxis]
        )
        known = np.isin(np.arange(self.n_classes), self.y)
        same = np.where(known, nearest, 1.0)
        return np.where(known, nearest_neighbour_conformity(same, others), -np.inf)
