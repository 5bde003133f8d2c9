"""Checks of a new loss and its statistic, for contributors."""

from copy import deepcopy
from typing import Any, Final

import numpy as np

from dsel.arrays import Integers
from dsel.losses.base import (
    Counts,
    FoldCounts,
    Loss,
    PoolCounts,
    Predictions,
    Rows,
    Shares,
    Statistic,
    no_predictions,
    stack_folds,
)
from dsel.losses.calls import (
    count_pair,
    count_rows,
    counts_from_errors,
    score_from_errors,
    score_rows,
)

LOSS_CHECK_ROWS: Final = 200
"""Most labeled rows on which a plan tries a loss."""
CHECK_SHARES: Final = Shares(0.05, 0.95)


def check_loss(loss: Any, *, n_classes: int = 2, n_folds: int = 5) -> None:
    """Raise if a loss does not work in a search, by a test on generated rows.

    It cannot show that a bound holds: this needs a proof, and an audit.

    Parameters
    ----------
    loss
        The argument `loss=` of a search, after `of_table` if it uses classes. The rows
        have three columns and class codes below `n_classes`, or normally distributed
        targets if the loss is for regressors.
    n_classes, n_folds
        Numbers of classes and of folds of the generated rows.

    Raises
    ------
    TypeError, ValueError
        If a member of `Loss` or `Statistic` returns a wrong value, which is named.

    Examples
    --------
    >>> from dsel.losses.error_rate import ERROR_RATE
    >>> check_loss(ERROR_RATE)
    """
    for code, kind in ((loss, Loss), (getattr(loss, "statistic", None), Statistic)):
        if not isinstance(code, kind):
            members = [name for name in dir(kind) if name[0] != "_"]
            lacks = [name for name in members if not hasattr(code, name)]
            raise TypeError(
                f"{type(code).__name__} must have the members of {kind.__name__}; it "
                f"lacks {', '.join(lacks) or 'none, but is a class'}."
            )
    # Workers get a copy, and the repr is part of the identity of a plan.
    copy = deepcopy(loss)
    if copy != loss or repr(copy) != repr(loss):
        raise ValueError(
            f"{loss!r} must be equal to its copy, with the same repr: by it a store "
            f"knows its plan."
        )
    rng = np.random.default_rng(0)
    n = 60 * n_folds
    targets = (
        rng.integers(0, n_classes, n) if not loss.is_regression else rng.normal(size=n)
    )
    rows = Rows(rng.normal(size=(n, 3)), targets)
    fold_rows = np.array_split(np.arange(60 * n_folds), n_folds)
    counts = [_check_fold(loss, rows, numbers, rng) for numbers in fold_rows]
    n_rows = np.array([len(numbers) for numbers in fold_rows])
    folds = FoldCounts(stack_folds(counts), n_rows)
    pool = _count_pool(loss, folds, n_classes, rng)
    _check_bounds(loss, folds, pool)


def check_loss_on_rows(loss: Loss, rows: Rows) -> None:
    """Raise ValueError if a loss scores or counts these labeled rows in a wrong way.

    It is the part of `check_loss` that needs neither folds nor a pool, for the rows of
    a plan: a loss may read columns that generated rows do not have.
    """
    _check_fold(loss, rows, np.arange(rows.X.shape[0]), np.random.default_rng(0))


