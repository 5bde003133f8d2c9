"""Winners of one-against-one votes, independent of rounding.

Votes are counted in float32. What its rounding could change is counted anew in float64,
by sums in a fixed order: a code does not depend on the precision, nor on the rows
beside. The bounds are proved in docs/theory/svm_votes.md.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.arrays import Floats, Integers
from dsel.families.svm.machines import Machines
from dsel.families.svm.rows import RowsByClass
from dsel.kernels.functions import Kernel, errors_of
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows

EPS: Final = float(np.finfo(np.float64).eps)
UNIT: Final = float(np.finfo(np.float32).eps) / 2
TINY: Final = float(np.finfo(np.float32).tiny)
LEAST: Final = 1e-30
"""Kernel values below it are as good as 0: the smallest of float32 are slow."""
ROUNDINGS: Final = 9
"""Roundings of a term in float32 beside those of adding it up."""


@dataclass(frozen=True)
class KernelBlock:
    """Kernel values between some rows and all rows of a table, sorted by class."""

    kernel: Kernel
    reference: ReferenceRows
    """The rows of the table."""
    rows: Any
    """The others, as `reference` takes them."""
    values: NDArray[Any]
    """Its values in float32, (n_rows, n_columns); less 1 if `less_one`."""
    peaks: Floats
    """Bound of each row's absolute `values` by class code, (n_classes, n_rows)."""
    errors: Floats
    """Bound of each row's errors beside the rounding to float32, (n_rows,)."""
    less_one: bool = False
    """Whether `values` are the kernel's less 1."""


def kernel_block(
    kernel: Kernel,
    reference: ReferenceRows,
    rows: ArrayLike,
    values: NDArray[np.float32],
    starts: Integers,
    *,
    less_one: bool = False,
) -> KernelBlock:
    """Return a block of kernel values; a class begins at each column of `starts`.

    What is as good as 0, see `LEAST`, is set to it, in place.
    """
    from dsel.families.svm import votes

    peaks = np.zeros((len(starts) - 1, len(values)))
    votes.flush_to_peaks(values, starts, np.float32(LEAST), peaks)
    largest = 1.0 if less_one else peaks.max(axis=0, initial=LEAST)
    if kernel.base == DISTANCES and not less_one:
        # Exponents may be rounded: their error is the larger the smaller the value.
        peaks *= 1.0 - np.log(np.maximum(peaks, TINY)) / ROUNDINGS
    relative, absolute = errors_of(kernel, reference, rows)
    errors = (relative + 4.0 * EPS) * largest + absolute
    return KernelBlock(kernel, reference, rows, values, peaks, errors, less_one)


class Layout(NamedTuple):
    """Support vectors of some models, for each ordered pair of classes.

    Compiled code reads them class by class, for each the other classes in order.
    """

    columns: Integers
    """Of the kernel block, (n_terms,)."""
    weights: NDArray[np.float32]
    """Dual coefficients, (n_terms, LANES)."""
    starts: Integers
    """Where the terms of each class and other class begin, and the end."""
    bounds: Floats
    """For each pair what is added to the products, what the peaks of its classes and
    the row's error are multiplied with to bound the decision's error, and what is added
    to that: (n_pairs, 5 * LANES)."""


@dataclass(frozen=True)
class DecisionWeights:
    """Dual coefficients of binary SVMs over the columns of a kernel block."""

    machines: Machines
    """Whose decisions they are."""
    columns: Integers
    """Column of the kernel block for each support vector."""
    layouts: tuple[tuple[Layout, Layout], ...]
    """Of every `LANES` models, for kernel values and for those less 1."""


