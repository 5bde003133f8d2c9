"""Small eigenvalues of gram matrices, free of the rounding of the large ones."""

import numpy as np
import pytest

from dsel.kernels.deflation import (
    decompose_in_two_levels,
    remainder,
    smallest_eigenvalue,
)
from dsel.kernels.eigen import gaussian_gram


def rebuilt(values, vectors):
    return vectors * values @ vectors.T


def error_of_small_part(matrix, values, vectors, small):
    """What a decomposition leaves of a matrix, seen along some of its vectors."""
    vectors = vectors.astype(np.longdouble)
    error = matrix.astype(np.longdouble) - rebuilt(values, vectors)
    return abs(vectors[:, small].T @ error @ vectors[:, small]).max()


def test_remainder__keeps_what_cancels(rng):
    factor = rng.uniform(-1, 1, (40, 60)) / np.sqrt(60)
    exact = factor.astype(np.longdouble) @ factor.T.astype(np.longdouble)
    noise = 1e-12 * rng.uniform(-1, 1, exact.shape)
    gram = np.float64(exact + noise + noise.T)
    np.testing.assert_allclose(
        remainder(gram, factor), np.float64(gram - exact), rtol=0, atol=2e-19
    )


def test_remainder__of_nothing_is_the_matrix():
    gram = np.array([[1.0, 0.3], [0.3, 1.0]])
    np.testing.assert_array_equal(remainder(gram, np.empty((2, 0))), gram)


@pytest.mark.parametrize("width", [0.1, 0.4, 3.0])
def test_decompose_in_two_levels__keeps_the_small_part(rng, width):
    gram = gaussian_gram(rng.uniform(-1, 1, (40, 1)), width=width)
    values, vectors = decompose_in_two_levels(gram, 1e-3)
    np.testing.assert_allclose(rebuilt(values, vectors), gram, atol=1e-14)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(40), atol=1e-11)
    assert error_of_small_part(gram, values, vectors, values < 1e-3) < 1e-17


@pytest.mark.parametrize("cut", [1e-3, 5.0])
def test_decompose_in_two_levels__may_have_only_one(cut):
    gram = np.eye(4)
    values, vectors = decompose_in_two_levels(gram, cut)
    np.testing.assert_allclose(rebuilt(values, vectors), gram, atol=1e-15)


@pytest.mark.parametrize("width", [0.01, 0.1, 0.4])
def test_smallest_eigenvalue__is_estimated_from_below(rng, width):
    gram = gaussian_gram(rng.uniform(-1, 1, (30, 2)), width=width)
    smallest = np.linalg.eigvalsh(gram)[0]
    assert smallest / 30 < smallest_eigenvalue(gram) < 1.1 * smallest


def test_smallest_eigenvalue__of_a_singular_matrix_is_0():
    assert smallest_eigenvalue(np.ones((3, 3))) == 0.0
