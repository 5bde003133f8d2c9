"""Decomposition of a gram matrix in two steps: large eigenvalues, then small ones.

A decomposition is off by eps times the largest eigenvalue, which is far more than the
smallest ones of a Gaussian kernel. So the large eigenvalues, with vectors V and values
D, are found first and put below zero:

    K - V (D + cut I) V'  has the eigenvalues of K below `cut`, and -cut for V.

Its decomposition is off by eps times `cut`, if the subtraction rounds by no more, which
takes products of twice the usual precision. V itself is off by up to eps times the
largest eigenvalue over `cut`; one step of first order corrects it and the vectors of
the small eigenvalues, so that K maps neither into the span of the other.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]
Pairs = tuple[Floats, Floats]

LEADING_BITS = 25
"""Bits behind the point of which products, of sums up to 2, are exact."""


def decompose_in_two_levels(gram: Floats, cut: float) -> tuple[Floats, Floats]:
    """Return eigenvalues and vectors of K, the small ones off by eps `cut` only.

    Parameters
    ----------
    gram
        K, symmetric and positive semidefinite, ones on the diagonal, shape (n, n).
    cut
        Eigenvalues above it are large; greater than 0.

    Returns
    -------
    values, vectors
        Shapes (n,) and (n, n); the large ones come first.
    """
    large, span = scipy.linalg.eigh(gram, subset_by_value=(cut, np.inf))
    rest = remainder(gram, span * np.sqrt(large + cut))
    values, vectors = scipy.linalg.eigh(rest, overwrite_a=True, driver="evd")
    n_large = len(large)
    span, others = decoupled(
        gram, (large, span), (values[n_large:], vectors[:, n_large:])
    )
    values[:n_large], vectors[:, :n_large], vectors[:, n_large:] = large, span, others
    return values, vectors


def decoupled(gram: Floats, large: Pairs, small: Pairs) -> tuple[Floats, Floats]:
    """Return V and W, turned until W'KV and W'V are of second order.

    Parameters
    ----------
    gram
        K.
    large, small
        Eigenvalues and vectors, nearly: D, V and T, W.
    """
    (values, span), (small_values, others) = large, small
    left = others.T @ (gram @ span - span * values)
    # Where both values are near the cut, what is left does no harm: never divide by 0.
    gaps = np.maximum(values - small_values[:, np.newaxis], values / 2.0)
    turn = left / gaps
    overlap = others.T @ span
    return span + others @ turn, others - span @ (turn + overlap).T


def remainder(gram: Floats, factor: Floats) -> Floats:
    """Return K - L L', rounded once.

    Parameters
    ----------
    gram
        K, entries in [-1, 1], shape (n, n).
    factor
        L, shape (n, p), rows of norm at most the root of 2.
    """
    # The leading bits of L make an exact product; the rest is smaller by as many bits,
    # and so is its rounding: L L' = A A' + B C' + C B' with C = L - A, B = A + C / 2.
    leading = np.rint(factor * 2.0**LEADING_BITS) / 2.0**LEADING_BITS
    trailing = factor - leading
    rest = leading @ leading.T
    np.subtract(gram, rest, out=rest)
    cross = (leading + trailing / 2.0) @ trailing.T
    rest -= cross
    rest -= cross.T
    return rest


def smallest_eigenvalue(gram: Floats) -> float:
    """Estimate the smallest eigenvalue of K from below, by one Cholesky; 0 if singular.

    It is at least 1 / ||K^-1||, here the largest sum of a row of K^-1, which LAPACK
    estimates, seldom by less than a third of it.
    """
    factor, info = lapack.dpotrf(gram, lower=True)
    if info != 0:
        return 0.0
    norm = float(abs(gram).sum(axis=0).max())
    return norm * float(lapack.dpocon(factor, norm, uplo="L")[0])
