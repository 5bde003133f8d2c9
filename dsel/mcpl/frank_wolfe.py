"""Fully corrective Frank-Wolfe: minimize a convex function over a huge polytope.

The polytope is known only through its linear minimizer (the vertex on which a
linear function is smallest), which may cost a pass over millions of rows. All
vertices met so far are kept, and between two passes the function is minimized over
their convex hull, which costs no pass: a quadratic over simplices of weights, again and
again.

The polytope may be a sum of polytopes, its parts: a point is a sum of points, one of
each part. Then the hull is the sum of the hulls of the parts' vertices. It is larger
than the hull of sums of vertices, so that fewer passes are needed.

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
"""Share of what the next vertex may gain that is left over the hull."""
_ROUNDING = 1e-15
_RELATIVE_RIDGE = 1e-13


@dataclass(frozen=True)
class Hull:
    """Vertices of each part, and a point as the sum of their weighted means."""

    vertices: Floats
    """Shape (r, n)."""
    parts: NDArray[np.intp]
    """Which part each belongs to; every part 0 to P - 1 has a vertex, shape (r,)."""
    keys: Integers
    """Number of the pass that found each, in the order of the passes, shape (r,)."""
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

    def with_vertices(self, vertices: Floats, key: int) -> "Hull":
        """Return the hull with one more vertex of each part, of weight 0."""
        return Hull(
            np.vstack([self.vertices, vertices]),
            np.append(self.parts, np.arange(len(vertices))),
            np.append(self.keys, np.full(len(vertices), key)),
            np.append(self.weights, np.zeros(len(vertices))),
        )

    def without_idle(self) -> "Hull":
        """Return the hull of the vertices with positive weight."""
        kept = self.weights > _DROPPED_WEIGHT
        parts = self.parts[kept]
        weights = normalize_weights(self.weights[kept], parts)
        return Hull(self.vertices[kept], parts, self.keys[kept], weights)


@dataclass(frozen=True)
class Minimum:
    """The point at which Frank-Wolfe stopped."""

    hull: Hull
    """The vertices that carry weight; ``hull.point`` is the minimiser."""
    gap: float
    """Its value is at most this above the minimum over the polytope."""
    lower: float
    """Lower limit of that minimum: the value less the gap."""
    n_passes: int
    """Passes, those that gave the starting hull left out."""
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
    gap, in the function's units, at which to stop, provided that it is no larger than
    the value (else at a thousandth of it).
    """
    gap, n_passes, last_key = np.inf, 0, int(hull.keys.max())
    best: Minimum | None = None
    while True:
        n_passes += 1
        # This costs no pass over the data, so it is done well before the next one.
        promised = tol if np.isinf(gap) else max(tol, _INNER_SHARE * gap)
        hull = minimize_over_hull(objective, hull, tol=_INNER_SHARE * promised)
        expansion = objective.expand(hull.point)
        vertices = lowest(expansion.gradient)
        # Differences of vertices first: what they share may be larger by many orders.
        way = hull.weights @ (hull.vertices - vertices[hull.parts])
        gain = float(expansion.gradient @ way)
        # Roundings of the terms are taken as independent: their squares add up.
        rounding = _EPSILON * float(
            np.linalg.norm(expansion.gradient * vertices.sum(axis=0))
        )
        # A gain below its own rounding proves no smaller gap.
        previous, gap = gap, max(gain, rounding)
        kept, value = hull.without_idle(), expansion.value
        is_last = n_passes >= max_passes
        # Stuck, too, where all vertices that were sent carry weight already.
        is_stuck = gain <= rounding or (
            gap >= previous
            and all(
                (kept.vertices[kept.parts == part] == vertex).all(axis=1).any()
                for part, vertex in enumerate(vertices)
            )
        )
        status = STALLED if is_stuck else OUT_OF_PASSES if is_last else ""
        # A gap above the value proves nothing about its sign yet: try for more.
        if gap <= tol and (status or gap <= max(value, 1e-3 * tol)):
            status = CONVERGED
        here = Minimum(kept, gap, value - gap, n_passes, status)
        # The lower limit need not rise from pass to pass: the best one is kept.
        if best is None or here.lower > best.lower or status == CONVERGED:
            best = here
        if status:
            return replace(best, n_passes=n_passes, status=status)
        hull = kept.with_vertices(vertices, last_key + n_passes)


