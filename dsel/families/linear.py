"""Linear models that predict by one matrix product, with reproducible classes.

BLAS rounds a matrix product differently for another number of rows. A decision that is
farther from a tie than rounding can move it is safe. The few others are computed again
by sums in a fixed order, so that a row's class never depends on its block.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.svm import LinearSVC

from dsel.arrays import Features, Floats, Integers
from dsel.data.frames import number_matrix
from dsel.families.family import FitId, iter_splits
from dsel.families.predictions import FittedEstimators
from dsel.typing import SplitNumbers

# Classes whose `predict` is the argmax (or the sign) of X @ coef_.T + intercept_; a
# subclass may predict otherwise.
LINEAR = (
    LinearDiscriminantAnalysis,
    LinearSVC,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
SAFETY = 8  # roundings beyond the a-priori bound of a dot product
ONE_PRODUCT = 256  # scores a row up to which one product for all splits is cheaper
RECOMPUTED_AT_ONCE = 4096  # doubtful scores; each has a copy of its weights and its row
# This is the number of bytes, in float64, of the rows of one product. Rows of this size
# stay in the second-level cache between the passes over them; BLAS copies the rows of
# larger products.
PRODUCT_NBYTES = 2**20


def stack_linear(fitted: FittedEstimators) -> "LinearStack | None":
    """Stack models; return None if one is not linear, or is missing."""
    keys = [FitId(c, s) for c in fitted.candidate_numbers for s in fitted.split_numbers]
    if not {type(fitted.models.get(key)) for key in keys} <= {*LINEAR}:
        return None
    scores = [_scores_of(fitted.models[key], fitted.classes) for key in keys]
    shape = (
        len(fitted.candidate_numbers),
        len(fitted.split_numbers),
        *scores[0][0].shape,
    )
    return LinearStack(
        **{field.name: getattr(fitted, field.name) for field in fields(fitted)},
        weights=np.stack([weights for weights, _ in scores]).reshape(shape),
        offsets=np.stack([offsets for _, offsets in scores]).reshape(shape[:3]),
    )


def _scores_of(model: Any, classes: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return weights (n_scores, n_columns) and offsets; one score for two classes."""
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    offsets = np.broadcast_to(np.asarray(model.intercept_, float), weights.shape[:1])
    if len(classes) == 2:
        return weights, offsets
    # A model that was trained on two of several classes has one score, whose sign
    # decides; two scores of opposite sign have the same argmax.
    if len(weights) == 1:
        weights, offsets = np.vstack((-weights, weights)), np.append(-offsets, offsets)
    # Classes without a training row get the score -inf, so they are never predicted.
    codes = np.searchsorted(classes, model.classes_)
    full = np.zeros((len(classes), weights.shape[1]))
    full[codes] = weights
    full_offsets = np.full(len(classes), -np.inf)
    full_offsets[codes] = offsets
    return full, full_offsets


