"""Pool rows that equal a labeled row, counted in one pass.

They may be the same records or others that look alike: a bound reads the pool's counts
as if it had so many rows fewer, which is valid for both. Nothing is left out.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.frames import encoded
from dsel.data.identity import row_hashes
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool

_FIRST_COLUMNS: Final = 8


def equal_rows(pool: Pool, labeled: LabeledRows) -> Callable[..., int]:
    """Return what counts the rows of a matching pool that equal a labeled row.

    Rows are compared in the type with fewer digits, as rows of the other one were
    rounded. Zeros of either sign are equal, and so are missing values. Rows are told by
    hashes of 64 bits: a chance hit makes the count one larger, which a bound may well
    be told.
    """
    X, dtype = encoded(labeled.X), np.dtype(np.float64)
    if pool.dtype.kind != "O":
        # No float becomes a whole number, and no whole number one too small for it.
        both = X.dtype, pool.dtype
        floats = [each for each in both if each.kind == "f"]
        floats = floats or [np.result_type(*both)]
        dtype = min(floats, key=lambda each: each.itemsize)
    elif pool.frames is not None:  # rounded as the pool's floats
        X = np.array(X)
        for place, column in enumerate(pool.frames.columns):
            if column.dtype.lower() in ("float32", "float[pyarrow]"):
                X[:, place] = X[:, place].astype(np.float32)
    dtype = dtype.newbyteorder("=")
    if pool.is_sparse != sparse.issparse(X):
        X = sparse.csr_matrix(X) if pool.is_sparse else X.toarray()
    known, columns = comparable(X, dtype), [slice(None)]
    if not pool.is_sparse and pool.n_columns >= 2 * _FIRST_COLUMNS:
        # Most rows differ from all known ones in a few columns already.
        columns.insert(0, slice(None, None, pool.n_columns // _FIRST_COLUMNS))
    stages = [(some, np.unique(row_hashes(known[:, some]))) for some in columns]

    def count(X: Any, rows: NDArray[np.int64]) -> int:
        likely = encoded(X)
        for some, hashed in stages:
            hashes = row_hashes(comparable(likely[:, some], dtype))
            places = np.searchsorted(hashed, hashes) % len(hashed)
            likely = likely[np.flatnonzero(hashed[places] == hashes)]
        return int(likely.shape[0])

    return count


def comparable(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows such that equal rows have equal bytes."""
    X = encoded(X)
    if sparse.issparse(X):
        matrix = sparse.csr_matrix(X, dtype=dtype, copy=True)
        matrix.sum_duplicates()
        matrix.data = comparable(matrix.data, dtype)
        matrix.eliminate_zeros()
        return matrix
    values = np.ascontiguousarray(X, dtype)
    if dtype.kind == "f":
        values = values + dtype.type(0)  # turns -0.0 into 0.0
        values[np.isnan(values)] = np.nan
    return values
