"""Fully corrective Frank-Wolfe: minimize a convex function over a huge polytope.

The polytope is known only through its linear minimizer (the vertex on which a
linear function is smallest), which may cost a pass over millions of rows. All
vertices met so far are kept. Between two passes the function is minimized over
their convex hull, by a sequence of quadratic problems over simplices of weights, which
cost no pass (Lacoste-Julien and Jaggi, 2015, compare such variants).

The polytope may be a Minkowski sum of polytopes, its parts: a point is a sum of points,
one of each part. Then the hull is the sum of the hulls of the parts' vertices. It is
larger than the hull of sums of vertices, so that fewer passes are needed.

An *objective* is finite all over the polytope, and has ``expand(point)``: an object
with the `value` and the `gradient` at the point, shape (n,), and
``curvature(directions)``, the Hessian times each row of (r, n).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dsel.arrays import Floats, Integers

CONVERGED: Final = "converged"
OUT_OF_PASSES: Final = "out of passes"
STALLED: Final = "stalled at rounding"

_DROPPED_WEIGHT = 1e-13
_EPSILON = float(np.finfo(np.float64).eps)
_MAX_NEWTON_STEPS = 50
_INNER_SHARE = 0.02
"""Accuracy of the minimum over the hull, relative to the gap of the last pass."""
_ROUNDING = 1e-15
_RELATIVE_RIDGE = 1e-13


@dataclass(frozen=True)
class Hull:
    """Vertices of each part, and a point as the sum of their weighted means."""

    vertices: Floats
    """Shape (r, n)."""
    parts: NDArray[np.intp]
    """Part of each vertex; every part 0 to P - 1 has a vertex, shape (r,)."""
    pass_numbers: Integers
    """Number of the pass that found each vertex, ascending, shape (r,)."""
    weights: Floats
    """Weights; those of each part add up to 1, shape (r,)."""

    @property
    def n_parts(self) -> int:
        """Number of parts, P."""
        return int(self.parts.max()) + 1

    @property
    def point(self) -> Floats:
        """The sum of the parts' weighted means, shape (n,)."""
        return self.weights @ self.vertices

    @property
    def edges(self) -> Floats:
        """Difference of each vertex and the weighted mean of its part, shape (r, n)."""
        members = self.parts == np.arange(self.n_parts)[:, None]
        means = (members * self.weights) @ self.vertices
        return np.asarray(self.vertices - means[self.parts])

    def with_vertices(self, vertices: Floats, pass_number: int) -> "Hull":
        """Return the hull with one more vertex of each part, of weight 0."""
        return Hull(
            np.vstack([self.vertices, vertices]),
            np.append(self.parts, np.arange(len(vertices))),
            np.append(self.pass_numbers, np.full(len(vertices), pass_number)),
            np.append(self.weights, np.zeros(len(vertices))),
        )

    def drop_idle_vertices(self) -> "Hull":
        """Return the hull of the vertices with positive weight."""
        is_used = self.weights > _DROPPED_WEIGHT
        parts = self.parts[is_used]
        weights = normalize_weights(self.weights[is_used], parts)
        return Hull(self.vertices[is_used], parts, self.pass_numbers[is_used], weights)


@dataclass(frozen=True)
class Minimum:
    """The point at which Frank-Wolfe stopped."""

    hull: Hull
    """Vertices with positive weight; ``hull.point`` is the minimizer."""
    gap: float
    """Duality gap: its value exceeds the minimum over the polytope by at most this."""
    lower: float
    """Lower limit of the minimum: the value minus the gap."""
    n_passes: int
    """Number of passes, without those that made the starting hull."""
    status: str
    """``CONVERGED``, ``OUT_OF_PASSES`` or ``STALLED``."""


