"""Duplicate rows: how they are found, and random numbers that equal rows share.

Pool rows that equal a labeled row are counted in one pass. They may be the same records
or others that look alike: bounds read the pool's counts such that they are valid for
both. Nothing is left out.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.frames import encode_rows
from dsel.data.identity import row_hashes
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.data.row_random import mix_bits, row_random

_FIRST_COLUMNS: Final = 8


FindDuplicates = Callable[[Any], NDArray[np.bool_]]
"""Takes a block of the pool, and says for each row whether it equals a labeled row."""


def duplicate_finder(pool: Pool, labeled: LabeledRows) -> FindDuplicates:
    """Return a function that finds rows of a matching pool that equal a labeled row.

    Rows are compared in the type with fewer digits, as rows of the other one were
    rounded. Zeros of either sign are equal, and so are missing values. Rows are told by
    hashes of 64 bits: a chance hit makes a bound larger, never too small.
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
    known, columns = comparable(X, dtype), [slice(None)]
    if not pool.stored_schema.is_sparse and pool.n_columns >= 2 * _FIRST_COLUMNS:
        # Most rows differ from all known ones in a few columns already.
        columns.insert(0, slice(None, None, pool.n_columns // _FIRST_COLUMNS))
    stages = [(some, np.unique(row_hashes(known[:, some]))) for some in columns]

    def find(X: Any) -> NDArray[np.bool_]:
        likely = encode_rows(X)
        rows = np.arange(likely.shape[0])
        for some, hashed in stages:
            hashes = row_hashes(comparable(likely[:, some], dtype))
            places = np.searchsorted(hashed, hashes) % len(hashed)
            is_known = np.flatnonzero(hashed[places] == hashes)
            likely, rows = likely[is_known], rows[is_known]
        found = np.zeros(X.shape[0], dtype=bool)
        found[rows] = True
        return found

    return find


def compared_type(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which rows of two types are compared."""
    # No float becomes a whole number, and no whole number one too small for it.
    floats = [each for each in (first, second) if each.kind == "f"]
    floats = floats or [np.result_type(first, second)]
    return min(floats, key=lambda each: each.itemsize)


def known_hashes(X: Any) -> dict[str, NDArray[np.uint64]]:
    """Return the sorted hashes of rows, for each type that other rows may have.

    With them `find_equal` finds equal rows, and the rows themselves need not be kept.
    """
    single, double = (np.dtype(kind) for kind in (np.float32, np.float64))
    types = [single] if X.dtype == single else [single, double]
    with np.errstate(over="ignore"):  # too large for float32: infinite in both
        return {each.name: np.unique(row_hashes(comparable(X, each))) for each in types}


def find_equal(X: Any, known: Mapping[str, NDArray[np.uint64]]) -> NDArray[np.bool_]:
    """Return a mask of the rows that equal one of the rows of `known_hashes`."""
    widest = np.dtype(max(known))  # "float64", unless they were float32
    dtype = compared_type(X.dtype, widest) if X.dtype.kind == "f" else widest
    dtype = max(dtype, np.dtype(np.float32), key=lambda each: each.itemsize)
    with np.errstate(over="ignore"):
        hashes = row_hashes(comparable(X, dtype))
    return np.isin(hashes, known[dtype.name])


def content_random(X: Any, seed: int, stream: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each row, a function of its values, seed and stream.

    Equal rows share them, wherever they stand, dense or sparse, of any type of numbers.
    """
    key = row_random(seed, stream, 0, 1)
    return mix_bits(mix_bits(row_hashes(comparable(X, np.dtype(np.float64)))) ^ key)


def comparable(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows in a form in which equal rows have equal bytes."""
    X = encode_rows(X)
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
