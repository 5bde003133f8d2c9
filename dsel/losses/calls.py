"""Calls of a loss and of its statistic, which may be code of the user.

What it raises, or returns in the place of a number or in another shape than its own,
becomes a `LossError`, which names the loss and ends the run. Without it the retries of
a search would give a candidate up in the place of the loss: rows of a fold would then
decide which candidates the search without this fold chooses from.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real

import numpy as np

from dsel.arrays import Integers
from dsel.checks import show
from dsel.errors import LossError
from dsel.losses.base import Counts, DistanceLoss, Loss, Predictions, Rows, Statistic


@contextmanager
def naming_loss(code: Loss | Statistic, method: str) -> Iterator[None]:
    """Turn what a method of a loss, or of its statistic, raises into a LossError."""
    try:
        yield
    except LossError:
        raise
    except Exception as error:
        raise LossError(
            f"{_describe(code)} raised {type(error).__name__} in `{method}`: {error}. "
            f"It must work for any rows and predictions; dsel.losses.check_loss tests "
            f"it on some."
        ) from error


def score_rows(loss: Loss, rows: Rows, predictions: Predictions) -> float:
    """Return the loss of one model on some rows."""
    with naming_loss(loss, "score"):
        score = loss.score(rows, predictions)
    return _check_number(loss, "score", score)


def score_from_errors(loss: Loss, n_errors: int, n_rows: int) -> float | None:
    """Return the loss of this number of errors; None if it depends on more."""
    with naming_loss(loss, "score_from_errors"):
        score = loss.score_from_errors(n_errors, n_rows)
    return None if score is None else _check_number(loss, "score_from_errors", score)


def count_rows(statistic: Statistic, rows: Rows, predictions: Predictions) -> Counts:
    """Return the counts of one model on labeled rows."""
    with naming_loss(statistic, "count"):
        counts = np.asarray(statistic.count(rows, predictions))
        shape = statistic.fold_shape
    # Numbers by row may follow others, such as the rows of each value of a column.
    by_row = (max(len(predictions), counts.size),)
    expected = by_row if shape is None else shape
    return _check_counts(statistic, "count", "fold_shape", counts, expected)


def counts_from_errors(statistic: Statistic, n_errors: int) -> Counts | None:
    """Return the counts of this number of errors; None if they depend on more."""
    with naming_loss(statistic, "counts_from_errors"):
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
    fold_counts: Counts,
) -> Integers:
    """Return the counts of two models on rows of the pool."""
    with naming_loss(statistic, "count_pair"):
        counts = np.asarray(
            statistic.count_pair(
                rows, fold_predictions, all_rows_predictions, fold_counts
            )
        )
        shape = statistic.pair_shape
    _check_counts(statistic, "count_pair", "pair_shape", counts, shape)
    if counts.dtype.kind not in "iu":
        raise LossError(
            f"{_describe(statistic)} must give integers from `count_pair`, got "
            f"{show(counts.tolist())}."
        )
    return counts


def rate_beyond(loss: Loss) -> float | None:
    """Return the share of rows that may be off by more than a bound of this loss.

    None for a loss whose bound is no tolerance, or says nothing of such a share.
    """
    if not np.isinf(loss.largest) or not isinstance(loss, DistanceLoss):
        return None
    with naming_loss(loss, "exceedance"):
        return loss.exceedance(loss.largest).exceeding_fraction


def _describe(code: Loss | Statistic) -> str:
    """Return the words that name a loss, or the statistic of one."""
    if hasattr(code, "statistic"):
        return f"`loss` {code!r}"
    return f"the statistic {code!r} of `loss`"


def _check_number(loss: Loss, method: str, score: object) -> float:
    """Return a score; raise LossError if it is no number."""
    # NaN would be ranked, and above or below the others by chance.
    if not isinstance(score, Real) or np.isnan(float(score)):
        raise LossError(
            f"`loss` {loss!r} must return a number from `{method}`, got {show(score)}; "
            "dsel.losses.check_loss tests it."
        )
    return float(score)


def _check_counts(
    statistic: Statistic,
    method: str,
    shape_name: str,
    counts: Counts,
    shape: tuple[int, ...],
) -> Counts:
    """Return counts; raise LossError if they are no numbers of their shape."""
    if counts.shape != shape:
        raise LossError(
            f"{_describe(statistic)} must return the shape of `{shape_name}` from "
            f"`{method}`, {shape}, got {counts.shape}."
        )
    # A residual that is NaN would count as a row with a good prediction.
    if counts.dtype.kind not in "iuf" or np.isnan(counts).any():
        raise LossError(
            f"{_describe(statistic)} must return numbers from `{method}`, got "
            f"{show(counts.tolist())}."
        )
    return counts
