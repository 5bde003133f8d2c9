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

from dsel.solvers.compiled_once import compiled

WIDTH = 64
TAU = 1e-12  # stands for a curvature that rounding made zero or negative
NEAR = 1.0 - 2.0**-20  # gains from rounded inverses are nearer than this to exact ones
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

    gram: Any
    """Kernel of all rows, from which missing ones are copied; empty for none."""
    members: Any
    """Places of the machine's rows in it."""
    values: Any
    """Kernel rows one after another, (n_slots * stride,) or more, float32."""
    inverses: Any
    """One over the curvature of each pair, rounded, of the same shape."""
    stride: Any
    """Length of a slot."""
    starts: Any
    """Where each block of `WIDTH` rows begins in a slot, (n_blocks,)."""
    slots: Any
    """In which slot each kernel row is, -1 where it is not there."""
    used: Any
    """When a slot was last read."""


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
def curvature_of(own: Any, other: Any, value: Any) -> Any:
    """Return the curvature along a pair, by libsvm's rule for what is not positive."""
    curvature = own + other - 2.0 * value
    return curvature if curvature > 0.0 else TAU


@compiled(fastmath=FAST, error_model="numpy")
def invert_row(diagonal: Any, own: Any, row: Any, inverse: Any) -> Any:
    """Write one over the curvature of a row's pairs, kept within float32."""
    for t in range(len(row)):
        curvature = curvature_of(own, diagonal[t], row[t])
        bounded = -larger(-larger(curvature, 1e-37), -1e37)
        inverse[t] = np.float32(1.0) / np.float32(bounded)


@compiled(error_model="numpy")
def invert_rows(values: Any, own: Any, inverses: Any) -> Any:
    """Write the inverses of all rows of a Gram matrix that stand one after another."""
    for t in range(len(own)):
        mine = slice(t * len(own), (t + 1) * len(own))
        invert_row(own, own[t], values[mine], inverses[mine])


@compiled(inline="always")
def block_at(kernel: Any, slot: Any, b: Any) -> Any:
    """Return where a block of a slot begins; unsigned, so that loops are vectorised."""
    return np.uint64(slot * kernel.stride + kernel.starts[b])


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def pair_gains(
    best: Any,
    kernel: Any,
    slot: Any,
    residual: Any,
    fall: Any,
    gain: Any,
    peaks: Any,
) -> Any:
    """Write nearly what pairing the first row with each row gains; return most and gap.

    Dividing would take longer than all the rest of a step. `best` is the first row's
    residual, `slot` that of its row.
    """
    most = 0.0
    gap = -np.inf
    for b in range(len(residual)):
        peak, at = 0.0, block_at(kernel, slot, b)
        for u in range(WIDTH):
            difference = (best - residual[b, u]) + fall[b, u]
            gap = larger(gap, difference)
            difference = larger(difference, 0.0)
            inverse = np.float64(kernel.inverses[at + np.uint64(u)])
            value = difference * difference * inverse
            gain[b, u] = value
            peak = larger(peak, value)
        peaks[b] = peak
        most = larger(most, peak)
    return most, gap


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def best_partner(
    best: Any,
    own: Any,
    first: Any,
    diagonal: Any,
    residual: Any,
    gain: Any,
    peaks: Any,
    most: Any,
) -> Any:
    """Return the last row of largest gain, by divisions where it is near the most.

    `first` are the kernel rows and the slot of the first row.
    """
    kernel, slot = first
    least = most * NEAR
    largest: Any = 0.0
    j: Any = np.int64(0)  # a literal would compile whoever is called with it twice
    for b in range(len(residual)):
        if peaks[b] >= least:
            at = block_at(kernel, slot, b)
            for u in range(WIDTH):
                if gain[b, u] >= least:
                    difference = best - residual[b, u]
                    kernel_value = kernel.values[at + np.uint64(u)]
                    curvature = curvature_of(own, diagonal[b, u], kernel_value)
                    value = difference * difference / curvature
                    if value >= largest:
                        largest, j = value, b * WIDTH + u
    return j


@compiled(fastmath=FAST, error_model="numpy", inline="always")
def subtract_rows(
    residual: Any,
    change: Any,
    kernel: Any,
    slots: Any,
    rise: Any,
    peaks: Any,
) -> Any:
    """Update the residual; return its largest value over rows that may rise."""
    up, down = change
    best = -np.inf
    for b in range(len(residual)):
        peak = -np.inf
        i, j = block_at(kernel, slots[0], b), block_at(kernel, slots[1], b)
        for u in range(WIDTH):
            rising = np.float64(kernel.values[i + np.uint64(u)]) * up
            falling = np.float64(kernel.values[j + np.uint64(u)]) * down
            value = residual[b, u] - (rising + falling)
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


