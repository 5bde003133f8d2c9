r"""Two-class support vector machines of all pairs of classes for ascending C, by SMO.

Sequential minimal optimization moves two dual variables at a time. The dual problem,
with :math:`\beta_t = y_t \alpha_t`, is to maximize
:math:`y^\top \beta - \beta^\top K \beta / 2` under :math:`\sum_t \beta_t = 0` and
:math:`0 \le y_t \beta_t \le C w_t`. The residual is :math:`r = y - K \beta`, so that
kernel rows are used as they are. A row may rise while beta_t < upper_t and fall while
beta_t > lower_t; the pair (i, j) moves by beta_i += s, beta_j -= s.

Every C starts from zero, as in libsvm. Until a variable meets its C the steps are those
of every larger C too, so they are taken once: each C goes on from where the C before
was first stopped by its bound.

The steps are those of libsvm without shrinking, to the last bit: its ties (the last row
of equals), its order of operations, no fused products. At a tol of 1e-3 a path that
differs in one rounding ends at another model.

A call solves all pairs of a training set, so that threads meet at the interpreter's
lock once a training set and not once a machine. Imported only where it is run.
"""

from typing import Any, NamedTuple

import numpy as np

from dsel.families.svm.lanes import TAU, WIDTH, best_partner, compiled, subtract_rows

LEAST_LIMIT = 10_000_000
"""Steps allowed by default, or 100 a row if that is more: the limits of libsvm."""


class Paths(NamedTuple):
    """Binary SVMs of all pairs of classes for every C; rows are sorted by class."""

    coefs: Any
    """Signed dual variables in libsvm's layout, (n_rows, n_classes - 1, n_C)."""
    offsets: Any
    """Constant of each decision, (n_pairs, n_C)."""
    steps: Any
    """Steps from zero to each solution, (n_pairs, n_C); C share the first of them."""
    gaps: Any
    """Violation of the optimality conditions that was left, (n_pairs, n_C)."""


class Machine(NamedTuple):
    """Kernel rows of one pair of classes, and the state of SMO for each row.

    Lengths are whole blocks of `WIDTH`. Rows that fill the last block have bounds of 0,
    so that they never move.
    """

    kernel: Any
    """Copied kernel rows one after another, as far as `is_copied` says."""
    is_copied: Any
    places: Any
    """Where each row stands in the kernel of all rows, (n_rows,)."""
    diagonal: Any
    residual: Any
    beta: Any
    lower: Any
    upper: Any
    rise: Any
    """0 where beta may rise, else -inf."""
    fall: Any


@compiled()
def copy_row(gram: Any, own: Any, t: Any) -> Any:
    """Copy kernel row t of a machine, when it is first asked for.

    Many rows never move, above all where C is small or kernels are wide.
    """
    width, source = len(own.beta), gram[own.places[t]]
    row = own.kernel[t * width :]
    for s in range(len(own.places)):
        row[s] = source[own.places[s]]
    for s in range(len(own.places), width):
        row[s] = 0.0
    own.is_copied[t] = True


@compiled(fast=True, inline="always")
def set_masks(own: Any, t: Any) -> Any:
    """Set whether row t is in I_up and in I_low."""
    own.rise[t] = 0.0 if own.beta[t] < own.upper[t] else -np.inf
    own.fall[t] = 0.0 if own.beta[t] > own.lower[t] else -np.inf


