"""Names of array types, rows as float64, and a hash of arrays by content."""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


def as_floats(rows: Any) -> Any:
    """Return rows in float64, dense in C order or CSR.

    Raises
    ------
    ValueError
        Where an entry is infinite or not a number.
    """
    if sparse.issparse(rows):
        rows = rows.tocsr().astype(np.float64)
        finite = np.isfinite(rows.data).all()
    else:
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        finite = np.isfinite(rows).all()
    if not finite:
        raise ValueError(
            "`X` must be finite for a kernel method, got NaN or infinity; put an "
            "imputer before it in a pipeline."
        )
    return rows


def fingerprint(*arrays: Any) -> str:
    """Return a text that names the contents of arrays, dense or sparse."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        is_sparse = sparse.issparse(array)
        parts = (array.data, array.indices, array.indptr) if is_sparse else (array,)
        digest.update(f"{array.shape}".encode())
        for part in parts:
            whole = np.ascontiguousarray(part)
            digest.update(f"{whole.shape}{whole.dtype}".encode())
            digest.update(whole.tobytes() if whole.dtype.kind == "O" else whole.data)
    return digest.hexdigest()
