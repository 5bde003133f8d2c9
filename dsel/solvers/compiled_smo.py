"""Compiled part of the SMO solver; imported only inside `smo.py`.

Written for the residual r = y - K beta, where beta_t = y_t alpha_t, so that kernel
rows are used as they are. A row may rise while beta_t < upper_t and fall while
beta_t > lower_t; the pair (i, j) moves by beta_i += s, beta_j -= s.

The steps are those of libsvm to the last bit, for as long as libsvm leaves out no row:
its ties (the last row of equals), its order of operations, no fused products. At a tol
of 1e-3 a path that differs in one rounding ends at another model.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dsel.solvers.compiled_lanes import TAU, WIDTH, best_partner, subtract_rows
from dsel.solvers.compiled_once import compiled

SOLVED, STOPPED, ROW_MISSING, CUT = 0, 1, 2, 3
N_ARRAYS = 7  # of numbers per row: those of `State`, and where it may rise and fall


def _maximum(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the larger of two floats of one type, neither of them NaN.

    A maximum written with `if` stays scalar: LLVM wants flags on the comparison that
    numba does not pass on. Vectorised, an iteration takes a third of the time.
    """
    number = types.float32 if a == b == types.float32 else types.float64

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FloatType() if number == types.float32 else ir.DoubleType()
        shape = ir.FunctionType(kind, [kind, kind])
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [kind], shape)
        return builder.call(maximum, arguments, fastmath=("nnan", "nsz"))

    return number(number, number), emit


larger: Any = intrinsic(_maximum)


class KernelRows(NamedTuple):
    """Kernel rows of one machine, as far as they are there.

    They are copies, or stand in the kernel of all rows. There a block of the machine
    may reach into columns of other rows, whose variables have bounds of 0.
    """

    gram: Any
    """Kernel of all rows, from which missing ones are copied; empty for none."""
    members: Any
    """Places of the machine's rows in it."""
    values: Any
    """Kernel rows one after another, (n_slots * stride,) or more, float32."""
    stride: Any
    """Length of a slot."""
    starts: Any
    """Where each block of `WIDTH` rows begins in a slot, (n_blocks,)."""
    slots: Any
    """In which slot each kernel row is, -1 where it is not there."""
    used: Any
    """When a slot was last read."""


@compiled(inline="always")
def blocks_of_rows(n_arrays: Any, n_rows: Any) -> Any:
    """Return zeros, a value per row, that begin where a line of the cache begins."""
    n_blocks = (n_rows + WIDTH - 1) // WIDTH
    size = n_arrays * n_blocks * WIDTH
    flat = np.zeros(size + 8)
    begin = (-flat.ctypes.data % 64) // 8
    return flat[begin : begin + size].reshape((n_arrays, n_blocks, WIDTH))


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
    residual: Any, beta: Any, lower: Any, upper: Any, rise: Any, fall: Any
) -> Any:
    """Write all masks; return the last row of largest residual that may rise."""
    best, last = -np.inf, 0
    for b in range(len(residual)):
        for u in range(WIDTH):
            set_masks(beta, lower, upper, rise, fall, b, u)
            best = larger(best, residual[b, u] + rise[b, u])
    for b in range(len(residual)):
        for u in range(WIDTH):
            is_best = residual[b, u] + rise[b, u] == best
            last = max(last, b * WIDTH + u if is_best else 0)
    return last


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


@compiled(error_model="numpy", inline="always")
def copy_row(kernel: Any, t: Any) -> Any:
    """Copy kernel row t to slot t, at the columns of all members."""
    source = kernel.gram[kernel.members[t]]
    mine = slice(t * kernel.stride, (t + 1) * kernel.stride)
    target = kernel.values[mine]
    for s in range(len(kernel.members)):
        target[s] = source[kernel.members[s]]
    for s in range(len(kernel.members), len(target)):
        target[s] = 0.0
    kernel.slots[t] = t


@compiled(error_model="numpy", inline="always")
def is_missing(kernel: Any, t: Any) -> Any:
    """Copy kernel row t if there is a Gram matrix; return whether it is missing."""
    if len(kernel.gram) > 0:
        copy_row(kernel, t)
    return kernel.slots[t] < 0


@compiled(fastmath=FAST, error_model="numpy")
def descend(
    kernel: Any, state: Any, tol: Any, limit: Any, clock: Any, uncut: Any
) -> Any:
    """Take SMO steps until the gap is below `tol`, `limit` steps, or a row is missing.

    `state` is diagonal, residual, beta, lower and upper, and room for masks; residual
    and beta are updated.
    When a kernel row was last read is counted from `clock`. With `uncut` it ends before
    the first step that C would stop: up to there every larger C takes the same steps.
    Returns status, row that is missing, steps taken, gap.
    """
    diagonal, residual, beta, lower, upper = (
        state[0], state[1], state[2], state[3], state[4]
    )  # fmt: skip
    rise, fall = state[5], state[6]
    starts, slots, used = kernel.starts, kernel.slots, kernel.used
    i = start_masks(residual, beta, lower, upper, rise, fall)
    steps = 0
    while True:
        b, u = i // WIDTH, i % WIDTH
        if slots[i] < 0 and is_missing(kernel, i):
            return ROW_MISSING, i, steps, np.inf
        used[slots[i]] = clock + steps
        own, best = diagonal[b, u], residual[b, u] + rise[b, u]
        row = kernel.values[slots[i] * kernel.stride :]
        j, gap = best_partner(best, own, row, starts, diagonal, residual, fall)
        c, v = j // WIDTH, j % WIDTH
        is_over = not (best - residual[c, v]) + fall[c, v] > 0.0
        if is_over:
            gap = 0.0  # no pair gains anything: what is left is rounding
        if gap < tol or is_over or steps >= limit:
            return SOLVED if gap < tol else STOPPED, i, steps, gap
        if slots[j] < 0 and is_missing(kernel, j):
            return ROW_MISSING, j, steps, np.inf
        used[slots[j]] = clock + steps
        curvature = own + diagonal[c, v] - 2.0 * row[starts[c] + v]
        curvature = curvature if curvature > 0.0 else TAU
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
        partner = kernel.values[slots[j] * kernel.stride :]
        i = subtract_rows(up, row, down, partner, starts, residual, rise)
        steps += 1


@compiled(fastmath=FAST, error_model="numpy")
def subtract_row(residual: Any, change: Any, kernel: Any, slot: Any) -> Any:
    """Subtract a kernel row times the change of its variable from the residual."""
    for b in range(len(residual)):
        at = np.uint64(slot * kernel.stride + kernel.starts[b])
        for u in range(WIDTH):  # of unsigned places, so that it is vectorised
            value = np.float64(kernel.values[at + np.uint64(u)])
            residual[b, u] -= change * value


@compiled(error_model="numpy")
def catch_up(kernel: Any, state: Any, change: Any) -> Any:
    """Subtract what changed variables do to all residuals, variable by variable."""
    for t in range(len(change)):
        if change[t] != 0.0:
            if kernel.slots[t] < 0:
                copy_row(kernel, t)
            subtract_row(state[1], change[t], kernel, kernel.slots[t])
