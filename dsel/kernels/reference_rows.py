"""The base of kernels: squared distances or inner products with fixed rows.

The base of two rows is the number from which a kernel computes its value: their
squared distance or their inner product. Kernels of all gammas and degrees share it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse

from dsel.arrays import ArrayLike, Floats

DISTANCES: Final = "distances"
PRODUCTS: Final = "products"
VALUES: Final = "values"
EPS = np.finfo(np.float64).eps
CACHED: Final = 2**14  # entries of an array that stay in the fastest caches
SAMPLED: Final = 1000  # rows from which medians are computed


def squared_lengths(X: Any) -> Floats:
    """Return the squared norm of every row, shape (n_rows,)."""
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X), dtype=np.float64)


def inner_products(X: Any, Z: Any) -> Floats:
    """Return the inner products of rows, shape (n_rows of X, n_rows of Z), float64."""
    product = X @ Z.T
    return np.asarray(
        product.toarray() if issparse(product) else product, dtype=np.float64
    )


def squared_distances(X: ArrayLike, Z: Any) -> Floats:
    """Return squared distances of rows, dense or CSR, (n_rows of X, n_rows of Z).

    They are never negative, and symmetric with a zero diagonal where `X` is `Z`.
    """
    return reference_rows(Z, DISTANCES).base_of(X)


@dataclass(frozen=True)
class ReferenceRows:
    """Fixed rows, with the distances or products of other rows to them."""

    kind: str
    """``DISTANCES``, ``PRODUCTS`` or ``VALUES``."""
    rows: Any
    """The rows, float64, dense or CSR."""
    medians: Floats | None
    """Medians of the columns, which are subtracted from all rows before distances are
    computed; None for products and sparse rows."""
    shifted: Any
    """The rows minus the medians; distances are the same."""
    lengths: Floats
    """Squared norms of the shifted rows, (n_rows,)."""

    def shift(self, X: Any) -> Any:
        """Subtract the medians from rows."""
        return X if self.medians is None else X - self.medians

    def base_of(self, X: ArrayLike) -> Floats:
        """Return the base of rows and the fixed rows, (n_rows of X, n_rows).

        Squared distances are |x|^2 + |z|^2 - 2 x.z; values that rounding makes negative
        become 0. The base of the fixed rows themselves is symmetric, with a zero
        diagonal. Where the user computed the kernel (``VALUES``), `X` is the base.
        """
        if self.kind == VALUES:
            return np.asarray(X, dtype=np.float64)
        same = X is self.rows
        # Far from the origin |x|^2 and x.z nearly cancel, so distances are computed
        # after a shift by the medians.
        moved = self.shifted if same else self.shift(X)
        if self.kind == PRODUCTS:
            return inner_products(moved, self.shifted)
        lengths = self.lengths if same else squared_lengths(moved)
        base = inner_products(-2.0 * moved, self.shifted)
        # Adding the sum of both norms, not one after the other, keeps the matrix
        # exactly symmetric. A few rows at a time stay in the processor's cache.
        step = max(1, CACHED // max(1, base.shape[1]))
        for start in range(0, len(base), step):
            rows = slice(start, start + step)
            base[rows] += lengths[rows, np.newaxis] + self.lengths
            np.maximum(base[rows], 0.0, out=base[rows])
        if same:
            np.fill_diagonal(base, 0.0)
        return base

    def rounding(self, X: Any, reach: float = np.inf) -> tuple[Floats, Floats]:
        """Bound the error and the size of the base of each row, (n_rows,).

        Distances count up to a squared distance of `reach`; see `functions.errors_of`.
        """
        if self.kind == VALUES:
            exact = np.zeros(X.shape[0])
            return exact, exact
        lengths, longest = squared_lengths(self.shift(X)), self.lengths.max(initial=0.0)
        if self.kind == DISTANCES:
            # The norm of a row is at most that of another one plus their distance
            # (triangle inequality).
            near = (np.sqrt(lengths) + np.sqrt(reach)) ** 2
            longest_near = (np.sqrt(longest) + np.sqrt(reach)) ** 2
            size = 2.0 * (np.minimum(lengths, longest_near) + np.minimum(longest, near))
        else:
            size = np.sqrt(lengths * longest)
        # A dot product of p terms is off by at most p eps times its size; 4 more cover
        # the shift, the norms and the sum.
        return 2.0 * EPS * (self.rows.shape[1] + 4) * size, size

    def exact_base_of(self, x: Any) -> Floats:
        """Return the base of one row, (n_rows,), independent of other rows.

        Sums are added in an order that depends on the number of columns alone, unlike
        in a matrix product, whose rounding depends on the number of rows.
        """
        x = np.ravel(x.toarray() if issparse(x) else x).astype(np.float64)
        if self.kind == VALUES:
            return np.asarray(x)
        if issparse(self.rows):
            products = np.asarray(self.rows @ x)
            if self.kind == PRODUCTS:
                return products
            distances = (x * x).sum() + self.lengths - 2 * products
            return np.asarray(np.maximum(distances, 0.0))
        if self.kind == PRODUCTS:
            return np.asarray((self.rows * x).sum(axis=1))
        difference = self.rows - x  # differences first: no cancellation
        with np.errstate(over="ignore"):
            return np.asarray((difference * difference).sum(axis=1))


def reference_rows(rows: Any, kind: str) -> ReferenceRows:
    """Return fixed rows, float64, dense or CSR, prepared for a `Kernel.base`."""
    if kind == VALUES:
        return ReferenceRows(kind, rows, None, rows, np.zeros(0))
    centered = kind == DISTANCES and not issparse(rows) and rows.shape[0] > 0
    # The center consists of medians, since a huge fill value in one row would move a
    # mean far away.
    medians = None
    if centered:
        medians = np.median(rows[:: len(rows) // SAMPLED + 1], axis=0)
    shifted = rows if medians is None else rows - medians
    return ReferenceRows(kind, rows, medians, shifted, squared_lengths(shifted))
