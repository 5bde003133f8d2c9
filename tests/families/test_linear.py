"""Stacked linear models answer each row alike, whatever rows are beside it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from dsel.families.answers import FittedClassifiers
from dsel.families.family import FitCounts
from dsel.families.linear import stack_linear

N_COLUMNS = 7


def stack_of(n_classes, seed=0, learner=LogisticRegression):
    rng = np.random.default_rng(seed)
    classes = np.arange(n_classes)
    models = {}
    for candidate in (0, 1):
        for split in (0, 1, 2):
            X = rng.normal(size=(60, N_COLUMNS))
            y = np.arange(60) % (n_classes if split else max(n_classes - 1, 2))
            models[candidate, split] = learner().fit(X + y[:, None], y)
    counts = FitCounts.empty(2, 3)
    return stack_linear(FittedClassifiers((0, 1), (0, 1, 2), counts, models, classes))


def row_by_row(stack, X):
    """Class codes of sums in float64 in the order of the columns."""
    dense = X.toarray() if sparse.issparse(X) else X
    terms = stack.weights[..., np.newaxis, :] * dense.astype(float)
    scores = terms.sum(axis=-1) + stack.offsets[..., np.newaxis]
    if scores.shape[2] == 1:
        return (scores[:, :, 0] > 0).astype(int)
    return scores.argmax(axis=2)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("learner", [LogisticRegression, RidgeClassifier])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e20, 1e36])
@pytest.mark.parametrize(
    "make", [np.float32, np.float64, lambda X: sparse.csr_matrix(X)]
)
def test_predict__equals_sums_row_by_row(n_classes, learner, scale, make, rng):
    stack = stack_of(n_classes, learner=learner)
    X = make(rng.normal(size=(500, N_COLUMNS)) * scale)
    expected = row_by_row(stack, X)

    codes = stack.predict(X, [np.array(2), np.array([[0], [1]]), np.arange(500) % 3])

    assert (codes[0] == expected[:, 2]).all()
    assert (codes[1] == np.stack([expected[0, 0], expected[1, 1]])).all()
    drawn = np.take_along_axis(expected, (np.arange(500) % 3)[None, None], axis=1)
    assert (codes[2] == drawn[:, 0]).all()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    n_classes=st.sampled_from([2, 3]),
    outlier=st.sampled_from([1.0, 1e8, 1e34]),
)
def test_predict__does_not_depend_on_the_block(seed, lengths, n_classes, outlier):
    stack = stack_of(n_classes)
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(sum(lengths), N_COLUMNS)).astype(np.float32)
    X[0] *= outlier
    drawn = rng.integers(0, 3, size=len(X))

    whole = stack.predict(X, [drawn])

    cuts = np.cumsum(lengths)[:-1]
    parts = [
        stack.predict(block, [which])
        for block, which in zip(np.split(X, cuts), np.split(drawn, cuts), strict=True)
    ]
    assert (np.concatenate(parts, axis=2) == whole).all()


def test_predict__decides_exact_ties_alike_in_any_block():
    stack = stack_of(2, learner=RidgeClassifier)
    weights = np.sign(stack.weights) * np.array([1, 1, 1, 1, 1, 1, 0])
    tied = replace(stack, weights=weights, offsets=np.zeros_like(stack.offsets))
    X = np.zeros((100, N_COLUMNS), dtype=np.float32)
    X[:, 6] = np.arange(100)

    assert (tied.predict(X, [np.array(1)]) == 0).all()
    assert (tied.predict(X[:1], [np.array(1)]) == 0).all()


def test_predict__decides_ties_of_the_smallest_integers(rng):
    halves = rng.normal(size=(20, 32))
    weights = rng.permuted(np.concatenate([halves, -halves], axis=1), axis=1)
    stack = replace(
        stack_of(2),
        weights=np.repeat(weights[:, np.newaxis, np.newaxis], 3, axis=1),
        offsets=np.zeros((20, 3, 1)),
        candidates=tuple(range(20)),
    )
    X = np.full((50, 64), -128, dtype=np.int8)

    codes = stack.predict(X, [np.array(0)])[0]

    assert (codes == row_by_row(stack, X)[:, 0]).all()
