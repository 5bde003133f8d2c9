"""A check that predictions of a pipeline do not depend on the other rows (A7).

A `FunctionTransformer` that computes a mean or a rank anew in each call is a common
mistake: the number of errors then depends on which rows are predicted together.
"""

from typing import Any, Final

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from dsel.arrays import Features, Integers
from dsel.data.splits import Split
from dsel.families.family import Candidate, FitKey, FittedGroup

BATCH_CHECK_ROWS: Final = 64
"""Rows that are predicted in one call; eight of them are predicted alone, too."""


def has_function(candidate: Candidate) -> bool:
    """Return whether a part of a candidate is a `FunctionTransformer`."""
    parts = candidate.all_params.values()
    return any(isinstance(part, FunctionTransformer) for part in parts)


def refuse_batches(fitted: FittedGroup, split: Split, X: Features) -> None:
    """Record models as failed that predict rows differently alone than among others.

    The check predicts training rows, so that no choice depends on test rows. A single
    difference in eight rows may be a tie, which rounding decides, and is ignored.
    """
    counts, rows = fitted.counts, split.train_rows[:BATCH_CHECK_ROWS]
    column, which = fitted.splits.index(split.number), [np.array(split.number)]
    done = np.flatnonzero(~counts.has_failed[:, column])
    if not len(done):
        return

    def predict(some: Integers) -> Any:
        return fitted.predict(X[some], which)[0][done]

    try:
        together = predict(rows)
    except Exception:  # rows that `predict` refuses are counted as errors
        return
    # A model that depends on the batch often predicts one class for every single row.
    # Four rows of the rarest class and four of the commonest reveal it.
    _, kinds, n = np.unique(together[0], return_inverse=True, return_counts=True)
    order = np.argsort(n[kinds], kind="stable")
    some, cause = np.unique(np.r_[order[:4], order[-4:]]), ""
    try:
        alone = np.concatenate([predict(rows[[row]]) for row in some], axis=1)
    except Exception as error:
        cause = f" (alone: {type(error).__name__}: {error})"
        alone = np.full((len(done), len(some)), np.iinfo(np.int64).min)
    differs = alone != together[:, some]
    if alone.dtype.kind == "f":  # matrix products round by the number of rows
        differs = ~np.isclose(alone, together[:, some], rtol=1e-5, equal_nan=True)
    n_differ = np.sum(differs, axis=1)
    for i, n in zip(done.tolist(), n_differ, strict=True):
        if n > 1 or cause:
            counts.refuse(
                (i, column),
                FitKey(fitted.candidates[i], split.number),
                f"`predict` answers {n} of {len(some)} rows otherwise alone than among "
                f"other rows{cause}, so its errors depend on which rows come together. "
                f"Compute means, ranks and codes of columns in the `fit` of a "
                f"transformer, not in a FunctionTransformer.",
            )
