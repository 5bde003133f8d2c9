"""What one read of the pool returns: its moments, or class sums of labelings of it.

Each read is a pure function of a chunk, small enough to be sent to the data, and a way
to add two results. Labels of the pool exist for a block of rows at a time and are never
stored. *Class sums* are rows of (mass, sum): how many rows of the pool a class has, and
their sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from dsel.arrays import Floats, Integers
from dsel.data.cache import process_cache
from dsel.mcpl.gaussian import (
    LinearScores,
    Moments,
    dense_blocks,
    moments_of,
    no_moments,
)


@dataclass(frozen=True)
class PoolSummary:
    """What is the same for all fits that use a pool."""

    moments: Moments
    """Of all its rows, as one class."""
    sample: Floats
    """Every so many-th row."""

    def merged(self, other: "PoolSummary") -> "PoolSummary":
        """Return the summary of both sets of rows."""
        sample = np.vstack([self.sample, other.sample])
        return PoolSummary(self.moments.merged(other.moments), sample)


def read_summary(pool: Any, *, n_sampled: int) -> PoolSummary:
    """Return moments and a sample of `n_sampled` rows at most (0: none) in one read.

    A process keeps them under the pool's token: the folds and candidates of a search
    fit to the same rows, which are read once.
    """
    # Every so many-th row by number: the sample does not depend on chunks.
    stride = -(-pool.n_rows // n_sampled) if n_sampled else 0
    count = partial(_chunk_summary, stride=stride)
    summary: PoolSummary = process_cache().get(
        f"mcpl-{pool.token}-{stride}",
        lambda: pool.reduce(count, PoolSummary.merged, keep=True),
    )
    if not np.isfinite(summary.moments.scatter).all():
        raise ValueError(
            "`pool` must hold values that can be squared, but some are too large; "
            "scale the features."
        )
    return summary


def _chunk_summary(X: Any, rows: Integers, *, stride: int) -> PoolSummary:
    moments = no_moments(1, X.shape[1])
    # Values that overflow are reported once, when all chunks have been added up.
    with np.errstate(invalid="ignore", over="ignore"):
        for block in dense_blocks(X):
            moments = moments.merged(moments_of(block))
    chosen = np.flatnonzero(rows % stride == 0) if stride else rows[:0]
    sample = np.vstack([np.empty((0, X.shape[1])), *dense_blocks(X[chosen])])
    return PoolSummary(moments, sample)


@dataclass(frozen=True)
class Labeling:
    """Ways to label rows: by each of some functions, a row goes to its lowest class.

    Ties go to the class of the lowest code.
    """

    functions: Sequence[LinearScores]
    """Functions of ``x - origin``, evaluated in one matrix product."""
    origin: Floats
    """Subtracted from every row first, so that sums keep their digits, shape (d,)."""
    cuts: Sequence[int]
    """Row numbers, ascending, at which a new share of the pool begins: class sums of
    the shares are kept apart."""


def read_class_sums(pool: Any, labeling: Labeling) -> Floats:
    """Return class sums of shape (functions, shares, K, 1 + d): one read for all."""
    count = partial(chunk_class_sums, labeling=labeling)
    sums: Floats = pool.reduce(count, add, keep=True)
    return sums


def chunk_class_sums(X: Any, rows: Integers, *, labeling: Labeling) -> Floats:
    """Do the work of `read_class_sums` on one chunk of rows, given their numbers."""
    stacked = np.vstack([each.linear for each in labeling.functions])
    constants = np.concatenate([each.constants for each in labeling.functions])
    n_functions, n_shares = len(labeling.functions), len(labeling.cuts) + 1
    n_classes, n_features = len(constants) // n_functions, X.shape[1]
    sums = np.zeros((n_functions, n_shares, n_classes, 1 + n_features))
    n_read = 0
    for block in dense_blocks(X):
        numbers = rows[n_read : n_read + len(block)]
        n_read += len(block)
        # Cuts are row numbers of the pool: where they lie in this block.
        bounds = [0, *np.searchsorted(numbers, labeling.cuts), len(block)]
        # Sums of rows far from 0 would lose the digits in which classes differ.
        centred = block - labeling.origin
        # Classes first, rows last: a loop over classes runs over contiguous memory.
        scores = stacked @ centred.T
        scores += constants[:, None]
        for number in range(n_functions):
            here = scores[number * n_classes : (number + 1) * n_classes]
            members = _lowest(here)
            for share, (start, stop) in enumerate(pairwise(bounds)):
                if start < stop:
                    chosen = members[:, start:stop]
                    sums[number, share, :, 0] += chosen.sum(axis=1)
                    sums[number, share, :, 1:] += chosen @ centred[start:stop]
    return sums


def _lowest(scores: Floats) -> Floats:
    """Return 1 for the lowest class of each row, 0 for the others, shape (K, rows)."""
    # A loop over classes is several times faster than argmin over a short axis.
    lowest = scores[0].copy()
    labels = np.zeros(scores.shape[1], dtype=np.int16)
    for code in range(1, len(scores)):
        labels[scores[code] < lowest] = code
        np.minimum(lowest, scores[code], out=lowest)
    codes = np.arange(len(scores), dtype=np.int16)
    return np.asarray((labels == codes[:, None]).astype(np.float64))


def read_labeled_moments(pool: Any, codes: Integers, n_classes: int) -> Moments:
    """Return the moments of a pool by class, given the class of each stored row."""
    count = partial(_chunk_labeled, codes=codes, n_classes=n_classes)
    moments: Moments = pool.reduce(count, Moments.merged)
    return moments


def _chunk_labeled(
    X: Any, rows: Integers, *, codes: Integers, n_classes: int
) -> Moments:
    moments, n_read = no_moments(n_classes, X.shape[1]), 0
    for block in dense_blocks(X):
        here = codes[rows[n_read : n_read + len(block)]]
        n_read += len(block)
        moments = moments.merged(moments_of(block, here, n_classes))
    return moments
