"""Which class wins the vote of pairs, whatever the rounding.

Votes are counted in float32. What its rounding could change is counted anew in float64,
and what that rounding could change is summed in a fixed order: a code does not depend
on the precision, nor on the rows beside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.families.arrays import Floats, Integers
from dsel.families.svm.decisions import (
    EPS,
    LEAST,
    DecisionWeights,
    decisions_of,
    places_of_pairs,
)

MANY: Final = 64
"""Cells whose rows and models a matrix product counts sooner than one by one."""


@dataclass(frozen=True)
class KernelBlock:
    """One kernel between some rows and all rows of a table, class by class."""

    values: NDArray[Any]
    """Its values, (n_rows, n_columns), in float32 where votes are counted; less 1 if
    `less_one`."""
    peaks: Floats
    """Bound of each row's absolute `values` by class code, (n_classes, n_rows)."""
    errors: Floats
    """Bound of each row's errors beside the rounding to float32, (n_rows,)."""
    precise: Callable[[Integers], Floats]
    """Gives some rows' values in float64, by their places in the block."""
    exact: Callable[[int], Floats]
    """Gives a row's values, computed for it alone."""
    room: tuple[NDArray[Any], ...] = ()
    """What counting votes writes to; see `compiled_votes.room_for`."""
    less_one: bool = False
    """Whether `values` are the kernel's less 1."""


def flush_to_peaks(
    values: NDArray[Any],
    starts: Integers,
    *,
    squared: bool = False,
    less_one: bool = False,
) -> Floats:
    """Return each row's largest absolute value by class, (n_classes, n_rows).

    Values that are as good as 0, see `LEAST`, are set to it, in place; if `squared`,
    the kernel values are squared before.

    Parameters
    ----------
    values
        Kernel block, (n_rows, n_columns), class by class.
    starts
        Where each class begins among the columns, and the end, (n_classes + 1,).
    squared
        Whether to replace the kernel values by their squares.
    less_one
        Whether `values` are kernel values less 1.
    """
    from dsel.families.svm import compiled_votes

    peaks = np.zeros((len(starts) - 1, len(values)))
    number = values.dtype.type
    compiled_votes.flush_to_peaks(
        values, starts, number(LEAST[number]), peaks, squared, number(2 * less_one)
    )
    return peaks


def decide(
    block: KernelBlock,
    duals: DecisionWeights,
    places: Integers,
    models: Integers,
    guess: Integers,
) -> Integers:
    """Return the codes of some rows of a block, (n_models of `duals`, n_rows).

    Parameters
    ----------
    block
        Kernel values.
    duals
        Machines over its columns.
    places
        Rows of the block, ascending.
    models
        Models that are asked; other ones get any codes.
    guess
        Class code for each row of the block that is tried first; changes no code.
    """
    from dsel.families.svm import compiled_votes

    present, shape = duals.machines.present, (duals.n_models, len(places))
    if len(present) == 1:
        return np.broadcast_to(present, shape)
    peaks = block.peaks if len(present) == len(block.peaks) else block.peaks[present]
    # Values that the user computed may stand column by column.
    values = np.ascontiguousarray(block.values)
    codes = np.zeros(shape, dtype=np.int64)
    codes[models] = -1
    less_one = block.less_one
    for layout, some in duals.in_float32_less_one if less_one else duals.in_float32:
        compiled_votes.settle(
            values, places, layout, peaks, block.errors, guess, present, codes[some],
            block.room,
        )  # fmt: skip
    if codes.min(initial=0) < 0:
        at, rows = np.nonzero(codes < 0)
        codes[at, rows] = present[_count_again(block, duals, places[rows], at)]
    return codes


def _count_again(
    block: KernelBlock, duals: DecisionWeights, places: Integers, models: Integers
) -> Integers:
    """Return winners of cells by float64 and, in doubt, by exact sums, (n_cells,)."""
    from dsel.families.svm import compiled_votes

    rows, at = np.unique(places, return_inverse=True)
    peaks = block.peaks[duals.machines.present][:, rows]
    if block.less_one:  # of values that are not less 1
        peaks = np.ones_like(peaks)
    if len(models) < MANY:
        decisions, _ = _add_cells(duals, block.precise(rows), at, models)
    else:
        asked, which = np.unique(models, return_inverse=True)
        decisions = decisions_of(duals, block.precise(rows), asked)[:, at, which]
    limits = duals.limits(peaks, block.errors[rows])[:, at, models]
    n_present = len(duals.machines.present)
    winners: Integers = compiled_votes.winners_of(decisions, limits, n_present)
    doubtful = winners < 0
    for row in np.unique(at[doubtful]):
        cells = np.flatnonzero(doubtful & (at == row))
        exact = exact_decisions(duals, block.exact(int(rows[row])), models[cells])
        none = np.zeros_like(exact)
        winners[cells] = compiled_votes.winners_of(exact, none, n_present)
    return winners


def _add_cells(
    duals: DecisionWeights, values: Floats, rows: Integers, models: Integers
) -> tuple[Floats, Floats]:
    """Return decisions of rows and models, and what adding them may have changed.

    Both are (n_pairs, n_cells). A cell's terms are added in a fixed order.
    """
    from dsel.families.svm import compiled_votes

    machines = duals.machines
    n_present = len(machines.present)
    terms, limits = np.zeros((2, n_present, n_present - 1, len(rows)))
    compiled_votes.add_terms(
        np.ascontiguousarray(values),
        np.concatenate(duals.columns),
        np.ascontiguousarray(machines.coefs),
        machines.starts,
        rows,
        np.ascontiguousarray(models),
        terms,
        limits,
    )
    i, j = places_of_pairs(n_present)
    offsets = machines.offsets[:, models]
    changed = limits[i, j - 1] + limits[j, i] + EPS * np.abs(offsets)
    return terms[i, j - 1] + terms[j, i] + offsets, changed


def exact_decisions(duals: DecisionWeights, values: Floats, models: Integers) -> Floats:
    """Return one row's decisions by sums in a fixed order, (n_pairs, n_cells).

    A decision within rounding of zero is exactly 0: duplicates and symmetric data make
    exact ties, which no order of adding should turn into a vote.

    Parameters
    ----------
    duals
        Machines over the columns of `values`, with weights in float64.
    values
        Kernel values of the row, (n_columns,), computed for this row alone.
    models
        Place of the model of each cell, (n_cells,).
    """
    rows = np.zeros(len(models), dtype=np.int64)
    decisions, limits = _add_cells(duals, values[np.newaxis], rows, models)
    return np.where(np.abs(decisions) > limits, decisions, 0.0)