def minimize_over_polytope(
    objective: Any,
    hull: Hull,
    lowest: Callable[[Floats], Floats],
    *,
    tol: float,
    max_passes: int,
) -> Minimum:
    """Minimize a convex function over a polytope known by its linear minimizer.

    `hull` has at least one vertex of each part to start from. `lowest` takes a gradient
    and returns, for each part, the vertex on which the linear function with that
    gradient is smallest, shape (P, n): one pass over the data. `tol` is the duality
    gap, in the function's units, at which to stop if the value is at least as large;
    a smaller value is refined down to a gap of a thousandth of `tol`.
    """
    gap, n_passes, last_pass = np.inf, 0, int(hull.pass_numbers.max())
    best: Minimum | None = None
    while True:
        n_passes += 1
        # Minimizing over the hull costs no pass over the data, so it is done
        # accurately before each pass.
        expected_gap = tol if np.isinf(gap) else max(tol, _INNER_SHARE * gap)
        hull = minimize_over_hull(objective, hull, tol=_INNER_SHARE * expected_gap)
        expansion = objective.expand(hull.point)
        vertices = lowest(expansion.gradient)
        # Vertices are subtracted first: their common part may be larger than the
        # differences by many orders of magnitude.
        direction = hull.weights @ (hull.vertices - vertices[hull.parts])
        gain = float(expansion.gradient @ direction)
        # Roundings of the terms are treated as independent, so their squares add up.
        rounding = _EPSILON * float(
            np.linalg.norm(expansion.gradient * vertices.sum(axis=0))
        )
        # A gain below its own rounding proves no smaller gap.
        previous, gap = gap, max(gain, rounding)
        used, value = hull.drop_idle_vertices(), expansion.value
        is_last = n_passes >= max_passes
        # It is also stuck where all new vertices have a positive weight already.
        is_stuck = gain <= rounding or (
            gap >= previous
            and all(
                (used.vertices[used.parts == part] == vertex).all(axis=1).any()
                for part, vertex in enumerate(vertices)
            )
        )
        status = STALLED if is_stuck else OUT_OF_PASSES if is_last else ""
        # A gap above the value does not yet prove that the minimum is positive, which
        # is what a certificate needs: go on down to 1e-3 tol.
        if gap <= tol and (status or gap <= max(value, 1e-3 * tol)):
            status = CONVERGED
        current = Minimum(used, gap, value - gap, n_passes, status)
        # The lower limit need not rise from pass to pass, so the best one is
        # returned; the converged one if there is one.
        if best is None or current.lower > best.lower or status == CONVERGED:
            best = current
        if status:
            return replace(best, n_passes=n_passes, status=status)
        hull = used.with_vertices(vertices, last_pass + n_passes)


def minimize_over_hull(objective: Any, hull: Hull, *, tol: float) -> Hull:
    """Minimize a convex function over the hull of known vertices.

    Each Newton step minimizes the quadratic model over the simplices of weights, and is
    damped by directional derivatives alone, because differences of values would stall
    far above rounding. The steps end where the duality gap over the hull is `tol`.
    """
    # With one vertex of each part all weights are 1.
    if len(hull.weights) == hull.n_parts:
        return hull
    for _ in range(_MAX_NEWTON_STEPS):
        point, edges, weights = hull.point, hull.edges, hull.weights
        expansion = objective.expand(point)
        # Derivatives by the weights are products with the edges (chain rule).
        slopes = edges @ expansion.gradient
        # This is minus the gap: the decrease of the linear model on the way to the best
        # vertices. Edges start at the mean of the part, so staying there gains 0.
        lowest = np.zeros(hull.n_parts)
        np.minimum.at(lowest, hull.parts, slopes)
        if -lowest.sum() <= tol:
            break
        hessian = edges @ expansion.curvature(edges).T
        linear = slopes - hessian @ weights
        target = minimize_quadratic_on_simplices(
            hessian, linear, weights, parts=hull.parts, tol=0.1 * tol
        )
        step = target - weights
        slope = float(slopes @ step)
        if slope >= 0.0:  # the rest of the descent is below rounding
            break
        # Edges, not vertices: steps whose sum is not exactly 0 would move the point by
        # a multiple of the large common part.
        length = _damped_length(objective, point, step @ edges, slope)
        moved = np.maximum(weights + length * step, 0.0)
        hull = replace(hull, weights=normalize_weights(moved, hull.parts))
    return hull


