"""Queried pool rows: drawn in a pass, then read again with all columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dsel.arrays import ArrayLike, Integers
from dsel.data.frames import Frame, concatenate_rows
from dsel.data.pool import Pool
from dsel.data.row_random import QUERY_STREAM, row_random_at

if TYPE_CHECKING:
    from distributed import Client


POOL_ROW: Final = "pool_row"
"""Name of the column of global row numbers, in frames and files."""
POOL_INDEX: Final = "pool_index"
"""Name of the index of queried rows of a pandas frame that has an index of its own."""


def smallest_rows(columns: Sequence[Any], n_rows: int) -> list[Any]:
    """Return the rows where the first column is smallest, ties by the second.

    A column is an array, a matrix or a frame with an item for each row, or None.

    Examples
    --------
    >>> smallest_rows([np.array([7, 3, 9]), np.arange(3), None], 2)
    [array([3, 7]), array([1, 0]), None]
    """
    smallest = np.lexsort((columns[1], columns[0]))[:n_rows]
    return [None if column is None else column[smallest] for column in columns]


def merge_smallest(some: Sequence[Any], more: Sequence[Any], n_rows: int) -> list[Any]:
    """Return the smallest rows of two blocks, as `smallest_rows` returns those of one.

    They are among the smallest of each, so blocks may be merged in any order: the
    draw is that from the whole pool.
    """
    columns = [
        None if first_block is None else concatenate_rows([first_block, second_block])
        for first_block, second_block in zip(some, more, strict=True)
    ]
    return smallest_rows(columns, n_rows)


def query_words(seed: int, row_numbers: Integers) -> NDArray[np.uint64]:
    """Return the random words by which rows are drawn for a query."""
    return row_random_at(seed, QUERY_STREAM, row_numbers)


def read_pool_rows(
    pool: Pool, rows: ArrayLike, *, client: "Client | None" = None
) -> pd.DataFrame:
    """Read some rows of a pool again, with all of its columns.

    `rows` are distinct global row numbers, in any order, which the returned frame
    keeps; its index is ``pool_row``.
    """
    wanted = np.asarray(rows, dtype=np.int64)
    ascending = np.sort(wanted)
    # Only the chunks that hold a wanted row are read.
    slices = [
        pool_slice
        for pool_slice in pool.slices(1)
        if np.diff(np.searchsorted(ascending, [pool_slice.start, pool_slice.stop]))[0]
    ]
    if not slices:
        return frame_for_labeling(np.empty((0, pool.n_columns)), wanted, pool.columns)

    def pick(X: Any, row_numbers: Integers) -> list[pd.DataFrame]:
        places = np.flatnonzero(np.isin(row_numbers, ascending))
        if not len(places):
            return []
        return [frame_for_labeling(X[places], row_numbers[places], pool.columns)]

    parts = pool.with_schema(pool.frames).reduce(
        pick,
        lambda before, after: before + after,
        client=client,
        allow_nan=True,
        slices=slices,
    )
    return pd.concat(parts).loc[wanted]


def with_pool_index(rows: pd.DataFrame, pool: Pool) -> pd.DataFrame:
    """Return rows by the pool's own pandas index, if it has one, else by row number.

    Labels are matched by the index. A frame of pandas whose index is not 0, 1, ...,
    such as one of `train_test_split`, has another row than the intended one under most
    row numbers, and the labels of that row would be taken without an error.
    """
    own = pool.origin.index
    if own is None or rows.index.name != POOL_ROW:
        return rows
    # NumPy refuses objects as positions, which these are not.
    values = own[rows.index.to_numpy()].astype(object)
    return rows.set_axis(values.rename(POOL_INDEX), axis=0)


def frame_for_labeling(
    rows: Any, row_numbers: Integers, columns: Sequence[str] | None
) -> pd.DataFrame:
    """Return rows as a data frame for the person who labels them, by row number."""
    index = pd.Index(row_numbers, name=POOL_ROW)
    if isinstance(rows, Frame):
        return rows.given.set_axis(index, axis=0)
    values = rows.toarray() if sparse.issparse(rows) else rows
    names = columns or [f"x{place}" for place in range(values.shape[1])]
    return pd.DataFrame(values, index=index, columns=list(names))
