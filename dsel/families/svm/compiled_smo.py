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

from dsel.families.svm.compiled_lanes import TAU, WIDTH, best_partner, subtract_rows
from dsel.families.svm.compiled_once import compiled

SOLVED, STOPPED, ROW_MISSING, CUT = 0, 1, 2, 3


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


class Variables(NamedTuple):
    """What steps read and change of each row, 0 for rows that fill the last block."""

    diagonal: Any
    residual: Any
    beta: Any
    lower: Any
    upper: Any
    rise: Any
    """Room for masks: 0 where beta may rise, else -inf."""
    fall: Any


# No NaN comes in, and infinities stay defined: masks are 0 and -inf. Nothing here may
# change a rounding.
FAST = {"nnan", "nsz"}


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def set_masks(own: Any, t: Any) -> Any:
    """Write 0 where row t may rise and fall, -inf where it may not."""
    own.rise[t] = 0.0 if own.beta[t] < own.upper[t] else -np.inf
    own.fall[t] = 0.0 if own.beta[t] > own.lower[t] else -np.inf


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def start_masks(own: Any) -> Any:
    """Write all masks; return the last row of largest residual that may rise."""
    best, last = -np.inf, 0
    for t in range(len(own.beta)):
        set_masks(own, t)
        value = own.residual[t] + own.rise[t]
        if value >= best:
            best, last = value, t
    return last


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def moved_pair(rising: Any, falling: Any, upper: Any, lower: Any, step: Any) -> Any:
    """Return where a step takes the two variables of a pair, at most to a bound.

    A variable that is stopped by its bound is set to it, not near it. Where both reach
    theirs, rounding decides whether one of them is free in the end, and a lone free row
    decides the constant: so sums are libsvm's, and so is the variable that is set.
    """
    total, bounds = rising + falling, upper + lower
    if total > bounds or (total == bounds and upper <= 0.0):
        if rising + step > upper:
            return upper, total - upper
    elif falling - step < lower:
        return total - lower, lower
    return rising + step, falling - step


@compiled(error_model="numpy", inline="always")
def copy_row(kernel: Any, gram: Any, members: Any, t: Any) -> Any:
    """Copy kernel row t of some members to slot t."""
    source, target = gram[members[t]], kernel.values[t * kernel.stride :]
    for s in range(len(members)):
        target[s] = source[members[s]]
    kernel.slots[t] = t


@compiled(fastmath=FAST, error_model="numpy")
def descend(
    kernel: Any,
    own: Any,
    tol: Any,
    limit: Any,
    clock: Any,
    uncut: Any,
    gram: Any = None,
    members: Any = None,
) -> Any:
    """Take SMO steps until the gap is below `tol`, `limit` steps, or a row is missing.

    `own` are `Variables`; residual and beta are updated. Rows that are missing are
    copied from the kernel of all rows, at the places of the machine's, if it is given.
    When a kernel row was last read is counted from `clock`. With `uncut` it ends before
    the first step that C would stop: up to there every larger C takes the same steps.
    Returns status, row that is missing, steps taken, gap.
    """
    diagonal, residual, beta = own.diagonal, own.residual, own.beta
    lower, upper, rise, fall = own.lower, own.upper, own.rise, own.fall
    starts, slots, stride = kernel.starts, kernel.slots, kernel.stride
    i, steps = start_masks(own), 0
    while True:
        if slots[i] < 0:
            if gram is None:
                return ROW_MISSING, i, steps, np.inf
            copy_row(kernel, gram, members, i)
        kernel.used[slots[i]] = clock + steps
        best = residual[i] + rise[i]
        row = kernel.values[slots[i] * stride :]
        j, gap = best_partner(best, diagonal[i], row, starts, diagonal, residual, fall)
        is_over = not (best - residual[j]) + fall[j] > 0.0
        if is_over:
            gap = 0.0  # no pair gains anything: what is left is rounding
        if gap < tol or is_over or steps >= limit:
            return SOLVED if gap < tol else STOPPED, i, steps, gap
        if slots[j] < 0:
            if gram is None:
                return ROW_MISSING, j, steps, np.inf
            copy_row(kernel, gram, members, j)
        kernel.used[slots[j]] = clock + steps
        value = row[starts[j // WIDTH] + j % WIDTH]
        curvature = diagonal[i] + diagonal[j] - 2.0 * value
        curvature = curvature if curvature > 0.0 else TAU
        step = (residual[i] - residual[j]) / curvature
        risen, fallen = moved_pair(beta[i], beta[j], upper[i], lower[j], step)
        if uncut and (0.0 < upper[i] <= risen or 0.0 > lower[j] >= fallen):
            return CUT, j, steps, gap
        up, down = risen - beta[i], fallen - beta[j]
        beta[i], beta[j] = risen, fallen
        set_masks(own, i)
        set_masks(own, j)
        partner = kernel.values[slots[j] * stride :]
        i = subtract_rows(up, row, down, partner, starts, residual, rise)
        steps += 1


@compiled(fastmath=FAST, error_model="numpy")
def subtract_row(residual: Any, change: Any, kernel: Any, slot: Any) -> Any:
    """Subtract a kernel row times the change of its variable from the residual."""
    for b in range(len(kernel.starts)):
        at = slot * kernel.stride + kernel.starts[b]
        for u in range(WIDTH):
            residual[b * WIDTH + u] -= change * np.float64(kernel.values[at + u])


@compiled(error_model="numpy")
def catch_up(kernel: Any, gram: Any, members: Any, residual: Any, change: Any) -> Any:
    """Subtract what changed variables do to all residuals, variable by variable."""
    for t in range(len(change)):
        if change[t] != 0.0:
            if kernel.slots[t] < 0:
                copy_row(kernel, gram, members, t)
            subtract_row(residual, change[t], kernel, kernel.slots[t])
