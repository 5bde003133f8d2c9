r"""Two-class support vector machines for ascending C, solved by SMO.

Sequential minimal optimisation moves two dual variables at a time. The dual problem,
with :math:`\beta_t = y_t \alpha_t`, is to maximise
:math:`y^\top \beta - \beta^\top K \beta / 2` under :math:`\sum_t \beta_t = 0` and
:math:`0 \le y_t \beta_t \le C w_t`. Every C starts from zero, as in libsvm. Until a
variable meets its C the steps are those of every larger C too, so they are taken once:
each C goes on from where the C before was first stopped by its bound.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from threading import Thread
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.solvers.smo_rows import (
    SHRINK_FROM,
    Gram,
    GramRows,
    RowCache,
    Source,
    State,
    reach,
)

SOLVED: Final = 0
STOPPED_EARLY: Final = 1
IN_PLACE: Final = 1.5
"""A machine reads its kernel rows among those of all rows, rather than copy them, where
its classes have at most so many times the rows that it is trained on."""
LEAST_LIMIT: Final = 10_000_000
"""Steps allowed by default, or 100 a row if that is more: the limits of libsvm."""


def is_available() -> bool:
    """Return whether the compiled solver can be imported here."""
    return find_spec("numba") is not None


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
        from dsel.solvers import compiled_votes

        rows, starts, guess = np.arange(2), np.arange(3), np.zeros(2, np.int64)
        values, peaks = np.ones((2, 2), np.float32), np.ones((2, 2))
        compiled_votes.flush_to_peaks(values, starts, np.float32(0.0), peaks, False)
        columns, weights, begins, *_ = compiled_votes.lay_out(
            np.ones((2, 1, 1)), starts, rows, 0
        )
        layout = (columns, weights, begins, np.ones((1, 5 * weights.shape[1])))
        codes = np.full((2, 1), -1)
        compiled_votes.settle(values, rows, layout, peaks, np.ones(2), guess, codes)

    def compile_all() -> None:
        solve_two_rows()
        vote_on_two_rows()

    thread = Thread(target=compile_all, name="dsel-compiling")
    if is_available():
        thread.start()
    return thread


def step_limit(max_iter: int, n_rows: int) -> int:
    """Return the steps that ``SVC(max_iter=max_iter)`` may take on `n_rows` rows."""
    return max(LEAST_LIMIT, 100 * n_rows) if max_iter == -1 else max_iter


@dataclass(frozen=True)
class Solution:
    """What was found, also where the solver stopped early: failure is data."""

    value: Any
    """What was solved for; see the solver."""
    status: int
    """``SOLVED`` or ``STOPPED_EARLY``."""
    stats: dict[str, Any]
    """Such as iterations and the gap that was left; see the solver."""


@dataclass(frozen=True)
class Path:
    """Two-class machines of one training set, one per C in ascending order."""

    beta: NDArray[np.float64]
    """Signed dual variables, (n_C, n_rows); positive rows first class."""
    margins: NDArray[np.float64]
    """Decisions on the rows themselves, to the float32 accuracy of the kernel."""
    offset: NDArray[np.float64]
    """Constant of each decision, (n_C,)."""
    steps: NDArray[np.int64]
    """Steps from zero to each C's solution, (n_C,); C share the first of them."""
    gap: NDArray[np.float64]
    """Violation of the optimality conditions that was left, (n_C,)."""


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
        from dsel.solvers import compiled_paths

        found = np.stack((path.offset, path.steps, path.gap))
        compiled_paths.enter_pair(
            pair, path.beta, path.margins, found, rows, n_before, largest, self.arrays
        )


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
    from dsel.solvers import compiled_paths

    used = np.concatenate(([0], np.cumsum(weights > 0)))[starts]
    present = np.flatnonzero(np.diff(used))
    found = PairPaths.empty(np.append(used[present], used[-1]), len(C_values))
    places = np.array(list(combinations(range(len(present)), 2)), np.int64)
    i, j = present[places.reshape(-1, 2)].T
    spans = np.stack((starts[i], starts[i + 1], starts[j], starts[j + 1]), axis=1)
    n_used, n_rows = (each[i + 1] - each[i] + each[j + 1] - each[j]
                      for each in (used, starts))  # fmt: skip
    in_place = n_rows <= IN_PLACE * n_used
    pairs = np.column_stack((np.arange(len(i)), places.reshape(-1, 2), in_place))
    small = n_used < SHRINK_FROM
    stops = (float(tol), step_limit(max_iter, SHRINK_FROM))
    compiled_paths.solve_pairs(
        gram.flat, spans[small], diagonal, weights, C_values, stops,
        largest, pairs[small], found.arrays,
    )  # fmt: skip
    for q in np.flatnonzero(~small).tolist():
        rows, n_before = compiled_paths.lay_out(spans[q], weights, bool(in_place[q]))
        own, weight, y = compiled_paths.take(diagonal, weights, rows, n_before)
        kernel = None
        if in_place[q]:
            kernel = compiled_paths.rows_in_place(
                gram.flat, len(weights), spans[q], rows
            )
        source = GramRows(gram.values, rows, kernel)
        limit = step_limit(max_iter, int(n_used[q]))
        path = _solve(source, own, y, weight, C_values, tol, limit).value
        numbers = np.where(weight > 0, np.cumsum(weights > 0)[rows] - 1, -1)
        found.enter(tuple(pairs[q, :3].tolist()), path, numbers, n_before, largest)
    return found


