"""A check for functions in pipelines whose result depends on the other rows (A7).

A mean or a rank that a `FunctionTransformer` computes anew in each call is a common
mistake: then errors depend on which rows come together.
"""

from typing import Any, Final

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from dsel.arrays import Integers
from dsel.data.splits import Split
from dsel.families.family import FIT_DONE, Candidate, FittedGroup

ASKED: Final = 64
"""Rows that are asked together, of which eight are asked alone."""


def has_function(candidate: Candidate) -> bool:
    """Return whether a part of a candidate is a `FunctionTransformer`."""
    parts = candidate.all_params.values()
    return any(isinstance(each, FunctionTransformer) for each in parts)


def refuse_batches(fitted: FittedGroup, split: Split, X: Any) -> None:
    """Record models as failed that predict rows differently alone than among others.

    They are asked for training rows, so that no choice depends on rows that are held
    out. One difference in eight rows may be a tie, which rounding decides.
    """
    counts, rows = fitted.counts, split.train_rows[:ASKED]
    column, which = fitted.splits.index(split.number), [np.array(split.number)]
    done = np.flatnonzero(counts.status[:, column] == FIT_DONE)
    if not len(done):
        return

    def ask(some: Integers) -> Any:
        return fitted.predict(X[some], which)[0][done]

    try:
        together = ask(rows)
    except Exception:  # what `predict` refuses is counted as errors
        return
    # Where all rows are answered alike when alone, four of the rarest answer, or four
    # of the others, show it.
    _, kinds, n = np.unique(together[0], return_inverse=True, return_counts=True)
    order = np.argsort(n[kinds], kind="stable")
    some, cause = np.unique(np.r_[order[:4], order[-4:]]), ""
    try:
        alone = np.concatenate([ask(rows[[place]]) for place in some], axis=1)
    except Exception as error:
        cause = f" (alone: {type(error).__name__}: {error})"
        alone = np.full((len(done), len(some)), np.iinfo(np.int64).min)
    differs = alone != together[:, some]
    if alone.dtype.kind == "f":  # a sum of other rows is rounded otherwise
        differs = ~np.isclose(alone, together[:, some], rtol=1e-5, equal_nan=True)
    n_differ = np.sum(differs, axis=1)
    for place, n in zip(done.tolist(), n_differ, strict=True):
        if n > 1 or cause:
            counts.refuse((place, column), (fitted.candidates[place], split.number), (
                f"`predict` answers {n} of {len(some)} rows otherwise alone than among "
                f"other rows{cause}, so its errors depend on which rows come together. "
                f"Compute means, ranks and codes of columns in the `fit` of a "
                f"transformer, not in a FunctionTransformer."
            ))  # fmt: skip