def lay_out(machines: Machines, labeled: RowsByClass) -> DecisionWeights:
    """Arrange dual coefficients over kernel blocks whose columns are labeled rows."""
    from dsel.families.svm import votes
    from dsel.families.svm.lanes import LANES

    columns = labeled.places_of(machines.numbers)
    (n_rows, n_others, n_models) = machines.coefs.shape
    i, j = np.triu_indices(n_others + 1, 1)
    layouts = []
    for first in range(0, n_models, LANES):
        models = slice(first, min(first + LANES, n_models))
        weights = np.zeros((n_rows * n_others, LANES), dtype=np.float32)
        begins = np.zeros((n_others + 1) * n_others + 1, dtype=np.int64)
        sums = np.zeros((3, n_others + 1, n_others, models.stop - first))
        into = Layout(
            np.empty(len(weights), dtype=np.int64), weights, begins, np.empty((0, 0))
        )
        end = votes.write_layout(
            machines.coefs, machines.starts, columns, first, into, sums
        )
        # Of a pair as many terms are added as any of the models has, some of them 0.
        union = np.diff(begins).reshape(n_others + 1, n_others, 1)
        sizes, counts, _ = sums
        added = np.minimum(counts, union / 4 + 3)
        # What float64, and float32, change of each class's terms if no value exceeds 1.
        slack = 4.0 * EPS * (counts + 26) * sizes
        slack += 1.2 * UNIT * (added + ROUNDINGS) * sizes
        sizes, counts, signed = sums[:, i, j - 1] + sums[:, j, i]
        offsets, pair = machines.offsets[:, models], []
        fixed = 8.0 * EPS * np.abs(offsets) + TINY + LEAST * sizes
        for less_one in (0.0, 1.0):  # there sums of coefficients join the offsets
            off = fixed + less_one * EPS * (counts * sizes + 8.0 * np.abs(signed))
            bounds = np.zeros((len(i), 5, LANES))
            bounds[..., : models.stop - first] = np.stack(
                (offsets + less_one * signed, slack[i, j - 1], slack[j, i], sizes, off),
                axis=1,
            )
            pair.append(
                Layout(
                    into.columns[:end],
                    weights[:end],
                    begins,
                    bounds.reshape(len(i), 5 * LANES),
                )
            )
        layouts.append((pair[0], pair[1]))
    return DecisionWeights(machines, columns, tuple(layouts))


def decide(
    block: KernelBlock,
    duals: DecisionWeights,
    places: Integers,
    models: Integers,
    guess: Integers,
) -> Integers:
    """Return the class codes of some rows of a block, (n_models, n_rows).

    `places` of the rows ascend. Models that are not asked get any codes. `guess` has a
    class code for each row of the block, which is tried first, and changes no code.
    """
    from dsel.families.svm import votes
    from dsel.families.svm.lanes import LANES

    present, shape = duals.machines.present, (duals.machines.n_models, len(places))
    if len(present) == 1:
        return np.broadcast_to(present, shape)
    peaks = block.peaks if len(present) == len(block.peaks) else block.peaks[present]
    # Values that the user computed may stand column by column.
    values = np.ascontiguousarray(block.values)
    codes = np.zeros(shape, dtype=np.int64)
    codes[models] = -1
    for k, layouts in enumerate(duals.layouts):
        votes.settle(
            values,
            places,
            layouts[block.less_one],
            peaks,
            block.errors,
            guess,
            present,
            codes[k * LANES : (k + 1) * LANES],
        )
    if codes.min(initial=0) == 0:
        return codes
    pairs = np.triu_indices(len(present), 1)
    for place in np.flatnonzero((codes < 0).any(axis=0)):
        asked = np.flatnonzero(codes[:, place] < 0)
        # Whatever rows come with it: its kernel values are computed for it alone.
        base = block.reference.exact_base_of(block.rows[[places[place]]])
        values = block.kernel.values(base)[np.newaxis]
        decisions, limits = cell_decisions(duals, values, np.zeros_like(asked), asked)
        # Duplicates and symmetric data make exact ties: what is within rounding of zero
        # is zero, which no order of adding should turn into a vote for the first class.
        is_first = decisions > limits
        n_won = np.zeros((len(present), len(asked)), dtype=np.int64)
        for winner, won in zip(pairs, (is_first, ~is_first), strict=True):
            np.add.at(n_won, winner, won)
        # The first class with the most votes wins.
        codes[asked, place] = present[n_won.argmax(axis=0)]
    return codes


def cell_decisions(
    duals: DecisionWeights, values: Floats, rows: Integers, models: Integers
) -> tuple[Floats, Floats]:
    """Return decision values of rows and models, and bounds of their rounding.

    Both are (n_pairs, n_cells). A cell's terms are added in a fixed order.
    """
    from dsel.families.svm import votes

    machines = duals.machines
    n_present = len(machines.present)
    terms, limits = np.zeros((2, n_present, n_present - 1, len(rows)))
    values, models = np.ascontiguousarray(values), np.ascontiguousarray(models)
    votes.add_terms(
        values,
        duals.columns,
        machines.coefs,
        machines.starts,
        rows,
        models,
        terms,
        limits,
    )
    i, j = np.triu_indices(n_present, 1)
    offsets = machines.offsets[:, models]
    changed = limits[i, j - 1] + limits[j, i] + EPS * np.abs(offsets)
    return terms[i, j - 1] + terms[j, i] + offsets, changed
