"""Fully corrective Frank-Wolfe: minimise a convex function over a huge polytope.

The polytope is known only through its linear minimiser (the vertex on which a
linear function is smallest), which may cost a pass over millions of rows. All
vertices met so far are kept, and between two passes the function is minimised over
their convex hull, which costs no pass.

The polytope may be a sum of polytopes, its parts: a point is a sum of points, one of
each part. Then the hull is the sum of the hulls of the parts' vertices. It is larger
than the hull of sums of vertices, so that fewer passes are needed.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.solvers.simplex import (
    minimize_quadratic_on_simplices,
    normalize_weights,
)

CONVERGED: Final = "converged"
OUT_OF_PASSES: Final = "out of passes"
STALLED: Final = "stalled at rounding"

_DROPPED_WEIGHT = 1e-13
_EPSILON = float(np.finfo(np.float64).eps)
_MAX_NEWTON_STEPS = 50
_INNER_SHARE = 0.02


class Expansion(Protocol):
    """A convex function around one point."""

    @property
    def value(self) -> float:
        """Value at the point."""

    @property
    def gradient(self) -> NDArray[np.float64]:
        """Gradient at the point, shape (n,)."""

    def curvature(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Hessian times each row of `directions`, shape (r, n)."""


class Objective(Protocol):
    """A convex function with two derivatives, finite all over the polytope."""

    def expand(self, point: NDArray[np.float64]) -> Expansion:
        """Return the function around `point`, shape (n,)."""


@dataclass(frozen=True)
class Hull:
    """Vertices of each part, and a point as the sum of their weighted means."""

    vertices: NDArray[np.float64]
    """Shape (r, n)."""
    parts: NDArray[np.intp]
    """Which part each belongs to; every part 0 to P - 1 has a vertex, shape (r,)."""
    keys: NDArray[np.int64]
    """Number of the pass that found each, in the order of the passes, shape (r,)."""
    weights: NDArray[np.float64]
    """Weights; those of each part add up to 1, shape (r,)."""

    @property
    def n_parts(self) -> int:
        """Number of parts, P."""
        return int(self.parts.max()) + 1

    @property
    def point(self) -> NDArray[np.float64]:
        """The sum of the parts' weighted means, shape (n,)."""
        return self.weights @ self.vertices

    @property
    def edges(self) -> NDArray[np.float64]:
        """Way from the weighted mean of its part to each vertex, shape (r, n)."""
        members = self.parts == np.arange(self.n_parts)[:, None]
        means = (members * self.weights) @ self.vertices
        return np.asarray(self.vertices - means[self.parts])

    def with_vertices(self, vertices: NDArray[np.float64], key: int) -> "Hull":
        """Return the hull with one more vertex of each part, of weight 0."""
        return Hull(
            np.vstack([self.vertices, vertices]),
            np.append(self.parts, np.arange(len(vertices))),
            np.append(self.keys, np.full(len(vertices), key)),
            np.append(self.weights, np.zeros(len(vertices))),
        )

    def without_idle(self) -> "Hull":
        """Return the hull of the vertices that carry weight."""
        kept = self.weights > _DROPPED_WEIGHT
        parts = self.parts[kept]
        weights = normalize_weights(self.weights[kept], parts)
        return Hull(self.vertices[kept], parts, self.keys[kept], weights)


@dataclass(frozen=True)
class Minimum:
    """Where Frank-Wolfe stopped."""

    hull: Hull
    """The vertices that carry weight; ``hull.point`` is the minimiser."""
    value: float
    """Value of the function there."""
    gap: float
    """The minimum over the polytope is at least ``value - gap``."""
    n_passes: int
    """Passes, those that gave the starting hull left out."""
    status: str
    """``CONVERGED``, ``OUT_OF_PASSES`` or ``STALLED``."""

    @property
    def lower(self) -> float:
        """Lower limit of the minimum over the polytope."""
        return self.value - self.gap


def minimize_over_polytope(
    objective: Objective, hull: Hull, *, tol: float, max_passes: int
) -> Generator[NDArray[np.float64], NDArray[np.float64], Minimum]:
    """Minimise a convex function over a polytope known by its linear minimiser.

    A generator: it yields a gradient and has to be sent, for each part, the vertex
    on which the linear function with that gradient is smallest, shape (P, n), so that
    one pass over the data can serve many minimisations. It returns a `Minimum`.

    Parameters
    ----------
    objective
        The function.
    hull
        At least one vertex of each part to start from.
    tol
        Duality gap, in the function's units, at which to stop, provided that it
        is no larger than the value (else at a thousandth of it).
    max_passes
        Passes at most, >= 1.
    """
    gap = np.inf
    best: Minimum | None = None
    n_passes = 0
    next_key = int(hull.keys.max()) + 1
    while True:
        # This costs no pass over the data, so it is done well before the next one.
        hull = minimize_over_hull(objective, hull, tol=_inner_tol(tol, gap))
        expansion = objective.expand(hull.point)
        vertices = yield expansion.gradient
        n_passes += 1
        gain, rounding = _gain(expansion.gradient, hull, vertices)
        # A gain below its own rounding proves no smaller gap.
        previous, gap = gap, max(gain, rounding)
        is_last = n_passes >= max_passes
        is_stuck = gain <= rounding or (gap >= previous and _is_known(vertices, hull))
        status = _status(expansion.value, gap, tol, is_last=is_last, is_stuck=is_stuck)
        here = Minimum(hull.without_idle(), expansion.value, gap, n_passes, status)
        # The lower limit need not rise from pass to pass: the best one is kept.
        if best is None or here.lower > best.lower or status == CONVERGED:
            best = here
        if status:
            return replace(best, n_passes=n_passes, status=status)
        hull = here.hull.with_vertices(vertices, next_key)
        next_key += 1