@compiled(fast=True, inline="always")
def clip_step(rising: Any, falling: Any, upper: Any, lower: Any, step: Any) -> Any:
    """Return the two dual variables after a step, clipped to their bounds.

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


@compiled(fast=True)
def smo_iterate(gram: Any, own: Any, tol: Any, limit: Any, uncut: Any) -> Any:
    """Take SMO steps until the KKT violation is below `tol`, at most `limit` steps.

    With `uncut` it ends before the first step that C would stop: up to there every
    larger C takes the same steps. Returns whether C stops a step, the steps that were
    taken, and the gap that is left.
    """
    diagonal, residual, beta = own.diagonal, own.residual, own.beta
    lower, upper, rise, fall = own.lower, own.upper, own.rise, own.fall
    kernel, is_copied, width = own.kernel, own.is_copied, len(own.beta)
    i, steps, best = 0, 0, -np.inf
    for t in range(width):
        set_masks(own, t)
        if residual[t] + rise[t] >= best:  # the last row of equals
            i, best = t, residual[t] + rise[t]
    while True:
        if not is_copied[i]:
            copy_row(gram, own, i)
        best, row = residual[i] + rise[i], kernel[i * width :]
        j, gap = best_partner(best, diagonal[i], row, diagonal, residual, fall)
        if not (best - residual[j]) + fall[j] > 0.0:
            return False, steps, 0.0  # no pair gains anything: what is left is rounding
        if gap < tol or steps >= limit:
            return False, steps, gap
        curvature = diagonal[i] + diagonal[j] - 2.0 * row[j]
        curvature = curvature if curvature > 0.0 else TAU
        step = (residual[i] - residual[j]) / curvature
        risen, fallen = clip_step(beta[i], beta[j], upper[i], lower[j], step)
        if uncut and (0.0 < upper[i] <= risen or 0.0 > lower[j] >= fallen):
            return True, steps, gap
        if not is_copied[j]:
            copy_row(gram, own, j)
        partner = kernel[j * width :]
        up, down = risen - beta[i], fallen - beta[j]
        beta[i], beta[j] = risen, fallen
        set_masks(own, i)
        set_masks(own, j)
        i = subtract_rows(up, row, down, partner, residual, rise)
        steps += 1


@compiled(inline="always")
def constant_of(own: Any) -> Any:
    """Return the intercept: the mean residual of free support vectors.

    Without free rows it is the middle of what the optimality conditions allow.
    """
    total, n_free = 0.0, 0
    highest_rising, lowest_falling = -np.inf, np.inf
    for t in range(len(own.beta)):
        rises, falls = own.beta[t] < own.upper[t], own.beta[t] > own.lower[t]
        if rises and falls:
            total += own.residual[t]
            n_free += 1
        elif rises:
            highest_rising = max(highest_rising, own.residual[t])
        elif falls:
            lowest_falling = min(lowest_falling, own.residual[t])
    if n_free > 0:
        return total / n_free
    return (highest_rising + lowest_falling) / 2.0


@compiled()
def solve_pair(
    gram: Any,
    own: Any,
    limits: Any,
    n_first: Any,
    C_values: Any,
    stops: Any,
    found: Any,
) -> Any:
    """Solve one `Machine` for every C; its first `n_first` rows are of one class.

    `limits` are factors of C of each row, 0 for those that fill the last block; `stops`
    are tolerance and most steps for each C. To `found` are written betas (n_rows, n_C),
    constants, steps and gaps (n_C,).
    """
    betas, constants, steps, gaps = found
    tol, most = stops
    n_rows, n_shared, c = len(own.places), 0, 0
    residual, beta = np.empty((2, len(own.beta)))
    for t in range(len(beta)):
        residual[t], beta[t] = 1.0 if t < n_first else -1.0, 0.0
    while c < len(C_values):
        for t in range(len(beta)):
            bound = C_values[c] * limits[t]
            own.lower[t] = 0.0 if t < n_first else -bound
            own.upper[t] = bound if t < n_first else 0.0
            own.residual[t], own.beta[t] = residual[t], beta[t]
        is_cut, taken, gap = smo_iterate(gram, own, tol, most - n_shared, True)
        n_shared += taken
        n_taken = n_shared
        if is_cut:
            for t in range(len(beta)):
                residual[t], beta[t] = own.residual[t], own.beta[t]
            _, taken, gap = smo_iterate(gram, own, tol, most - n_shared, False)
            n_taken += taken
        # What C stops nowhere is the solution of all larger C, too.
        end, constant = c + 1 if is_cut else len(C_values), constant_of(own)
        for m in range(c, end):
            constants[m], steps[m], gaps[m] = constant, n_taken, gap
            for t in range(n_rows):
                betas[t, m] = own.beta[t]
        c = end


@compiled()
def solve_pairs(
    gram: Any,
    members: Any,
    starts: Any,
    weights: Any,
    diagonal: Any,
    C_values: Any,
    tol: Any,
    max_iter: Any,
) -> Any:
    """Return the `Paths` of the SVMs of all pairs of classes along C.

    `gram` is the kernel of all rows, float32 in C order, as libsvm keeps it. Of the
    training rows `members` has the places there, class by class, each class from its
    entry of `starts` on, `weights` the factors of C, and `diagonal` the kernel with
    themselves without rounding. `C_values` ascend; steps end at a gap of `tol`, or
    after `max_iter` for each C, -1 for libsvm's limit.
    """
    n_C, n_classes = len(C_values), len(starts) - 1
    n_pairs = n_classes * (n_classes - 1) // 2
    paths = Paths(
        np.zeros((len(members), n_classes - 1, n_C)),
        np.zeros((n_pairs, n_C)),
        np.zeros((n_pairs, n_C), np.int64),
        np.zeros((n_pairs, n_C)),
    )
    sizes = np.sort(starts[1:] - starts[:-1])
    widest = (sizes[-2:].sum() + WIDTH - 1) // WIDTH * WIDTH
    kernel = np.empty(widest * widest if n_pairs else 0, np.float32)
    is_copied, places = np.empty(widest, np.bool_), np.empty(widest, np.int64)
    room, betas = np.empty((8, widest)), np.empty((widest, n_C))
    p = 0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            n_first = starts[i + 1] - starts[i]
            n = n_first + starts[j + 1] - starts[j]
            width = (n + WIDTH - 1) // WIDTH * WIDTH
            own = Machine(
                kernel,
                is_copied[:n],
                places[:n],
                room[0, :width],
                room[1, :width],
                room[2, :width],
                room[3, :width],
                room[4, :width],
                room[5, :width],
                room[6, :width],
            )
            limits = room[7, :width]
            own.diagonal[:], limits[:] = 0.0, 0.0
            for t in range(n):
                row = starts[i] + t if t < n_first else starts[j] + t - n_first
                own.places[t], own.is_copied[t] = members[row], False
                own.diagonal[t], limits[t] = diagonal[row], weights[row]
            most = max_iter if max_iter >= 0 else max(LEAST_LIMIT, 100 * n)
            found = betas, paths.offsets[p], paths.steps[p], paths.gaps[p]
            solve_pair(gram, own, limits, n_first, C_values, (tol, most), found)
            for t in range(n):
                row = starts[i] + t if t < n_first else starts[j] + t - n_first
                other = j - 1 if t < n_first else i
                for m in range(n_C):
                    paths.coefs[row, other, m] = betas[t, m]
            p += 1
    return paths
