"""What one read of the pool returns: its moments, or class sums of labelings of it.

Each read is a pure function of a chunk, small enough to be sent to the data, and a way
to add two results. Labels of the pool exist for a block of rows at a time and are never
stored. *Class sums* are rows of (mass, sum): how many rows of the pool a class has, and
their sum.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dsel.arrays import Floats, Integers
from dsel.data.cache import process_cache
from dsel.mcpl.gaussian import Moments, dense_blocks, moments_of


def read_summary(pool: Any, *, n_sampled: int) -> tuple[Moments, Floats]:
    """Return moments and a sample of `n_sampled` rows at most (0: none) in one read.

    A process keeps them under the pool's token: the folds and candidates of a search
    fit to the same rows, which are read once.
    """
    # Every so many-th row by number: the sample does not depend on chunks.
    stride = -(-pool.n_rows // n_sampled) if n_sampled else 0
    count = partial(_chunk_summary, stride=stride)
    moments, sample = process_cache().get(
        f"mcpl-{pool.token}-{stride}",
        lambda: pool.reduce(count, _merged_summaries, keep=True),
    )
    if not np.isfinite(moments.scatter).all():
        raise ValueError(
            "`pool` must hold values that can be squared, but some are too large; "
            "scale the features."
        )
    return moments, sample


def _chunk_summary(X: Any, rows: Integers, *, stride: int) -> tuple[Moments, Floats]:
    # Values that overflow are reported once, when all chunks have been added up.
    with np.errstate(invalid="ignore", over="ignore"):
        moments = chunk_moments(X, rows)
    chosen = np.flatnonzero(rows % stride == 0) if stride else rows[:0]
    sample = [block for block, _ in dense_blocks(X[chosen], rows[chosen])]
    return moments, np.vstack([np.empty((0, X.shape[1])), *sample])


def _merged_summaries(one: Any, other: Any) -> tuple[Moments, Floats]:
    return one[0].merged(other[0]), np.vstack([one[1], other[1]])


def chunk_moments(
    X: Any, rows: Integers, *, codes: Integers | None = None, n_classes: int = 1
) -> Moments:
    """Return the moments of a chunk, by class if the class of each row is given."""
    moments = moments_of(np.empty((0, X.shape[1])), None, n_classes)
    for block, numbers in dense_blocks(X, rows):
        here = None if codes is None else codes[numbers]
        moments = moments.merged(moments_of(block, here, n_classes))
    return moments


def chunk_class_sums(
    X: Any,
    rows: Integers,
    *,
    functions: Sequence[Floats],
    origin: Floats,
    cuts: Sequence[int],
) -> Floats:
    """Return class sums of labelings of a chunk: (functions, shares, K, 1 + d).

    By each function, a row (constant, slopes) for each class, a row of the pool goes to
    the class where it is lowest at ``x - origin``, of equal ones to the lowest code.
    `origin` is subtracted first, so that sums keep their digits. At `cuts`, ascending
    row numbers, a new share of the pool begins.
    """
    n_classes = len(functions[0])
    constants, linear = np.split(np.vstack(functions), [1], axis=1)
    sums = np.zeros((len(functions), len(cuts) + 1, *functions[0].shape))
    for block, numbers in dense_blocks(X, rows):
        # Cuts are row numbers of the pool: where they lie in this block.
        bounds = [0, *np.searchsorted(numbers, cuts), len(block)]
        # Sums of rows far from 0 would lose the digits in which classes differ.
        centred = block - origin
        # Classes first, rows last: a loop over classes runs over contiguous memory.
        scores = linear @ centred.T
        scores += constants
        for number in range(len(functions)):
            here = scores[number * n_classes : (number + 1) * n_classes]
            # A loop over classes is several times faster than argmin over a short axis.
            lowest = here[0].copy()
            labels = np.zeros(len(block), dtype=np.int16)
            for code in range(1, n_classes):
                labels[here[code] < lowest] = code
                np.minimum(lowest, here[code], out=lowest)
            codes = np.arange(n_classes, dtype=np.int16)
            members = (labels == codes[:, None]).astype(np.float64)
            for share, (start, stop) in enumerate(pairwise(bounds)):
                if start < stop:
                    chosen = members[:, start:stop]
                    sums[number, share, :, 0] += chosen.sum(axis=1)
                    sums[number, share, :, 1:] += chosen @ centred[start:stop]
    return sums
