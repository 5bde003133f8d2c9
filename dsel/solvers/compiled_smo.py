"""Compiled part of the SMO solver; imported only inside `smo.py`.

Written for the residual r = y - K beta, where beta_t = y_t alpha_t, so that kernel
rows are used as they are. A row may rise while beta_t < upper_t and fall while
beta_t > lower_t; the pair (i, j) moves by beta_i += s, beta_j -= s.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

TAU = 1e-12  # stands for a curvature that rounding made zero or negative
SOLVED, STOPPED, ROW_MISSING = 0, 1, 2


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

# No NaN comes in, and infinities stay defined: masks are 0 and -inf.
FAST = {"nnan", "nsz", "contract"}


@compiled(fastmath=FAST, error_model="numpy")
def set_masks(beta: Any, lower: Any, upper: Any, rise: Any, fall: Any, t: Any) -> Any:
    """Write 0 where row t may rise and fall, -inf where it may not."""
    rise[t] = 0.0 if beta[t] < upper[t] else -np.inf
    fall[t] = 0.0 if beta[t] > lower[t] else -np.inf


@compiled(fastmath=FAST, error_model="numpy")
def move_pair(beta: Any, lower: Any, upper: Any, step: Any, i: Any, j: Any) -> Any:
    """Move beta_i up and beta_j down by `step`, or to the first bound; return the step.

    A variable that is stopped by its bound is set to it, not near it.
    """
    room_i = upper[i] - beta[i]
    room_j = beta[j] - lower[j]
    if step < room_i and step < room_j:
        beta[i] += step
        beta[j] -= step
        return step
    step = min(room_i, room_j)
    beta[i] = upper[i] if room_i <= room_j else beta[i] + step
    beta[j] = lower[j] if room_j <= room_i else beta[j] - step
    return step


@compiled(fastmath=FAST, error_model="numpy")
def select_second(
    best: Any, row: Any, diagonal: Any, i: Any, residual: Any, fall: Any, gain: Any
) -> Any:
    """Write what pairing row i with each row gains; return the best one and the gap."""
    largest = 0.0
    gap = -np.inf
    for t in range(len(residual)):
        difference = (best - residual[t]) + fall[t]
        gap = larger(gap, difference)
        difference = larger(difference, 0.0)
        curvature = larger(diagonal[i] + diagonal[t] - 2.0 * row[t], TAU)
        gain[t] = difference * difference / curvature
        largest = larger(largest, gain[t])
    return largest, gap


@compiled(fastmath=FAST, error_model="numpy")
def first_with(values: Any, masks: Any, wanted: Any) -> Any:
    """Return the first t with values[t] + masks[t] == wanted (the last row if none)."""
    t = 0
    while t < len(values) - 1 and values[t] + masks[t] != wanted:
        t += 1
    return t


@compiled(fastmath=FAST, error_model="numpy")
def first_equal(values: Any, wanted: Any) -> Any:
    """Return the first t with values[t] == wanted (the last row if there is none)."""
    t = 0
    while t < len(values) - 1 and values[t] != wanted:
        t += 1
    return t


@compiled(fastmath=FAST, error_model="numpy")
def subtract_rows(residual: Any, step: Any, row_i: Any, row_j: Any, rise: Any) -> Any:
    """Update the residual; return its largest value over the rows that may rise."""
    best = -np.inf
    for t in range(len(residual)):
        change = np.float64(row_i[t]) - np.float64(row_j[t])
        residual[t] -= step * change
        best = larger(best, residual[t] + rise[t])
    return best


@compiled(fastmath=FAST, error_model="numpy")
def start_masks(
    residual: Any, beta: Any, lower: Any, upper: Any, rise: Any, fall: Any
) -> Any:
    """Write all masks; return the largest residual over the rows that may rise."""
    best = -np.inf
    for t in range(len(residual)):
        set_masks(beta, lower, upper, rise, fall, t)
        best = larger(best, residual[t] + rise[t])
    return best


@compiled(fastmath=FAST, error_model="numpy")
def descend(  # noqa: PLR0913
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
) -> Any:
    """Take SMO steps until the gap is below `tol`, `limit` steps, or a row is missing.

    `rows[slots[t]]` is kernel row t, `slots[t]` is -1 where it is not there, and
    `used` tells when a slot was last read, counting from `clock`. `residual` and
    `beta` are updated.
    Returns status, row that is missing, steps taken, gap.
    """
    rise, fall, gain = work[0], work[1], work[2]
    best = start_masks(residual, beta, lower, upper, rise, fall)
    steps = 0
    while True:
        i = first_with(residual, rise, best)
        if slots[i] < 0:
            return ROW_MISSING, i, steps, np.inf
        row_i = rows[slots[i]]
        used[slots[i]] = clock + steps
        largest, gap = select_second(best, row_i, diagonal, i, residual, fall, gain)
        if gap < tol or steps >= limit:
            return SOLVED if gap < tol else STOPPED, i, steps, gap
        j = first_equal(gain, largest)
        if slots[j] < 0:
            return ROW_MISSING, j, steps, np.inf
        row_j = rows[slots[j]]
        used[slots[j]] = clock + steps
        curvature = larger(diagonal[i] + diagonal[j] - 2.0 * row_i[j], TAU)
        step = (residual[i] - residual[j]) / curvature
        step = move_pair(beta, lower, upper, step, i, j)
        set_masks(beta, lower, upper, rise, fall, i)
        set_masks(beta, lower, upper, rise, fall, j)
        best = subtract_rows(residual, step, row_i, row_j, rise)
        steps += 1


@compiled(fastmath=FAST, error_model="numpy")
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
def copy_row(gram: Any, members: Any, t: Any, target: Any) -> Any:
    """Write row members[t] of the Gram matrix, at the columns of all members."""
    source = gram[members[t]]
    for s in range(len(members)):
        target[s] = source[members[s]]


@compiled(error_model="numpy")
def solve_path(  # noqa: PLR0913
    gram: Any,
    members: Any,
    y: Any,
    weights: Any,
    C_values: Any,
    tol: Any,
    limit: Any,
    warm: Any,
    betas: Any,
    margins: Any,
    stats: Any,
) -> Any:
    """Solve for ascending C, each from the solution before it; see `smo.solve_path`.

    Kernel rows are copied from the Gram matrix when they are first needed, and kept
    for all C.
    """
    n = len(members)
    rows = np.empty((n, n), dtype=np.float32)
    slots = np.full(n, -1)
    used = np.zeros(n, dtype=np.int64)
    diagonal = np.empty(n)
    for t in range(n):
        diagonal[t] = gram[members[t], members[t]]
    residual, beta, work = y.copy(), np.zeros(n), np.empty((3, n))
    for c in range(len(C_values)):
        if not warm:
            residual[:] = y
            beta[:] = 0.0
        lower = np.where(y > 0, 0.0, -C_values[c] * weights)
        upper = np.where(y > 0, C_values[c] * weights, 0.0)
        taken = 0
        while True:
            status, t, steps, gap = descend(
                rows, slots, used, diagonal, residual, beta, lower, upper, work,
                tol, limit - taken, 0,
            )  # fmt: skip
            taken += steps
            if status != ROW_MISSING:
                break
            copy_row(gram, members, t, rows[t])
            slots[t] = t
        constant = offset(residual, beta, lower, upper)
        betas[c] = beta
        margins[c] = y - residual + constant
        stats[c, 0], stats[c, 1], stats[c, 2] = constant, taken, gap
