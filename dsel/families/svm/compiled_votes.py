"""Compiled part of one-against-one voting; imported only where votes are counted.

Classes i < j of the pair number p: a decision above zero is a vote for i, any other
one for j; the first class with the most votes wins. Both rules are libsvm's.
"""

from math import factorial
from typing import Any

import numpy as np

from dsel.families.svm.compiled_lanes import LANES, ROWS, add_products, compare_lanes
from dsel.families.svm.compiled_once import compiled
from dsel.families.svm.compiled_smo import FAST, larger

EPS = 2.0**-52
TERMS = tuple(np.float32(1 / factorial(n)) for n in range(1, 11))


@compiled(fastmath=FAST, error_model="numpy")
def flush_to_peaks(
    values: Any, starts: Any, least: Any, peaks: Any, squared: Any, more: Any
) -> Any:
    """Set values below `least` to 0, and write each row's largest value by class.

    If `squared`, each value v is first replaced by v * (v + more): the square where
    `more` is 0, and the square less 1 of what v is 1 less than, where it is 2.

    `values` is (n_rows, n_columns), `starts` where each class begins among the columns
    and the end, `peaks` (n_classes, n_rows). Processors multiply numbers that are
    nearly too small for their type a hundred times as slowly.
    """
    nothing = least - least  # of the type of the values, without which nothing is fast
    for r in range(len(values)):
        for code in range(len(peaks)):
            mine = values[r, starts[code] : starts[code + 1]]
            peak = nothing
            for t in range(len(mine)):
                value = mine[t] * (mine[t] + more) if squared else mine[t]
                size = abs(value)
                mine[t] = value if size >= least else nothing
                peak = larger(peak, size)
            peaks[code, r] = peak


@compiled(error_model="numpy")
def exponentials_less_one(distances: Any, gamma: Any, found: Any) -> Any:
    """Write exp(-gamma d) - 1 for distances d with gamma d <= 1, (n_rows, n_columns).

    Of x = gamma d in float32 the sum of (-x)^n / n! from n = 1 to 10. What is left out
    is below x / 11!, and each sum rounds less than the one around it: see
    `dsel.families.svm.decisions`.
    """
    for r in range(len(distances)):
        for t in range(distances.shape[1]):
            x = np.float32(-gamma * distances[r, t])
            rest = TERMS[-1]
            for n in range(len(TERMS) - 2, -1, -1):
                rest = TERMS[n] + x * rest
            found[r, t] = x * rest


def room_for(n_rows: int, n_classes: int) -> tuple[Any, ...]:
    """Return what `settle` writes to for blocks of so many rows."""
    return (
        np.empty((2, n_rows, n_classes, LANES), dtype=np.int16),
        np.empty((n_rows, n_classes), dtype=np.bool_),
        np.empty((2, n_rows + ROWS), dtype=np.int64),
        np.empty((2, ROWS * LANES), dtype=np.float32),
        np.empty((ROWS, LANES), dtype=np.int16),
        np.empty((ROWS, LANES)),
        np.empty(3),
        np.empty(ROWS, dtype=np.int64),
    )


@compiled(error_model="numpy")
def lay_out(coefs: Any, starts: Any, columns: Any, first: Any, into: Any) -> Any:
    """Lay out LANES models from the first one on, as `settle` takes them.

    Parameters
    ----------
    coefs
        Dual coefficients in libsvm's layout, (n_rows, n_classes - 1, n_models).
    starts
        Where each class begins among the rows, and the end, (n_classes + 1,).
    columns
        Column of the kernel values for each row, (n_rows,).
    first
        Number of the first model.
    into
        Zeros, written to: `columns`, `weights` in float32 and `starts` of `settle`, all
        with room for n_rows * (n_classes - 1) terms; sums of absolute coefficients, how
        many are not 0, and their sums, (3, n_classes, n_classes - 1, n_models).

    Returns
    -------
    int
        How many terms there are.
    """
    taken, weights, begins, sums = into
    size, n_others, n_models = 0, sums.shape[2], sums.shape[3]
    for piece in range(len(begins) - 1):
        i, other = piece // n_others, piece % n_others
        for t in range(starts[i], starts[i + 1]):
            is_used = False
            for m in range(n_models):
                coef = coefs[t, other, first + m]
                weights[size, m] = coef
                sums[0, i, other, m] += abs(coef)
                sums[1, i, other, m] += coef != 0.0
                sums[2, i, other, m] += coef
                is_used = is_used or coef != 0.0
            taken[size] = columns[t]
            size += is_used
        begins[piece + 1] = size
    return size


