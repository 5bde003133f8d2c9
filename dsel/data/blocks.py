"""Rows of a block: in one layout, checked, put together, cut."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.frames import NUMBER, Frame


def in_one_layout(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return rows in one layout for all chunkings: BLAS may round others differently.

    Of sparse ones that is CSR, with one entry for each place.
    """
    if sparse.issparse(X):
        return summed(sparse.csr_matrix(X, dtype=dtype))
    return np.ascontiguousarray(X, dtype=dtype)


def numbers_of(frame: pd.DataFrame, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the rows of a frame of numbers as an array of one layout."""
    missing = {"na_value": np.nan} if dtype.kind == "f" else {}
    return np.ascontiguousarray(frame.to_numpy(dtype=dtype, **missing))


def check_finite(
    X: Any,
    where: str,
    rows: NDArray[np.int64],
    names: Sequence[str] | None,
    allow_nan: bool,
) -> None:
    """Raise ValueError where a number is infinite, or NaN unless allowed.

    Gaps in columns of text, dates and the like are for the estimator to judge.
    """
    only_names = isinstance(X, Frame) and isinstance(X.given, pd.DataFrame)
    if only_names:
        names = [each.name for each in X.schema.columns if each.kind == NUMBER]
        X = X.float_columns
    elif isinstance(X, Frame):
        X = X.given
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        # A sum of squares is several times faster than a look at each value, and is
        # finite only if they all are; it may overflow, so a bad one proves nothing.
        flat = values.reshape(-1)
        if np.isfinite(np.dot(flat, flat)):
            return
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not bad.any():
        return
    if sparse.issparse(X):
        entries, places = sparse.coo_matrix(X), np.flatnonzero(bad)
        row, column = min(zip(entries.row[places], entries.col[places], strict=True))
    else:
        row, column = np.argwhere(bad)[0]
    name = "" if names is None else f"{names[column]!r}"
    which = name if only_names else f"{column} ({name})" if name else f"{column}"
    raise ValueError(
        f"{where} must hold finite numbers, but row {rows[row]}, column {which} is "
        f"{X[row, column]} (NaN or infinite, 'inf'); drop the row, or put an imputer "
        f"in front of the estimator if values are missing."
    )


def stacked(parts: Sequence[Any]) -> Any:
    """Return blocks of rows as one: CSR where any of them is sparse."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Frame):
        return Frame(stacked([part.given for part in parts]), first.schema)
    if isinstance(first, pd.DataFrame):
        return pd.concat(parts)
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(list(parts), format="csr")
    return np.concatenate(parts)


def summed(rows: Any) -> Any:
    """Return rows as they are; sparse ones as CSR with one entry for each place.

    A place may be listed twice, as counted words are. scikit-learn's neighbours and
    SVMs would not add these up.
    """
    if not sparse.issparse(rows):
        return rows
    matrix = rows.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
