"""Where the solver's kernel rows come from: a Gram matrix, or rows made when missed.

Both sources take the same steps, bit for bit: what a fit gives must not depend on the
memory of the machine. For the same reason leaving rows out of a descent means the same
in both: their residuals stay as they were, and are brought up to date afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHRINK_FROM: Final = 512
"""Rows from which settled ones are left out for a while."""
ACTIVE_SHARE: Final = 0.7
"""Share of rows up to which leaving out the others is worth a copy."""


@dataclass(frozen=True)
class Gram:
    """Kernel of all rows with all rows, in float32 as libsvm keeps it."""

    flat: NDArray[np.float32]
    """Its rows one after another, and a block of zeros: so far may solvers read."""

    @classmethod
    def empty(cls, n_rows: int) -> "Gram":
        """Return room for a matrix."""
        from dsel.families.svm.compiled_lanes import WIDTH

        return cls(np.zeros(n_rows**2 + WIDTH, np.float32))

    @property
    def values(self) -> NDArray[np.float32]:
        """The matrix, (n_rows, n_rows)."""
        from dsel.families.svm.compiled_lanes import WIDTH

        n_rows = isqrt(len(self.flat) - WIDTH)
        return self.flat[: n_rows**2].reshape(n_rows, n_rows)


def padded(n_rows: Any) -> Any:
    """Return numbers of rows in whole blocks."""
    from dsel.families.svm.compiled_lanes import WIDTH

    return -(-n_rows // WIDTH) * WIDTH


def aligned_zeros(n_arrays: int, size: int) -> Floats:
    """Return zeros, (n_arrays, size), that begin where a line of the cache begins."""
    flat = np.zeros(n_arrays * size + 8)
    begin = (-flat.ctypes.data % 64) // 8
    return flat[begin : begin + n_arrays * size].reshape(n_arrays, size)


class State:
    """The variables of one machine: views into one array."""

    def __init__(self, n_rows: int) -> None:
        from dsel.families.svm.compiled_smo import Variables

        self.whole = Variables(*aligned_zeros(7, padded(n_rows)))
        self.diagonal, self.residual, self.beta, self.lower, self.upper = (
            each[:n_rows] for each in self.whole[:5]
        )

    def set_bounds(self, y: Floats, limits: Floats) -> None:
        """Let y beta be between 0 and a limit of each row."""
        self.lower[:] = np.where(y > 0, 0.0, -limits)
        self.upper[:] = np.where(y > 0, limits, 0.0)

    def of(self, rows: Integers) -> "State":
        """Return a copy of the variables of some rows."""
        part = State(len(rows))
        for mine, whole in zip(part.views, self.views, strict=True):
            mine[:] = whole[rows]
        return part

    @property
    def views(self) -> tuple[Floats, ...]:
        """All variables, a value per row each."""
        return (self.diagonal, self.residual, self.beta, self.lower, self.upper)


class Source(Protocol):
    """Kernel rows, and descents on them."""

    def descend(
        self, state: State, tol: float, limit: int, *, uncut: bool = False
    ) -> tuple[int, float]:
        """Return the steps taken, `limit` at most, and the gap left.

        With `uncut` it ends before the first step that C would stop.
        """

    def descend_among(
        self, active: Integers, state: State, tol: float, limit: int
    ) -> int:
        """Move only the active rows; return the steps taken."""


class GramRows:
    """Rows of a Gram matrix that is there in full.

    By default they are copied when first needed; `kernel` are rows that are there.
    """

    def __init__(
        self, gram: NDArray[np.float32], members: Integers, kernel: Any = None
    ) -> None:
        from dsel.families.svm.compiled_lanes import WIDTH
        from dsel.families.svm.compiled_smo import KernelRows

        self.gram, self.members = gram, members
        n_rows, stride = len(members), padded(len(members))
        self.kernel = kernel or KernelRows(
            np.zeros(n_rows * stride, np.float32),
            stride,
            np.arange(0, stride, WIDTH),
            np.full(n_rows, -1),
            np.zeros(n_rows, dtype=np.int64),
        )

    def descend(
        self, state: State, tol: float, limit: int, *, uncut: bool = False
    ) -> tuple[int, float]:
        """Return steps and gap; see `Source.descend`."""
        from dsel.families.svm import compiled_smo

        _, _, steps, gap = compiled_smo.descend(
            self.kernel, state.whole, tol, limit, 0, uncut, self.gram, self.members
        )
        return steps, gap

    def descend_among(
        self, active: Integers, state: State, tol: float, limit: int
    ) -> int:
        """Solve for the active rows alone; see `Source.descend_among`."""
        part = state.of(active)
        source = GramRows(self.gram, self.members[active])
        steps, _ = reach(source, part, tol, limit)
        change = np.zeros(len(self.members))
        change[active] = part.beta - state.beta[active]
        self.catch_up(state, change)
        state.beta[active], state.residual[active] = part.beta, part.residual
        return steps

    def catch_up(self, state: State, change: Floats) -> None:
        """Subtract what changes of variables, (n_rows,), do to all residuals."""
        from dsel.families.svm import compiled_smo

        compiled_smo.catch_up(
            self.kernel, self.gram, self.members, state.whole.residual, change
        )


class RowCache:
    """Kernel rows of one pair of classes: the least recently read one makes room.

    It serves every C and every training set of the pair. Rows that a training set
    leaves out have bounds of 0, so that their variables stay 0.
    """

    def __init__(
        self, make_row: Callable[[int], NDArray[Any]], diagonal: Floats, *, nbytes: int
    ) -> None:
        from dsel.families.svm.compiled_lanes import WIDTH
        from dsel.families.svm.compiled_smo import KernelRows

        n_rows, stride = len(diagonal), padded(len(diagonal))
        n_slots = min(n_rows, max(2, nbytes // (4 * stride)))
        self.make_row = make_row
        self.diagonal = diagonal
        self.kernel = KernelRows(
            np.zeros(n_slots * stride, np.float32),
            stride,
            np.arange(0, stride, WIDTH),
            np.full(n_rows, -1),
            np.full(n_slots, -1),
        )
        self.owners = np.full(n_slots, -1)
        self.clock = 0
        self.n_made = 0

    def descend(
        self, state: State, tol: float, limit: int, *, uncut: bool = False
    ) -> tuple[int, float]:
        """Return steps and gap; see `Source.descend`."""
        from dsel.families.svm import compiled_smo

        taken = 0
        while True:
            status, row, steps, gap = compiled_smo.descend(
                self.kernel, state.whole, tol, limit - taken, self.clock, uncut
            )
            taken += steps
            self.clock += steps + 1
            if status != compiled_smo.ROW_MISSING:
                return taken, gap
            self._fetch(row)

    def descend_among(
        self, active: Integers, state: State, tol: float, limit: int
    ) -> int:
        """Hold the other rows at what they are; see `Source.descend_among`."""
        from dsel.families.svm import compiled_smo

        part = State(len(state.beta))
        for mine, whole in zip(part.views, state.views, strict=True):
            mine[:] = whole
        held = np.ones(len(state.beta), dtype=np.bool_)
        held[active] = False
        part.lower[held] = part.upper[held] = part.beta[held]
        steps, _ = reach(self, part, tol, limit)
        change = part.beta - state.beta
        for row in np.flatnonzero(change):
            slot = self._slot(int(row))
            compiled_smo.subtract_row(
                state.whole.residual, change[row], self.kernel, slot
            )
        state.beta[active] = part.beta[active]
        state.residual[active] = part.residual[active]
        return steps

    def _slot(self, row: int) -> int:
        """Return where a kernel row is, computed if it was not there."""
        slots, used = self.kernel.slots, self.kernel.used
        if slots[row] < 0:
            self._fetch(row)
        used[slots[row]] = self.clock
        return int(slots[row])

    def _fetch(self, row: int) -> None:
        """Compute a kernel row and give it the slot that was read longest ago."""
        slots, used = self.kernel.slots, self.kernel.used
        slot = int(np.argmin(used))
        if self.owners[slot] >= 0:
            slots[self.owners[slot]] = -1
        mine = slice(slot * self.kernel.stride, (slot + 1) * self.kernel.stride)
        self.kernel.values[mine][: len(slots)] = self.make_row(row)
        slots[row], self.owners[slot] = slot, row
        used[slot] = self.clock
        self.n_made += 1


def reach(source: Source, state: State, tol: float, limit: int) -> tuple[int, float]:
    """Return the steps taken to the solution and the gap left.

    Where there are many rows, most soon stand at a bound for good: in turn all rows
    take part for a while, then those that may still move, until these are solved.
    """
    n_movable = int(np.count_nonzero(state.upper > state.lower))
    shrinks = n_movable >= SHRINK_FROM
    taken = 0
    while True:
        patience = min(limit - taken, n_movable // 2) if shrinks else limit - taken
        steps, gap = source.descend(state, tol, patience)
        taken += steps
        if not 0.0 < gap >= tol or taken >= limit:
            return taken, gap
        active = _active_rows(state)
        if len(active) <= ACTIVE_SHARE * n_movable:
            taken += source.descend_among(active, state, tol, limit - taken)


def _active_rows(state: State) -> NDArray[np.int64]:
    """Return the rows that form a violating pair, or are between their bounds."""
    rises, falls = state.beta < state.upper, state.beta > state.lower
    highest = state.residual[rises].max()
    lowest = state.residual[falls].min()
    settled_low = ~falls & (state.residual < lowest)
    settled_high = ~rises & (state.residual > highest)
    return np.flatnonzero((rises | falls) & ~settled_low & ~settled_high)
