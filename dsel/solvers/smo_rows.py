"""Where the solver's kernel rows come from: a Gram matrix, or rows made when missed.

Both sources take the same steps, bit for bit: what a fit gives must not depend on the
memory of the machine. For the same reason leaving rows out of a descent means the same
in both: their residuals stay as they were, and are brought up to date afterwards.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHRINK_FROM: Final = 512
"""Rows from which settled ones are left out for a while."""
ACTIVE_SHARE: Final = 0.7
"""Share of rows up to which leaving out the others is worth a copy."""


def in_blocks(n_arrays: int, n_rows: int, dtype: type = np.float64) -> NDArray[Any]:
    """Return zeros for a value per row, in the compiled solver's blocks of rows."""
    from dsel.solvers.compiled_smo import WIDTH

    return np.zeros((n_arrays, -(-n_rows // WIDTH), WIDTH), dtype=dtype)


class State:
    """The variables of one machine: views into one block array."""

    def __init__(self, n_rows: int) -> None:
        self.blocks = in_blocks(5, n_rows)
        flat = self.blocks.reshape(5, -1)[:, :n_rows]
        self.diagonal, self.residual, self.beta, self.lower, self.upper = flat
        self.work = in_blocks(3, n_rows)

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
    """Rows of a Gram matrix that is there in full, copied when first needed."""

    def __init__(self, gram: NDArray[np.float32], members: Integers) -> None:
        self.gram, self.members = gram, members
        self.rows = in_blocks(len(members), len(members), np.float32)
        self.slots = np.full(len(members), -1)
        self.used = np.zeros(len(members), dtype=np.int64)

    def descend(
        self, state: State, tol: float, limit: int, *, uncut: bool = False
    ) -> tuple[int, float]:
        """Return steps and gap; see `Source.descend`."""
        from dsel.solvers import compiled_smo

        _, _, steps, gap = compiled_smo.descend(
            self.gram, self.members, self.rows, self.slots, self.used, *state.blocks,
            state.work, tol, limit, 0, uncut,
        )  # fmt: skip
        return steps, gap

    def descend_among(
        self, active: Integers, state: State, tol: float, limit: int
    ) -> int:
        """Solve for the active rows alone; see `Source.descend_among`."""
        from dsel.solvers import compiled_smo

        part = state.of(active)
        source = GramRows(self.gram, self.members[active])
        steps, _ = reach(source, part, tol, limit)
        change = np.zeros(len(self.members))
        change[active] = part.beta - state.beta[active]
        compiled_smo.catch_up(
            self.gram, self.members, self.rows, self.slots, state.blocks[1], change
        )
        state.beta[active], state.residual[active] = part.beta, part.residual
        return steps


class RowCache:
    """Kernel rows of one pair of classes: the least recently read one makes room.

    It serves every C and every training set of the pair. Rows that a training set
    leaves out have bounds of 0, so that their variables stay 0.
    """

    def __init__(
        self, make_row: Callable[[int], NDArray[Any]], diagonal: Floats, *, nbytes: int
    ) -> None:
        n_rows = len(diagonal)
        row_nbytes = in_blocks(1, n_rows, np.float32).nbytes
        n_slots = min(n_rows, max(2, nbytes // row_nbytes))
        self.make_row = make_row
        self.diagonal = diagonal
        self.rows = in_blocks(n_slots, n_rows, np.float32)
        self.slots = np.full(n_rows, -1)
        self.used = np.full(n_slots, -1)
        self.owners = np.full(n_slots, -1)
        self.clock = 0
        self.n_made = 0

    def descend(
        self, state: State, tol: float, limit: int, *, uncut: bool = False
    ) -> tuple[int, float]:
        """Return steps and gap; see `Source.descend`."""
        from dsel.solvers import compiled_smo

        taken = 0
        no_gram, no_members = np.empty((0, 0), np.float32), np.empty(0, np.int64)
        while True:
            status, row, steps, gap = compiled_smo.descend(
                no_gram, no_members, self.rows, self.slots, self.used, *state.blocks,
                state.work, tol, limit - taken, self.clock, uncut,
            )  # fmt: skip
            taken += steps
            self.clock += steps + 1
            if status != compiled_smo.ROW_MISSING:
                return taken, gap
            self._fetch(row)

    def descend_among(
        self, active: Integers, state: State, tol: float, limit: int
    ) -> int:
        """Hold the other rows at what they are; see `Source.descend_among`."""
        from dsel.solvers import compiled_smo

        part = State(len(state.beta))
        for mine, whole in zip(part.views, state.views, strict=True):
            mine[:] = whole
        held = np.ones(len(state.beta), dtype=np.bool_)
        held[active] = False
        part.lower[held] = part.upper[held] = part.beta[held]
        steps, _ = reach(self, part, tol, limit)
        change = part.beta - state.beta
        for row in np.flatnonzero(change):
            kernel_row = self._row(int(row))
            compiled_smo.subtract_row(state.blocks[1], change[row], kernel_row)
        state.beta[active] = part.beta[active]
        state.residual[active] = part.residual[active]
        return steps

    def _row(self, row: int) -> NDArray[np.float32]:
        """Return a kernel row in blocks."""
        if self.slots[row] < 0:
            self._fetch(row)
        self.used[self.slots[row]] = self.clock
        kernel_row: NDArray[np.float32] = self.rows[self.slots[row]]
        return kernel_row

    def _fetch(self, row: int) -> None:
        """Compute a kernel row and give it the slot that was read longest ago."""
        slot = int(np.argmin(self.used))
        if self.owners[slot] >= 0:
            self.slots[self.owners[slot]] = -1
        self.rows[slot].reshape(-1)[: len(self.slots)] = self.make_row(row)
        self.slots[row], self.owners[slot] = slot, row
        self.used[slot] = self.clock
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
        if gap < tol or taken >= limit:
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