@compiled(inline="always")
def blocks_of(state: Any) -> Any:
    """Return diagonal, residual, beta, lower and upper."""
    return state[0], state[1], state[2], state[3], state[4]


@compiled(error_model="numpy")
def copy_row(kernel: Any, diagonal: Any, t: Any) -> Any:
    """Copy kernel row t to slot t, at the columns of all members, and its inverses."""
    source = kernel.gram[kernel.members[t]]
    mine = slice(t * kernel.stride, (t + 1) * kernel.stride)
    target = kernel.values[mine]
    for s in range(len(kernel.members)):
        target[s] = source[kernel.members[s]]
    for s in range(len(kernel.members), len(target)):
        target[s] = 0.0
    own = diagonal.reshape(diagonal.size)
    invert_row(own, own[t], target, kernel.inverses[mine])
    kernel.slots[t] = t


@compiled(error_model="numpy")
def is_missing(kernel: Any, diagonal: Any, t: Any) -> Any:
    """Copy kernel row t if there is a Gram matrix; return whether it is missing."""
    if len(kernel.gram) > 0:
        copy_row(kernel, diagonal, t)
    return kernel.slots[t] < 0


@compiled(fastmath=FAST, error_model="numpy")
def descend(
    kernel: Any, state: Any, work: Any, tol: Any, limit: Any, clock: Any, uncut: Any
) -> Any:
    """Take SMO steps until the gap is below `tol`, `limit` steps, or a row is missing.

    `state` is diagonal, residual, beta, lower and upper; residual and beta are updated.
    When a kernel row was last read is counted from `clock`. With `uncut` it ends before
    the first step that C would stop: up to there every larger C takes the same steps.
    Returns status, row that is missing, steps taken, gap.
    """
    diagonal, residual, beta, lower, upper = blocks_of(state)
    rise, fall, gain = work[0], work[1], work[2]
    slots, used = kernel.slots, kernel.used
    peaks = np.empty(len(residual))
    best = start_masks(residual, beta, lower, upper, rise, fall, peaks)
    steps = 0
    while True:
        b = last_equal(peaks, best)
        u = last_sum(residual[b], rise[b], best)
        i = b * WIDTH + u
        if slots[i] < 0 and is_missing(kernel, diagonal, i):
            return ROW_MISSING, i, steps, np.inf
        used[slots[i]] = clock + steps
        own = diagonal[b, u]
        most, gap = pair_gains(best, kernel, slots[i], residual, fall, gain, peaks)
        if most <= 0.0:
            gap = 0.0  # no pair gains anything: what is left is rounding
        if gap < tol or most <= 0.0 or steps >= limit:
            return SOLVED if gap < tol else STOPPED, i, steps, gap
        j = best_partner(
            best, own, (kernel, slots[i]), diagonal, residual, gain, peaks, most
        )
        c, v = j // WIDTH, j % WIDTH
        if slots[j] < 0 and is_missing(kernel, diagonal, j):
            return ROW_MISSING, j, steps, np.inf
        used[slots[j]] = clock + steps
        kernel_value = kernel.values[block_at(kernel, slots[i], c) + np.uint64(v)]
        curvature = curvature_of(own, diagonal[c, v], kernel_value)
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
        best = subtract_rows(
            residual, (up, down), kernel, (slots[i], slots[j]), rise, peaks
        )
        steps += 1


@compiled(fastmath=FAST, error_model="numpy")
def subtract_row(residual: Any, change: Any, kernel: Any, slot: Any) -> Any:
    """Subtract a kernel row times the change of its variable from the residual."""
    for b in range(len(residual)):
        at = block_at(kernel, slot, b)
        for u in range(WIDTH):
            value = np.float64(kernel.values[at + np.uint64(u)])
            residual[b, u] -= change * value


@compiled(error_model="numpy")
def catch_up(kernel: Any, state: Any, change: Any) -> Any:
    """Subtract what changed variables do to all residuals, variable by variable."""
    for t in range(len(change)):
        if change[t] != 0.0:
            if kernel.slots[t] < 0:
                copy_row(kernel, state[0], t)
            subtract_row(state[1], change[t], kernel, kernel.slots[t])
