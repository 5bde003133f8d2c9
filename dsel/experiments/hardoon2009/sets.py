"""The eight data sets of the nonconformity paper, cleaned as its Table 1 says."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.datasets import BenchmarkSet, load_set

Table = tuple[NDArray[np.float64], NDArray[np.int64]]

SCALINGS: Final = ("range", "raw")
"""Features scaled to [-1, 1], or left alone: the paper does not say which."""

FEATURES: Final = {"range": "features scaled to [-1, 1]", "raw": "raw features"}
"""What `SCALINGS` are called in captions."""

SIZES: Final[Mapping[str, tuple[int, int, int, int]]] = {
    "votes": (52, 16, 18, 34),
    "glass": (163, 9, 87, 76),
    "haberman": (294, 3, 219, 75),
    "bupa": (345, 6, 145, 200),
    "credit": (653, 15, 296, 357),
    "pima": (768, 8, 269, 499),
    "breast": (683, 9, 239, 444),
    "ionosphere": (351, 34, 225, 126),
}
"""Table 1 as printed: rows, columns, positive and negative rows."""


def load_table(name: str, *, folder: str | Path | None = None) -> Table:
    """Load one of the sets of `SIZES`: features and labels +1, -1.

    Raises
    ------
    KeyError
        Where the paper has no such set.
    """
    file, positive, clean = RECIPES[name]
    return clean(load_set(file, folder=folder), positive)


def scale_to_range(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every column to [-1, 1]; constant ones become -1."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.asarray(2.0 * (X - low) / width - 1.0)


def _complete(table: BenchmarkSet, positive: str) -> Table:
    rows = ~np.isnan(table.X).any(axis=1)
    labels = np.where(table.classes[table.y] == positive, 1, -1)
    return table.X[rows].astype(np.float64), labels[rows]


def _without_contradictions(table: BenchmarkSet, positive: str) -> Table:
    """Drop every row of a feature vector that occurs with both labels."""
    X, y = _complete(table, positive)
    _, groups = np.unique(X, axis=0, return_inverse=True)
    groups = np.ravel(groups)
    n_positive = np.bincount(groups, weights=y > 0)
    pure = (n_positive == 0) | (n_positive == np.bincount(groups))
    return X[pure[groups]], y[pure[groups]]


def _float_glass(table: BenchmarkSet, positive: str) -> Table:
    """Take float (classes 1 and 3) against non-float building windows (class 2)."""
    del positive
    labels = table.classes[table.y]
    rows = np.isin(labels, ["1", "2", "3"])
    return table.X[rows].astype(np.float64), np.where(labels[rows] == "2", -1, 1)


_Clean = Callable[[BenchmarkSet, str], Table]
RECIPES: Final[Mapping[str, tuple[str, str, _Clean]]] = {
    "votes": ("votes", "republican", _complete),
    "glass": ("glass", "", _float_glass),
    "haberman": ("haberman", "1", _without_contradictions),
    "bupa": ("bupa", "1", _complete),
    "credit": ("crx", "+", _complete),
    "pima": ("pima", "1", _complete),
    "breast": ("breast_cancer_wisconsin", "malignant", _complete),
    "ionosphere": ("ionosphere", "g", _complete),
}
"""File, label of the positive class, cleaning."""
