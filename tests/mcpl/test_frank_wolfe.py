"""Fully corrective Frank-Wolfe on functions with known minima."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dsel.mcpl.frank_wolfe import (
    CONVERGED,
    OUT_OF_PASSES,
    Hull,
    minimize_over_polytope,
    minimize_quadratic_on_simplices,
)


@dataclass(frozen=True)
class Quadratic:
    """Half the squared distance from a centre; around a point."""

    centre: np.ndarray
    gradient: np.ndarray | None = None

    def expand(self, point):
        return Quadratic(self.centre, point - self.centre)

    @property
    def value(self):
        return 0.5 * float(np.sum(self.gradient**2))

    def curvature(self, directions):
        return directions


def minimize_over_box(centre, *, tol, max_passes=200, n_parts=1):
    """Answer with corners of the box [0, 1]^n, a sum of boxes of fewer dimensions."""
    members = np.arange(len(centre)) % n_parts == np.arange(n_parts)[:, None]
    parts = np.arange(n_parts)
    start = Hull(members.astype(float), parts, np.zeros_like(parts), np.ones(n_parts))
    return minimize_over_polytope(
        Quadratic(centre),
        start,
        lambda gradient: members * (gradient < 0.0).astype(float),
        tol=tol,
        max_passes=max_passes,
    )


@pytest.mark.parametrize("n_parts", [1, 3])
def test_minimize_over_polytope__projects_on_a_box(rng, n_parts):
    centre = rng.normal(scale=2.0, size=12)
    found = minimize_over_box(centre, tol=1e-12, n_parts=n_parts)
    np.testing.assert_allclose(found.hull.point, np.clip(centre, 0, 1), atol=1e-6)
    assert found.status == CONVERGED
    assert found.gap <= max(1e-12, 1e-12 * found.value)


def test_minimize_over_polytope__gap_bounds_the_distance_to_the_minimum(rng):
    centre = rng.uniform(0.2, 0.8, size=20) + 2.0 * (np.arange(20) == 0)
    least = 0.5 * np.sum((centre - np.clip(centre, 0, 1)) ** 2)
    found = minimize_over_box(centre, tol=1e-9, max_passes=5)
    assert found.status == OUT_OF_PASSES
    assert found.n_passes == 5
    assert found.lower <= least <= found.value


def test_without_idle__keeps_the_keys_of_its_vertices():
    parts, weights = np.zeros(3, dtype=np.intp), np.array([0.0, 0.5, 0.5])
    kept = Hull(np.eye(3), parts, np.array([4, 7, 9]), weights).without_idle()
    assert kept.keys.tolist() == [7, 9]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(1, 2))
def test_minimize_quadratic_on_simplices__agrees_with_slsqp(seed, size, n_parts):
    rng = np.random.default_rng(seed)
    parts = np.arange(size) % n_parts
    members = parts == np.arange(n_parts)[:, None]
    root = rng.normal(size=(size, size))
    hessian, linear = root @ root.T + 0.1 * np.eye(size), 3 * rng.normal(size=size)
    start = (np.arange(size) < n_parts).astype(float)
    found = minimize_quadratic_on_simplices(hessian, linear, start, parts=parts)

    def value(w):
        return 0.5 * w @ hessian @ w + linear @ w

    reference = minimize(
        value,
        start,
        jac=lambda w: hessian @ w + linear,
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda w: members @ w - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert value(found) <= reference.fun + 1e-8
    assert found.min() >= 0.0
    np.testing.assert_allclose(members @ found, 1.0)


def test_minimize_quadratic_on_simplices__takes_a_singular_matrix():
    hessian, linear = np.ones((3, 3)), np.array([1.0, 0.0, 0.5])
    found = minimize_quadratic_on_simplices(
        hessian, linear, np.full(3, 1 / 3), parts=np.zeros(3, dtype=np.intp)
    )
    np.testing.assert_allclose(found, [0.0, 1.0, 0.0], atol=1e-9)
