"""Calls of a loss and of its statistic, which may be code of the user.

An exception that it raises, or a result that is no number or has a wrong shape, becomes
a `LossError`, which names the loss and ends the run. Without it the retries of a search
would give a candidate up in the place of the loss: rows of a fold would then decide
which candidates the search without this fold chooses from. `best_constant` calls a loss
for its best constant prediction, with which a reader compares a bound.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.bounds.cross_validation import BoundTerms
from dsel.checks import show
from dsel.errors import LossError
from dsel.losses.protocols import (
    Counts,
    DeltaDivision,
    DistanceLoss,
    FoldCounts,
    Loss,
    PoolCounts,
    Predictions,
    Rows,
    Statistic,
    stack_folds,
)
from dsel.rounded_texts import count_of

ROUNDING_OF_SUMS: Final = 1e-9
"""Relative difference by which a mean may exceed its largest value by rounding."""


@contextmanager
def name_loss_in_errors(code: Loss | Statistic, called: str) -> Iterator[None]:
    """Turn what a method of a loss, or of its statistic, raises into a LossError."""
    try:
        yield
    except LossError:
        raise
    except Exception as error:
        raise LossError(
            f"{_describe(code)} raised {type(error).__name__} in `{called}`: {error}. "
            f"It must work for any rows and predictions; dsel.losses.check_loss tests "
            f"it on some."
        ) from error


def score_rows(loss: Loss, rows: Rows, predictions: Predictions) -> float:
    """Return the loss of one model on some rows."""
    with name_loss_in_errors(loss, "score"):
        score = loss.score(rows, predictions)
    return _check_number(loss, "score", score)


def score_from_errors(loss: Loss, n_errors: int, n_rows: int) -> float | None:
    """Return the loss of this number of errors; None if it depends on more."""
    with name_loss_in_errors(loss, "score_from_errors"):
        score = loss.score_from_errors(n_errors, n_rows)
    return None if score is None else _check_number(loss, "score_from_errors", score)


def count_rows(statistic: Statistic, rows: Rows, predictions: Predictions) -> Counts:
    """Return the counts of one model on labeled rows."""
    with name_loss_in_errors(statistic, "count"):
        counts = np.asarray(statistic.count(rows, predictions))
        shape = statistic.fold_shape
    # Numbers by row may follow others, such as the rows of each value of a column.
    by_row = (max(len(predictions), counts.size),)
    expected = by_row if shape is None else shape
    return _check_counts(statistic, "count", "fold_shape", counts, expected)


def counts_from_errors(statistic: Statistic, n_errors: int) -> Counts | None:
    """Return the counts of this number of errors; None if they depend on more."""
    with name_loss_in_errors(statistic, "counts_from_errors"):
        counts = statistic.counts_from_errors(n_errors)
        # A statistic with numbers by row has no counts that depend on errors alone.
        shape = statistic.fold_shape or ()
    if counts is None:
        return None
    return _check_counts(
        statistic, "counts_from_errors", "fold_shape", np.asarray(counts), shape
    )


def count_pair(
    statistic: Statistic,
    rows: Rows,
    fold_predictions: Predictions,
    all_rows_predictions: Predictions,
    counts_on_fold: Counts,
) -> Integers:
    """Return the counts of two models on rows of the pool."""
    with name_loss_in_errors(statistic, "count_pair"):
        counts = np.asarray(
            statistic.count_pair(
                rows, fold_predictions, all_rows_predictions, counts_on_fold
            )
        )
        shape = statistic.pair_shape
    _check_counts(statistic, "count_pair", "pair_shape", counts, shape)
    if counts.dtype.kind not in "iu":
        raise LossError(
            f"{_describe(statistic)} must give integers from `count_pair`, got "
            f"{show(counts.tolist())}; dsel.losses.check_loss tests it."
        )
    if (counts < 0).any():
        raise LossError(
            f"{_describe(statistic)} must give no count below 0 from `count_pair`, got "
            f"{show(counts.tolist())}: blocks of the pool are added up."
        )
    return counts


def limits_of_folds(loss: Loss, folds: FoldCounts, delta: float) -> Floats:
    """Return the limits of the models of all folds, (n_folds,), which hold at once."""
    with name_loss_in_errors(loss, "limits"):
        limits = np.asarray(loss.limits(folds, delta), np.float64)
    # A limit of NaN, such as that of 0 rows, is neither above nor below the others.
    if limits.shape != folds.n_rows.shape or not (limits >= 0.0).all():
        raise LossError(
            f"`loss` {loss!r} must return a number >= 0 for each of "
            f"{count_of(len(folds.n_rows), 'fold')} from `limits`, and {loss.largest} "
            f"where the rows say nothing, got {show(limits.tolist())}; "
            f"dsel.losses.check_loss tests it."
        )
    return limits


def estimate_of_folds(loss: Loss, folds: FoldCounts) -> float:
    """Return the loss of some folds together; NaN if their rows say nothing."""
    with name_loss_in_errors(loss, "estimate"):
        estimate = float(loss.estimate(folds))
    _check_largest(loss, "estimate", estimate)
    return estimate


def count_not_finite(loss: Loss, folds: FoldCounts) -> int:
    """Return the rows of a regressor whose predictions are no finite numbers.

    0 for a loss that does not count distances by row.
    """
    if not isinstance(loss, DistanceLoss) or loss.statistic.fold_shape is not None:
        return 0
    return sum(int(np.isinf(numbers).sum()) for numbers in folds.numbers_by_row())


def bound_of_all_rows(
    loss: Loss,
    folds: FoldCounts,
    pool_counts: PoolCounts,
    division: DeltaDivision,
    limits: Floats,
) -> BoundTerms:
    """Return the bound of the model of all rows, and its two parts.

    `limits` are those of the folds at ``division.label_delta``; no bound through a fold
    can be below all of them.
    """
    with name_loss_in_errors(loss, "bound_all_rows"):
        terms = [
            np.asarray(float(term))
            for term in loss.bound_all_rows(folds, pool_counts, division)
        ]
        bound_terms = BoundTerms(*terms)
    bound, label_term, pool_term = (float(term) for term in bound_terms)
    least = float(limits.min()) * (1.0 - ROUNDING_OF_SUMS)
    # A comparison with NaN is false.
    if not (bound * (1.0 + ROUNDING_OF_SUMS) >= label_term >= least and pool_term >= 0):
        raise LossError(
            f"`loss` {loss!r} must return three numbers from `bound_all_rows`, the sum "
            f"of a limit of the folds, {float(limits.min())} or more, and a part >= 0 "
            f"from the pool, and these two, got {bound}, {label_term} and {pool_term}; "
            f"dsel.losses.check_loss tests it."
        )
    return bound_terms


def rate_beyond(loss: Loss) -> float | None:
    """Return the fraction of rows that may be off by more than a bound of this loss.

    The result is None for a loss whose bound is no tolerance, or does not limit such a
    fraction.
    """
    if not np.isinf(loss.largest) or not isinstance(loss, DistanceLoss):
        return None
    with name_loss_in_errors(loss, "exceedance"):
        return loss.exceedance(loss.largest).exceeding_fraction


def _check_largest(loss: Loss, called: str, value: float) -> None:
    """Raise LossError if a value of the loss is above its largest one.

    Bounds are cut there, so that they would be too small.
    """
    if value > loss.largest * (1.0 + ROUNDING_OF_SUMS):
        raise LossError(
            f"`loss` {loss!r} must have values in [0, {loss.largest}], up to its "
            f"`largest`, where bounds are cut, got {value} from `{called}`; make "
            f"`largest` the largest possible value."
        )


def _describe(code: Loss | Statistic) -> str:
    """Return the words that name a loss, or the statistic of one."""
    if hasattr(code, "statistic"):
        return f"`loss` {code!r}"
    return f"the statistic {code!r} of `loss`"


def _check_number(loss: Loss, called: str, value: object) -> float:
    """Return a score; raise LossError if it is no number."""
    # A score of NaN would be ranked above or below the others by chance.
    if not isinstance(value, Real) or np.isnan(float(value)):
        raise LossError(
            f"`loss` {loss!r} must return a number from `{called}`, got {show(value)}; "
            "dsel.losses.check_loss tests it."
        )
    # Regressors are ranked by squares, which have no largest value.
    if not loss.is_regression:
        _check_largest(loss, called, float(value))
    return float(value)


def _check_counts(
    statistic: Statistic,
    called: str,
    shape_name: str,
    counts: Counts,
    shape: tuple[int, ...],
) -> Counts:
    """Return counts; raise LossError if they are no numbers of their shape."""
    if counts.shape != shape:
        raise LossError(
            f"{_describe(statistic)} must return the shape of `{shape_name}` from "
            f"`{called}`, {shape}, got {counts.shape}; dsel.losses.check_loss tests it."
        )
    # A residual that is NaN would count as a row with a good prediction.
    if counts.dtype.kind not in "iuf" or np.isnan(counts).any():
        raise LossError(
            f"{_describe(statistic)} must return numbers from `{called}`, got "
            f"{show(counts.tolist())}; dsel.losses.check_loss tests it."
        )
    return counts


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
    of the user's own may read. A loss with `HasBestConstant.best_constant` finds it
    itself. Another classifier gets the largest class or one that the loss names;
    regressors get none.

    Examples
    --------
    >>> from dsel.losses import cost
    >>> costs = cost({("ill", "well"): 50, ("well", "ill"): 1})
    >>> best_constant(costs, np.array([0, 1, 1, 1]), ["ill", "well"])
    ConstantPrediction(prediction='ill', loss=0.75)
    """
    if isinstance(loss, HasBestConstant):
        with name_loss_in_errors(loss, "best_constant"):
            return loss.best_constant(Rows(X, y), classes)
    if loss.is_regression or not len(classes):
        return None
    # Among equally good constants the largest class is taken. The loss treats all
    # classes that it does not name alike, so the largest class is the best of them.
    codes = [int(np.argmax(np.bincount(y, minlength=len(classes))))]
    labels = list(classes)
    with name_loss_in_errors(loss, "named_classes"):
        codes += [labels.index(label) for label in loss.named_classes(labels)]
    rows = Rows(X, y)
    losses = []
    for code in codes:
        predictions = np.full(len(y), code, np.int64)
        # Constants are compared by `estimate`, which is what the loss bounds: `score`
        # may be another number.
        counts = stack_folds([count_rows(loss.statistic, rows, predictions)])
        losses.append(estimate_of_folds(loss, FoldCounts(counts, np.array([len(y)]))))
    if np.isnan(losses).all():  # no row says anything
        return None
    best = int(np.nanargmin(losses))
    return ConstantPrediction(str(labels[codes[best]]), losses[best])
