"""Kernels equal those of scikit-learn, and the bounds of their rounding hold."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

import dsel
from dsel.kernels import KERNELS
from dsel.kernels.functions import Linear, Polynomial, Precomputed, Rbf, errors_of
from dsel.kernels.reference_rows import DISTANCES, PRODUCTS, VALUES, reference_rows
from dsel.kernels.reference_rows import squared_distances as distances_of

EXPECTED = {
    Rbf(0.3): lambda X, Z: rbf_kernel(X, Z, gamma=0.3),
    Linear(): lambda X, Z: X @ Z.T,
    Polynomial(0.2, 1.0, 3.0): lambda X, Z: polynomial_kernel(X, Z, 3, 0.2, 1.0),
    Polynomial(0.2, 0.5, 1.5): lambda X, Z: (0.2 * X @ Z.T + 0.5) ** 1.5,
    Polynomial(0.2, 0.0, 0.5): lambda X, Z: (0.2 * X @ Z.T) ** 0.5,
}


@pytest.fixture
def rows(rng):
    return rng.random((12, 5)), rng.random((9, 5))


def test_squared_distances__equal_scikit_learn(rows):
    X, Z = rows
    expected = euclidean_distances(X, Z, squared=True)
    for kind in (np.asarray, sparse.csr_array):
        found = distances_of(kind(X), kind(Z))
        np.testing.assert_allclose(found, expected, atol=1e-14)
    found = distances_of(X, X)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diagonal(found), 0.0)


def test_squared_distances__do_not_cancel_far_from_the_origin(rows):
    X, Z = rows
    found = distances_of(X + 1e6, Z + 1e6)
    np.testing.assert_allclose(found, distances_of(X, Z), rtol=1e-6, atol=1e-7)
    assert found.min() >= 0.0


@pytest.mark.parametrize("kernel", EXPECTED)
def test_values__equal_scikit_learn(rows, kernel):
    X, Z = rows
    reference = reference_rows(Z, kernel.base)
    base = reference.base_of(X)
    before, values = base.copy(), kernel.values(base)
    np.testing.assert_allclose(values, EXPECTED[kernel](X, Z), rtol=1e-12)
    low = kernel.values(base.astype(np.float32))
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, values, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(base, before)
    gram = EXPECTED[kernel](Z, Z)
    np.testing.assert_allclose(kernel.diagonal(reference.lengths), np.diagonal(gram))
    if isinstance(kernel, Polynomial):  # an SVC calls it
        np.testing.assert_array_equal(kernel(X, Z), values)


@pytest.mark.parametrize("kernel", EXPECTED)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_errors_of__bound_the_gap_to_values_computed_row_by_row(rows, kernel, scale):
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
    rare = reference_rows(sparse.csr_array(Z), kind)
    for x in X:
        found = fewer.exact_base_of(x)
        np.testing.assert_array_equal(reference.exact_base_of(x)[10:27], found)
        np.testing.assert_allclose(fewer.base_of(x[np.newaxis])[0], found, rtol=1e-12)
        of_sparse = rare.exact_base_of(sparse.csr_array(x[np.newaxis]))
        np.testing.assert_allclose(of_sparse[10:27], found, rtol=1e-12)


def test_precomputed__gives_back_what_it_gets(rng):
    base, kernel = rng.random((3, 4)), Precomputed()
    assert kernel.base == VALUES
    assert kernel.values(base) is base
    assert not np.any(errors_of(kernel, reference_rows(base, VALUES), base))


def test_kernel_of_a_user__reaches_the_processes_of_a_cluster(rng, monkeypatch):
    """The code is that of the page for contributors, but for the search."""
    page = Path(__file__).parents[2] / "docs" / "project" / "extending.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    [code] = [block for block in blocks if "class Laplacian" in block]
    monkeypatch.delitem(KERNELS, "laplacian", raising=False)
    here = {"np": np, "dataclass": dataclass, "__name__": "of_a_user"}
    exec(code[: code.index("grid = ")], here)
    X = rng.normal(size=(120, 3))
    plan = dsel.plan_search(
        SVC(kernel="laplacian"), {"C": [0.1, 1]}, X, X[:, 0] > 0, random_state=0
    )
    KERNELS.pop("laplacian")  # of this process, as it lacks it that fits
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with Client(n_workers=1, **options) as client:
        assert plan.run(client).choice == plan.run().choice
