"""Gaussian classes with a common covariance, and moments of the pool.

A pass over the pool is a pure function of a chunk, which is sent to the data, and a way
to merge two results: moments, or class sums of labelings. Labels of the pool exist for
one block of rows at a time and are never stored. *Class sums* are rows of (mass, sum):
the number of pool rows of a class, and their sum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from dsel.arrays import ArrayLike, Floats, Integers
from dsel.data.cache import process_cache

_BLOCK_BYTES = 2**20
_SINGULAR = 1e-14


@dataclass(frozen=True)
class Moments:
    """Rows and mean of each class, and the scatter of all rows about these means.

    Rows without labels are one class.
    """

    counts: Floats
    """Rows, or their total weight, shape (K,)."""
    means: Floats
    """Zeros where a class has no rows, shape (K, d)."""
    scatter: Floats
    """Sum of ``(x - mean)(x - mean)'``, with the mean of the row's class, (d, d)."""

    @property
    def count(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())

    @property
    def total(self) -> "Moments":
        """The moments of the same rows as one class."""
        mean = self.counts @ self.means / self.count
        steps = self.means - mean
        between = (self.counts[:, None] * steps).T @ steps
        return Moments(np.array([self.count]), mean[None], self.scatter + between)

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of rows together (Chan's formula)."""
        counts = self.counts + other.counts
        steps = other.means - self.means
        # Where both sets have no row of a class, the share is 0 / 0.
        fractions = other.counts / np.where(counts > 0.0, counts, 1.0)
        # n1 n2 / (n1 + n2) times the outer square of the step between the means.
        between = ((self.counts * fractions)[:, None] * steps).T @ steps
        return Moments(
            counts,
            self.means + fractions[:, None] * steps,
            self.scatter + other.scatter + between,
        )


def dense_blocks(X: Any, row_numbers: Integers) -> Iterator[tuple[Floats, Integers]]:
    """Yield a chunk as dense float64 blocks that fit a cache, with their row numbers.

    A block is read several times, which is cheap while it is in the cache.
    """
    n_rows = max(1, _BLOCK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], n_rows):
        block = X[start : start + n_rows]
        if sparse.issparse(block):
            block = block.toarray()
        yield np.asarray(block, dtype=np.float64), row_numbers[start : start + n_rows]


def moments_of(X: Any, codes: Integers | None = None, n_classes: int = 1) -> Moments:
    """Return the moments of a chunk of rows, by class if class codes are passed."""
    codes = np.zeros(X.shape[0], dtype=np.int64) if codes is None else codes
    moments = Moments(
        *map(np.zeros, (n_classes, (n_classes, X.shape[1]), X.shape[1:] * 2))
    )
    for block, block_rows in dense_blocks(X, np.arange(X.shape[0])):
        block_codes = codes[block_rows]
        means, scatter = np.zeros_like(moments.means), np.zeros_like(moments.scatter)
        counts = np.bincount(block_codes, minlength=n_classes).astype(np.float64)
        for code in np.flatnonzero(counts):
            rows = block if counts[code] == len(block) else block[block_codes == code]
            means[code] = rows.mean(axis=0)
            # X'X - n m m' would cancel where the mean is large compared to the spread.
            centered = rows - means[code]
            scatter += centered.T @ centered
        moments = moments.merge(Moments(counts, means, scatter))
    return moments


@dataclass(frozen=True)
class GaussianClasses:
    """Prior and mean of each class, and their covariance."""

    priors: Floats
    """Shape (K,); they sum to 1."""
    means: Floats
    """Shape (K, d)."""
    covariance: Floats
    """Shape (d, d)."""

    def scores_about(self, origin: Floats) -> Floats:
        """Return ln p(x, k), up to a common term, as functions of x - origin.

        Classes with one covariance share the determinant and the square of x, so the
        scores are linear: a row (constant, slopes) for each class, shape (K, 1 + d).
        """
        means = self.means - origin
        linear = np.asarray(np.linalg.solve(self.covariance, means.T).T)
        squares = np.einsum("kd,kd->k", linear, means)
        return np.column_stack([np.log(self.priors) - 0.5 * squares, linear])


def whiten(factor: Floats, X: Floats) -> Floats:
    """Return L^-1 times each row of X, of a lower triangular L."""
    return np.asarray(solve_triangular(factor, X.T, lower=True).T)


