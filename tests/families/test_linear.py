"""Stacked linear models answer each row alike, whatever rows are beside it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from dsel.families.family import FitCounts
from dsel.families.linear import stack_linear
from dsel.families.predictions import FittedEstimators

N_COLUMNS = 7


def stack_of(n_classes, learner=LogisticRegression):
    rng = np.random.default_rng(0)
    models = {}
    for key in np.ndindex(2, 3):
        X = rng.normal(size=(60, N_COLUMNS))
        y = np.arange(60) % (n_classes if key[1] else max(n_classes - 1, 2))
        models[key] = learner().fit(X + y[:, None], y)
    counts, classes = FitCounts.empty(2, 3), np.arange(n_classes)
    return stack_linear(FittedEstimators((0, 1), (0, 1, 2), counts, models, classes))


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
@pytest.mark.parametrize("kind", [np.float32, np.float64, sparse.csr_matrix])
def test_predict__equals_sums_row_by_row(n_classes, learner, scale, kind, rng):
    stack = stack_of(n_classes, learner)
    X, drawn = kind(rng.normal(size=(500, N_COLUMNS)) * scale), np.arange(500) % 3
    expected = row_by_row(stack, X)
    codes = stack.predict(X, [np.array(2), np.array([[0], [1]]), drawn])
    assert (codes[0] == expected[:, 2]).all()
    assert (codes[1] == np.stack([expected[0, 0], expected[1, 1]])).all()
    of_drawn = np.take_along_axis(expected, drawn[None, None], axis=1)
    assert (codes[2] == of_drawn[:, 0]).all()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    n_classes=st.sampled_from([2, 3]),
    outlier=st.sampled_from([1.0, 1e8, 1e34]),
)
def test_predict__does_not_depend_on_the_block(seed, lengths, n_classes, outlier):
    stack, rng = stack_of(n_classes), np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(sum(lengths), N_COLUMNS)).astype(np.float32)
    X[0] *= outlier
    drawn, cuts = rng.integers(0, 3, size=len(X)), np.cumsum(lengths)[:-1]
    blocks = zip(np.split(X, cuts), np.split(drawn, cuts), strict=True)
    parts = [stack.predict(block, [which]) for block, which in blocks]
    assert (np.concatenate(parts, axis=2) == stack.predict(X, [drawn])).all()


def test_predict__decides_exact_ties_alike_in_any_block():
    stack = stack_of(2, RidgeClassifier)
    weights = np.sign(stack.weights) * np.array([1, 1, 1, 1, 1, 1, 0])
    tied = replace(stack, weights=weights, offsets=np.zeros_like(stack.offsets))
    X = np.zeros((100, N_COLUMNS), dtype=np.float32)
    X[:, 6] = np.arange(100)
    for rows in (X, X[:1]):
        assert (tied.predict(rows, [np.array(1)]) == 0).all()


def test_predict__decides_ties_of_the_smallest_integers(rng):
    halves = rng.normal(size=(20, 32))
    weights = rng.permuted(np.concatenate([halves, -halves], axis=1), axis=1)
    weights = np.repeat(weights[:, np.newaxis, np.newaxis], 3, axis=1)
    stack = replace(
        stack_of(2), weights=weights, offsets=np.zeros((20, 3, 1)),
        candidate_numbers=tuple(range(20)),
    )  # fmt: skip
    X = np.full((50, 64), -128, dtype=np.int8)
    codes = stack.predict(X, [np.array(0)])[0]
    assert (codes == row_by_row(stack, X)[:, 0]).all()
