import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import (
    euclidean_distances,
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)

from dsel.kernels.functions import (
    Linear,
    Polynomial,
    Precomputed,
    Rbf,
    Sigmoid,
    errors_of,
)
from dsel.kernels.reference_rows import DISTANCES, PRODUCTS, VALUES, reference_rows
from dsel.kernels.reference_rows import squared_distances as distances_of

KERNELS = [
    Rbf(0.3),
    Linear(),
    Polynomial(0.2, 1.0, 3.0),
    Polynomial(0.2, 0.5, 1.5),
    Polynomial(0.2, 0.0, 0.5),
    Sigmoid(0.1, -0.2),
]


@pytest.fixture
def rows(rng):
    return rng.random((12, 5)), rng.random((9, 5))


def test_squared_distances__equal_scikit_learn(rows):
    X, Z = rows
    expected = euclidean_distances(X, Z, squared=True)
    np.testing.assert_allclose(distances_of(X, Z), expected, atol=1e-14)
    np.testing.assert_allclose(
        distances_of(sparse.csr_array(X), sparse.csr_array(Z)), expected, atol=1e-14
    )


def test_squared_distances__of_a_table_with_itself_are_symmetric_with_zeros(rows):
    X, _ = rows
    found = distances_of(X, X)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diagonal(found), 0.0)


@pytest.mark.parametrize("filled", [1e9, 1e20, 1e37])
def test_squared_distances__of_others_do_not_suffer_from_a_fill_value(rows, filled):
    X, Z = rows
    holed = Z.copy()
    holed[1, 0] = filled
    kept = np.arange(len(Z)) != 1
    found = distances_of(X, holed)[:, kept]
    np.testing.assert_allclose(found, distances_of(X, Z)[:, kept], atol=1e-12)


def test_squared_distances__do_not_cancel_far_from_the_origin(rows):
    X, Z = rows
    found = distances_of(X + 1e6, Z + 1e6)
    np.testing.assert_allclose(found, distances_of(X, Z), rtol=1e-6, atol=1e-7)
    assert found.min() >= 0.0


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Rbf(0.3), lambda X, Z: rbf_kernel(X, Z, gamma=0.3)),
        (Linear(), lambda X, Z: X @ Z.T),
        (Sigmoid(0.1, -0.2), lambda X, Z: sigmoid_kernel(X, Z, 0.1, -0.2)),
        (Polynomial(0.2, 1.0, 3.0), lambda X, Z: polynomial_kernel(X, Z, 3, 0.2, 1.0)),
        (Polynomial(0.2, 0.5, 1.5), lambda X, Z: (0.2 * X @ Z.T + 0.5) ** 1.5),
    ],
)
def test_values__equal_scikit_learn(rows, kernel, expected):
    X, Z = rows
    found = kernel.values(reference_rows(Z, kernel.base).base_of(X))
    np.testing.assert_allclose(found, expected(X, Z), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_values__keep_float32_and_leave_the_part_as_it_is(rows, kernel):
    base = reference_rows(rows[1], kernel.base).base_of(rows[0])
    before = base.copy()
    low = kernel.values(base.astype(np.float32))
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, kernel.values(base), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(base, before)


@pytest.mark.parametrize("kernel", KERNELS)
def test_diagonal__is_that_of_the_gram_matrix(rows, kernel):
    X, _ = rows
    reference = reference_rows(X, kernel.base)
    gram = kernel.values(reference.base_of(X))
    np.testing.assert_allclose(kernel.diagonal(reference.lengths), np.diagonal(gram))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_rounding__bounds_the_gap_to_values_computed_row_by_row(rows, kernel, scale):
    X, Z = rows[0] * scale, rows[1] * scale
    reference = reference_rows(Z, kernel.base)
    relative, absolute = errors_of(kernel, reference, X)
    values = kernel.values(reference.base_of(X))
    exact = np.stack([kernel.values(reference.exact_base_of(x)) for x in X])
    allowed = (relative[:, np.newaxis] + 4e-16) * np.abs(exact) + absolute[:, None]
    assert (np.abs(values - exact) <= allowed).all()


@pytest.mark.parametrize("kind", [DISTANCES, PRODUCTS])
def test_exact_base_of__does_not_depend_on_the_rows_beside(rng, kind):
    X, Z = rng.random((40, 33)), rng.random((50, 33))
    reference, fewer = reference_rows(Z, kind), reference_rows(Z[10:27], kind)
    for x in X:
        found = fewer.exact_base_of(x)
        np.testing.assert_array_equal(reference.exact_base_of(x)[10:27], found)
        np.testing.assert_allclose(fewer.base_of(x[np.newaxis])[0], found, rtol=1e-12)


def test_exact_base_of__sparse_rows_equal_dense_ones(rows):
    X, Z = rows
    for kind in (DISTANCES, PRODUCTS):
        dense = reference_rows(Z, kind).exact_base_of(X[0])
        rare = reference_rows(sparse.csr_array(Z), kind).exact_base_of(
            sparse.csr_array(X[:1])
        )
        np.testing.assert_allclose(rare, dense, atol=1e-14)


def test_precomputed__gives_back_what_it_gets(rng):
    base = rng.random((3, 4))
    kernel = Precomputed()
    assert kernel.base == VALUES
    assert kernel.values(base) is base
    reference = reference_rows(base, VALUES)
    assert not np.any(errors_of(kernel, reference, base))


def test_polynomial__is_a_kernel_that_svc_can_call(rows):
    X, Z = rows
    np.testing.assert_allclose(
        Polynomial(0.2, 0.5, 1.5)(X, Z), (0.2 * X @ Z.T + 0.5) ** 1.5
    )
