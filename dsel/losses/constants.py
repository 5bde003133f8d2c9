"""The best constant prediction, with which a reader compares a bound."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dsel.losses.base import FoldCounts, Loss, Rows, stack_folds
from dsel.losses.calls import count_rows, naming_loss


class ConstantPrediction(NamedTuple):
    """A prediction that is the same for every row, and its loss on labeled rows."""

    prediction: str | float
    """A class as text, or the median of the targets."""
    loss: float


@runtime_checkable
class HasBestConstant(Protocol):
    """A loss that finds its best constant prediction itself; not every loss does."""

    def best_constant(
        self, rows: Rows, classes: Sequence[object]
    ) -> ConstantPrediction | None:
        """Return the constant with the smallest loss on labeled rows, None without one.

        `rows.y` are codes of `classes`, or the targets of a regressor, which has no
        classes.
        """


def best_constant(
    loss: Loss, y: NDArray[Any], classes: Sequence[object] = (), X: Any = None
) -> ConstantPrediction | None:
    """Return the constant with the smallest loss on labeled rows; None without one.

    `y` are class codes, or the targets of a regressor. `X` are the rows, which a loss
    of the user's own may read. A loss with `HasBestConstant.best_constant` is asked.
    Of others it is the largest class or one that the loss names; those of regressors
    have none.

    Examples
    --------
    >>> from dsel.losses import cost
    >>> costs = cost({("ill", "well"): 50, ("well", "ill"): 1})
    >>> best_constant(costs, np.array([0, 1, 1, 1]), ["ill", "well"])
    ConstantPrediction(prediction='ill', loss=0.75)
    """
    if isinstance(loss, HasBestConstant):
        with naming_loss(loss, "best_constant"):
            return loss.best_constant(Rows(X, y), classes)
    if loss.is_regression or not len(classes):
        return None
    # Among equally good constants the largest class is taken. The loss treats all
    # classes that it does not name alike, so the largest class is the best of them.
    codes = [int(np.argmax(np.bincount(y, minlength=len(classes))))]
    labels = list(classes)
    with naming_loss(loss, "named_classes"):
        codes += [labels.index(label) for label in loss.named_classes(labels)]
    rows, losses = Rows(X, y), []
    for code in codes:
        predictions = np.full(len(y), code, np.int64)
        # By `estimate`, which is what the loss bounds: `score` may be another number.
        counts = stack_folds([count_rows(loss.statistic, rows, predictions)])
        with naming_loss(loss, "estimate"):
            estimate = loss.estimate(FoldCounts(counts, np.array([len(y)])))
        losses.append(float(estimate))
    best = int(np.argmin(losses))
    return ConstantPrediction(str(labels[codes[best]]), losses[best])