def _damped_length(objective: Any, point: Floats, along: Floats, slope: float) -> float:
    """Return a step length in (0, 1] at which the slope nearly vanishes."""

    def slope_at(length: float) -> float:
        if length == 0.0:
            # It was negative above, but may round to 0 when it is computed again.
            return slope
        return float(objective.expand(point + length * along).gradient @ along)

    if slope_at(1.0) <= -0.3 * slope:
        return 1.0
    return float(brentq(slope_at, 0.0, 1.0, rtol=0.1, maxiter=30, disp=False))


def minimize_quadratic_on_simplices(
    hessian: Floats,
    linear: Floats,
    start: Floats,
    *,
    parts: NDArray[np.intp],
    tol: float = 0.0,
) -> Floats:
    """Minimize ``w'Hw / 2 + c'w`` over a product of simplices by an active set method.

    `hessian` is H, positive semidefinite, `linear` is c, `start` a feasible point, and
    `parts` has the simplex of each weight. The value exceeds the minimum by at most
    `tol`, up to rounding, unless the steps run out, of which there are 20 and ten for
    each weight. Where H is singular, the solution is about the one nearest to `start`.
    """
    size = len(linear)
    scale = max(float(np.abs(np.diag(hessian)).max()), np.finfo(np.float64).tiny)
    # A tiny ridge makes the system regular where vertices are equal.
    matrix = hessian / scale + _RELATIVE_RIDGE * np.eye(size)
    # The ridge is centered at the start: where H has no curvature, rounding alone would
    # otherwise decide the step.
    slope = linear / scale - _RELATIVE_RIDGE * start
    sums = (parts == np.arange(parts.max() + 1)[:, None]).astype(np.float64)
    negligible = max(tol / scale / len(sums), _ROUNDING)
    weights = start.astype(np.float64, copy=True)
    free = weights > 0.0
    for _ in range(10 * size + 20):
        # The minimum over the free weights with sums of 1, and its multipliers, solve a
        # Karush-Kuhn-Tucker system of the weights that are not held at 0.
        index = np.flatnonzero(free)
        n_free = len(index)
        block = np.zeros((n_free + len(sums),) * 2)
        block[:n_free, :n_free] = matrix[np.ix_(index, index)]
        block[n_free:, :n_free] = sums[:, index]
        block[:n_free, n_free:] = sums[:, index].T
        right = np.append(-slope[index], np.ones(len(sums)))
        try:
            solved = np.linalg.solve(block, right)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(block, right, rcond=None)[0]
        target = np.zeros(size)
        target[index] = solved[:n_free]
        if (target >= 0.0).all():
            weights = target
            reduced = matrix @ weights + slope + solved[n_free:][parts]
            reduced[free] = 0.0
            lowest = np.zeros(len(sums))
            np.minimum.at(lowest, parts, reduced)
            # Moving weight to a vertex gains at most its reduced cost.
            if lowest.min() >= -negligible:
                break
            # Only the weight of the lowest reduced cost in each part is freed: others
            # would often return to 0 at once.
            free |= (reduced == lowest[parts]) & (reduced < -negligible)
        else:
            # Move towards the target until the first free weight is 0, and hold it.
            falling = np.flatnonzero(target < 0.0)
            lengths = weights[falling] / (weights[falling] - target[falling])
            blocking = falling[np.argmin(lengths)]
            weights = np.maximum(weights + lengths.min() * (target - weights), 0.0)
            weights[blocking], free[blocking] = 0.0, False
    return normalize_weights(weights, parts)


def normalize_weights(weights: Floats, parts: NDArray[np.intp]) -> Floats:
    """Scale nonnegative weights so that those of each part add up to 1."""
    return np.asarray(weights / np.bincount(parts, weights)[parts])
