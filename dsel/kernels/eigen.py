"""Gaussian kernels by width, and the factorisation all regularizations share."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.deflation import decompose_in_two_levels, smallest_eigenvalue
from dsel.kernels.functions import Rbf
from dsel.kernels.reference_rows import squared_distances

Floats = NDArray[np.float64]
Floor = Callable[[float], float]
"""What lam adds to the small eigenvalues of K: itself, or its root where M = K^2."""

EPS = float(np.finfo(np.float64).eps)
LOOSE, STRICT, STRICT_FROM = 1e-8, 1e-10, 1e-3
"""Relative error that rounding may cause in 1 / (mu + lam); strict from this lam on."""
MARGIN = 64.0
"""Factor by which the error of a decomposition must be below the allowed one: folds
may amplify it."""
NARROWEST = 1e-150
"""Below this width the square underflows; kernels of rows that differ are 0."""
COPIES = 4
"""Matrices of n x n that a decomposition holds at once: gram, vectors, workspace."""


@dataclass(frozen=True)
class Spectrum:
    """A symmetric matrix M = Q diag(mu) Q' that a penalty stands for."""

    vectors: Floats
    """Q, orthogonal, shape (n, n)."""
    values: Floats
    """mu, shape (n,), in no particular order; what is below 0 is rounding."""

    @property
    def nbytes(self) -> int:
        """Memory of both arrays."""
        return int(self.vectors.nbytes + self.values.nbytes)

    def rounding_limit(self) -> float:
        """Return n eps max(mu): an eigenvalue below it may be 0 but for rounding."""
        largest = float(np.max(self.values, initial=0.0))
        return len(self.values) * EPS * largest


def gaussian_kernel(rows: Any, centers: Any, *, width: float) -> Floats:
    """Return exp(-||x - z||^2 / (2 c^2)) for every row x and centre z.

    Parameters
    ----------
    rows, centers
        Dense or CSR, shapes (n_rows, n_columns) and (n_centers, n_columns).
    width
        c > 0; scikit-learn's ``gamma`` is 1 / (2 c^2).

    Returns
    -------
    ndarray
        Shape (n_rows, n_centers), values in [0, 1].
    """
    return exponentiate(squared_distances(rows, centers), width)


def gaussian_gram(rows: Any, *, width: float) -> Floats:
    """Return the kernel of rows with themselves: symmetric, ones on the diagonal."""
    return symmetric_gram(squared_distances(rows, rows), width)


def symmetric_gram(distances: Floats, width: float) -> Floats:
    """Return the gram matrix of one set of rows from its squared distances."""
    gram = exponentiate(distances, width)
    # Exactly symmetric, whatever order the product summed in.
    gram = (gram + gram.T) / 2.0
    np.fill_diagonal(gram, 1.0)
    return gram


def exponentiate(distances: Floats, width: float) -> Floats:
    """Return Gaussian kernel values of squared distances."""
    width = max(width, NARROWEST)
    with np.errstate(over="ignore", under="ignore"):
        return Rbf(0.5 / (width * width)).values(distances)


def decompose_gram(gram: Floats, *, penalty: str, least: float = math.inf) -> Spectrum:
    """Factor the matrix M of a kernel model with one centre per row.

    Parameters
    ----------
    gram
        K, symmetric, values in [0, 1], shape (n, n).
    penalty
        ``"coefficients"`` (M = K^2) or ``"rkhs"`` (M = K). Both come from the same
        decomposition: the eigenvalues of K^2 are squared, not computed, which keeps
        the small ones accurate.
    least
        Smallest positive lam that will be added to M. Rounding may change
        1 / (mu + lam) by 1e-8 of it, and by 1e-10 from lam = 1e-3 on. One
        decomposition of K is off by eps times its largest eigenvalue; where that is
        too much beside the smallest one and lam, K is decomposed in two levels.
    """
    if penalty == "coefficients":
        kappa, vectors = _decompose(gram, least, math.sqrt)
        # K^2 has the eigenvectors of K.
        return Spectrum(vectors, kappa**2)
    kappa, vectors = _decompose(gram, least, float)
    return Spectrum(vectors, kappa)


def _decompose(gram: Floats, least: float, to_floor: Floor) -> tuple[Floats, Floats]:
    """Return eigenvalues and vectors of K as exactly as `least` asks for."""
    largest = float(gram.sum(axis=0).max())  # at least the largest eigenvalue
    strict = STRICT * to_floor(STRICT_FROM)
    floor = to_floor(least)
    # Worth a Cholesky only if one decomposition may be too inexact.
    if MARGIN * EPS * largest > _allowed(floor, strict):
        floor += smallest_eigenvalue(gram)
    allowed = _allowed(floor, strict)
    if MARGIN * EPS * largest <= allowed:
        values, vectors = np.linalg.eigh(gram)
        return values, vectors
    # Where nothing keeps to that, the errors of both levels, eps cut / floor and
    # eps largest / cut, are made equal.
    cut = max(allowed / (MARGIN * EPS), math.sqrt(largest * floor))
    return decompose_in_two_levels(gram, cut)


def _allowed(floor: float, strict: float) -> float:
    """Return by how much eigenvalues of K may be off where `floor` is added to them."""
    return max(min(LOOSE * floor, strict), STRICT * floor)


def decompose_design(design: Floats) -> Spectrum:
    """Factor M = X X' of a linear model with design X, shape (n, b).

    Q is complete (n x n) also where b < n, so that its part outside the columns of X
    is known without a subtraction.
    """
    vectors, singular, _ = np.linalg.svd(design, full_matrices=True)
    values = np.zeros(len(design))
    values[: len(singular)] = singular**2
    return Spectrum(vectors, values)


def whitening(gram: Floats) -> Floats:
    """Return W with W W' = K^+, so that K(x, Z) W has the RKHS norm as its own.

    Parameters
    ----------
    gram
        Kernel of the b centres with themselves, shape (b, b).

    Returns
    -------
    ndarray
        Shape (b, r), r the numerical rank of the gram matrix.
    """
    values, vectors = np.linalg.eigh(gram)
    # Smaller ones are rounding: duplicate centres span fewer dimensions.
    limit = len(values) * EPS * values[-1]
    kept = values > limit
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def check_memory(n_rows: int, limit: int | None = None) -> None:
    """Refuse a kernel matrix with one centre per row that memory cannot hold.

    Parameters
    ----------
    n_rows
        Rows, n.
    limit
        Bytes that a task may use; None for the machine's memory.

    Raises
    ------
    ValueError
        Where the n x n matrices of a decomposition exceed it.
    """
    needed = decomposition_nbytes(n_rows)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    where = "this machine has"
    if limit is not None:
        memory, where = limit, "a task may use"
    if needed > memory:
        raise ValueError(
            f"`X` has {n_rows} rows: a kernel matrix with one centre per row takes "
            f"{8 * n_rows**2 / 1e9:.5g} GB, its decomposition {needed / 1e9:.3g} GB, "
            f"and {where} {memory / 1e9:.5g} GB; give it more memory, or take fewer "
            f"centres: KernelLeastSquares(n_centers=1000), or "
            f"StreamedLeastSquaresSearch, which reads the rows in chunks."
        )


def decomposition_nbytes(n_rows: int) -> int:
    """Return the bytes of the n x n matrices that a decomposition holds at once."""
    return COPIES * 8 * n_rows**2
