"""Two-class machines of all pairs of classes, solved in one compiled call.

What the call reads and writes is laid out here: it takes as long to compile as it has
lines, and a first search waits for that.
"""

from dataclasses import dataclass
from itertools import combinations
from threading import Thread
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel.families.svm.smo import Path, is_available, solve_on, step_limit
from dsel.families.svm.smo_rows import (
    SHRINK_FROM,
    Gram,
    GramRows,
    aligned_zeros,
    padded,
)

IN_PLACE: Final = 1.5
"""A machine reads its kernel rows among those of all rows, rather than copy them, where
its classes have at most so many times the rows that it is trained on."""


def compile_ahead() -> Thread:
    """Begin to compile what a first search of SVMs will call, in another thread.

    On a new machine that takes longer than to start workers, which can go on meanwhile
    and then load what they need.
    """

    def solve_two_rows() -> None:
        solve_pairs(
            Gram.empty(2), np.array([0, 1, 2]), np.ones(2), C_values=np.ones(1),
            tol=1e-3, max_iter=-1, diagonal=np.ones(2), largest=1.0,
        )  # fmt: skip

    def vote_on_two_rows() -> None:
        from dsel.families.svm import compiled_votes
        from dsel.families.svm.compiled_lanes import LANES

        values, starts = np.ones((2, 2), np.float32), np.arange(3)
        peaks, codes = np.ones((2, 2)), np.full((1, 2), -1)
        none = np.float32(0.0)
        compiled_votes.exponentials_less_one(np.ones((2, 2)), 1.0, values.copy())
        compiled_votes.flush_to_peaks(values, starts, none, peaks, False, none)
        into = (
            np.arange(2),
            np.zeros((2, LANES), np.float32),
            starts.copy(),
            np.zeros((3, 2, 1, 1)),
        )
        compiled_votes.lay_out(np.ones((2, 1, 1)), starts, np.arange(2), 0, into)
        layout = (*into[:3], np.ones((1, 5 * LANES)))
        compiled_votes.settle(
            values,
            np.arange(2),
            layout,
            peaks,
            np.ones(2),
            np.arange(2),
            np.arange(2),
            codes,
            compiled_votes.room_for(2, 2),
        )

    def compile_all() -> None:
        solve_two_rows()
        vote_on_two_rows()

    thread = Thread(target=compile_all, name="dsel-compiling")
    if is_available():
        thread.start()
    return thread


