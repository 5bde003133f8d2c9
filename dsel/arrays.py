"""Names of array types, plain numbers, and rows in float64."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


def as_plain(value: Any) -> Any:
    """Return a number of numpy as Python's own, which texts and JSON show as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_floats(rows: Any) -> Any:
    """Return rows in float64, dense in C order or CSR, or raise if not finite."""
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