@compiled(error_model="numpy", inline="always")
def begin(rows: Any, guess: Any, present: Any, room: Any) -> Any:
    """Write that nothing is known, and which class each row is compared with first."""
    wins, tried, following = room[0], room[1], room[2][0]
    for t in range(len(rows)):
        following[t] = 0
        for i in range(len(present)):
            following[t] += i > 0 and present[i] <= guess[rows[t]]
            tried[t, i] = False
            for m in range(LANES):
                wins[0, t, i, m], wins[1, t, i, m] = 0, len(present) - 1


@compiled(error_model="numpy")
def settle(
    values: Any, rows: Any, layout: Any, peaks: Any, errors: Any, guess: Any,
    present: Any, codes: Any, room: Any,
) -> Any:  # fmt: skip
    """Find winners of rows and of up to LANES models as far as nothing can change them.

    Each row's guess is compared with all other classes; who wins all its pairs beyond
    doubt is the winner whatever the other pairs say. Else the next class is compared,
    until the pairs that are known leave one winner, or all are known.

    Parameters
    ----------
    values
        Kernel values, (n_block_rows, n_columns).
    rows
        Which of these rows are asked, (n_rows,).
    layout
        `columns` and `weights` of the support vectors of each class for each other
        class, (n_terms,) and (n_terms, LANES); `starts` of these pieces and the end,
        (n_classes * (n_classes - 1) + 1,); `bounds` of each decision, (n_pairs,
        5 * LANES): what is added to the products; what the peaks of classes i < j and
        the errors are multiplied with to bound the decision's error; what is added.
    peaks
        Largest absolute kernel value of each row of the block by class, (n_classes,
        n_block_rows).
    errors
        Largest error of each row's kernel values, (n_block_rows,).
    guess
        A class code for each row of the block, (n_block_rows,).
    present
        Code of each class, (n_classes,).
    codes
        -1 where a winner is asked for, (n_models, n_rows). Written there: the winner's
        code; it stays -1 where rounding could make another one.
    room
        Written to, with room for the rows: fewest and most pairs that each class may
        win, (2, n_rows, n_classes, LANES); classes that were compared with all others,
        (n_rows, n_classes); integers, (2, n_rows + ROWS); terms, (2, ROWS * LANES);
        the class farthest ahead of the one compared, or least behind, and that lead,
        (ROWS, LANES); three sizes.
    """
    following, queue = room[2][0], room[2][1]
    begin(rows, guess, present, room)
    left = len(rows)
    while left:
        left = 0
        for winner in range(len(present)):
            size = 0
            for t in range(len(rows)):
                if following[t] == winner:
                    queue[size] = t
                    size += 1
            for u in range(ROWS if size else 0):
                queue[size + u] = queue[size - 1]
            for t in range(0, size, ROWS):
                mine = queue[t : t + ROWS]
                compare(values, rows, layout, peaks, errors, winner, mine, room)
                for u in range(min(ROWS, size - t)):
                    room[1][mine[u], winner] = True
                    guessed = next_guess(room, codes, present, mine[u], u, winner)
                    following[mine[u]] = guessed
                    left += guessed >= 0


