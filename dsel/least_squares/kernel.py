"""Gaussian kernels by width, and the decomposition that all regularizations share."""

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dsel.arrays import Floats
from dsel.kernels.functions import Rbf
from dsel.kernels.reference_rows import squared_distances

EPS: Final = float(np.finfo(np.float64).eps)
NARROWEST: Final = 1e-150
"""Below this width the square underflows; kernels of rows that differ are 0."""
COPIES: Final = 4
"""Matrices of n x n that a decomposition holds at once: gram, vectors, workspace."""


@dataclass(frozen=True)
class Spectrum:
    """A symmetric matrix M = Q diag(mu) Q' that a penalty stands for."""

    vectors: Floats
    """Q, orthogonal, shape (n, n)."""
    values: Floats
    """mu, shape (n,), in no particular order; what is below 0 is rounding."""

    def rounding_limit(self) -> float:
        """Return n eps max(mu): an eigenvalue below it may be 0 but for rounding."""
        largest = float(np.max(self.values, initial=0.0))
        return len(self.values) * EPS * largest

    def is_singular(self) -> bool:
        """Whether M may be singular but for rounding."""
        return bool(self.values.min() <= self.rounding_limit())


def gaussian_kernel(rows: Any, centers: Any, *, width: float) -> Floats:
    """Return exp(-||x - z||^2 / (2 c^2)) for every row x and centre z, dense or CSR.

    Scikit-learn's ``gamma`` is 1 / (2 c^2).
    """
    return _exponentiate(squared_distances(rows, centers), width)


def gaussian_gram(distances: Floats, *, width: float) -> Floats:
    """Return the kernel of rows with themselves from their squared distances.

    It is exactly symmetric, whatever order a product summed in, with ones on the
    diagonal.
    """
    gram = _exponentiate(distances, width)
    gram = (gram + gram.T) / 2.0
    np.fill_diagonal(gram, 1.0)
    return gram


def _exponentiate(distances: Floats, width: float) -> Floats:
    width = max(width, NARROWEST)
    with np.errstate(over="ignore", under="ignore"):
        return Rbf(0.5 / (width * width)).values(distances)


def decompose_gram(gram: Floats, *, penalty: str) -> Spectrum:
    """Factor M of a kernel model with one centre per row.

    M = K^2 for the penalty ``"coefficients"``, K for ``"rkhs"``. The eigenvalues of K^2
    are squared, not computed, which keeps the small ones accurate.
    """
    values, vectors = np.linalg.eigh(gram)
    return Spectrum(vectors, values**2 if penalty == "coefficients" else values)


def whitening(centers: Floats, *, width: float) -> Floats:
    """Return W with W W' = K^+, so that K(x, Z) W has the RKHS norm as its own.

    K is the kernel of the b centres with themselves; the shape is (b, r), r its
    numerical rank.
    """
    gram = gaussian_gram(squared_distances(centers, centers), width=width)
    values, vectors = np.linalg.eigh(gram)
    # Smaller ones are rounding: duplicate centres span fewer dimensions.
    kept = values > len(values) * EPS * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def check_memory(n_rows: int) -> None:
    """Raise ValueError where memory cannot hold a decomposition of n x n."""
    needed = COPIES * 8 * n_rows**2
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise ValueError(
            f"`X` has {n_rows} rows: a kernel matrix with one centre per row takes "
            f"{8 * n_rows**2 / 1e9:.5g} GB, its decomposition {needed / 1e9:.3g} GB, "
            f"and this machine has {memory / 1e9:.5g} GB; take fewer centres: "
            f"KernelLeastSquares(n_centers=1000), or StreamedLeastSquaresSearch, which "
            f"reads the rows in chunks."
        )
