"""Functions that find duplicate rows, and random numbers that equal rows share.

Pool rows that equal a labeled row are counted in one pass, not removed. They may be the
same records or others that look alike, and bounds are valid in both cases.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.arrays import Bools, Features
from dsel.data.frames import encode_rows
from dsel.data.identity import row_hashes
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.row_random import mix_bits, row_random

_FIRST_COLUMNS: Final = 8


FindDuplicates = Callable[[Any], Bools]
"""Function that returns a mask of the rows of a pool block that equal a labeled row."""


def duplicate_finder(pool: Pool, labeled: LabeledRows) -> FindDuplicates:
    """Return a function that finds rows of a matching pool that equal a labeled row.

    Rows are compared in the type with fewer digits, because the same values may have
    been rounded to it. Zeros of either sign are equal, and so are missing values. Rows
    are compared by hashes of 64 bits; a collision makes a bound larger, never too
    small.
    """
    X, dtype = encode_rows(labeled.X), np.dtype(np.float64)
    if pool.dtype.kind != "O":
        dtype = compared_type(X.dtype, pool.dtype)
    elif pool.frames is not None:  # rounded as the pool's floats
        X = np.array(X)
        for place, column in enumerate(pool.frames.columns):
            if column.dtype.lower() in ("float32", "float[pyarrow]"):
                X[:, place] = X[:, place].astype(np.float32)
    dtype = dtype.newbyteorder("=")
    if pool.stored_schema.is_sparse != sparse.issparse(X):
        X = sparse.csr_matrix(X) if pool.stored_schema.is_sparse else X.toarray()
    known, columns = make_comparable(X, dtype), [slice(None)]
    if not pool.stored_schema.is_sparse and pool.n_columns >= 2 * _FIRST_COLUMNS:
        # A few columns are compared first: most rows differ there from all known ones.
        columns.insert(0, slice(None, None, pool.n_columns // _FIRST_COLUMNS))
    stages = [
        (compared_columns, np.unique(row_hashes(known[:, compared_columns])))
        for compared_columns in columns
    ]

    def find(X: Features) -> Bools:
        """Return which rows equal a labeled one; hashes of a few columns come first."""
        likely = encode_rows(X)
        rows = np.arange(likely.shape[0])
        for compared_columns, hashed in stages:
            hashes = row_hashes(make_comparable(likely[:, compared_columns], dtype))
            positions = np.searchsorted(hashed, hashes) % len(hashed)
            is_known = np.flatnonzero(hashed[positions] == hashes)
            likely, rows = likely[is_known], rows[is_known]
        is_equal = np.zeros(X.shape[0], dtype=bool)
        is_equal[rows] = True
        return is_equal

    return find


def compared_type(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which rows of two types are compared."""
    # A float type wins over integers, which could not hold its fractions; two integer
    # types are compared in one that holds both.
    floats = [dtype for dtype in (first, second) if dtype.kind == "f"]
    floats = floats or [np.result_type(first, second)]
    return min(floats, key=lambda dtype: dtype.itemsize)


def known_hashes(X: Any) -> dict[str, NDArray[np.uint64]]:
    """Return the sorted hashes of rows, for each type that other rows may have.

    `find_equal` needs only these hashes, so the rows themselves need not be stored.
    """
    single, double = (np.dtype(kind) for kind in (np.float32, np.float64))
    types = [single] if X.dtype == single else [single, double]
    # Values that are too large for float32 are infinite in both tables.
    with np.errstate(over="ignore"):
        return {t.name: np.unique(row_hashes(make_comparable(X, t))) for t in types}


def find_equal(X: Any, known: Mapping[str, NDArray[np.uint64]]) -> Bools:
    """Return a mask of the rows that equal one of the rows of `known_hashes`."""
    widest = np.dtype(max(known))  # "float64", unless they were float32
    dtype = compared_type(X.dtype, widest) if X.dtype.kind == "f" else widest
    dtype = max(dtype, np.dtype(np.float32), key=lambda dtype: dtype.itemsize)
    with np.errstate(over="ignore"):
        hashes = row_hashes(make_comparable(X, dtype))
    return np.isin(hashes, known[dtype.name])


def content_random(X: Features, seed: int, stream: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each row, a function of its values, seed and stream.

    Equal rows have equal bits at any position, dense or sparse, in any numeric type.
    """
    key = row_random(seed, stream, 0, 1)
    return mix_bits(
        mix_bits(row_hashes(make_comparable(X, np.dtype(np.float64)))) ^ key
    )


def make_comparable(X: Features, dtype: np.dtype[Any]) -> Any:
    """Return rows in a form in which equal rows have equal bytes."""
    X = encode_rows(X)
    if sparse.issparse(X):
        matrix = sparse.csr_matrix(X, dtype=dtype, copy=True)
        matrix.sum_duplicates()
        matrix.data = make_comparable(matrix.data, dtype)
        matrix.eliminate_zeros()
        return matrix
    values = np.ascontiguousarray(X, dtype)
    if dtype.kind == "f":
        values = values + dtype.type(0)  # turns -0.0 into 0.0
        values[np.isnan(values)] = np.nan
    return values
