"""The matrix M of one kernel width, and coefficients from dual vectors."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dsel.kernels.eigen import (
    Spectrum,
    check_memory,
    decompose_design,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    whitening,
)

Floats = NDArray[np.float64]

BROKEN_BY_ROW_CENTERS = (
    "penalty='coefficients' with a centre at every labeled row: the fold models keep "
    "the kernels at held-out rows; use penalty='rkhs', or `centers` that were fixed "
    "without the labeled rows"
)


@dataclass(frozen=True)
class KernelBasis:
    """Where the kernels of a group stand and what their coefficients cost."""

    width: float
    """c > 0."""
    penalty: str
    """``"coefficients"`` or ``"rkhs"``."""
    centers: Floats | None
    """z, or None for one centre per labeled row."""

    def centers_for(self, X: Any) -> Any:
        """Return z, shape (n_centers, n_columns)."""
        return X if self.centers is None else self.centers

    def spectrum(self, X: Any) -> Spectrum:
        """Factor M of all rows: the one decomposition of a width."""
        if self.centers is not None:
            return decompose_design(self._design(X, self.centers))
        check_memory(X.shape[0])
        return decompose_gram(gaussian_gram(X, width=self.width), penalty=self.penalty)

    def spectrum_of_part(self, X: Any, rows: NDArray[np.int64]) -> Spectrum:
        """Factor M of some rows alone, with the same centres."""
        if dependence(self.penalty, self.centers):
            return decompose_design(self._design(X[rows], X))
        return self.spectrum(X[rows])

    def coefficients(self, X: Any, dual: Floats) -> Floats:
        """Return alpha, shape (n_centers, ...), of dual vectors, shape (n, ...)."""
        flat = dual.reshape(len(dual), -1)
        if self.centers is not None:
            root = self._root(self.centers)
            design = gaussian_kernel(X, self.centers, width=self.width)
            flat = root @ (root.T @ (design.T @ flat))
        elif self.penalty == "coefficients":
            flat = gaussian_gram(X, width=self.width) @ flat
        return flat.reshape(-1, *dual.shape[1:])

    def token(self, X: Any) -> str:
        """Name the decomposition by content, for the cache."""
        where = "rows" if self.centers is None else rows_token(self.centers)
        return f"{self.width!r} {self.penalty} {rows_token(X)} {where}"

    def _design(self, X: Any, centers: Any) -> Floats:
        kernel = gaussian_kernel(X, centers, width=self.width)
        return kernel @ self._root(centers) if self.penalty == "rkhs" else kernel

    def _root(self, centers: Any) -> Floats:
        if self.penalty == "coefficients":
            return np.eye(centers.shape[0])
        return whitening(gaussian_gram(centers, width=self.width))


def dependence(penalty: str, centers: Any) -> str:
    """Return why fold models depend on their held-out rows (A3), empty if not."""
    has_row_centers = penalty == "coefficients" and centers is None
    return BROKEN_BY_ROW_CENTERS if has_row_centers else ""


def rows_token(rows: Any) -> str:
    """Return a hash of the values of a dense or CSR table."""
    digest = blake2b(f"{rows.shape} {rows.dtype}".encode(), digest_size=16)
    is_sparse = scipy.sparse.issparse(rows)
    parts = (rows.data, rows.indices, rows.indptr) if is_sparse else (rows,)
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def as_floats(rows: Any) -> Any:
    """Return rows as float64: CSR as it is, all else as an array."""
    if scipy.sparse.issparse(rows):
        return rows.tocsr().astype(np.float64)
    return np.asarray(rows, np.float64)
