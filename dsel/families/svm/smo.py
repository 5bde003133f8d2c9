r"""Two-class support vector machines of all pairs of classes for ascending C, by SMO.

Sequential minimal optimization moves two dual variables at a time. The dual problem,
with :math:`\beta_t = y_t \alpha_t`, is to maximize
:math:`y^\top \beta - \beta^\top K \beta / 2` under :math:`\sum_t \beta_t = 0` and
:math:`0 \le y_t \beta_t \le C w_t`. The residual is :math:`r = y - K \beta`, so that
kernel rows are used as they are. Rows with beta_t < upper_t are in the set I_up, they
may rise; rows with beta_t > lower_t are in I_low, they may fall. A step moves a pair by
beta_i += s, beta_j -= s; the pair is chosen by second-order information (Fan, Chen and
Lin, JMLR 6, 2005).

Every C starts from zero, as in libsvm. Until a variable reaches its bound C the steps
are the same for every larger C, so they are taken once: each C starts from the state in
which the next smaller C first stopped a step.

The steps are those of libsvm without shrinking, to the last bit: its ties (the last of
equal rows), its order of operations, no fused products. At a tol of 1e-3 a path that
differs in one rounding ends at another model.

One call solves all pairs of a training set, so that threads need the interpreter's lock
once for each training set and not once for each pair. The module is imported only where
it runs.
"""

from typing import Any, NamedTuple

import numpy as np

from dsel.families.svm.lanes import (
    TAU,
    WIDTH,
    best_partner,
    compile_with,
    subtract_rows,
)

LEAST_LIMIT = 10_000_000
"""Steps allowed by default, or 100 for each row if that is more, as in libsvm."""


class Paths(NamedTuple):
    """Binary SVMs of all pairs of classes for every C; rows are sorted by class."""

    coefs: Any
    """Signed dual variables in libsvm's layout, (n_rows, n_classes - 1, n_C)."""
    offsets: Any
    """Intercept of each decision, (n_pairs, n_C)."""
    steps: Any
    """Steps from zero to each solution, (n_pairs, n_C), shared ones included."""
    gaps: Any
    """Remaining violation of the KKT conditions, (n_pairs, n_C)."""


class Machine(NamedTuple):
    """Kernel rows of one pair of classes, and the state of SMO for each row.

    Lengths are whole blocks of `WIDTH`. Rows that fill the last block have bounds of 0,
    so that they never move.
    """

    kernel: Any
    """Kernel rows one after another; valid where `is_copied` is True."""
    is_copied: Any
    places: Any
    """Position of each row in the kernel of all rows, (n_rows,)."""
    diagonal: Any
    residual: Any
    beta: Any
    lower: Any
    upper: Any
    rise: Any
    """0 for rows in I_up, else -inf."""
    fall: Any
    """0 for rows in I_low, else -inf."""


@compile_with()
def copy_row(gram: Any, svm: Any, t: Any) -> Any:
    """Copy kernel row t of a machine, when it is first needed.

    Many rows never move, above all where C is small or kernels are wide.
    """
    width, source = len(svm.beta), gram[svm.places[t]]
    row = svm.kernel[t * width :]
    for s in range(len(svm.places)):
        row[s] = source[svm.places[s]]
    for s in range(len(svm.places), width):
        row[s] = 0.0
    svm.is_copied[t] = True


@compile_with(fast=True, inline="always")
def set_masks(svm: Any, t: Any) -> Any:
    """Set whether row t is in I_up and in I_low."""
    # Added to a residual, -inf excludes a row without a branch, so loops stay vectors.
    svm.rise[t] = 0.0 if svm.beta[t] < svm.upper[t] else -np.inf
    svm.fall[t] = 0.0 if svm.beta[t] > svm.lower[t] else -np.inf


@compile_with(fast=True, inline="always")
def clip_step(rising: Any, falling: Any, upper: Any, lower: Any, step: Any) -> Any:
    """Return the two dual variables after a step, clipped to their bounds.

    A variable that is stopped by its bound is set exactly to the bound. Where both
    reach theirs, rounding decides whether one of them ends up free, and a single free
    row determines the intercept. So the sums, and which variable is set, are libsvm's.
    """
    total, bounds = rising + falling, upper + lower
    if total > bounds or (total == bounds and upper <= 0.0):
        if rising + step > upper:
            return upper, total - upper
    elif falling - step < lower:
        return total - lower, lower
    return rising + step, falling - step


