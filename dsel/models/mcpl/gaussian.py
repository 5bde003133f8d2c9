"""Gaussian classes: moments of rows, log-densities, and maximum likelihood."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular

from dsel.families.arrays import Floats

_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Moments:
    """How many rows, their mean, and their scatter about it."""

    count: float
    """Rows, or their total weight."""
    mean: Floats
    """Shape (d,)."""
    scatter: Floats
    """Sum of ``(x - mean)(x - mean)'``, shape (d, d)."""

    def merged(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of rows together (Chan's formula)."""
        count = self.count + other.count
        # Both empty: the share would be 0 / 0.
        if count == 0.0:
            return self
        step = other.mean - self.mean
        share = other.count / count
        # n1 n2 / (n1 + n2) times the outer square of the step between the means.
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

    counts: Floats
    """Shape (K,)."""
    means: Floats
    """Shape (K, d)."""
    scatters: Floats
    """Scatter of each class about its own mean, shape (K, d, d)."""

    @property
    def within(self) -> Floats:
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


def moments_of(X: Floats) -> Moments:
    """Return the moments of the rows of `X`, shape (n_rows, d).

    Examples
    --------
    >>> moments_of(np.array([[1.0], [3.0]]))
    Moments(count=2.0, mean=array([2.]), scatter=array([[2.]]))
    """
    if not len(X):
        return empty_moments(X.shape[1])
    mean = X.mean(axis=0)
    # Not X'X - n m m', which cancels where the mean is large beside the spread.
    centred = X - mean
    return Moments(float(len(X)), mean, centred.T @ centred)


def class_moments(X: Floats, codes: NDArray[np.intp], n_classes: int) -> ClassMoments:
    """Return the moments of each class of labeled rows; every class has a row."""
    return stack_moments([moments_of(X[codes == code]) for code in range(n_classes)])


def stack_moments(parts: Sequence[Moments]) -> ClassMoments:
    """Return the moments of classes, given one by one, as arrays."""
    return ClassMoments(
        np.array([part.count for part in parts]),
        np.array([part.mean for part in parts]),
        np.array([part.scatter for part in parts]),
    )


def dense_blocks(X: Any) -> Iterator[Floats]:
    """Yield the rows of a dense or sparse chunk as float64 blocks that fit a cache."""
    # A block is read several times: once it is in the cache that costs little.
    n_rows = max(1, _BLOCK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], n_rows):
        block = X[start : start + n_rows]
        if sparse.issparse(block):
            block = block.toarray()
        yield np.asarray(block, dtype=np.float64)


_SINGULAR = 1e-14
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class GaussianClasses:
    """Prior, mean and covariance of each class."""

    priors: Floats
    """Shape (K,); they sum to 1."""
    means: Floats
    """Shape (K, d)."""
    covariances: Floats
    """Shape (1, d, d) where the classes share one, else (K, d, d)."""

    def log_joint(self, X: Floats) -> Floats:
        """Return ln p(x, k), shape (n_rows, K)."""
        # About the centre of the means: squares of far rows would cost digits.
        centre = self.means.mean(axis=0)
        steps, means = X - centre, self.means - centre
        scores = np.empty((len(X), len(self.priors)))
        # One factor serves all columns, or each its own.
        for code, factor in enumerate(np.linalg.cholesky(self.covariances)):
            columns = slice(None) if len(self.covariances) == 1 else [code]
            rows, centres = _whiten(factor, steps), _whiten(factor, means[columns])
            # ln det of the covariance is twice the sum over the diagonal of its
            # Cholesky factor.
            offset = -np.log(np.diag(factor)).sum() - 0.5 * X.shape[1] * _LOG_2PI
            squares = np.einsum("ij,ij->i", centres, centres)
            scores[:, columns] = rows @ centres.T + (offset - 0.5 * squares)
            scores[:, columns] -= 0.5 * np.einsum("ij,ij->i", rows, rows)[:, None]
        return scores + np.log(self.priors)


def _whiten(factor: Floats, X: Floats) -> Floats:
    return np.asarray(solve_triangular(factor, X.T, lower=True).T)


def maximum_likelihood(
    labeled: ClassMoments, *, ridge: float, shared: bool
) -> GaussianClasses:
    """Return the estimate with divisor N; covariances are (scatter + ridge I) / N.

    Classes have one covariance if it is `shared` (LDA), else each its own (QDA).
    """
    scatters = labeled.within[None] if shared else labeled.scatters
    counts = labeled.counts.sum(keepdims=True) if shared else labeled.counts
    floor = ridge * np.eye(scatters.shape[-1])
    return GaussianClasses(
        labeled.counts / labeled.counts.sum(),
        labeled.means,
        (scatters + floor) / counts[:, None, None],
    )


def is_singular(covariance: Floats, variances: Floats) -> bool:
    """Whether a covariance is singular to rounding, whatever the features' units.

    `variances` are those of all rows, the scale to compare with.
    """
    if not (variances > 0.0).all():
        return True
    # As a correlation matrix: a feature in small units does not look singular.
    scale = np.sqrt(variances)
    eigenvalues = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(eigenvalues[0] <= _SINGULAR * eigenvalues[-1])
