"""Compiled paths of SMO along C, machine by machine; imported only where they are run.

A call solves all pairs of classes of a training set, so that threads meet at the
interpreter's lock once a training set and not once a machine. A first search waits
until it is compiled, which takes as long as there are lines: what can be laid out
before, `smo_pairs` does, and what is written to is there already.
"""

from typing import Any

import numpy as np

from dsel.families.svm.compiled_lanes import WIDTH
from dsel.families.svm.compiled_once import compiled
from dsel.families.svm.compiled_smo import CUT, KernelRows, Variables, descend

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
def lay_out(values: Any, listed: Any, line: Any, room: Any) -> Any:
    """Return a machine's kernel rows, variables, weights and numbers of rows.

    Weights are negative for rows of the second class. Arguments as for `solve_pairs`.
    """
    listing, diagonal, weights, numbers = listed
    reals, integers, copied = room
    in_place, first, n_first, second, n_before, n = line
    width, n_all = (n + WIDTH - 1) // WIDTH * WIDTH, len(weights) - 1
    rows, slots = integers[0, :width], integers[1, :width]
    starts, places = integers[2, : width // WIDTH], integers[4]
    own = Variables(
        reals[0, :width], reals[1, :width], reals[2, :width], reals[3, :width],
        reals[4, :width], reals[5, :width], reals[6, :width],
    )  # fmt: skip
    signed = reals[7, :width]
    for t in range(width):
        at = first + t if t < n_first else -1
        place = listing[second + t - n_before if n_before <= t < n else at]
        own.diagonal[t], rows[t], places[t] = diagonal[place], numbers[place], place
        signed[t] = weights[place] if t < n_before else -weights[place]
        slots[t] = place if in_place or place < 0 else t
    for b in range(len(starts)):
        starts[b] = slots[b * WIDTH]
    if in_place:
        return KernelRows(values, n_all, starts, slots, integers[3]), own, signed, rows
    for t in range(n):
        for s in range(n):
            copied[t * width + s] = values[places[t] * n_all + places[s]]
    return KernelRows(copied, width, starts, slots, integers[3]), own, signed, rows


@compiled(error_model="numpy", inline="always")
def enter(
    own: Any, rows: Any, n_before: Any, pair: Any, models: Any, found: Any,
    largest: Any, into: Any,
) -> Any:  # fmt: skip
    """Write a machine to those of all pairs, `into`: see `PairPaths.arrays`.

    It is that of each C from the first to before the second of `models`.

    `pair` is the number of the machine and the places of its two classes. `rows` says
    where each of its rows is there, -1 for nowhere; the first `n_before` are not of
    the second class. `found` are constant, steps and gap.
    """
    p, i, j = pair
    c, end = models
    constant, n_taken, gap = found
    coefs, offsets, steps, gaps, wins, same = into
    for m in range(c, end):
        offsets[p, m], steps[p, m], gaps[p, m] = constant, n_taken, gap
    total = 0.0
    for t in range(len(rows)):
        total += abs(own.beta[t])
    least = MARGIN_UNIT * (total * largest + abs(constant) + 1.0)
    is_equal = constant == offsets[p, c - 1]
    for t in range(len(rows)):
        row, sign, column = rows[t], -1.0, i
        if t < n_before:
            sign, column = 1.0, j - 1
        if row >= 0:
            is_win = sign * (sign - own.residual[t] + constant) > least
            for m in range(c, end):
                coefs[row, column, m] = own.beta[t]
                wins[m, row] += is_win
            is_equal = is_equal and own.beta[t] == coefs[row, column, c - 1]
    same[c] = same[c] and is_equal  # false for the first C


@compiled(error_model="numpy")
def solve_pairs(
    values: Any, listed: Any, C_values: Any, stops: Any, pairs: Any, room: Any,
    into: Any,
) -> Any:  # fmt: skip
    """Solve machines of some pairs of classes along C; see `smo_pairs.solve_pairs`.

    Each C goes on from the steps that all share. Where these end at a solution, it is
    that of all larger C.

    Parameters
    ----------
    values
        Those of a `Gram`, one after another.
    listed
        Places of rows, and -1; then, for each place and -1, the kernel with itself, the
        factor of C, and the number among the rows of `into`, -1 for none.
    C_values, stops
        Ascending C; tolerance, most steps of each C, bound of the kernel values.
    pairs
        For each machine its number, the places of both classes, and a
        `smo_pairs.PairLine`.
    room
        Written to: (10, widest) numbers from the beginning of a line of the
        cache; (5, n_all or widest) integers; copied kernel rows, zeros at first.
    into
        See `PairPaths.arrays`.
    """
    tol, limit, largest = stops
    for q in range(len(pairs)):
        n_before, clock = pairs[q, 7], np.int64(0)
        kernel, own, signed, rows = lay_out(values, listed, pairs[q, 3:], room)
        residual, beta = room[0][8, : len(rows)], room[0][9, : len(rows)]
        for t in range(len(rows)):
            residual[t], beta[t] = 1.0 if t < n_before else -1.0, 0.0
        n_shared, c, end = 0, 0, 0
        while end < len(C_values):
            c, end = end, end + 1
            for t in range(len(rows)):
                bound = C_values[c] * signed[t]
                own.lower[t] = bound if bound < 0.0 else 0.0
                own.upper[t] = bound if bound > 0.0 else 0.0
                own.residual[t], own.beta[t] = residual[t], beta[t]
            n_taken = n_shared
            for turn in range(2):
                uncut = turn == 0
                status, _, steps, gap = descend(
                    kernel, own, tol, limit - n_taken, clock, uncut
                )
                n_taken += steps
                if uncut:
                    n_shared = n_taken
                    for t in range(len(rows)):
                        residual[t], beta[t] = own.residual[t], own.beta[t]
                if status != CUT:
                    end = len(C_values) if uncut else end
                    break
            constant = offset(own.residual, own.beta, own.lower, own.upper)
            found = constant, n_taken, gap
            enter(own, rows, n_before, pairs[q, :3], (c, end), found, largest, into)