def solve_path(
    gram: NDArray[np.float32],
    members: NDArray[np.int64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    C_values: NDArray[np.float64],
    tol: float,
    max_iter: int,
    diagonal: NDArray[np.float64] | None = None,
) -> Solution:
    """Solve for ascending C on some rows of a Gram matrix that is there in full.

    Parameters
    ----------
    gram
        Kernel of all rows, (n_all, n_all). In float32, as libsvm keeps it.
    members
        The rows of this machine, (n_rows,).
    y
        1 for the first class and -1 for the second, (n_rows,).
    weights
        Factor of C for each row, positive, (n_rows,).
    C_values
        Ascending.
    tol
        The gap between the largest residual of a row that may rise and the smallest
        of one that may fall at which to stop; absolute.
    max_iter
        Steps for each C, or -1 for the limit of libsvm.
    diagonal
        Kernel of all rows with themselves, (n_all,), without rounding as libsvm keeps
        it; None for that of the Gram matrix.

    Returns
    -------
    Solution
        Its value is a `Path`. The status is ``STOPPED_EARLY`` where one C or more
        took all its steps; the path says which by its gap, and raising `max_iter`
        or scaling the features helps.
    """
    from dsel.solvers import compiled_paths

    limit = step_limit(max_iter, len(members))
    whole = np.diagonal(gram) if diagonal is None else diagonal
    own = whole[members].astype(np.float64)
    if len(members) >= SHRINK_FROM:
        source = GramRows(gram, members)
        return _solve(source, own, y, weights, C_values, tol, limit)
    kernel = compiled_paths.rows_in(
        compiled_paths.room_for(len(members)), gram, members
    )
    betas, margins, found = compiled_paths.solve_path(
        kernel, own, y, weights, C_values, (float(tol), limit)
    )
    return _solution(betas, margins, found, tol)


def _solution(
    betas: NDArray[np.float64],
    margins: NDArray[np.float64],
    found: NDArray[np.float64],
    tol: float,
) -> Solution:
    steps = found[1].astype(np.int64)
    path = Path(betas, margins, found[0], steps, found[2])
    status = SOLVED if (path.gap < tol).all() else STOPPED_EARLY
    return Solution(path, status, {"steps": int(steps.sum())})


def solve_path_by_rows(
    cache: RowCache,
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    C_values: NDArray[np.float64],
    tol: float,
    max_iter: int,
) -> Solution:
    """Solve for ascending C where the Gram matrix does not fit into memory.

    As `solve_path`, but all rows of the pair are there for every training set: rows
    that a training set leaves out have weight 0 and keep a dual variable of 0.
    """
    limit = step_limit(max_iter, int(np.count_nonzero(weights)))
    return _solve(cache, cache.diagonal, y, weights, C_values, tol, limit)


def _solve(
    source: Source,
    diagonal: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    C_values: NDArray[np.float64],
    tol: float,
    limit: int,
) -> Solution:
    from dsel.solvers import compiled_paths

    betas = np.empty((len(C_values), len(y)))
    margins, found = np.empty_like(betas), np.empty((3, len(C_values)))
    state = State(len(y))
    state.diagonal[:], state.residual[:] = diagonal, y
    shared, n_shared = (state.residual.copy(), state.beta.copy()), 0
    for c, C in enumerate(C_values):
        state.residual[:], state.beta[:] = shared
        state.lower[:] = np.where(y > 0, 0.0, -C * weights)
        state.upper[:] = np.where(y > 0, C * weights, 0.0)
        steps, gap = source.descend(state, tol, limit - n_shared, uncut=True)
        n_shared, n_own = n_shared + steps, 0
        shared = state.residual.copy(), state.beta.copy()
        if gap >= tol and n_shared < limit:
            n_own, gap = reach(source, state, tol, limit - n_shared)
        constant = compiled_paths.offset(*state.views[1:])
        betas[c], margins[c] = state.beta, y - state.residual + constant
        found[:, c] = constant, n_shared + n_own, gap
    return _solution(betas, margins, found, tol)