def minimize_over_hull(objective: Any, hull: Hull, *, tol: float) -> Hull:
    """Minimize a convex function over the hull of known vertices.

    Newton steps: each minimizes the quadratic model over the simplices of weights,
    and is damped by directional derivatives alone (differences of values would
    stall far above rounding). They end where the duality gap over the hull is `tol`.
    """
    # One vertex of each part: nothing to weight.
    if len(hull.weights) == hull.n_parts:
        return hull
    for _ in range(_MAX_NEWTON_STEPS):
        point, edges, weights = hull.point, hull.edges, hull.weights
        expansion = objective.expand(point)
        # By the chain rule: derivatives in the weights are products with the edges.
        slopes = edges @ expansion.gradient
        # How much the function may fall by moving to the best vertices; edges start at
        # the mean of the part, so staying there gains 0.
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
        # No descent left but rounding.
        if slope >= 0.0:
            break
        # Edges, not vertices: what rounding adds to the step must not count.
        length = _damped_length(objective, point, step @ edges, slope)
        moved = np.maximum(weights + length * step, 0.0)
        hull = replace(hull, weights=normalize_weights(moved, hull.parts))
    return hull


def _damped_length(objective: Any, point: Floats, along: Floats, slope: float) -> float:
    """Return a step length in (0, 1] at which the slope nearly vanishes."""

    def slope_at(length: float) -> float:
        if length == 0.0:
            return slope  # as it was summed before, and found to be negative
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
    """Minimize ``w'Hw / 2 + c'w`` over a product of simplices, by an active set.

    `hessian` is H, positive semidefinite, `linear` c, and `start` a point to start
    from; `parts` says which simplex each weight belongs to. The value found is at most
    `tol` above the minimum. Where H is singular, the weights are those of about the
    least distance from `start`.
    """
    size = len(linear)
    scale = max(float(np.abs(np.diag(hessian)).max()), np.finfo(np.float64).tiny)
    # A tiny ridge makes equal vertices, which share one direction, harmless.
    matrix = hessian / scale + _RELATIVE_RIDGE * np.eye(size)
    # About the start: without curvature nothing but rounding would set the step.
    slope = linear / scale - _RELATIVE_RIDGE * start
    sums = (parts == np.arange(parts.max() + 1)[:, None]).astype(np.float64)
    negligible = max(tol / scale / len(sums), _ROUNDING)
    weights = start.astype(np.float64, copy=True)
    free = weights > 0.0
    for _ in range(10 * size + 20):
        # The minimum over the free weights with sums of 1, and the multipliers: a
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
            # Some weight moved there gains no more than this multiplier.
            if lowest.min() >= -negligible:
                break
            # Those that would leave at once go one by one; the last one gains.
            free |= (reduced == lowest[parts]) & (reduced < -negligible)
        else:
            # Towards the target until the first free weight is 0, which is then fixed.
            falling = np.flatnonzero(target < 0.0)
            lengths = weights[falling] / (weights[falling] - target[falling])
            blocking = falling[np.argmin(lengths)]
            weights = np.maximum(weights + lengths.min() * (target - weights), 0.0)
            weights[blocking], free[blocking] = 0.0, False
    return normalize_weights(weights, parts)


def normalize_weights(weights: Floats, parts: NDArray[np.intp]) -> Floats:
    """Scale nonnegative weights so that those of each part add up to 1."""
    return np.asarray(weights / np.bincount(parts, weights)[parts])
