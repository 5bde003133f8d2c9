"""Compiled paths of SMO along C, machine by machine; imported only where they are run.

A call solves all pairs of classes of a training set, so that threads meet at the
interpreter's lock once a training set and not once a machine. Its parts are inlined:
compiled each for itself, all takes an eighth longer.
"""

from typing import Any

import numpy as np

from dsel.solvers.compiled_lanes import WIDTH
from dsel.solvers.compiled_once import compiled
from dsel.solvers.compiled_smo import (
    CUT,
    N_ARRAYS,
    KernelRows,
    blocks_of_rows,
    copy_row,
    descend,
)

MARGIN_UNIT = 2.0**-21
"""Margins come from float32 kernel values; eight times their rounding is safe."""


@compiled(error_model="numpy", inline="always")
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


@compiled(error_model="numpy", inline="always")
def blocks_for(n: Any) -> Any:
    """Return how many blocks `n` rows take."""
    return (n + WIDTH - 1) // WIDTH


@compiled(error_model="numpy", inline="always")
def room_for(n: Any) -> Any:
    """Return room for the kernel rows of `n` rows, to be used again and again."""
    return np.empty(n * blocks_for(n) * WIDTH, dtype=np.float32)


@compiled(error_model="numpy", inline="always")
def rows_in(room: Any, gram: Any, members: Any) -> Any:
    """Return room as the kernel rows of some members; none is there yet."""
    n = len(members)
    starts = np.empty(blocks_for(n), dtype=np.int64)
    slots, used = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for b in range(len(starts)):
        starts[b] = WIDTH * b
    for t in range(n):
        slots[t] = -1
    return KernelRows(gram, members, room, WIDTH * len(starts), starts, slots, used)


@compiled(error_model="numpy", inline="always")
def rows_in_place(values: Any, n_all: Any, spans: Any, places: Any) -> Any:
    """Return the kernel rows of two classes where they stand among those of all rows.

    `spans` is where the first class begins and ends, and the second one; `places` those
    of the machine's rows as `lay_out` gives them.
    """
    n_first, n_second = blocks_for(spans[1] - spans[0]), blocks_for(spans[3] - spans[2])
    starts = np.empty(n_first + n_second, dtype=np.int64)
    for b in range(len(starts)):
        is_first = b < n_first
        starts[b] = (
            spans[0] + WIDTH * b if is_first else spans[2] + WIDTH * (b - n_first)
        )
    nothing, used = np.empty((0, 0), dtype=np.float32), np.zeros(n_all, dtype=np.int64)
    return KernelRows(nothing, places, values, n_all, starts, places, used)


@compiled(error_model="numpy", inline="always")
def lay_out(spans: Any, weights: Any, in_place: Any) -> Any:
    """Return the place of each of a machine's rows, -1 between the classes.

    In place there are all rows of both classes, each from the beginning of a block;
    else those of positive weight. Also returns how many of them precede the second
    class.
    """
    n_first = n_second = 0
    for place in range(spans[0], spans[1]):
        n_first += in_place or weights[place] > 0.0
    for place in range(spans[2], spans[3]):
        n_second += in_place or weights[place] > 0.0
    n_before = blocks_for(n_first) * WIDTH if in_place else n_first
    places = np.empty(n_before + n_second, dtype=np.int64)
    for t in range(len(places)):
        places[t] = -1
    t = 0
    for place in range(spans[0], spans[1]):
        if in_place or weights[place] > 0.0:
            places[t] = place
            t += 1
    t = n_before
    for place in range(spans[2], spans[3]):
        if in_place or weights[place] > 0.0:
            places[t] = place
            t += 1
    return places, n_before


@compiled(error_model="numpy", inline="always")
def take(diagonal: Any, weights: Any, places: Any, n_before: Any) -> Any:
    """Return values at the places of a machine's rows, 0 between, and their signs."""
    taken = np.zeros((3, len(places)))
    own, weight, y = taken[0], taken[1], taken[2]
    for t in range(len(places)):
        y[t] = 1.0 if t < n_before else -1.0
        if places[t] >= 0:
            own[t], weight[t] = diagonal[places[t]], weights[places[t]]
    return own, weight, y


@compiled(error_model="numpy", inline="always")
def set_bounds(lower: Any, upper: Any, y: Any, weights: Any, C: Any) -> Any:
    """Write the bounds of all variables, (n,)."""
    for t in range(len(y)):
        lower[t] = 0.0 if y[t] > 0 else -C * weights[t]
        upper[t] = C * weights[t] if y[t] > 0 else 0.0


