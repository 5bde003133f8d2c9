"""Methods that take Dask arrays lazily, block by block."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from dask.delayed import delayed

from dsel.arrays import check_rows
from dsel.data.frames import merge_entries
from dsel.data.pool import Pool
from dsel.typing import RowsLike


def takes_dask_arrays(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method that handles each row by itself accept Dask arrays, too."""

    @wraps(method)
    def wrapper(self: Any, X: RowsLike) -> Any:
        return by_block(partial(method, self), X)

    return wrapper


def by_block(function: Callable[[Any], Any], X: Any) -> Any:
    """Apply a function to rows; to Dask arrays lazily, block by block."""
    if isinstance(X, Pool):
        raise TypeError(
            "`X` must be rows, got a pool; `dsel.search.predict_pool(model, pool, "
            "path)` writes the predictions for all of its rows."
        )
    if not (X is None or np.isscalar(X)):
        check_rows(X)
    if not hasattr(X, "dask"):
        return function(merge_entries(X))
    sizes = np.array(getattr(X, "chunks", [[np.nan]])[0], dtype=float)
    if getattr(X, "ndim", 0) != 2 or np.isnan(sizes).any():
        is_frame = hasattr(X, "to_dask_array")
        way = "pass X.compute()" if is_frame else "call compute_chunk_sizes() on it"
        raise ValueError(
            f"`X` must be an array with two axes and blocks of known lengths where it "
            f"is a Dask collection; {way}, or write the predictions for it by "
            f"`dsel.search.predict_pool`."
        )
    # One made-up row shows the type and shape of results, which not every model knows.
    one = np.zeros((1, X.shape[1]), X.dtype)
    meta = np.asarray(function(one))[:0]

    def apply(X: Any, function: Any) -> Any:
        if not X.shape[0]:  # a chunk that a filter has emptied
            return meta
        return np.asarray(function(merge_entries(X)))

    # As a delayed value the function, with its model, enters the graph once.
    return X.rechunk({1: -1}).map_blocks(
        apply,
        function=delayed(function, pure=False),
        dtype=meta.dtype,
        meta=meta,
        chunks=(X.chunks[0], *meta.shape[1:]),
        drop_axis=[] if meta.ndim > 1 else [1],
    )
