"""Pool rows that are handed out to be labeled: drawn in a pass, read again in full."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dsel.data.frames import Frame
from dsel.data.pool import Pool
from dsel.data.row_random import QUERY_STREAM, row_random_at

POOL_ROW: Final = "pool_row"
"""Name of the column of global row numbers, in frames and files."""


def smallest_words(
    words: NDArray[np.uint64], rows: NDArray[np.int64], n_queries: int
) -> NDArray[np.int64]:
    """Return the places of the `n_queries` smallest words, ties by row number.

    Examples
    --------
    >>> words = np.array([7, 3, 9], dtype=np.uint64)
    >>> smallest_words(words, np.arange(3), 2).tolist()
    [1, 0]
    """
    return np.lexsort((rows, words))[:n_queries]


def query_words(seed: int, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the random words by which rows are drawn for a query."""
    return row_random_at(seed, QUERY_STREAM, rows)


def read_pool_rows(pool: Pool, rows: ArrayLike, *, client: Any = None) -> pd.DataFrame:
    """Read some rows of a pool again, with all of its columns.

    Parameters
    ----------
    pool
        The pool, with every column that is to be shown.
    rows
        Global row numbers, distinct, in any order.
    client
        As `Pool.reduce` takes it.

    Returns
    -------
    pandas.DataFrame
        One row for each number, in the given order; the index is named ``pool_row``.
    """
    wanted = np.asarray(rows, dtype=np.int64)
    ascending = np.sort(wanted)
    names = list(pool.columns or (f"x{n}" for n in range(pool.n_columns)))
    # Only the slices that hold a wanted row are read.
    spans = [
        span
        for span in pool.spans()
        if np.diff(np.searchsorted(ascending, [span.start, span.stop]))[0]
    ]
    if not spans:
        return pd.DataFrame(columns=names, index=pd.Index(wanted, name=POOL_ROW))

    def pick(X: Any, numbers: NDArray[np.int64]) -> list[pd.DataFrame]:
        places = np.flatnonzero(np.isin(numbers, ascending))
        if not len(places):
            return []
        some = X[places]
        if isinstance(some, Frame):
            return [some.given.set_axis(numbers[places], axis=0)]
        values = some.toarray() if sparse.issparse(some) else some
        return [pd.DataFrame(values, index=numbers[places], columns=names)]

    parts = replace(pool, schema=pool.frames).reduce(
        pick, lambda before, after: before + after, client=client, allow_nan=True,
        spans=spans,
    )  # fmt: skip
    return pd.concat(parts).loc[wanted].rename_axis(POOL_ROW)