@dataclass(frozen=True)
class LinearStack(FittedEstimators):
    """Linear models of all candidates and splits, stacked for one matrix product."""

    weights: Floats = field(kw_only=True)
    """Shape (n_candidates, n_splits, n_scores, n_columns)."""
    offsets: Floats = field(kw_only=True)
    """Shape (n_candidates, n_splits, n_scores); -inf for classes without rows."""

    @property
    def row_nbytes(self) -> int:
        """Bytes of `predict` for one row: the row in float64, and its scores."""
        return int(8 * (2 * self.weights.shape[-1] + 4 * self.offsets.size))

    def predict(self, X: Features, splits: Sequence[SplitNumbers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        X, n_candidates = number_matrix(X), len(self.candidate_numbers)
        codes = np.empty((len(splits), n_candidates, X.shape[0]), dtype=np.int64)
        every = None
        if self.offsets.size <= ONE_PRODUCT:
            every = self._codes(X, np.arange(len(self.split_numbers)))
        for item, split, candidates, rows in iter_splits(splits):
            position = self.split_numbers.index(split)
            if every is not None:
                codes[item][candidates, rows] = every[candidates, position, rows]
            else:
                chosen_rows = X if isinstance(rows, slice) else X[rows]
                part_codes = self._codes(chosen_rows, np.array([position]))
                codes[item][candidates, rows] = part_codes[candidates, 0]
        return codes

    @cached_property
    def _sizes(self) -> tuple[Floats, Floats]:
        """Largest sum of absolute weights, and intercept, (n_candidates, n_splits)."""
        offsets = np.where(np.isfinite(self.offsets), np.abs(self.offsets), 0.0)
        return np.abs(self.weights).sum(axis=-1).max(axis=-1), offsets.max(axis=-1)

    def _codes(self, X: Any, positions: Integers) -> NDArray[Any]:
        """Return codes or booleans, shape (n_candidates, n_positions, n_rows)."""
        # The product only has to find the doubtful rows, so float32 is enough.
        is_single = X.dtype == np.float32 and not issparse(X)
        dtype = np.float32 if is_single else np.float64
        with np.errstate(over="ignore", invalid="ignore"):
            weights = self.weights[:, positions].astype(dtype, copy=False)
            offsets = self.offsets[:, positions].astype(dtype, copy=False)
            columns = np.ascontiguousarray(weights.reshape(-1, weights.shape[-1]).T)
            products = np.empty((X.shape[0], columns.shape[1]), dtype=dtype)
            largest, step = 0.0, max(PRODUCT_NBYTES // (8 * X.shape[1]), 1)
            for start in range(0, X.shape[0], step):
                block = X[start : start + step]
                values = block.data if issparse(block) else block
                ends = values.max(initial=0), values.min(initial=0)
                largest = max(largest, *(abs(float(end)) for end in ends))
                block = block.astype(dtype, copy=False)
                products[start : start + step] = block @ columns
            # From here on rows are the last axis: numpy is slow where it is short.
            scores = np.add(products.T, offsets.reshape(-1, 1), order="C")
            scores = scores.reshape(*offsets.shape, -1)
            codes, margins = _decide(scores, axis=2), np.abs(scores[:, :, 0])
            if scores.shape[2] > 1:  # margin between the largest score and the next
                top = np.partition(scores, -2, axis=2)
                margins = top[:, :, -1] - top[:, :, -2]
        if not np.isfinite(margins.max(initial=0.0)):  # overflows are doubtful, too
            margins = np.where(np.isfinite(margins), margins, 0.0)
        # One rounding bound for all rows comes first, which is fast; then each doubtful
        # row gets its tighter bound.
        doubtful = margins <= self._rounding(positions, np.array([largest]), dtype)
        rows = np.flatnonzero(doubtful.any(axis=(0, 1)))
        if not len(rows):
            return codes
        X, margins = X[rows], margins[:, :, rows]
        sizes = abs(X.astype(np.float64)).max(axis=1)  # of int8, -128 has no absolute
        sizes = np.ravel(sizes.toarray() if issparse(X) else sizes)
        where = np.argwhere(margins <= self._rounding(positions, sizes, dtype))
        for start in range(0, len(where), RECOMPUTED_AT_ONCE):
            c, t, r = where[start : start + RECOMPUTED_AT_ONCE].T
            some = X[r].toarray() if issparse(X) else X[r]
            terms = self.weights[c, positions[t]] * some.astype(float)[:, np.newaxis]
            # numpy adds along the last axis in an order that only its length decides.
            exact = terms.sum(axis=-1) + self.offsets[c, positions[t]]
            codes[c, t, rows[r]] = _decide(exact, axis=1)
        return codes

    def _rounding(
        self, positions: Integers, largest: Floats, dtype: DTypeLike
    ) -> Floats:
        """Bound the rounding errors of scores, shape (n_candidates, n_positions, ...).

        `largest` holds the largest absolute feature of each row, or one for all.
        """
        weights, offsets = (size[:, positions, np.newaxis] for size in self._sizes)
        # Two scores have p products and p sums each, and weights are rounded to the
        # type.
        n_roundings = self.weights.shape[-1] + SAFETY
        unit, least = np.finfo(dtype).eps, np.finfo(dtype).tiny
        reach = weights * largest + offsets
        return np.asarray(n_roundings * (unit * reach + least), dtype=np.float64)


def _decide(scores: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return class codes: the first largest score, or whether a single score is > 0."""
    if scores.shape[axis] == 1:
        return np.asarray(np.take(scores, 0, axis=axis) > 0)
    return np.asarray(np.argmax(scores, axis=axis))
