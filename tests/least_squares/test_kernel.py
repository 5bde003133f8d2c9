"""Gaussian kernels and the factorisation that all regularizations share."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import rbf_kernel

from dsel.least_squares.kernel import (
    check_memory,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    whitening,
)


def rebuilt(spectrum):
    return spectrum.vectors * spectrum.values @ spectrum.vectors.T


def test_gaussian_kernel__equals_rbf_kernel_at_gamma_of_the_width(rng):
    rows, centers = rng.standard_normal((9, 3)), rng.standard_normal((4, 3))
    expected = rbf_kernel(rows, centers, gamma=1 / (2 * 0.7**2))
    np.testing.assert_allclose(
        gaussian_kernel(rows, centers, width=0.7), expected, rtol=1e-13
    )


def test_gaussian_kernel__takes_sparse_rows(rng):
    rows = rng.standard_normal((9, 3)) * (rng.random((9, 3)) < 0.5)
    dense = gaussian_kernel(rows, rows, width=2.0)
    sparse = scipy.sparse.csr_array(rows)
    np.testing.assert_allclose(
        gaussian_kernel(sparse, sparse, width=2.0), dense, atol=1e-14
    )


def test_gaussian_gram__is_symmetric_with_ones_on_the_diagonal(rng):
    gram = gaussian_gram(1e3 * rng.standard_normal((20, 6)), width=300.0)
    assert (gram == gram.T).all()
    assert (np.diag(gram) == 1.0).all()


@pytest.mark.parametrize(("width", "expected"), [(1e-200, np.eye(3)), (1e200, 1.0)])
def test_gaussian_gram__has_exact_limits(width, expected):
    rows = np.array([[0.0], [1.0], [3.0]])
    np.testing.assert_array_equal(
        gaussian_gram(rows, width=width), np.broadcast_to(expected, (3, 3))
    )


def test_decompose_gram__serves_both_penalties(rng):
    gram = gaussian_gram(rng.standard_normal((12, 2)), width=1.0)
    rkhs = decompose_gram(gram, penalty="rkhs")
    coefficients = decompose_gram(gram, penalty="coefficients")
    np.testing.assert_allclose(rebuilt(rkhs), gram, atol=1e-14)
    np.testing.assert_allclose(rebuilt(coefficients), gram @ gram, atol=1e-14)


def test_whitening__gives_the_inverse_of_the_gram_matrix(rng):
    gram = gaussian_gram(rng.standard_normal((6, 3)), width=0.8)
    root = whitening(gram)
    np.testing.assert_allclose(root @ root.T @ gram, np.eye(6), atol=1e-10)


def test_whitening__drops_the_null_space_of_duplicate_centers():
    gram = gaussian_gram(np.array([[0.0], [0.0], [1.0]]), width=1.0)
    assert whitening(gram).shape == (3, 2)


def test_check_memory__names_the_size_and_the_way_out():
    check_memory(1000)
    with pytest.raises(ValueError, match=r"2000000 rows.* 32000 GB.*n_centers"):
        check_memory(2_000_000)