def _check_fold(
    loss: Loss, rows: Rows, numbers: Integers, rng: np.random.Generator
) -> Counts:
    """Return the counts on the rows of a fold; raise if they are wrong."""
    X, y = rows.X[numbers], np.asarray(rows.targets)[numbers]
    is_wrong = rng.random(len(y)) < 0.2
    wrong = (
        y + rng.normal(size=len(y)) if loss.is_regression else (y + 1) % (y.max() + 1)
    )
    predictions = np.where(is_wrong, wrong, y)
    statistic, labeled, name = loss.statistic, Rows(X, y), type(loss.statistic).__name__
    none = no_predictions((len(y),), y.dtype)
    score, worst = (score_rows(loss, labeled, these) for these in (predictions, none))
    counts = count_rows(statistic, labeled, predictions)
    n_wrong = int((predictions != y).sum())
    # Any number of errors may come from a fit; those of this fold are compared below.
    for n_errors in range(len(y) + 1):
        counts_from_errors(statistic, n_errors)
        score_from_errors(loss, n_errors, len(y))
    from_errors = counts_from_errors(statistic, n_wrong)
    if from_errors is not None and not np.array_equal(from_errors, counts):
        raise ValueError(
            f"{name}.counts_from_errors must give what `count` does, or None."
        )
    order = rng.permutation(len(y))
    shuffled = count_rows(statistic, Rows(X[order], y[order]), predictions[order])
    if not np.array_equal(shuffled, counts):
        raise ValueError(f"{name}.count must not depend on the order of the rows.")
    # Regressors are ranked by squares, which have no largest value. For others a model
    # that predicts nothing must come last, so that it is never chosen.
    largest = np.inf if loss.is_regression else loss.largest
    if not 0 <= score <= largest or not score <= worst <= largest:
        raise ValueError(
            f"{type(loss).__name__}.score must be in [0, {largest}], the largest "
            f"where nothing is predicted, got {score} and {worst}."
        )
    error_score = score_from_errors(loss, n_wrong, len(y))
    if error_score is not None and not np.isclose(error_score, score):
        raise ValueError(
            f"{type(loss).__name__}.score_from_errors must give what `score` does, "
            f"or None."
        )
    return counts


def _count_pool(
    loss: Loss, folds: FoldCounts, n_classes: int, rng: np.random.Generator
) -> PoolCounts:
    """Return the counts on a pool; raise if those of blocks do not add up to it."""
    n, statistic = 400, loss.statistic
    name = type(statistic).__name__

    def draw(lowest: int) -> Predictions:
        codes = rng.integers(lowest, n_classes, n)
        return np.asarray(rng.normal(size=n) if loss.is_regression else codes)

    X, all_rows_predictions = rng.normal(size=(n, 3)), draw(0)
    # A code of -1 is a prediction that is no class, which models may make.
    pairs = []
    for fold_counts in folds.counts:
        is_same = rng.random(n) < 0.9
        fold_predictions = np.where(is_same, all_rows_predictions, draw(-1))
        blocks = [
            count_pair(
                statistic,
                Rows(X[block]),
                fold_predictions[block],
                all_rows_predictions[block],
                fold_counts,
            )
            for block in (slice(None), slice(None, 150), slice(150, None), slice(0, 0))
        ]
        if not np.array_equal(blocks[0], blocks[1] + blocks[2]) or blocks[3].any():
            raise ValueError(f"{name}.count_pair must add up over blocks of rows.")
        agreeing = count_pair(
            statistic, Rows(X), all_rows_predictions, all_rows_predictions, fold_counts
        )
        if statistic.counts_differences and np.any(agreeing):
            raise ValueError(
                f"{name}.count_pair counts rows on which both models agree, which "
                f"`counts_differences` denies."
            )
        pairs.append(blocks[0])
    return PoolCounts(np.stack(pairs), np.zeros_like(np.stack(pairs)), n, 0)


def _check_bounds(loss: Loss, folds: FoldCounts, pool: PoolCounts) -> None:
    """Raise if limits or bounds are below the counts, or do not fall as delta grows."""
    name, k = type(loss).__name__, len(folds.n_rows)
    limits = np.asarray(loss.limits(folds, CHECK_SHARES.label_delta))
    if limits.shape != (k,) or np.isnan(limits).any():
        raise ValueError(f"{name}.limits must be a number for each of {k} folds.")
    if (np.asarray(loss.limits(folds, 1e-6)) < limits).any():
        raise ValueError(f"{name}.limits must be larger where delta is smaller.")
    estimates = [loss.estimate(fold) for fold in folds.iter_folds()]
    if (limits < estimates).any():
        raise ValueError(
            f"{name}.limits must be above what was counted, got {limits.tolist()} for "
            f"{estimates}."
        )
    bound, label_term, disagreement_term = map(
        float, loss.bound_all_rows(folds, pool, CHECK_SHARES)
    )
    if not (
        bound >= label_term >= min(limits)
        and np.isclose(bound, label_term + disagreement_term)
    ):
        raise ValueError(
            f"{name}.bound_all_rows must be the limit of a fold and a part from the "
            f"pool, got {bound}, {label_term} and {disagreement_term}."
        )
