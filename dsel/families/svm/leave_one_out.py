"""Leave-one-out decisions of a kernel SVM from its full solution.

A row that is no support vector changes nothing by leaving, so its own decision stays.
A support vector's dual variable is handed on to the rows most similar to it, and the
solver goes on from there: some steps instead of a fit.
"""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.families.svm.smo import Path, solve_from, solve_path

Floats = NDArray[np.float64]


def leave_one_out_codes(
    gram: NDArray[np.float32],
    codes: NDArray[np.int64],
    *,
    C: float,
    tol: float,
    max_iter: int = -1,
) -> NDArray[np.int64]:
    """Return for every row the class that the machines of all other rows give it.

    Parameters
    ----------
    gram
        Kernel of all rows, (n_rows, n_rows), in float32.
    codes
        Class codes, (n_rows,); at least two classes.
    C, tol, max_iter
        As of ``SVC``.

    Returns
    -------
    ndarray
        Class codes, (n_rows,). Pairs of classes vote; the lowest code wins ties. A
        class that leaves with its only row gets no votes.
    """
    present = np.unique(codes)
    votes = np.zeros((len(codes), len(present)), dtype=np.int64)
    left = np.bincount(np.searchsorted(present, codes), minlength=len(present))
    for i, j in combinations(range(len(present)), 2):
        decisions, ends = _pair_decisions(
            gram, codes, (int(present[i]), int(present[j])), (C, tol, max_iter)
        )
        # A class that has left with its only row stands in no pair.
        gone = ends & (left[np.searchsorted(present, codes)] == 1)
        first = decisions > 0
        votes[first & ~gone, i] += 1
        votes[~first & ~gone, j] += 1
    for row in np.flatnonzero(left[np.searchsorted(present, codes)] == 1):
        votes[row, np.searchsorted(present, codes[row])] = -1
    return np.asarray(present[np.argmax(votes, axis=1)])


def _pair_decisions(
    gram: NDArray[np.float32],
    codes: NDArray[np.int64],
    pair: tuple[int, int],
    settings: tuple[float, float, int],
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return one machine's decision on each row, and which rows it was trained on."""
    C, tol, max_iter = settings
    members = np.flatnonzero(np.isin(codes, pair))
    y = np.where(codes[members] == pair[0], 1.0, -1.0)
    solution = solve_path(
        gram, members, y, np.ones(len(y)),
        C_values=np.array([C]), tol=tol, max_iter=max_iter,
    )  # fmt: skip
    path: Path = solution.value
    beta = path.beta[0]
    decisions = gram[:, members].astype(np.float64) @ beta + path.offset[0]
    decisions[members] = path.margins[0]
    inner = np.ascontiguousarray(gram[np.ix_(members, members)])
    # Without a free vector the constant is the middle of an interval whose ends may
    # be any rows: then every row is solved without anew, most of them in no step.
    has_free = bool(np.any((beta != 0) & (np.abs(beta) < C)))
    for place in np.flatnonzero(beta) if has_free else range(len(beta)):
        same_class = y == y[place]
        if same_class.sum() == 1:
            decisions[members[place]] = -np.inf * y[place]
            continue
        decisions[members[place]] = _without(inner, y, beta, int(place), settings)
    return decisions, np.isin(codes, pair)


def _without(
    gram: NDArray[np.float32],
    y: Floats,
    beta: Floats,
    place: int,
    settings: tuple[float, float, int],
) -> float:
    """Return the decision at a row of the machine without it."""
    C, tol, max_iter = settings
    weights = np.ones(len(y))
    weights[place] = 0.0
    lower, upper = np.where(y > 0, 0.0, -C) * weights, np.where(y > 0, C, 0.0) * weights
    start = _handed_on(gram, beta, lower, upper, place)
    decisions = solve_from(gram, y, weights, start, C=C, tol=tol, max_iter=max_iter)
    return float(decisions[place])


def _handed_on(
    gram: NDArray[np.float32], beta: Floats, lower: Floats, upper: Floats, place: int
) -> Floats:
    """Return a feasible start without one row: its share goes to the most similar."""
    start = beta.copy()
    share, start[place] = beta[place], 0.0
    room = upper - start if share > 0 else start - lower
    order = np.argsort(-gram[place], kind="stable")
    before = np.concatenate(([0.0], np.cumsum(room[order])[:-1]))
    taken: Any = np.clip(abs(share) - before, 0.0, room[order])
    start[order] += np.sign(share) * taken
    # A variable that rounding keeps off its bound would count as free, and decide
    # the constant alone.
    near = 1e-9 * (upper - lower)
    start = np.where(upper - start <= near, upper, start)
    return np.where(start - lower <= near, lower, start)
