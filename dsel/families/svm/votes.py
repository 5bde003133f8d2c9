"""Compiled part of one-against-one voting; imported only where votes are counted.

For a pair of classes i < j a decision value above zero is a vote for i, any other value
a vote for j; the first class with the most votes wins. Both rules are libsvm's.
"""

from math import factorial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dsel.arrays import Bools, Floats, Integers, Shorts, Singles
from dsel.families.svm.lanes import (
    LANES,
    ROWS,
    add_products,
    compare_lanes,
    compile_with,
    larger,
)

if TYPE_CHECKING:
    from dsel.families.svm.decisions import PairTerms

EPS = 2.0**-52
TERMS = tuple(np.float32(1 / factorial(n)) for n in range(1, 11))


@compile_with(fast=True)
def flush_to_peaks(
    values: Singles, starts: Integers, least: float, peaks: Singles
) -> Any:
    """Set values below `least` to 0, and write each row's largest value by class.

    `values` is (n_rows, n_columns), `starts` where each class begins among the columns
    and the end, `peaks` (n_classes, n_rows). Processors multiply subnormal numbers a
    hundred times as slowly.
    """
    nothing = least - least  # 0 in the type of the values, to avoid conversions
    for r in range(len(values)):
        for code in range(len(peaks)):
            class_values = values[r, starts[code] : starts[code + 1]]
            peak = nothing
            for t in range(len(class_values)):
                size = abs(class_values[t])
                class_values[t] = class_values[t] if size >= least else nothing
                peak = larger(peak, size)
            peaks[code, r] = peak


@compile_with()
def exponentials_less_one(distances: Singles, gamma: float, out: Singles) -> Any:
    """Write exp(-gamma d) - 1 for distances d with gamma d <= 1, (n_rows, n_columns).

    With x = gamma d in float32 it is the sum of (-x)^n / n! from n = 1 to 10, by
    Horner's rule. The remainder is below x / 11!, and inner sums round less than outer
    ones: see `dsel.families.svm.decisions`.
    """
    for r in range(len(distances)):
        for t in range(distances.shape[1]):
            x = np.float32(-gamma * distances[r, t])
            series = TERMS[-1]
            for n in range(len(TERMS) - 2, -1, -1):
                series = TERMS[n] + x * series
            out[r, t] = x * series


@compile_with()
def double_exponents(values: Singles, least: float, one: float) -> Any:
    """Turn exp(-x) - one into exp(-2 x) - one in place; `one` is 0 or 1.

    Smaller values than `least` become 0; both numbers are of the type of the values.
    """
    nothing, two = one - one, one + one
    for r in range(len(values)):
        for t in range(values.shape[1]):
            value = values[r, t]
            value = value if abs(value) >= least else nothing
            # With v = exp(-x) - 1 it is (1 + v)^2 - 1; with v = exp(-x) the square.
            values[r, t] = value * (value + two)


class Workspace(NamedTuple):
    """State and working memory of `settle` for some rows."""

    fewest: Shorts
    """Fewest pairs that each class may win, (n_rows, n_classes, LANES)."""
    most: Shorts
    tried: Bools
    """Whether each class was compared with all others, (n_rows, n_classes)."""
    terms: Singles
    """Sums over the support vectors of each class of a pair, (2, ROWS * LANES)."""
    rivals: Shorts
    """The class farthest ahead of the one compared, or least behind, (ROWS, LANES)."""
    leads: Floats
    """Lead of the class that is compared over the rival."""
    sizes: Floats
    """Peaks of both classes, and the error of the row."""
    places: Integers
    """Row numbers in the block of the rows that are compared, (ROWS,)."""