@compiled(error_model="numpy", inline="always")
def compare(
    values: Any, rows: Any, layout: Any, peaks: Any, errors: Any, winner: Any,
    mine: Any, room: Any,
) -> Any:  # fmt: skip
    """Compare a class with all others in ROWS of the rows; arguments as for `settle`.

    `mine` says which of the rows asked, (ROWS,); the last may repeat.
    """
    columns, weights, starts, bounds = layout
    wins, tried, _, terms, rivals, lowest, sizes, places = room
    n_classes = len(peaks)
    for u in range(ROWS):
        places[u] = rows[mine[u]]
        for m in range(LANES):
            rivals[u, m], lowest[u, m] = -1, np.inf
    for other in range(n_classes):
        known = True
        for u in range(ROWS):
            known = known and tried[mine[u], other]
        if known or other == winner:
            continue
        i, j = min(winner, other), max(winner, other)
        piece, back = i * (n_classes - 1) + j - 1, j * (n_classes - 1) + i
        for side in range(2):
            begin, end = starts[piece], starts[piece + 1]
            add_products(values, places, columns, begin, end, weights, terms[side])
            piece = back
        bound = bounds[i * (2 * n_classes - i - 1) // 2 + j - i - 1]
        sign = 1.0 if winner == i else -1.0
        for u in range(ROWS):
            row = mine[u]
            # The last row is repeated where they are fewer: it is entered once.
            if tried[row, other] or (u > 0 and row == mine[u - 1]):
                continue
            sizes[0], sizes[1] = peaks[i, places[u]], peaks[j, places[u]]
            sizes[2] = errors[places[u]]
            compare_lanes(
                terms[0, u * LANES :], terms[1, u * LANES :], bound, sizes, sign, other,
                wins[0, row, winner], wins[1, row, winner],
                wins[0, row, other], wins[1, row, other], rivals[u], lowest[u],
            )  # fmt: skip


@compiled(error_model="numpy", inline="always")
def next_guess(
    room: Any, codes: Any, present: Any, row: Any, u: Any, winner: Any
) -> Any:
    """Write a row's winners as far as they are known; return who is next, -1 for none.

    The first model without a winner says who is next. `u` is where the row's rivals
    stand.
    """
    wins, rivals = room[0], room[4]
    following = -1
    for m in range(len(codes)):
        if codes[m, row] >= 0:
            continue
        best = winner
        if wins[0, row, winner, m] < len(present) - 1:
            best = known_winner(wins, len(present), row, m)
        if best >= 0:
            codes[m, row] = present[best]
        elif following < 0:
            following = most_likely(room, len(present), rivals[u, m], row, m)
    return following


@compiled(error_model="numpy", inline="always")
def most_likely(room: Any, n_classes: Any, rival: Any, row: Any, m: Any) -> Any:
    """Return the rival, or else the class not yet tried that may win most pairs."""
    wins, tried = room[0], room[1]
    if rival >= 0 and not tried[row, rival]:
        return rival
    best = -1
    for i in range(n_classes):
        if not tried[row, i] and (
            best < 0 or wins[1, row, i, m] > wins[1, row, best, m]
        ):
            best = i
    return best


@compiled(error_model="numpy", inline="always")
def known_winner(wins: Any, n_classes: Any, row: Any, m: Any) -> Any:
    """Return the class that wins whatever the pairs that are not known, -1 for none."""
    best = 0
    for i in range(1, n_classes):
        best = i if wins[0, row, i, m] > wins[0, row, best, m] else best
    for i in range(n_classes):
        # The first class with the most votes wins.
        if i != best and wins[0, row, best, m] < wins[1, row, i, m] + (i < best):
            return -1
    return best


@compiled(error_model="numpy")
def add_terms(
    values: Any,
    columns: Any,
    coefs: Any,
    starts: Any,
    rows: Any,
    models: Any,
    terms: Any,
    limits: Any,
) -> Any:
    """Add each class's terms of cells in the order of the class's support vectors.

    Parameters
    ----------
    values
        Kernel values, (n_rows, n_columns).
    columns, coefs, starts
        See `lay_out`.
    rows, models
        Row and model of each cell, (n_cells,).
    terms, limits
        Zeros, (n_classes, n_classes - 1, n_cells). Written there: the sums, and what
        adding may have changed.
    """
    n_classes, n_others, _ = terms.shape
    for cell in range(len(rows)):
        row, model = rows[cell], models[cell]
        for i in range(n_classes):
            for q in range(n_others):
                total, size, count = 0.0, 0.0, 8.0
                for t in range(starts[i], starts[i + 1]):
                    coef = coefs[t, q, model]
                    term = values[row, columns[t]] * coef
                    total += term
                    size += abs(term)
                    count += coef != 0.0
                terms[i, q, cell], limits[i, q, cell] = total, EPS * count * size


@compiled(error_model="numpy")
def winners_of(decisions: Any, limits: Any, n_classes: Any) -> Any:
    """Return each cell's winner by its place, -1 where rounding could make another one.

    Parameters
    ----------
    decisions, limits
        Decisions and bounds of their errors, (n_pairs, n_cells).
    n_classes
        How many classes the pairs are of.
    """
    winners = np.empty(decisions.shape[1], dtype=np.int64)
    wins = np.empty((2, 1, n_classes, 1), dtype=np.int64)  # fewest and most
    for cell in range(len(winners)):
        wins[0], wins[1] = 0, n_classes - 1
        pair = 0
        for i in range(n_classes):
            for j in range(i + 1, n_classes):
                if decisions[pair, cell] > limits[pair, cell]:
                    wins[0, 0, i, 0] += 1
                    wins[1, 0, j, 0] -= 1
                elif decisions[pair, cell] <= -limits[pair, cell]:
                    wins[0, 0, j, 0] += 1
                    wins[1, 0, i, 0] -= 1
                pair += 1
        winners[cell] = known_winner(wins, n_classes, 0, 0)
    return winners
