"""Signs, in the labeled rows and the estimators, that an assumption may not hold.

Rows say a little about what was done to them: a table whose columns all have mean 0 and
variance 1 to the last digit was scaled with all of its rows, fold by fold or not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.shared import comparable, row_hashes
from dsel.data.trainings import Training
from dsel.models.base import Candidate

FEW_ROWS: Final = 20
"""Folds with fewer rows bound almost nothing."""
_FEW_VALUES: Final = 10
_TOLERANCE: Final = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}


@dataclass(frozen=True)
class Signs:
    """What was seen; empty texts where nothing was."""

    copies: str
    """Against A1: rows that occur in several folds."""
    scaling: str
    """What breaks A3: preprocessing with the held-out rows."""
    preparation: str
    """What may break A3, and is declared not to."""


def look_for_signs(
    X: Any, trainings: Sequence[Training], candidates: Iterable[Candidate]
) -> Signs:
    """Return what labeled rows, folds and estimators say of the assumptions."""
    doubts = filter(None, (scaled_by_range(X), frozen_parts(candidates)))
    return Signs(copies(X, trainings), standardised(X), "; ".join(doubts))


def standardised(X: Any) -> str:
    """Return why the rows must have been scaled with all of them; empty if not so."""
    columns = _continuous(X)
    if columns is None:
        return ""
    near = _TOLERANCE.get(X.dtype, 1e-8)
    spread = columns.std(axis=0)
    if (np.abs(columns.mean(axis=0)) <= near * spread).all() and (
        (np.abs(spread - 1.0) <= near).all()
        or (np.abs(columns.std(axis=0, ddof=1) - 1.0) <= near).all()
    ):
        return (
            "every column of the labeled rows has mean 0 and variance 1: they were "
            "scaled with the held-out rows; put the scaler into a pipeline"
        )
    return ""


def scaled_by_range(X: Any) -> str:
    """Return why the rows look scaled by their own range; empty if they do not."""
    columns = _continuous(X)
    if columns is None or columns.shape[1] < 2:
        return ""
    least, most = columns.min(axis=0), columns.max(axis=0)
    if (np.isin(least, (-1.0, 0.0))).all() and (most == 1.0).all():
        return (
            "every column of the labeled rows just fills a range up to 1: if a scaler "
            "was fitted on them, put it into a pipeline"
        )
    return ""


def frozen_parts(candidates: Iterable[Candidate]) -> str:
    """Return a remark where an estimator holds a part that was fitted before."""
    from sklearn.frozen import FrozenEstimator

    if any(
        isinstance(value, FrozenEstimator)
        for candidate in candidates
        for value in [
            candidate.estimator,
            *candidate.estimator.get_params(deep=True).values(),
        ]
    ):
        return "the estimator holds a frozen part, said to have seen none of these rows"
    return ""


def copies(X: Any, trainings: Sequence[Training]) -> str:
    """Return how many labeled rows equal one that another fold holds out."""
    hashes = row_hashes(comparable(X, X.dtype))
    content = np.unique(hashes, return_inverse=True)[1]
    fold = np.full(len(content), -1)
    for training in trainings:
        fold[training.test_rows] = training.number
    pairs = np.unique(np.stack([content, fold], axis=1), axis=0)
    folds_with = np.bincount(pairs[:, 0], minlength=content.max() + 1)
    n_rows = int((folds_with[content] > 1).sum())
    if not n_rows:
        return ""
    return (
        f"{n_rows:,} labeled rows equal a row of another fold: if they are copies of "
        f"one record, rows are not independent"
    )


def few_rows(trainings: Sequence[Training]) -> str:
    """Return a remark where folds are so small that their limits say little."""
    sizes = [len(each.test_rows) for each in trainings if len(each.test_rows)]
    if not sizes or min(sizes) >= FEW_ROWS:
        return ""
    return (
        f"a fold has {min(sizes)} rows: with fewer than {FEW_ROWS} its limit says "
        f"almost nothing; ask for fewer folds"
    )


def _continuous(X: Any) -> NDArray[Any] | None:
    """Return the columns of many values; None where there are none to be judged."""
    if sparse.issparse(X) or X.dtype.kind != "f" or np.isnan(X).any():
        return None
    many = [len(np.unique(column)) > _FEW_VALUES for column in X.T]
    return X[:, many] if any(many) else None