@compile_with()
def write_terms(
    coefs: Floats,
    starts: Integers,
    columns: Integers,
    first: int,
    pairs: "PairTerms",
    sums: Floats,
) -> Any:
    """Arrange LANES models, beginning with the first; return the number of terms.

    `coefs` and `starts` are those of `machines.Machines`, `columns` the column of the
    kernel values for each of their rows, `first` the number of the first model. Written
    are the `decisions.PairTerms`, and `sums`, zeros, (3, n_classes, n_classes - 1,
    n_models): the sum of absolute coefficients, the number of nonzero ones, and the sum
    of coefficients.
    """
    size, n_others, n_models = 0, coefs.shape[1], sums.shape[3]
    for piece in range(len(pairs.starts) - 1):
        i, other = piece // n_others, piece % n_others
        for t in range(starts[i], starts[i + 1]):
            is_used = False
            for m in range(n_models):
                coef = coefs[t, other, first + m]
                pairs.weights[size, m] = coef
                sums[0, i, other, m] += abs(coef)
                sums[1, i, other, m] += coef != 0.0
                sums[2, i, other, m] += coef
                is_used = is_used or coef != 0.0
            # The next vector overwrites one that no model uses.
            pairs.columns[size] = columns[t]
            size += is_used
        pairs.starts[piece + 1] = size
    return size


@compile_with()
def settle(
    values: Singles,
    rows: Integers,
    pairs: "PairTerms",
    peaks: Singles,
    errors: Floats,
    guess: Integers,
    present: Integers,
    codes: Integers,
) -> Any:
    """Find the winners of rows, of up to LANES models, that rounding cannot change.

    Each row's guess is compared with all other classes. A class that clearly wins all
    its pairs is the winner whatever the votes of the other pairs. Otherwise the next
    class is compared, until the known pairs leave one winner, or all pairs are known.

    `values`, `peaks` and `errors` are those of a `decisions.KernelBlock`, `rows` the
    rows of the block to decide, `pairs` the terms of the models, and `present` the code
    of each class. `guess` has a class code for each row of the block. `codes`,
    (n_models, n_rows), are -1 where a winner is wanted, and written there; they stay -1
    where rounding could change the winner.
    """
    left, n_classes = len(rows), len(present)
    following, queue = np.zeros((2, left + ROWS), dtype=np.int64)
    room = Workspace(
        np.zeros((left, n_classes, LANES), dtype=np.int16),
        np.full((left, n_classes, LANES), n_classes - 1, dtype=np.int16),
        np.zeros((left, n_classes), dtype=np.bool_),
        np.empty((2, ROWS * LANES), dtype=np.float32),
        np.empty((ROWS, LANES), dtype=np.int16),
        np.empty((ROWS, LANES)),
        np.empty(3),
        np.empty(ROWS, dtype=np.int64),
    )
    # The guess may be a class without training rows: then the one before it is tried.
    for t in range(left):
        for i in range(1, n_classes):
            following[t] += present[i] <= guess[rows[t]]
    while left:
        left = 0
        for winner in range(n_classes):
            size = 0
            for t in range(len(rows)):
                if following[t] == winner:
                    queue[size] = t
                    size += 1
            for u in range(ROWS if size else 0):
                queue[size + u] = queue[size - 1]
            for t in range(0, size, ROWS):
                four = queue[t : t + ROWS]
                compare(values, rows, pairs, peaks, errors, winner, four, room)
                for u in range(min(ROWS, size - t)):
                    room.tried[four[u], winner] = True
                    next_class = next_guess(room, codes, present, four[u], u, winner)
                    following[four[u]] = next_class
                    left += next_class >= 0


