"""Counts, means and scatters of rows, merged without loss of digits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Moments:
    """How many rows, their mean, and their scatter about it."""

    count: float
    """Rows, or their total weight."""
    mean: NDArray[np.float64]
    """Shape (d,)."""
    scatter: NDArray[np.float64]
    """Sum of ``(x - mean)(x - mean)'``, shape (d, d)."""

    def merged(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of rows together (Chan's formula)."""
        count = self.count + other.count
        if count == 0.0:
            return self
        step = other.mean - self.mean
        share = other.count / count
        between = (self.count * share) * np.outer(step, step)
        return Moments(
            count, self.mean + share * step, self.scatter + other.scatter + between
        )

    def weighted(self, weight: float) -> "Moments":
        """Return the moments with every row counted `weight` times."""
        return Moments(self.count * weight, self.mean, self.scatter * weight)


@dataclass(frozen=True)
class ClassMoments:
    """Moments of the labeled rows, class by class."""

    counts: NDArray[np.float64]
    """Shape (K,)."""
    means: NDArray[np.float64]
    """Shape (K, d)."""
    scatters: NDArray[np.float64]
    """Scatter of each class about its own mean, shape (K, d, d)."""

    @property
    def within(self) -> NDArray[np.float64]:
        """Scatter of all rows about the mean of their class, shape (d, d)."""
        return np.asarray(self.scatters.sum(axis=0))

    @property
    def total(self) -> Moments:
        """Moments of all rows, whatever their class."""
        count = float(self.counts.sum())
        mean = self.counts @ self.means / count
        steps = self.means - mean
        between = (self.counts[:, None] * steps).T @ steps
        return Moments(count, mean, self.within + between)


def empty_moments(n_features: int) -> Moments:
    """Return the moments of no rows."""
    return Moments(0.0, np.zeros(n_features), np.zeros((n_features, n_features)))


def moments_of(X: NDArray[np.float64]) -> Moments:
    """Return the moments of the rows of `X`, shape (n_rows, d).

    Examples
    --------
    >>> moments_of(np.array([[1.0], [3.0]]))
    Moments(count=2.0, mean=array([2.]), scatter=array([[2.]]))
    """
    if not len(X):
        return empty_moments(X.shape[1])
    mean = X.mean(axis=0)
    centred = X - mean
    return Moments(float(len(X)), mean, centred.T @ centred)


def class_moments(
    X: NDArray[np.float64], codes: NDArray[np.intp], n_classes: int
) -> ClassMoments:
    """Return the moments of each class of labeled rows; every class has a row."""
    parts = [moments_of(X[codes == code]) for code in range(n_classes)]
    return ClassMoments(
        np.array([part.count for part in parts]),
        np.array([part.mean for part in parts]),
        np.array([part.scatter for part in parts]),
    )


def dense_blocks(X: Any) -> Iterator[NDArray[np.float64]]:
    """Yield the rows of a dense or sparse chunk as float64 blocks that fit a cache."""
    n_rows = max(1, _BLOCK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], n_rows):
        block = X[start : start + n_rows]
        if sparse.issparse(block):
            block = block.toarray()
        yield np.asarray(block, dtype=np.float64)