@dataclass(frozen=True)
class PairPaths:
    """The machines of all pairs of classes of one training set; rows class by class."""

    starts: NDArray[np.int64]
    """Where the rows of each class begin, and the end, (n_classes + 1,)."""
    coefs: NDArray[np.float64]
    """Signed dual variables in libsvm's layout, (n_rows, n_classes - 1, n_C)."""
    offsets: NDArray[np.float64]
    """Constant of each decision, (n_pairs, n_C)."""
    steps: NDArray[np.int64]
    """Steps from zero to each solution, (n_pairs, n_C)."""
    gaps: NDArray[np.float64]
    """Violation of the optimality conditions that was left, (n_pairs, n_C)."""
    wins: NDArray[np.int64]
    """Pairs that each row's own class wins there beyond doubt, (n_C, n_rows)."""
    same: NDArray[np.bool_]
    """Whether all machines equal those of the C before, (n_C,)."""

    @classmethod
    def empty(cls, starts: NDArray[np.int64], n_C: int) -> "PairPaths":
        """Return room for all pairs."""
        n_rows, n_others = int(starts[-1]), max(len(starts) - 2, 0)
        n_pairs = (n_others + 1) * n_others // 2
        return cls(
            starts,
            np.zeros((n_rows, n_others, n_C)),
            np.zeros((n_pairs, n_C)),
            np.zeros((n_pairs, n_C), dtype=np.int64),
            np.zeros((n_pairs, n_C)),
            np.zeros((n_C, n_rows), dtype=np.int64),
            np.arange(n_C) > 0,
        )

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What compiled code writes to."""
        return (
            self.coefs, self.offsets, self.steps, self.gaps, self.wins, self.same
        )  # fmt: skip

    def enter(
        self,
        pair: tuple[int, int, int],
        path: Path,
        rows: NDArray[np.int64],
        n_before: int,
        largest: float,
    ) -> None:
        """Write the path of one pair: its number and the places of its two classes.

        `rows` says which of all rows each of the path's is, -1 for none; the first
        `n_before` are not of the second class. `largest` bounds the absolute kernel
        values.
        """
        from dsel.families.svm.compiled_paths import MARGIN_UNIT

        p, i, j = pair
        self.offsets[p], self.steps[p], self.gaps[p] = path.offset, path.steps, path.gap
        sizes = np.abs(path.beta).sum(axis=1) * largest + np.abs(path.offset) + 1.0
        kept = np.flatnonzero(rows >= 0)
        numbers, is_first = rows[kept], kept < n_before
        beta, margins = path.beta[:, kept], path.margins[:, kept]
        self.coefs[numbers, np.where(is_first, j - 1, i)] = beta.T
        signed = np.where(is_first, margins, -margins)
        self.wins[:, numbers] += signed > MARGIN_UNIT * sizes[:, np.newaxis]
        is_equal = path.offset[1:] == path.offset[:-1]
        self.same[1:] &= is_equal & (beta[1:] == beta[:-1]).all(axis=1)


class PairLine(NamedTuple):
    """Which rows a machine reads: n of them, then blocks are filled.

    In place these are all rows of both classes, each from the beginning of a block;
    else those of positive weight. `first` and `second` are where both classes begin
    among the rows that are listed: all, then those of positive weight.
    """

    in_place: Any
    first: Any
    n_first: Any
    second: Any
    n_before: Any
    """Rows before the second class."""
    n: Any


def solve_pairs(
    gram: Gram,
    starts: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    C_values: NDArray[np.float64],
    tol: float,
    max_iter: int,
    diagonal: NDArray[np.float64],
    largest: float,
) -> PairPaths:
    """Solve for ascending C, for every two classes, on rows of a Gram matrix.

    Parameters
    ----------
    gram
        Kernel of all rows, class by class.
    starts
        Where each class begins among them, and the end, (n_classes + 1,).
    weights
        Factor of C for each of them, 0 for rows that are left out. A class without any
        row left has no machines.
    C_values, tol, max_iter, diagonal
        As `solve_path` takes them.
    largest
        Bound of the absolute kernel values.
    """
    from dsel.families.svm import compiled_paths

    used = np.concatenate(([0], np.cumsum(weights > 0)))
    ends = used[starts]
    present = np.flatnonzero(np.diff(ends))
    found = PairPaths.empty(np.append(ends[present], ends[-1]), len(C_values))
    places = np.array(list(combinations(range(len(present)), 2)), np.int64)
    i, j = present[places.reshape(-1, 2)].T
    n_rows, n_used = np.diff(starts), np.diff(ends)
    in_place = n_rows[i] + n_rows[j] <= IN_PLACE * (n_used[i] + n_used[j])
    firsts, seconds = (
        np.where(in_place, (starts[c], n_rows[c]), (len(weights) + ends[c], n_used[c]))
        for c in (i, j)
    )
    n_before = np.where(in_place, padded(firsts[1]), firsts[1])
    lines = PairLine(
        in_place, firsts[0], firsts[1], seconds[0], n_before, n_before + seconds[1]
    )
    pairs = np.column_stack((np.arange(len(i)), places.reshape(-1, 2), *lines))
    is_used = np.append(weights > 0, False)
    listed = (
        np.concatenate((np.arange(len(weights)), np.flatnonzero(is_used), [-1])),
        np.append(diagonal, 0.0),
        np.append(weights, 0.0),
        np.where(is_used, used, -1),
    )
    small = n_used[i] + n_used[j] < SHRINK_FROM
    stops = (float(tol), step_limit(max_iter, SHRINK_FROM), float(largest))
    sizes, copied = lines.n[small], lines.n[small & ~in_place].max(initial=0)
    widest = int(padded(sizes.max(initial=0)))
    room = (
        aligned_zeros(10, widest),
        np.zeros((5, max(len(weights), widest)), dtype=np.int64),
        np.zeros(copied * padded(copied), dtype=np.float32),
    )
    compiled_paths.solve_pairs(
        gram.flat, listed, C_values, stops, pairs[small], room, found.arrays
    )
    for p in np.flatnonzero(~small).tolist():
        line = PairLine(*pairs[p, 3:].tolist())
        limit = step_limit(max_iter, int(n_used[i[p]] + n_used[j[p]]))
        rows = _rows_of(line, listed[0])
        source = GramRows(gram.values, rows, _in_place(gram, line, rows))
        y = np.where(np.arange(line.n) < line.n_before, 1.0, -1.0)
        own, weight, numbers = (each[rows] for each in listed[1:])
        path = solve_on(source, own, y, weight, C_values, tol, limit).value
        pair = tuple(pairs[p, :3].tolist())
        found.enter(pair, path, numbers, line.n_before, largest)
    return found


def _rows_of(line: PairLine, listing: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of a machine's rows, -1 between its classes."""
    rows = np.full(line.n, -1)
    rows[: line.n_first] = listing[line.first : line.first + line.n_first]
    rows[line.n_before :] = listing[line.second :][: line.n - line.n_before]
    return rows


def _in_place(gram: Gram, line: PairLine, rows: NDArray[np.int64]) -> Any:
    """Return a machine's kernel rows as they stand in the matrix, None for copies."""
    from dsel.families.svm.compiled_lanes import WIDTH
    from dsel.families.svm.compiled_smo import KernelRows

    if not line.in_place:
        return None
    n_rows = len(gram.values)
    used = np.zeros(n_rows, dtype=np.int64)
    return KernelRows(gram.flat, n_rows, rows[::WIDTH].copy(), rows, used)
