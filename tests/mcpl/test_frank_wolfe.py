"""Fully corrective Frank-Wolfe on functions with known minima."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from dsel.mcpl.frank_wolfe import (
    CONVERGED,
    OUT_OF_PASSES,
    Hull,
    minimize_over_polytope,
)


@dataclass(frozen=True)
class Quadratic:
    """Half the squared distance from a centre."""

    centre: np.ndarray

    def expand(self, point):
        gradient = point - self.centre
        return SimpleNamespace(
            value=0.5 * float(np.sum(gradient**2)),
            gradient=gradient,
            curvature=lambda directions: directions,
        )


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