@compile_with(inline="always")
def compare(
    values: Singles,
    rows: Integers,
    pairs: "PairTerms",
    peaks: Singles,
    errors: Floats,
    winner: int,
    four: Integers,
    room: Workspace,
) -> Any:
    """Compare a class with all others in ROWS of the rows; arguments as for `settle`.

    `four` are indices of ROWS of the `rows`; the last index may repeat.
    """
    columns, weights, starts = pairs.columns, pairs.weights, pairs.starts
    rivals, leads, tried, terms = room.rivals, room.leads, room.tried, room.terms
    sizes, places, fewest, most = room.sizes, room.places, room.fewest, room.most
    n_classes = len(peaks)
    for u in range(ROWS):
        places[u] = rows[four[u]]
        for m in range(LANES):
            rivals[u, m], leads[u, m] = -1, np.inf
    for other in range(n_classes):
        known = True
        for u in range(ROWS):
            known = known and tried[four[u], other]
        if known or other == winner:
            continue
        i, j = min(winner, other), max(winner, other)
        piece, back = i * (n_classes - 1) + j - 1, j * (n_classes - 1) + i
        for side in range(2):
            begin, end = starts[piece], starts[piece + 1]
            add_products(values, places, columns, begin, end, weights, terms[side])
            piece = back
        bound = pairs.bounds[i * (2 * n_classes - i - 1) // 2 + j - i - 1]
        sign = 1.0 if winner == i else -1.0
        for u in range(ROWS):
            row = four[u]
            # Where fewer than ROWS rows are left, the last one repeats; its votes must
            # be counted once.
            if tried[row, other] or (u > 0 and row == four[u - 1]):
                continue
            sizes[0], sizes[1] = peaks[i, places[u]], peaks[j, places[u]]
            sizes[2] = errors[places[u]]
            compare_lanes(
                terms[0, u * LANES :],
                terms[1, u * LANES :],
                bound,
                sizes,
                sign,
                other,
                fewest[row, winner],
                most[row, winner],
                fewest[row, other],
                most[row, other],
                rivals[u],
                leads[u],
            )


@compile_with(inline="always")
def next_guess(
    room: Workspace, codes: Integers, present: Integers, row: int, u: int, winner: int
) -> Any:
    """Write a row's known winners; return the class to compare next, -1 for none.

    The first model without a winner decides: its rival comes next, or else the class
    not yet tried that may win most pairs. `u` is the index of the row in the rivals.
    """
    following, tried = -1, room.tried[row]
    for m in range(len(codes)):
        if codes[m, row] >= 0:
            continue
        best = winner
        if room.fewest[row, winner, m] < len(present) - 1:
            best = certain_winner(room.fewest, room.most, len(present), row, m)
        if best >= 0:
            codes[m, row] = present[best]
        elif following < 0:
            following = room.rivals[u, m]
            if following >= 0 and not tried[following]:
                continue
            following, most = -1, room.most[row, :, m]
            for i in range(len(present)):
                if not tried[i] and (following < 0 or most[i] > most[following]):
                    following = i
    return following


@compile_with(inline="always")
def certain_winner(
    fewest: Shorts, most: Shorts, n_classes: int, row: int, m: int
) -> Any:
    """Return the class that wins whatever the unknown pairs vote, -1 for none."""
    best = 0
    for i in range(1, n_classes):
        best = i if fewest[row, i, m] > fewest[row, best, m] else best
    for i in range(n_classes):
        # The first class with the most votes wins.
        if i != best and fewest[row, best, m] < most[row, i, m] + (i < best):
            return -1
    return best


@compile_with()
def add_terms(
    values: Singles,
    columns: Integers,
    coefs: Floats,
    starts: Integers,
    rows: Integers,
    model_numbers: Integers,
    terms: Floats,
    limits: Floats,
) -> Any:
    """Add each class's terms of cells in the order of the class's support vectors.

    `values` are (n_rows, n_columns), `columns`, `coefs` and `starts` are those of
    `write_terms`, and each cell has a row and a model. `terms` and `limits` are zeros,
    (n_classes, n_classes - 1, n_cells), to which the sums and bounds of their rounding
    errors are written.
    """
    n_classes, n_others, _ = terms.shape
    for cell in range(len(rows)):
        row, model = rows[cell], model_numbers[cell]
        for i in range(n_classes):
            for q in range(n_others):
                # The factor counts units of rounding: n + 8 cover the sums, see
                # docs/theory/svm_votes.md.
                total, size, count = 0.0, 0.0, 8.0
                for t in range(starts[i], starts[i + 1]):
                    coef = coefs[t, q, model]
                    term = values[row, columns[t]] * coef
                    total += term
                    size += abs(term)
                    count += coef != 0.0
                terms[i, q, cell], limits[i, q, cell] = total, EPS * count * size
