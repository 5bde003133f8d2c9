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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.families.svm.smo_rows import GramRows, RowCache, Source, State, reach

SOLVED: Final = 0
STOPPED_EARLY: Final = 1
LEAST_LIMIT: Final = 10_000_000
"""Steps allowed by default, or 100 a row if that is more: the limits of libsvm."""


def is_available() -> bool:
    """Return whether the compiled solver can be imported here."""
    return find_spec("numba") is not None


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
    whole = np.diagonal(gram) if diagonal is None else diagonal
    limit = step_limit(max_iter, len(members))
    source = GramRows(gram, members)
    return solve_on(source, whole[members], y, weights, C_values, tol, limit)


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
    return solve_on(cache, cache.diagonal, y, weights, C_values, tol, limit)


def solve_on(
    source: Source,
    diagonal: NDArray[Any],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    C_values: NDArray[np.float64],
    tol: float,
    limit: int,
) -> Solution:
    """Solve for ascending C on kernel rows of any source, as `solve_path`."""
    from dsel.families.svm import compiled_paths

    betas = np.empty((len(C_values), len(y)))
    margins, found = np.empty_like(betas), np.empty((3, len(C_values)))
    state = State(len(y))
    state.diagonal[:], state.residual[:] = diagonal, y
    shared, n_shared = (state.residual.copy(), state.beta.copy()), 0
    for c, C in enumerate(C_values):
        state.residual[:], state.beta[:] = shared
        state.set_bounds(y, C * weights)
        steps, gap = source.descend(state, tol, limit - n_shared, uncut=True)
        n_shared, n_own = n_shared + steps, 0
        shared = state.residual.copy(), state.beta.copy()
        is_cut = 0.0 < gap >= tol and n_shared < limit
        if is_cut:
            n_own, gap = reach(source, state, tol, limit - n_shared)
        constant = compiled_paths.offset(*state.views[1:])
        some = slice(c, c + 1 if is_cut else None)  # else it is that of all larger C
        betas[some], margins[some] = state.beta, y - state.residual + constant
        found[:, some] = np.array([[constant], [n_shared + n_own], [gap]])
        if not is_cut:
            break
    offsets, total, gaps = found
    path = Path(betas, margins, offsets, total.astype(np.int64), gaps)
    status = SOLVED if (gaps < tol).all() else STOPPED_EARLY
    return Solution(path, status, {"steps": int(total.sum())})


def solve_from(
    gram: NDArray[np.float32],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
    *,
    C: float,
    tol: float,
    max_iter: int,
) -> NDArray[np.float64]:
    """Solve for one C from a feasible start; return decisions on all rows.

    Rows of weight 0 are left out; their dual variable must be 0.
    """
    from dsel.families.svm import compiled_paths

    state, source = State(len(y)), GramRows(gram, np.arange(len(y)))
    state.diagonal[:], state.residual[:] = np.diagonal(gram), y
    state.beta[:] = start
    state.set_bounds(y, C * weights)
    source.catch_up(state, start)
    source.descend(state, tol, step_limit(max_iter, len(y)))
    near = 1e-9 * (state.upper - state.lower)  # what rounding keeps off is not free
    is_high, is_low = state.upper - state.beta <= near, state.beta - state.lower <= near
    state.beta[is_low] = state.lower[is_low]
    state.beta[is_high] = state.upper[is_high]
    constant = compiled_paths.offset(*state.views[1:])
    return np.asarray(y - state.residual + constant)
