"""Methods that take Dask arrays and frames lazily, block by block."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, r2_score

from dsel.arrays import ArrayLike, check_rows
from dsel.checks import describe_type
from dsel.data.frames import merge_entries
from dsel.data.pool import Pool
from dsel.typing import LabelsLike, RowsLike


def takes_dask_arrays(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method that handles each row by itself accept Dask collections, too."""

    @wraps(method)
    def wrapper(self: Any, X: RowsLike) -> Any:
        return apply_by_block(partial(method, self), X)

    return wrapper


class LazyScore:
    """Mixin for estimators whose predictions for a Dask collection are lazy."""

    def score(
        self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of a classifier, or R^2 of a regressor.

        Parameters
        ----------
        X, y
            Rows and their labels, or numbers; also Dask collections, which are
            computed.
        sample_weight
            Weight of each row, shape (n_rows,); None for equal ones.

        Returns
        -------
        float
            Accuracy in [0, 1], or R^2, at most 1: an estimate, with no bound.
        """
        estimator: Any = self
        predicted = np.asarray(estimator.predict(X))
        return score_predictions(estimator, y, predicted, sample_weight)


def score_predictions(
    model: Any, y: LabelsLike, predicted: ArrayLike, weights: ArrayLike | None
) -> float:
    """Return the accuracy of the predictions of a classifier, or R^2 of a regressor."""
    labels: Any = y.compute() if hasattr(y, "compute") else y
    measure = r2_score if is_regressor(model) else accuracy_score
    return float(measure(labels, predicted, sample_weight=weights))


def apply_by_block(function: Callable[[Any], Any], X: Any) -> Any:
    """Apply a function to rows; to a Dask collection lazily, block by block.

    Then the result is a Dask array with the blocks of `X`; the lengths of those of a
    frame are unknown.
    """
    if isinstance(X, Pool):
        raise TypeError(
            "`X` must be rows, got a pool; `dsel.predict_pool(model, pool, "
            "path)` writes the predictions for all of its rows."
        )
    if not hasattr(X, "dask"):
        return function(merge_entries(X))  # it checks the rows
    check_rows(X)
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"`X` must be a table where it is a Dask collection, rows by columns, got "
            f"{describe_type(X)}; pass X.to_frame() or X.reshape(-1, 1) for one column."
        )
    # One row shows the type and shape of results, which not every model knows. A frame
    # gives its first row, which is read now: models may refuse made-up texts.
    is_frame = hasattr(X, "to_dask_array")
    first_row = (
        X.head(1, npartitions=-1) if is_frame else np.zeros((1, X.shape[1]), X.dtype)
    )
    meta = np.asarray(function(first_row))[:0]

    def apply(X: Any, function: Any) -> Any:
        if not X.shape[0]:  # a chunk that a filter has emptied
            return meta
        return np.asarray(function(merge_entries(X)))

    # A delayed value puts the function, with its model, into the graph once.
    shared = delayed(function, pure=False)
    if is_frame:
        parts = [delayed(apply)(part, shared) for part in X.to_delayed()]
        shape = (np.nan, *meta.shape[1:])
        return da.concatenate([da.from_delayed(p, shape, meta=meta) for p in parts])
    return X.rechunk({1: -1}).map_blocks(
        apply,
        function=shared,
        dtype=meta.dtype,
        meta=meta,
        chunks=(X.chunks[0], *meta.shape[1:]),
        drop_axis=[] if meta.ndim > 1 else [1],
    )
