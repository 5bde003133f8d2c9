"""Methods of rows on Dask arrays: nothing is computed until it is asked for."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from dsel.data.frames import summed
from dsel.data.pool import Pool

Rows = NDArray[np.int64] | None


def lazily(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method whose rows do not depend on each other take a Dask array, too."""

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        return by_block(lambda rows, _: method(self, rows), X)

    return answer


def by_block(function: Callable[[Any, Rows], Any], X: Any) -> Any:
    """Return what a function says of rows and their numbers; lazily of a Dask array."""
    if isinstance(X, Pool):
        raise TypeError(
            "`X` must be rows, got a pool; `dsel.search.predict_pool(model, pool, "
            "path)` writes the answers for all of its rows."
        )
    if not hasattr(X, "dask"):
        return function(summed(X), None)
    sizes = np.array(getattr(X, "chunks", [[np.nan]])[0], dtype=float)
    if X.ndim != 2 or np.isnan(sizes).any():
        raise ValueError(
            "`X` must be an array with two axes and blocks of known lengths where it "
            "is a Dask collection; call compute_chunk_sizes() on it, or write the "
            "answers for it by `dsel.search.predict_pool`."
        )
    # One row tells type and shape of the answers, which not every model knows.
    one = np.zeros((1, X.shape[1]), X.dtype)
    meta = np.asarray(function(one, np.zeros(1, np.int64)))[:0]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def of_block(X: Any, function: Any, block_id: tuple[int, ...] = (0,)) -> Any:
        if not X.shape[0]:  # of a chunk that a filter left empty
            return meta
        start = starts[block_id[0]]
        return np.asarray(function(summed(X), np.arange(start, start + X.shape[0])))

    # As a value of its own the function, with its model, enters the graph once.
    return X.rechunk({1: -1}).map_blocks(
        of_block,
        function=delayed(function, pure=False),
        dtype=meta.dtype,
        meta=meta,
        chunks=(X.chunks[0], *meta.shape[1:]),
        drop_axis=[] if meta.ndim > 1 else [1],
    )