@compile_with(fast=True)
def smo_iterate(gram: Any, svm: Any, tol: Any, limit: Any, uncut: Any) -> Any:
    """Take SMO steps until the KKT violation is below `tol`, at most `limit` steps.

    With `uncut` it ends before the first step that a bound C would clip: up to there
    every larger C takes the same steps. Returns whether a step was clipped, the number
    of steps, and the remaining KKT violation.
    """
    diagonal, residual, beta = svm.diagonal, svm.residual, svm.beta
    lower, upper, rise, fall = svm.lower, svm.upper, svm.rise, svm.fall
    kernel, is_copied, width = svm.kernel, svm.is_copied, len(svm.beta)
    i, steps, best = 0, 0, -np.inf
    for t in range(width):
        set_masks(svm, t)
        if residual[t] + rise[t] >= best:  # >= takes the last of equals, as libsvm does
            i, best = t, residual[t] + rise[t]
    while True:
        if not is_copied[i]:
            copy_row(gram, svm, i)
        best, row = residual[i] + rise[i], kernel[i * width :]
        j, gap = best_partner(best, diagonal[i], row, diagonal, residual, fall)
        if not (best - residual[j]) + fall[j] > 0.0:
            return False, steps, 0.0  # no pair gains anything: the rest is rounding
        if gap < tol or steps >= limit:
            return False, steps, gap
        curvature = diagonal[i] + diagonal[j] - 2.0 * row[j]
        # Kernel values are float32, so the curvature of rows that are nearly equal may
        # be below 0.
        curvature = curvature if curvature > 0.0 else TAU
        step = (residual[i] - residual[j]) / curvature
        risen, fallen = clip_step(beta[i], beta[j], upper[i], lower[j], step)
        # Every C has the lower bound 0; only an upper bound of C ends the shared steps.
        if uncut and (0.0 < upper[i] <= risen or 0.0 > lower[j] >= fallen):
            return True, steps, gap
        if not is_copied[j]:
            copy_row(gram, svm, j)
        partner = kernel[j * width :]
        up, down = risen - beta[i], fallen - beta[j]
        beta[i], beta[j] = risen, fallen
        set_masks(svm, i)
        set_masks(svm, j)
        i = subtract_rows(up, row, down, partner, residual, rise)
        steps += 1


@compile_with(inline="always")
def constant_of(svm: Any) -> Any:
    """Return the intercept: the mean residual of free support vectors.

    Without free support vectors it is the midpoint of the interval that the KKT
    conditions allow.
    """
    total, n_free = 0.0, 0
    highest_rising, lowest_falling = -np.inf, np.inf
    for t in range(len(svm.beta)):
        rises, falls = svm.beta[t] < svm.upper[t], svm.beta[t] > svm.lower[t]
        if rises and falls:
            total += svm.residual[t]
            n_free += 1
        elif rises:
            highest_rising = max(highest_rising, svm.residual[t])
        elif falls:
            lowest_falling = min(lowest_falling, svm.residual[t])
    if n_free > 0:
        return total / n_free
    return (highest_rising + lowest_falling) / 2.0


@compile_with()
def solve_pair(
    gram: Any,
    svm: Any,
    limits: Any,
    n_first: Any,
    C_values: Any,
    stops: Any,
    results: Any,
) -> Any:
    """Solve one `Machine` for every C; its first `n_first` rows are of one class.

    `limits` are factors of C of each row, 0 for those that fill the last block; `stops`
    are the tolerance and the largest number of steps for each C. `results` are the
    arrays to write to: betas (n_rows, n_C), intercepts, steps and gaps (n_C,).
    """
    betas, constants, steps, gaps = results
    tol, most = stops
    n_rows, n_shared, c = len(svm.places), 0, 0
    residual, beta = np.empty((2, len(svm.beta)))
    for t in range(len(beta)):
        residual[t], beta[t] = 1.0 if t < n_first else -1.0, 0.0
    while c < len(C_values):
        for t in range(len(beta)):
            bound = C_values[c] * limits[t]
            svm.lower[t] = 0.0 if t < n_first else -bound
            svm.upper[t] = bound if t < n_first else 0.0
            svm.residual[t], svm.beta[t] = residual[t], beta[t]
        # Each C may take `most` steps, as in libsvm; shared steps count for all.
        is_cut, n_steps, gap = smo_iterate(gram, svm, tol, most - n_shared, True)
        n_shared += n_steps
        n_taken = n_shared
        if is_cut:
            for t in range(len(beta)):
                residual[t], beta[t] = svm.residual[t], svm.beta[t]
            _, n_steps, gap = smo_iterate(gram, svm, tol, most - n_shared, False)
            n_taken += n_steps
        # A path that no bound has clipped is that of all larger C, too.
        end, constant = c + 1 if is_cut else len(C_values), constant_of(svm)
        for m in range(c, end):
            constants[m], steps[m], gaps[m] = constant, n_taken, gap
            for t in range(n_rows):
                betas[t, m] = svm.beta[t]
        c = end


@compile_with()
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

    `gram` is the kernel of all rows, float32 in C order, as in libsvm's cache. For the
    training rows, sorted by class, `members` has the positions in `gram`, `weights` the
    factors of C, and `diagonal` the kernel values with themselves in float64; a class
    begins at each entry of `starts`. `C_values` ascend; steps end at a gap of `tol`, or
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
    # All pairs use the same memory, which has room for the two largest classes.
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
            svm = Machine(
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
            svm.diagonal[:], limits[:] = 0.0, 0.0
            for t in range(n):
                row = starts[i] + t if t < n_first else starts[j] + t - n_first
                svm.places[t], svm.is_copied[t] = members[row], False
                svm.diagonal[t], limits[t] = diagonal[row], weights[row]
            most = max_iter if max_iter >= 0 else max(LEAST_LIMIT, 100 * n)
            results = betas, paths.offsets[p], paths.steps[p], paths.gaps[p]
            solve_pair(gram, svm, limits, n_first, C_values, (tol, most), results)
            for t in range(n):
                row = starts[i] + t if t < n_first else starts[j] + t - n_first
                # This is the layout of libsvm: the other classes in order, without the
                # class of the row.
                other = j - 1 if t < n_first else i
                for m in range(n_C):
                    paths.coefs[row, other, m] = betas[t, m]
            p += 1
    return paths