def fit_labeled_rows(labeled: Moments, *, ridge: float) -> GaussianClasses:
    """Return the maximum likelihood fit to labeled rows; each class must have a row.

    The covariance is (scatter + ridge I) / n. Raises ValueError where it is singular.
    """
    total = labeled.total
    variances = (np.diag(total.scatter) + ridge) / total.count
    # The variance is compared to the mean, since the computed variance of a constant
    # column is not exactly 0.
    constant = np.flatnonzero(~(variances > 1e-28 * (1e-300 + total.means[0] ** 2)))
    if len(constant):
        columns = ", ".join(map(str, constant[:5]))
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        raise ValueError(
            f"`X` must have no constant features, or the covariance is singular, but "
            f"column {columns}{more} is the same in all labeled rows; leave it out, or "
            f"set `ridge` above 0."
        )
    scatter = labeled.scatter + ridge * np.eye(len(labeled.scatter))
    covariance = scatter / labeled.count
    # The correlation matrix is checked: in the covariance a feature in small units
    # would look singular.
    scale = np.sqrt(variances)
    eigenvalues = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    if eigenvalues[0] <= _SINGULAR * eigenvalues[-1]:
        # The ridge is a thousandth of a typical variance, in the units of a scatter
        # matrix.
        ridge = 1e-3 * labeled.count * float(np.median(variances))
        raise ValueError(
            "`X` must give a regular covariance, but that of the classes is singular: "
            f"there are {labeled.count:.0f} labeled rows, and at least "
            f"{sum(labeled.means.shape)} in general position are needed. Label more "
            "rows, remove features that depend on others, or set `ridge`, for instance "
            f"{ridge:.2g}."
        )
    return GaussianClasses(labeled.counts / labeled.count, labeled.means, covariance)


def read_summary(pool: Any, *, n_sampled: int) -> tuple[Moments, Floats]:
    """Return moments and a sample of at most `n_sampled` rows, in one pass.

    They are cached under the pool's token, so that the pool is read once for all folds
    and candidates of a search.
    """
    # The rows have a fixed stride of row numbers, so that the sample does not depend on
    # chunks.
    stride = -(-pool.n_rows // n_sampled) if n_sampled else 0

    def count(X: Any, row_numbers: Integers) -> tuple[Moments, Floats]:
        # Overflows are reported once, after all chunks have been merged.
        with np.errstate(invalid="ignore", over="ignore"):
            moments = moments_of(X)
        chosen = (
            np.flatnonzero(row_numbers % stride == 0) if stride else row_numbers[:0]
        )
        sample = [block for block, _ in dense_blocks(X[chosen], row_numbers[chosen])]
        return moments, np.vstack([np.empty((0, X.shape[1])), *sample])

    def merge(first_part: Any, second_part: Any) -> tuple[Moments, Floats]:
        return first_part[0].merge(second_part[0]), np.vstack(
            [first_part[1], second_part[1]]
        )

    moments, sample = process_cache().get(
        f"mcpl-{pool.token}-{stride}",
        lambda: pool.reduce(count, merge, keep=True, name="moments"),
    )
    if not np.isfinite(moments.scatter).all():
        raise ValueError(
            "`pool` must hold values that can be squared, but some are too large; "
            "scale the features."
        )
    return moments, sample


def chunk_class_sums(
    X: ArrayLike,
    row_numbers: Integers,
    *,
    functions: Sequence[Floats],
    origin: Floats,
    cuts: Sequence[int],
) -> Floats:
    """Return class sums of labelings of a chunk: (functions, parts, K, 1 + d).

    A function is a row (constant, slopes) for each class. It labels a row of the pool
    as the class with the smallest value at ``x - origin``, the smallest code among
    equals. `origin` is subtracted first, so that sums keep their digits. At each of
    `cuts`, ascending row numbers, a new part of the pool begins.
    """
    n_classes = len(functions[0])
    constants, linear = np.split(np.vstack(functions), [1], axis=1)
    sums = np.zeros((len(functions), len(cuts) + 1, *functions[0].shape))
    for block, block_rows in dense_blocks(X, row_numbers):
        # Cuts are row numbers of the pool; `bounds` are positions in this block.
        bounds = [0, *np.searchsorted(block_rows, cuts), len(block)]
        # Sums of rows far from 0 would lose the digits in which classes differ.
        centered = block - origin
        # Classes are the first axis and rows the last one, so that a loop over classes
        # runs over contiguous memory.
        scores = linear @ centered.T
        scores += constants
        for function_number in range(len(functions)):
            values = scores[
                function_number * n_classes : (function_number + 1) * n_classes
            ]
            # A loop over classes is several times faster than argmin over a short axis.
            lowest = values[0].copy()
            labels = np.zeros(len(block), dtype=np.int16)
            for code in range(1, n_classes):
                labels[values[code] < lowest] = code
                np.minimum(lowest, values[code], out=lowest)
            codes = np.arange(n_classes, dtype=np.int16)
            members = (labels == codes[:, None]).astype(np.float64)
            for part, (start, stop) in enumerate(pairwise(bounds)):
                if start < stop:
                    chosen = members[:, start:stop]
                    sums[function_number, part, :, 0] += chosen.sum(axis=1)
                    sums[function_number, part, :, 1:] += chosen @ centered[start:stop]
    return sums
