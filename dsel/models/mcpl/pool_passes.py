"""What one pass over the unlabeled pool can return: moments, and sums per class.

Each pass is a pure function of a chunk, small enough to be sent to the data, and a
way to add two results. Soft or hard labels of the pool exist for a block of rows at
a time and are never stored.

*Sums* of classes are rows of (mass, sum, products): how much of the pool a class has,
the sum of its rows x, and, where they are wanted, that of xx', flattened. Their shape
is (K, 1 + d) or (K, 1 + d + d^2). Where shares of the pool are kept apart, K stands for
their number times that of the classes, share by share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dsel.families.arrays import Floats, Integers
from dsel.models.mcpl.gaussian import Moments, dense_blocks, empty_moments, moments_of


@dataclass(frozen=True)
class ClassScores:
    """One real function of a row per class: constant + linear, and maybe quadratic."""

    constants: Floats
    """Shape (K,)."""
    linear: Floats
    """Shape (K, d)."""
    quadratic: Floats | None = None
    """Symmetric matrices A of x'Ax, shape (K, d, d); None where there are none."""

    @classmethod
    def from_flat(cls, flat: Floats, n_classes: int, n_features: int) -> "ClassScores":
        """Return functions with these coefficients, in the order of sums, flattened.

        From the gradient of a contrast: what a row adds to it by going to each class.
        """
        rows, end = flat.reshape(n_classes, -1), 1 + n_features
        quadratic = None
        if rows.shape[1] > end:
            quadratic = rows[:, end:].reshape(n_classes, n_features, n_features)
        return cls(rows[:, 0], rows[:, 1:end], quadratic)

    @property
    def negated(self) -> "ClassScores":
        """The same functions with the other sign."""
        quadratic = None if self.quadratic is None else -self.quadratic
        return ClassScores(-self.constants, -self.linear, quadratic)

    def about(self, origin: Floats) -> "ClassScores":
        """Return linear functions of x as functions of ``x - origin``."""
        return ClassScores(self.constants + self.linear @ origin, self.linear)

    def no_sums(self, n_shares: int = 1) -> Floats:
        """Return the sums of no rows, a column for each coefficient."""
        n_classes, n_features = self.linear.shape
        n_columns = 1 + n_features * (1 if self.quadratic is None else 1 + n_features)
        return np.zeros((n_shares * n_classes, n_columns))

    def of(self, rows: Floats, products: Floats | None = None) -> Floats:
        """Return the scores of `rows`, shape (K, n_rows); `products` are linear's."""
        # Classes first, rows last: a loop over classes then runs over contiguous
        # memory.
        products = self.linear @ rows.T if products is None else products
        scores = products + self.constants[:, None]
        if self.quadratic is not None:
            for code, matrix in enumerate(self.quadratic):
                scores[code] += np.einsum("ij,ij->i", rows @ matrix, rows)
        return np.asarray(scores)


@dataclass(frozen=True)
class Labeling:
    """Ways to label rows: for each function, a row goes to its lowest class.

    Ties go to the class of the lowest code.
    """

    scores: tuple[ClassScores, ...]
    """Functions of ``x - origin``, evaluated in one matrix product."""
    origin: Floats
    """Subtracted from every row first, so that sums keep their digits, shape (d,)."""
    cuts: tuple[int, ...] = ()
    """Row numbers, ascending, at which a new share of the pool begins: sums of the
    shares are kept apart."""

    @property
    def n_shares(self) -> int:
        """Number of shares, 1 where there are no cuts."""
        return len(self.cuts) + 1


@dataclass(frozen=True)
class FirstPass:
    """What the first pass returns."""

    moments: Moments
    sample: Floats
    """Every so many-th row."""
    sums: list[list[Floats]]
    """As of `read_lowest`."""

    def merged(self, other: "FirstPass") -> "FirstPass":
        """Return what one pass over both sets of rows returns."""
        return FirstPass(
            self.moments.merged(other.moments),
            np.vstack([self.sample, other.sample]),
            _add_all(self.sums, other.sums),
        )