@compiled(error_model="numpy", inline="always")
def solve_path(
    kernel: Any, own: Any, y: Any, weights: Any, C_values: Any, stop: Any
) -> Any:
    """Solve for ascending C from the steps that they share; see `smo.solve_path`.

    Kernel rows that are copies are there for all C. `stop` is the tolerance
    and the most steps of each C. Returns dual variables and margins, (n_C, n), and
    offsets, steps and gaps, (3, n_C).
    """
    n, n_C, n_blocks = len(y), len(C_values), len(kernel.starts)
    tol, limit = stop
    state = blocks_of_rows(N_ARRAYS, n_blocks * WIDTH)
    flat = state.reshape((N_ARRAYS, n_blocks * WIDTH))
    residual, beta, lower, upper = flat[1, :n], flat[2, :n], flat[3, :n], flat[4, :n]
    betas, margins = np.empty((n_C, n)), np.empty((n_C, n))
    found, shared = np.empty((3, n_C)), np.zeros((2, n))
    for t in range(n):
        flat[0, t], shared[0, t] = own[t], y[t]
    for t in range(n if len(kernel.gram) > 0 else 0):
        copy_row(kernel, t)
    n_shared, clock = 0, np.int64(0)
    for c in range(n_C):
        set_bounds(lower, upper, y, weights, C_values[c])
        for t in range(n):
            residual[t], beta[t] = shared[0, t], shared[1, t]
        n_taken = n_shared
        for turn in range(2):
            uncut = turn == 0
            status, _, steps, gap = descend(
                kernel, state, tol, limit - n_taken, clock, uncut
            )
            n_taken += steps
            if uncut:
                n_shared = n_taken
                for t in range(n):
                    shared[0, t], shared[1, t] = residual[t], beta[t]
            if status != CUT:
                break
        constant = offset(residual, beta, lower, upper)
        found[0, c], found[1, c], found[2, c] = constant, n_taken, gap
        for t in range(n):
            betas[c, t], margins[c, t] = beta[t], y[t] - residual[t] + constant
    return betas, margins, found


@compiled(error_model="numpy", inline="always")
def enter_pair(
    pair: Any,
    betas: Any,
    margins: Any,
    found: Any,
    rows: Any,
    n_before: Any,
    largest: Any,
    into: Any,
) -> Any:
    """Write a machine's path to those of all pairs, `into`; see `smo.PairPaths`.

    `pair` is the number of the machine and the places of its two classes. `rows` says
    where each of its rows is there, -1 for nowhere; the first `n_before` are not of
    the second class.
    """
    p, i, j = pair
    coefs, offsets, steps, gaps, wins, same = into
    for c in range(len(betas)):
        offsets[p, c], steps[p, c], gaps[p, c] = found[0, c], found[1, c], found[2, c]
        total = 0.0
        for t in range(betas.shape[1]):
            total += abs(betas[c, t])
        size = total * largest + abs(offsets[p, c]) + 1.0
        is_equal = c > 0 and offsets[p, c] == offsets[p, c - 1]
        for t in range(betas.shape[1]):
            value, margin = betas[c, t], margins[c, t]
            if rows[t] < 0:
                continue
            is_equal = is_equal and value == betas[c - 1, t]
            coefs[rows[t], j - 1 if t < n_before else i, c] = value
            signed = margin if t < n_before else -margin
            wins[c, rows[t]] += signed > MARGIN_UNIT * size
        same[c] = same[c] and is_equal


@compiled(error_model="numpy")
def solve_pairs(  # noqa: PLR0913
    values: Any,
    spans: Any,
    own: Any,
    weights: Any,
    C_values: Any,
    stops: Any,
    largest: Any,
    pairs: Any,
    into: Any,
) -> Any:
    """Solve machines of some pairs of classes along C; see `smo.solve_pairs`.

    `values` are those of a `Gram`, one after another. `pairs` has a line for each: its
    number, the places of both classes, and whether its kernel rows are read in place;
    `spans` where both classes begin and end.
    """
    n_all = len(own)
    gram = values[: n_all * n_all].reshape((n_all, n_all))
    numbers, n_used = np.empty(n_all, dtype=np.int64), 0  # among rows that are used
    for t in range(n_all):
        numbers[t] = n_used
        n_used += weights[t] > 0.0
    room = np.empty(0, dtype=np.float32)
    for q in range(len(pairs)):
        p, i, j, in_place = pairs[q]
        places, n_before = lay_out(spans[q], weights, in_place > 0)
        if in_place > 0:
            kernel = rows_in_place(values, n_all, spans[q], places)
        else:
            if len(room) < len(places) * blocks_for(len(places)) * WIDTH:
                room = room_for(len(places))
            kernel = rows_in(room, gram, places)
        diagonal, weight, y = take(own, weights, places, n_before)
        betas, margins, found = solve_path(kernel, diagonal, y, weight, C_values, stops)
        for t in range(len(places)):
            places[t] = numbers[places[t]] if weight[t] > 0.0 else -1
        enter_pair((p, i, j), betas, margins, found, places, n_before, largest, into)


@compiled(error_model="numpy")
def solve_from(
    gram: Any, y: Any, weights: Any, C: Any, start: Any, tol: Any, limit: Any
) -> Any:
    """Solve for one C from a feasible start; return decisions on all rows.

    Rows of weight 0 are left out; their dual variable must be 0.
    """
    n, n_blocks = len(y), blocks_for(len(y))
    kernel = rows_in(room_for(n), gram, np.arange(n))
    state = blocks_of_rows(N_ARRAYS, n_blocks * WIDTH)
    flat = state.reshape((N_ARRAYS, n_blocks * WIDTH))
    residual, beta, lower, upper = flat[1, :n], flat[2, :n], flat[3, :n], flat[4, :n]
    for t in range(n):
        flat[0, t], residual[t], beta[t] = gram[t, t], y[t], start[t]
    set_bounds(lower, upper, y, weights, C)
    for s in range(n):
        if start[s] != 0.0:
            for t in range(n):
                residual[t] -= start[s] * gram[s, t]
    clock, uncut = np.int64(0), n < 0
    descend(kernel, state, tol, limit, clock, uncut)
    for t in range(n):  # what rounding keeps off its bound is not free
        near = 1e-9 * (upper[t] - lower[t])
        if upper[t] - beta[t] <= near:
            beta[t] = upper[t]
        elif beta[t] - lower[t] <= near:
            beta[t] = lower[t]
    constant = offset(residual, beta, lower, upper)
    return y - residual + constant
