"""The best constant prediction, with which a reader compares a bound."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel.losses.base import FoldCounts, Loss, Rows, stack_folds
from dsel.losses.by_class import Precision, Recall
from dsel.losses.calls import count_rows, naming_loss
from dsel.losses.regression import RegressionLoss


class ConstantPrediction(NamedTuple):
    """A prediction that is the same for every row, and its loss on labeled rows."""

    prediction: str | float
    """A class as text, or the median of the targets."""
    loss: float


def best_constant(
    loss: Loss, y: NDArray[Any], classes: Sequence[object] = (), X: Any = None
) -> ConstantPrediction | None:
    """Return the constant with the smallest loss on labeled rows; None without one.

    `y` are class codes, or the targets of a regressor, whose constant is the median.
    `X` are the rows, which a loss of the user's own may read.
    The recall and the precision of one class have none: always predicting this class
    misses no row of it.

    Examples
    --------
    >>> from dsel.losses import cost
    >>> costs = cost({("ill", "well"): 50, ("well", "ill"): 1})
    >>> best_constant(costs, np.array([0, 1, 1, 1]), ["ill", "well"])
    ConstantPrediction(prediction='ill', loss=0.75)
    """
    if isinstance(loss, RegressionLoss):
        numbers = np.asarray(y, np.float64)
        found = ConstantPrediction(float(np.median(numbers)), loss.of_constant(numbers))
        return found if np.isfinite(found).all() else None
    if loss.is_regression or isinstance(loss, Recall | Precision) or not len(classes):
        return None
    # Among equally good constants the largest class is taken. The loss treats all
    # classes that it does not name alike, so the largest class is the best of them.
    codes = [int(np.argmax(np.bincount(y, minlength=len(classes))))]
    known = list(classes)
    with naming_loss(loss, "named_classes"):
        codes += [known.index(label) for label in loss.named_classes(known)]
    losses = [_score_constant(loss, Rows(X, y), code) for code in codes]
    best = int(np.argmin(losses))
    return ConstantPrediction(str(known[codes[best]]), losses[best])


def _score_constant(loss: Loss, rows: Rows, code: int) -> float:
    """Return the loss of rows that are all predicted as one class."""
    assert rows.y is not None  # they are labeled
    predictions = np.full(len(rows.y), code, np.int64)
    # The estimate is about what is bounded; `score` may be any rule that ranks.
    counts = stack_folds([count_rows(loss.statistic, rows, predictions)])
    with naming_loss(loss, "estimate"):
        return float(loss.estimate(FoldCounts(counts, np.array([len(rows.y)]))))
