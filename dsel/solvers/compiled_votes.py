"""Compiled part of one-against-one voting; imported only where votes are counted.

Classes i < j of the pair number p: a decision above zero is a vote for i, any other
one for j; the first class with the most votes wins. Both rules are libsvm's.
"""

from typing import Any

import numpy as np

from dsel.solvers.compiled_lanes import LANES, ROWS, add_products, compare_lanes
from dsel.solvers.compiled_once import compiled
from dsel.solvers.compiled_smo import FAST, larger

EPS = 2.0**-52


@compiled(fastmath=FAST, error_model="numpy")
def flush_to_peaks(
    values: Any, starts: Any, least: Any, peaks: Any, squared: Any
) -> Any:
    """Set values below `least` to 0, and write each row's largest value by class.

    If `squared`, the values are squared first.

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
                value = mine[t] * mine[t] if squared else mine[t]
                size = abs(value)
                mine[t] = value if size >= least else nothing
                peak = larger(peak, size)
            peaks[code, r] = peak


@compiled(error_model="numpy")
def lay_out(coefs: Any, starts: Any, columns: Any, first: Any) -> Any:
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

    Returns
    -------
    columns, weights, starts
        See `settle`; weights in float32.
    totals, counts
        Sums of absolute coefficients and how many are not 0, (n_classes,
        n_classes - 1, n_models).
    """
    n_classes, n_others = len(starts) - 1, coefs.shape[1]
    n_models = min(coefs.shape[2] - first, LANES)
    sums = np.zeros((2, n_classes, n_others, n_models))
    totals, counts = sums[0], sums[1]
    taken = np.empty(len(coefs) * n_others, dtype=np.int64)
    weights = np.zeros((len(coefs) * n_others, LANES), dtype=np.float32)
    begins, size = np.zeros(n_classes * n_others + 1, dtype=np.int64), 0
    for piece in range(n_classes * n_others):
        i, other = piece // n_others, piece % n_others
        for t in range(starts[i], starts[i + 1]):
            is_used = False
            for m in range(n_models):
                coef = coefs[t, other, first + m]
                weights[size, m] = coef
                totals[i, other, m] += abs(coef)
                counts[i, other, m] += coef != 0.0
                is_used = is_used or coef != 0.0
            taken[size] = columns[t]
            size += is_used
        begins[piece + 1] = size
    return taken[:size], weights[:size], begins, totals, counts


@compiled(error_model="numpy")
def settle(
    values: Any, rows: Any, layout: Any, peaks: Any, errors: Any, guess: Any, codes: Any
) -> Any:
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
        Place of a class for each row asked, (n_rows,); overwritten.
    codes
        -1 where a winner is asked for, (n_rows, n_models). Written there: the winner's
        place among the classes; it stays -1 where rounding could make another one.
    """
    n_rows, n_classes = len(rows), len(peaks)
    wins = np.zeros((2, n_rows, n_classes, LANES), dtype=np.int16)
    wins[1] = n_classes - 1
    tried = np.zeros((n_rows, n_classes), dtype=np.bool_)
    queue = np.empty(n_rows + ROWS, dtype=np.int64)
    left = n_rows
    while left:
        left = 0
        for winner in range(n_classes):
            size = 0
            for t in range(n_rows):
                if guess[t] == winner:
                    queue[size] = t
                    size += 1
            queue[size : size + ROWS] = queue[max(size - 1, 0)]
            for t in range(0, size, ROWS):
                mine = queue[t : min(t + ROWS, size)]
                padded = queue[t : t + ROWS]
                rivals = compare(
                    values, rows, layout, peaks, errors, winner, padded, tried, wins
                )
                for u, row in enumerate(mine):
                    tried[row, winner] = True
                    guess[row] = next_guess(
                        wins[:, row], codes[row], tried[row], rivals[u], winner
                    )
                    left += guess[row] >= 0


@compiled(error_model="numpy")
def compare(  # noqa: PLR0913
    values: Any,
    rows: Any,
    layout: Any,
    peaks: Any,
    errors: Any,
    winner: Any,
    mine: Any,
    tried: Any,
    wins: Any,
) -> Any:
    """Compare a class with all others in ROWS of the rows; arguments as for `settle`.

    Parameters
    ----------
    mine
        Which of the rows asked, (ROWS,); the last may repeat.
    tried
        Classes that were compared with all others, (n_rows, n_classes).
    wins
        Fewest and most pairs that each class may win, (2, n_rows, n_classes, LANES).

    Returns
    -------
    ndarray
        The class farthest ahead of this one, or least behind, (ROWS, LANES).
    """
    columns, weights, starts, bounds = layout
    n_classes = len(peaks)
    lowest = np.full((ROWS, LANES), np.inf)
    rivals = np.full((ROWS, LANES), -1, dtype=np.int16)
    terms = np.empty((2, ROWS * LANES), dtype=values.dtype)
    places, sizes = rows[mine], np.empty(3)
    for other in range(n_classes):
        known = True
        for row in mine:
            known = known and tried[row, other]
        if known or other == winner:
            continue
        i, j = min(winner, other), max(winner, other)
        for side, piece in enumerate(
            (i * (n_classes - 1) + j - 1, j * (n_classes - 1) + i)
        ):
            begin, end = starts[piece], starts[piece + 1]
            add_products(values, places, columns, begin, end, weights, terms[side])
        bound = bounds[i * (2 * n_classes - i - 1) // 2 + j - i - 1]
        sign = 1.0 if winner == i else -1.0
        for u, row in enumerate(mine):
            # The last row is repeated where they are fewer: it is entered once.
            if tried[row, other] or (u > 0 and row == mine[u - 1]):
                continue
            sizes[0], sizes[1] = peaks[i, places[u]], peaks[j, places[u]]
            sizes[2] = errors[places[u]]
            few, most = wins[0, row], wins[1, row]
            compare_lanes(
                terms[0, u * LANES :], terms[1, u * LANES :], bound, sizes, sign, other,
                few[winner], most[winner], few[other], most[other],
                rivals[u], lowest[u],
            )  # fmt: skip
    return rivals


@compiled(error_model="numpy")
def next_guess(wins: Any, codes: Any, tried: Any, rivals: Any, winner: Any) -> Any:
    """Write a row's winners as far as they are known; return who is next, -1 for none.

    The first model without a winner says who is next.
    """
    following = -1
    for m in range(len(codes)):
        if codes[m] >= 0:
            continue
        if wins[0, winner, m] == len(tried) - 1:
            codes[m] = winner
        else:
            codes[m] = known_winner(wins, m)
        if codes[m] < 0 and following < 0:
            following = most_likely(wins, tried, rivals[m], m)
    return following


@compiled(error_model="numpy", inline="always")
def most_likely(wins: Any, tried: Any, rival: Any, m: Any) -> Any:
    """Return the rival, or else the class not yet tried that may win most pairs."""
    if rival >= 0 and not tried[rival]:
        return rival
    best = -1
    for i in range(len(tried)):
        if not tried[i] and (best < 0 or wins[1, i, m] > wins[1, best, m]):
            best = i
    return best


@compiled(error_model="numpy", inline="always")
def known_winner(wins: Any, m: Any) -> Any:
    """Return the class that wins whatever the pairs that are not known, -1 for none."""
    best = 0
    for i in range(1, wins.shape[1]):
        best = i if wins[0, i, m] > wins[0, best, m] else best
    for i in range(wins.shape[1]):
        # The first class with the most votes wins.
        if i != best and wins[0, best, m] < wins[1, i, m] + (i < best):
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