def _gain(
    gradient: NDArray[np.float64], hull: Hull, vertices: NDArray[np.float64]
) -> tuple[float, float]:
    """Return what the way to the vertices promises at most, and its rounding."""
    # Differences of vertices first: what they share may be larger by many orders.
    gain = gradient @ (hull.weights @ (hull.vertices - vertices[hull.parts]))
    # Roundings of the terms are taken as independent: their squares add up.
    rounding = _EPSILON * float(np.linalg.norm(gradient * vertices.sum(axis=0)))
    return float(gain), rounding


def _inner_tol(tol: float, gap: float) -> float:
    """Accuracy over the hull: a small share of what the next vertex may gain."""
    return _INNER_SHARE * (max(tol, _INNER_SHARE * gap) if np.isfinite(gap) else tol)


def _status(
    value: float, gap: float, tol: float, *, is_last: bool, is_stuck: bool
) -> str:
    """Return how to stop, or "" to go on."""
    # A gap above the value proves nothing about its sign yet: try for more.
    if gap <= tol and (gap <= value or gap <= 1e-3 * tol or is_last or is_stuck):
        return CONVERGED
    if is_stuck:
        return STALLED
    return OUT_OF_PASSES if is_last else ""


def _is_known(vertices: NDArray[np.float64], hull: Hull) -> bool:
    """Whether every vertex that was sent carries weight already."""
    carrying = hull.weights > _DROPPED_WEIGHT
    return all(
        (hull.vertices[carrying & (hull.parts == part)] == vertex).all(axis=1).any()
        for part, vertex in enumerate(vertices)
    )


def minimize_over_hull(objective: Objective, hull: Hull, *, tol: float) -> Hull:
    """Minimise a convex function over the hull of known vertices.

    Newton steps: each minimises the quadratic model over the simplices of weights,
    and is damped by directional derivatives alone (differences of values would
    stall far above rounding).

    Parameters
    ----------
    objective
        The function.
    hull
        The vertices and the weights to start from.
    tol
        Duality gap over the hull at which to stop.
    """
    # One vertex of each part: nothing to weight.
    if len(hull.weights) == hull.n_parts:
        return hull
    for _ in range(_MAX_NEWTON_STEPS):
        point, edges, weights = hull.point, hull.edges, hull.weights
        expansion = objective.expand(point)
        # By the chain rule: derivatives in the weights are products with the edges.
        slopes = edges @ expansion.gradient
        if _hull_gap(slopes, hull) <= tol:
            break
        hessian = edges @ expansion.curvature(edges).T
        linear = slopes - hessian @ weights
        target = minimize_quadratic_on_simplices(
            hessian, linear, weights, parts=hull.parts, tol=0.1 * tol
        )
        step = target - weights
        slope = float(slopes @ step)
        # No descent left but rounding.
        if slope >= 0.0:
            break
        # Edges, not vertices: what rounding adds to the step must not count.
        length = _damped_length(objective, point, step @ edges, slope)
        moved = np.maximum(weights + length * step, 0.0)
        hull = replace(hull, weights=normalize_weights(moved, hull.parts))
    return hull


def _hull_gap(slopes: NDArray[np.float64], hull: Hull) -> float:
    """Return how much the function may fall by moving to the best vertices."""
    # Edges start at the mean of the part, so staying there gains 0.
    lowest = np.zeros(hull.n_parts)
    np.minimum.at(lowest, hull.parts, slopes)
    return -float(lowest.sum())


def _damped_length(
    objective: Objective,
    point: NDArray[np.float64],
    along: NDArray[np.float64],
    slope: float,
) -> float:
    """Length in (0, 1] at which the slope along the step has all but vanished."""
    low, low_slope, high, high_slope = 0.0, slope, 1.0, 0.0
    length = 1.0
    for _ in range(30):
        here = float(objective.expand(point + length * along).gradient @ along)
        if here <= -0.3 * slope and (length == 1.0 or here >= 0.3 * slope):
            return length
        if here > 0.0:
            high, high_slope = length, here
        else:
            low, low_slope = length, here
        # Secant step on the slope, kept inside of the bracket.
        length = low + (high - low) * low_slope / (low_slope - high_slope)
        margin = 0.05 * (high - low)
        length = min(max(length, low + margin), high - margin)
    return length