def read_first_pass(
    pool: Any, labelings: Sequence[Labeling], *, n_sampled: int
) -> FirstPass:
    """Return moments, a sample, and the sums of each row's lowest class: one pass.

    The sample has `n_sampled` rows at most; 0 for none.
    """
    # Every so many-th row by number: the sample does not depend on chunks.
    stride = -(-pool.n_rows // n_sampled) if n_sampled else 0
    count = partial(_chunk_first_pass, labelings=tuple(labelings), stride=stride)
    start: FirstPass = pool.reduce(count, FirstPass.merged, keep=True)
    if not np.isfinite(start.moments.scatter).all():
        raise ValueError(
            "`pool` must hold values that can be squared, but some are too large; "
            "scale the features."
        )
    return start


def read_moments(pool: Any) -> Moments:
    """Return the moments of all rows of the pool: one pass; see `read_first_pass`."""
    return read_first_pass(pool, [], n_sampled=0).moments


def _chunk_first_pass(
    X: Any,
    rows: Integers,
    *,
    labelings: Sequence[Labeling],
    stride: int,
) -> FirstPass:
    moments = empty_moments(X.shape[1])
    # Values that overflow are reported once, when all chunks have been added up.
    with np.errstate(invalid="ignore", over="ignore"):
        for block in dense_blocks(X):
            moments = moments.merged(moments_of(block))
    chosen = np.flatnonzero(rows % stride == 0) if stride else rows[:0]
    sample = np.vstack([np.empty((0, X.shape[1])), *dense_blocks(X[chosen])])
    return FirstPass(moments, sample, chunk_lowest(X, rows, labelings=labelings))


def read_lowest(pool: Any, labelings: Sequence[Labeling]) -> list[list[Floats]]:
    """Return the sums by labeling and by each of its functions: one pass for all.

    The sums of one labeling are the same, to the bit, whatever others are given: each
    has a matrix product of its own.
    """
    count = partial(chunk_lowest, labelings=tuple(labelings))
    found: list[list[Floats]] = pool.reduce(count, _add_all, keep=True)
    return found


def chunk_lowest(
    X: Any, rows: Integers, *, labelings: Sequence[Labeling]
) -> list[list[Floats]]:
    """Do the work of `read_lowest` on one chunk of rows, given with their numbers."""
    totals = [
        [score.no_sums(each.n_shares) for score in each.scores] for each in labelings
    ]
    stacks = [np.vstack([score.linear for score in each.scores]) for each in labelings]
    n_read = 0
    for block in dense_blocks(X):
        numbers = rows[n_read : n_read + len(block)]
        n_read += len(block)
        for labeling, stacked, total in zip(labelings, stacks, totals, strict=True):
            # Cuts are row numbers of the pool: where they lie in this block.
            bounds = [0, *np.searchsorted(numbers, labeling.cuts), len(block)]
            # Sums of rows far from 0 would lose the digits in which classes differ.
            centred = block - labeling.origin
            # One product for all functions of a labeling; other labelings have products
            # of their own, or rounding would depend on them.
            linear = stacked @ centred.T
            first = 0
            for place, score in enumerate(labeling.scores):
                here = linear[first : first + len(score.constants)]
                first += len(score.constants)
                membership = _lowest(score.of(centred, here))
                of_shares = [
                    _weighted_sums(
                        membership[:, start:stop], score, centred[start:stop]
                    )
                    for start, stop in pairwise(bounds)
                ]
                total[place] += np.concatenate(of_shares)
    return totals


def _lowest(values: Floats) -> Floats:
    """Return 1 for the lowest class of each row, 0 for the others, shape (K, rows)."""
    # A loop over classes is several times faster than argmin over a short axis.
    lowest = values[0].copy()
    labels = np.zeros(values.shape[1], dtype=np.int16)
    for code in range(1, len(values)):
        lower = values[code] < lowest
        labels[lower] = code
        np.minimum(lowest, values[code], out=lowest)
    codes = np.arange(len(values), dtype=np.int16)
    return np.asarray((labels == codes[:, None]).astype(np.float64))


def _weighted_sums(weights: Floats, score: ClassScores, rows: Floats) -> Floats:
    products = None
    if score.quadratic is not None:
        # A loop over classes: one array of weighted rows at a time.
        products = np.array([(rows * weight[:, None]).T @ rows for weight in weights])
    return sums_of(weights.sum(axis=1), weights @ rows, products)


def sums_of(masses: Floats, sums: Floats, products: Floats | None = None) -> Floats:
    """Return masses (K,), sums (K, d) and products (K, d, d) as rows of one array."""
    columns = [masses, sums]
    if products is not None:
        columns.append(products.reshape(len(masses), -1))
    return np.column_stack(columns)


def _add_all(one: list[list[Floats]], other: list[list[Floats]]) -> list[list[Floats]]:
    return [
        [left + right for left, right in zip(*pair, strict=True)]
        for pair in zip(one, other, strict=True)
    ]


def read_posteriors(
    pool: Any, scores: ClassScores, origin: Floats
) -> tuple[Floats, float]:
    """Share each row among the classes in proportion to exp(score): one pass.

    Scores are log-densities of ``x - origin``, up to a constant that all classes share.
    Returned are the classes' sums, and the sum of the logarithms of what the
    exponentials of a row add up to.
    """
    count = partial(_chunk_posteriors, scores=scores, origin=origin)
    sums, log_evidence = pool.reduce(count, _add_pairs, keep=True)
    return sums, log_evidence


def _add_pairs(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    return one[0] + other[0], one[1] + other[1]


def _chunk_posteriors(
    X: Any,
    rows: Integers,
    *,
    scores: ClassScores,
    origin: Floats,
) -> tuple[Floats, float]:
    total = scores.no_sums(), 0.0
    for block in dense_blocks(X):
        centred = block - origin
        values = scores.of(centred)
        evidence = logsumexp(values, axis=0)
        # Evidence is ln sum exp(score): the weights of a row sum to 1.
        weights = np.exp(values - evidence)
        sums = _weighted_sums(weights, scores, centred)
        total = _add_pairs(total, (sums, float(evidence.sum())))
    return total
