"""Fully corrective Frank-Wolfe: minimise a convex function over a huge polytope.

The polytope is known only through its linear minimiser (the vertex on which a
linear function is smallest), which may cost a pass over millions of rows. All
vertices met so far are kept, and between two passes the function is minimised over
their convex hull, which costs no pass: a quadratic over simplices of weights, again and
again.

The polytope may be a sum of polytopes, its parts: a point is a sum of points, one of
each part. Then the hull is the sum of the hulls of the parts' vertices. It is larger
than the hull of sums of vertices, so that fewer passes are needed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Bools, Floats, Integers

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


class Expansion(Protocol):
    """A convex function around one point."""

    @property
    def value(self) -> float:
        """Value at the point."""

    @property
    def gradient(self) -> Floats:
        """Gradient at the point, shape (n,)."""

    def curvature(self, directions: Floats) -> Floats:
        """Return the Hessian times each row of `directions`, shape (r, n)."""


class Objective(Protocol):
    """A convex function with two derivatives, finite all over the polytope."""

    def expand(self, point: Floats) -> Expansion:
        """Return the function around `point`, shape (n,)."""


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
        """Way from the weighted mean of its part to each vertex, shape (r, n)."""
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
    objective: Objective,
    hull: Hull,
    lowest: Callable[[Floats], Floats],
    *,
    tol: float,
    max_passes: int,
) -> Minimum:
    """Minimise a convex function over a polytope known by its linear minimiser.

    `hull` has at least one vertex of each part to start from. `lowest` takes a gradient
    and returns, for each part, the vertex on which the linear function with that
    gradient is smallest, shape (P, n): one pass over the data. `tol` is the duality
    gap, in the function's units, at which to stop, provided that it is no larger than
    the value (else at a thousandth of it).
    """
    gap = np.inf
    best: Minimum | None = None
    n_passes = 0
    next_key = int(hull.keys.max()) + 1
    while True:
        # This costs no pass over the data, so it is done well before the next one.
        promised = tol if np.isinf(gap) else max(tol, _INNER_SHARE * gap)
        hull = minimize_over_hull(objective, hull, tol=_INNER_SHARE * promised)
        expansion = objective.expand(hull.point)
        vertices = lowest(expansion.gradient)
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


def _gain(gradient: Floats, hull: Hull, vertices: Floats) -> tuple[float, float]:
    """Return what the way to the vertices promises at most, and its rounding."""
    # Differences of vertices first: what they share may be larger by many orders.
    gain = gradient @ (hull.weights @ (hull.vertices - vertices[hull.parts]))
    # Roundings of the terms are taken as independent: their squares add up.
    rounding = _EPSILON * float(np.linalg.norm(gradient * vertices.sum(axis=0)))
    return float(gain), rounding


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


def _is_known(vertices: Floats, hull: Hull) -> bool:
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


def _hull_gap(slopes: Floats, hull: Hull) -> float:
    """Return how much the function may fall by moving to the best vertices."""
    # Edges start at the mean of the part, so staying there gains 0.
    lowest = np.zeros(hull.n_parts)
    np.minimum.at(lowest, hull.parts, slopes)
    return -float(lowest.sum())


def _damped_length(
    objective: Objective,
    point: Floats,
    along: Floats,
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


def minimize_quadratic_on_simplices(
    hessian: Floats,
    linear: Floats,
    start: Floats,
    *,
    parts: NDArray[np.intp],
    tol: float = 0.0,
) -> Floats:
    """Minimise ``w'Hw / 2 + c'w`` over simplices side by side, by an active set.

    `hessian` is H, positive semidefinite, `linear` c, and `start` a point to start
    from; `parts` says which simplex each weight belongs to. The value found is at most
    `tol` above the minimum. Where H is singular, the weights are those of about the
    least distance from `start`.

    Examples
    --------
    >>> H, c = np.diag([1.0, 1.0, 1.0]), np.array([0.0, 0.0, 9.0])
    >>> parts = np.array([0, 0, 0])
    >>> minimize_quadratic_on_simplices(H, c, np.ones(3) / 3, parts=parts)
    array([0.5, 0.5, 0. ])
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
        target, multipliers = _equality_minimum(matrix, slope, sums, free)
        if (target[free] >= 0.0).all():
            weights = target
            reduced = matrix @ weights + slope - multipliers[parts]
            reduced[free] = 0.0
            lowest = np.zeros(len(sums))
            np.minimum.at(lowest, parts, reduced)
            # Some weight moved there gains no more than this multiplier.
            if lowest.min() >= -negligible:
                break
            # Those that would leave at once go one by one; the last one gains.
            free |= (reduced == lowest[parts]) & (reduced < -negligible)
        else:
            weights, free = _step_to_boundary(weights, target, free)
    return normalize_weights(weights, parts)


def normalize_weights(weights: Floats, parts: NDArray[np.intp]) -> Floats:
    """Scale nonnegative weights so that those of each part add up to 1."""
    return np.asarray(weights / np.bincount(parts, weights)[parts])


def _equality_minimum(
    matrix: Floats,
    slope: Floats,
    sums: Floats,
    free: Bools,
) -> tuple[Floats, Floats]:
    """Minimise over the free weights with sums of 1; also return the multipliers."""
    index = np.flatnonzero(free)
    size = len(index)
    block = np.zeros((size + len(sums),) * 2)
    block[:size, :size] = matrix[np.ix_(index, index)]
    # Karush-Kuhn-Tucker system of the weights that are not held at 0.
    block[size:, :size] = sums[:, index]
    block[:size, size:] = sums[:, index].T
    right = np.append(-slope[index], np.ones(len(sums)))
    try:
        solved = np.linalg.solve(block, right)
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(block, right, rcond=None)[0]
    target = np.zeros(len(slope))
    target[index] = solved[:size]
    return target, np.negative(solved[size:])


def _step_to_boundary(
    weights: Floats,
    target: Floats,
    free: Bools,
) -> tuple[Floats, Bools]:
    """Go towards the target until the first free weight is 0, and fix that one."""
    falling = np.flatnonzero(free & (target < 0.0))
    # Part of the way at which each falling weight meets 0.
    lengths = weights[falling] / (weights[falling] - target[falling])
    blocking = int(np.argmin(lengths))
    moved = weights + lengths[blocking] * (target - weights)
    moved[falling[blocking]] = 0.0
    remaining = free.copy()
    remaining[falling[blocking]] = False
    return np.maximum(moved, 0.0), remaining
