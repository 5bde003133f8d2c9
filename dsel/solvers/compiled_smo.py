"""Compiled part of the SMO solver; imported only inside `smo.py`.

Written for the residual r = y - K beta, where beta_t = y_t alpha_t, so that kernel
rows are used as they are. A row may rise while beta_t < upper_t and fall while
beta_t > lower_t; the pair (i, j) moves by beta_i += s, beta_j -= s.

The steps are those of libsvm to the last bit, for as long as libsvm leaves out no row:
its ties (the last row of equals), its order of operations, no fused products. At a tol
of 1e-3 a path that differs in one rounding ends at another model.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

WIDTH = 64
EAGER = 1024  # rows up to which copying all kernel rows at once is cheaper
TAU = 1e-12  # stands for a curvature that rounding made zero or negative
SOLVED, STOPPED, ROW_MISSING, CUT = 0, 1, 2, 3


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles, and caches where any folder can be written."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # neither the package nor the user has a writable folder
            return njit(nogil=True, **options)(function)

    return decorate


def _maximum(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the larger of two doubles, neither of them NaN.

    A maximum written with `if` stays scalar: LLVM wants flags on the comparison that
    numba does not pass on. Vectorised, an iteration takes a third of the time.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.DoubleType()
        shape = ir.FunctionType(double, [double, double])
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [double], shape)
        return builder.call(maximum, arguments, fastmath=("nnan", "nsz"))

    return types.float64(types.float64, types.float64), emit


larger: Any = intrinsic(_maximum)

# No NaN comes in, and infinities stay defined: masks are 0 and -inf. Nothing here may
# change a rounding.
FAST = {"nnan", "nsz"}


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def set_masks(
    beta: Any, lower: Any, upper: Any, rise: Any, fall: Any, b: Any, u: Any
) -> Any:
    """Write 0 where row u of block b may rise and fall, -inf where it may not."""
    rise[b, u] = 0.0 if beta[b, u] < upper[b, u] else -np.inf
    fall[b, u] = 0.0 if beta[b, u] > lower[b, u] else -np.inf


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def start_masks(
    residual: Any, beta: Any, lower: Any, upper: Any, rise: Any, fall: Any, peaks: Any
) -> Any:
    """Write all masks; return the largest residual of a row that may rise."""
    best = -np.inf
    for b in range(len(residual)):
        peak = -np.inf
        for u in range(WIDTH):
            set_masks(beta, lower, upper, rise, fall, b, u)
            peak = larger(peak, residual[b, u] + rise[b, u])
        peaks[b] = peak
        best = larger(best, peak)
    return best


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def select_second(
    best: Any,
    row: Any,
    diagonal: Any,
    own: Any,
    residual: Any,
    fall: Any,
    gain: Any,
    peaks: Any,
) -> Any:
    """Write what pairing the first row with each row gains; return most, and the gap.

    `row` is the first row's kernel row, `own` its kernel with itself, `best` its
    residual.
    """
    most = 0.0
    gap = -np.inf
    for b in range(len(residual)):
        peak = 0.0
        for u in range(WIDTH):
            difference = (best - residual[b, u]) + fall[b, u]
            gap = larger(gap, difference)
            difference = larger(difference, 0.0)
            curvature = larger(own + diagonal[b, u] - 2.0 * row[b, u], TAU)
            value = difference * difference / curvature
            gain[b, u] = value
            peak = larger(peak, value)
        peaks[b] = peak
        most = larger(most, peak)
    return most, gap


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def subtract_rows(
    residual: Any,
    up: Any,
    down: Any,
    row_i: Any,
    row_j: Any,
    rise: Any,
    peaks: Any,
) -> Any:
    """Update the residual; return its largest value over rows that may rise."""
    best = -np.inf
    for b in range(len(residual)):
        peak = -np.inf
        for u in range(WIDTH):
            change = np.float64(row_i[b, u]) * up + np.float64(row_j[b, u]) * down
            value = residual[b, u] - change
            residual[b, u] = value
            peak = larger(peak, value + rise[b, u])
        peaks[b] = peak
        best = larger(best, peak)
    return best


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def last_equal(values: Any, wanted: Any) -> Any:
    """Return the last place with this value (the first one if there is none)."""
    t = len(values) - 1
    while t > 0 and values[t] != wanted:
        t -= 1
    return t


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def last_sum(values: Any, masks: Any, wanted: Any) -> Any:
    """Return the last place with this sum (the first one if there is none)."""
    t = len(values) - 1
    while t > 0 and values[t] + masks[t] != wanted:
        t -= 1
    return t


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def moved_pair(rising: Any, falling: Any, upper: Any, lower: Any, step: Any) -> Any:
    """Return where a step takes the two variables of a pair, at most to a bound.

    A variable that is stopped by its bound is set to it, not near it.
    """
    room_up, room_down = upper - rising, falling - lower
    if step < room_up and step < room_down:
        return rising + step, falling - step
    if room_up <= room_down:
        return upper, (rising + falling) - upper
    return (rising + falling) - lower, lower


@compiled(error_model="numpy")
def copy_row(gram: Any, members: Any, t: Any, target: Any) -> Any:
    """Write row members[t] of the Gram matrix, at the columns of all members."""
    source = gram[members[t]]
    for s in range(len(members)):
        target[s] = source[members[s]]


@compiled(error_model="numpy")
def fetch_row(gram: Any, members: Any, t: Any, rows: Any, slots: Any) -> Any:
    """Copy kernel row t into its slot; return whether there was a Gram matrix."""
    if len(gram) == 0:
        return False
    copy_row(gram, members, t, rows[t].reshape(-1))
    slots[t] = t
    return True


@compiled(fastmath=FAST, error_model="numpy")
def descend(  # noqa: PLR0913
    gram: Any,
    members: Any,
    rows: Any,
    slots: Any,
    used: Any,
    diagonal: Any,
    residual: Any,
    beta: Any,
    lower: Any,
    upper: Any,
    work: Any,
    tol: Any,
    limit: Any,
    clock: Any,
    uncut: Any,
) -> Any:
    """Take SMO steps until the gap is below `tol`, `limit` steps, or a row is missing.

    `rows[slots[t]]` is kernel row t, `slots[t]` is -1 where it is not there, and
    `used` tells when a slot was last read, counting from `clock`. A row that is not
    there is copied from the Gram matrix, unless that is empty. `residual` and `beta`
    are updated. With `uncut` it ends before the first step that C would stop: up to
    there every larger C takes the same steps.
    Returns status, row that is missing, steps taken, gap.
    """
    rise, fall, gain = work[0], work[1], work[2]
    peaks = np.empty(len(residual))
    best = start_masks(residual, beta, lower, upper, rise, fall, peaks)
    steps = 0
    while True:
        b = last_equal(peaks, best)
        u = last_sum(residual[b], rise[b], best)
        i = b * WIDTH + u
        if slots[i] < 0 and not fetch_row(gram, members, i, rows, slots):
            return ROW_MISSING, i, steps, np.inf
        row_i = rows[slots[i]]
        used[slots[i]] = clock + steps
        own = diagonal[b, u]
        most, gap = select_second(
            best, row_i, diagonal, own, residual, fall, gain, peaks
        )
        if most <= 0.0:
            gap = 0.0  # no pair gains anything: what is left is rounding
        if gap < tol or most <= 0.0 or steps >= limit:
            return SOLVED if gap < tol else STOPPED, i, steps, gap
        c = last_equal(peaks, most)
        v = last_equal(gain[c], most)
        j = c * WIDTH + v
        if slots[j] < 0 and not fetch_row(gram, members, j, rows, slots):
            return ROW_MISSING, j, steps, np.inf
        row_j = rows[slots[j]]
        used[slots[j]] = clock + steps
        curvature = larger(own + diagonal[c, v] - 2.0 * row_i[c, v], TAU)
        step = (residual[b, u] - residual[c, v]) / curvature
        risen, fallen = moved_pair(
            beta[b, u], beta[c, v], upper[b, u], lower[c, v], step
        )
        if uncut and (0.0 < upper[b, u] <= risen or 0.0 > lower[c, v] >= fallen):
            return CUT, j, steps, gap
        up, down = risen - beta[b, u], fallen - beta[c, v]
        beta[b, u], beta[c, v] = risen, fallen
        set_masks(beta, lower, upper, rise, fall, b, u)
        set_masks(beta, lower, upper, rise, fall, c, v)
        best = subtract_rows(residual, up, down, row_i, row_j, rise, peaks)
        steps += 1


@compiled(fastmath=FAST, error_model="numpy")
def subtract_row(residual: Any, change: Any, row: Any) -> Any:
    """Subtract a kernel row times the change of its variable from the residual."""
    for b in range(len(residual)):
        for u in range(WIDTH):
            residual[b, u] -= change * np.float64(row[b, u])


@compiled(error_model="numpy")
def catch_up(
    gram: Any, members: Any, rows: Any, slots: Any, residual: Any, change: Any
) -> Any:
    """Subtract what changed variables do to all residuals, variable by variable."""
    for t in range(len(change)):
        if change[t] != 0.0:
            if slots[t] < 0:
                fetch_row(gram, members, t, rows, slots)
            subtract_row(residual, change[t], rows[t])


@compiled(error_model="numpy")
def offset(residual: Any, beta: Any, lower: Any, upper: Any) -> Any:
    """Return the constant of the decision: the mean residual of free rows.

    Without free rows it is the middle of what the optimality conditions allow.
    """
    total, n_free = 0.0, 0
    highest_rising, lowest_falling = -np.inf, np.inf
    for t in range(len(residual)):
        rises, falls = beta[t] < upper[t], beta[t] > lower[t]
        if rises and falls:
            total += residual[t]
            n_free += 1
        elif rises:
            highest_rising = max(highest_rising, residual[t])
        elif falls:
            lowest_falling = min(lowest_falling, residual[t])
    if n_free > 0:
        return total / n_free
    return (highest_rising + lowest_falling) / 2.0


@compiled(error_model="numpy")
def solve_path(  # noqa: PLR0913
    gram: Any,
    members: Any,
    own: Any,
    y: Any,
    weights: Any,
    C_values: Any,
    tol: Any,
    limit: Any,
    betas: Any,
    margins: Any,
    stats: Any,
) -> Any:
    """Solve for ascending C from the steps that they share; see `smo.solve_path`.

    Kernel rows are copied from the Gram matrix once for all C.
    """
    n = len(members)
    shape = ((n + WIDTH - 1) // WIDTH, WIDTH)
    rows = np.zeros((n, *shape), dtype=np.float32)
    slots, used = np.full(n, -1), np.zeros(n, dtype=np.int64)
    state = np.zeros((5, *shape))
    diagonal, residual, beta = state[0], state[1], state[2]
    lower, upper = state[3], state[4]
    flat = state.reshape((5, -1))
    work = np.empty((3, *shape))
    for t in range(n):
        flat[0, t] = own[t]
        if n <= EAGER:
            copy_row(gram, members, t, rows[t].reshape(-1))
            slots[t] = t
    flat[1, :n] = y
    shared, n_shared = np.stack((residual, beta)), 0
    for c in range(len(C_values)):
        residual[:], beta[:] = shared[0], shared[1]
        for t in range(n):
            flat[3, t] = 0.0 if y[t] > 0 else -C_values[c] * weights[t]
            flat[4, t] = C_values[c] * weights[t] if y[t] > 0 else 0.0
        status, _, steps, gap = descend(
            gram, members, rows, slots, used, diagonal, residual, beta, lower, upper,
            work, tol, limit - n_shared, 0, True,
        )  # fmt: skip
        n_shared += steps
        shared[0], shared[1] = residual, beta
        n_own = 0
        if status == CUT:
            _, _, n_own, gap = descend(
                gram, members, rows, slots, used, diagonal, residual, beta, lower,
                upper, work, tol, limit - n_shared, 0, False,
            )  # fmt: skip
        constant = offset(flat[1, :n], flat[2, :n], flat[3, :n], flat[4, :n])
        betas[c] = flat[2, :n]
        margins[c] = y - flat[1, :n] + constant
        stats[c, 0], stats[c, 1], stats[c, 2] = constant, n_shared + n_own, gap


@compiled(error_model="numpy")
def solve_from(
    gram: Any, y: Any, weights: Any, C: Any, start: Any, tol: Any, limit: Any
) -> Any:
    """Solve for one C from a feasible start; return decisions on all rows.

    Rows of weight 0 are left out; their dual variable must be 0.
    """
    n = len(y)
    shape = ((n + WIDTH - 1) // WIDTH, WIDTH)
    rows = np.zeros((n, *shape), dtype=np.float32)
    slots, used = np.full(n, -1), np.zeros(n, dtype=np.int64)
    state, work = np.zeros((5, *shape)), np.empty((3, *shape))
    flat, members = state.reshape((5, -1)), np.arange(n)
    for t in range(n):
        flat[0, t], flat[1, t], flat[2, t] = gram[t, t], y[t], start[t]
        flat[3, t] = 0.0 if y[t] > 0 else -C * weights[t]
        flat[4, t] = C * weights[t] if y[t] > 0 else 0.0
    for s in range(n):
        if start[s] != 0.0:
            for t in range(n):
                flat[1, t] -= start[s] * gram[s, t]
    descend(
        gram, members, rows, slots, used, state[0], state[1], state[2], state[3],
        state[4], work, tol, limit, 0, False,
    )  # fmt: skip
    for t in range(n):  # what rounding keeps off its bound is not free
        near = 1e-9 * (flat[4, t] - flat[3, t])
        if flat[4, t] - flat[2, t] <= near:
            flat[2, t] = flat[4, t]
        elif flat[2, t] - flat[3, t] <= near:
            flat[2, t] = flat[3, t]
    constant = offset(flat[1, :n], flat[2, :n], flat[3, :n], flat[4, :n])
    return y - flat[1, :n] + constant
