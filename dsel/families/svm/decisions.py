"""Who wins the vote of pairs, whatever the rounding.

Votes are counted in float32. What its rounding could change is counted anew in float64,
and what that rounding could change is summed in a fixed order: a code does not depend
on the precision, nor on the rows beside. The bounds are proved in
docs/theory/svm_votes.md.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.families.svm.machines import Machines
from dsel.kernels.functions import Kernel, reach_of
from dsel.kernels.reference_rows import ReferenceRows

EPS: Final = float(np.finfo(np.float64).eps)
LEAST: Final = 1e-30
"""Kernel values below it are as good as 0: the smallest of float32 are slow."""
ROUNDINGS: Final = 9
"""Roundings of a term in float32 beside those of adding it up."""


@dataclass(frozen=True)
class KernelBlock:
    """One kernel between some rows and all rows of a table, class by class."""

    kernel: Kernel
    reference: ReferenceRows
    """The rows of the table."""
    rows: Any
    """The others, as `reference` takes them."""
    base: Floats | None
    """What the kernel is computed from, in float64, where it is known."""
    values: NDArray[Any]
    """Its values in float32, (n_rows, n_columns); less 1 if `less_one`."""
    peaks: Floats
    """Bound of each row's absolute `values` by class code, (n_classes, n_rows)."""
    errors: Floats
    """Bound of each row's errors beside the rounding to float32, (n_rows,)."""
    less_one: bool = False
    """Whether `values` are the kernel's less 1."""

    def precise(self, places: Integers) -> Floats:
        """Return some rows' values in float64."""
        base = self.base[places] if self.base is not None else (
            self.reference.base_of(self.rows[places])
        )  # fmt: skip
        return self.kernel.values(base)

    def exact(self, place: int) -> Floats:
        """Return a row's values, computed for it alone."""
        return self.kernel.values(self.reference.exact_base_of(self.rows[[place]]))


def errors_of(kernel: Kernel, reference: ReferenceRows, rows: Any) -> Any:
    """Return what bounds the errors of rows' values in float64; see `Kernel`."""
    lengths = reference.lengths_of(rows)
    return kernel.rounding(*reference.rounding(lengths, reach_of(kernel)))


def flush_to_peaks(values: NDArray[Any], starts: Integers) -> Floats:
    """Return each row's largest absolute value by class, (n_classes, n_rows).

    Of a kernel block, (n_rows, n_columns), whose columns stand class by class, each
    class from its entry of `starts` on. What is as good as 0, see `LEAST`, is set to
    it, in place.
    """
    from dsel.families.svm import votes

    peaks = np.zeros((len(starts) - 1, len(values)))
    votes.flush_to_peaks(values, starts, np.float32(LEAST), peaks)
    return peaks


@cache
def places_of_pairs(n_classes: int) -> tuple[Integers, Integers]:
    """Return the first and the second class of each pair, in libsvm's order."""
    return np.triu_indices(n_classes, 1)


class Layout(NamedTuple):
    """Some models' support vectors of each class for each other class.

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


class Sums(NamedTuple):
    """Of dual coefficients of each class for each other one, by model."""

    sizes: Floats
    """Of their absolute values, (n_classes, n_classes - 1, n_models)."""
    counts: Floats
    """How many are not 0."""
    signed: Floats
    """Of themselves."""

    def of_pairs(self) -> "Sums":
        """Return those of both classes of each pair together, (n_pairs, n_models)."""
        i, j = places_of_pairs(len(self.sizes))
        return Sums(*(each[i, j - 1] + each[j, i] for each in self))


@dataclass(frozen=True)
class DecisionWeights:
    """Machines laid out over the columns of a kernel block."""

    machines: Machines
    """Whose decisions they are."""
    columns: Integers
    """Column of the kernel block for each support vector."""

    @classmethod
    def from_machines(
        cls, machines: Machines, numbers: Integers, starts: Integers
    ) -> "DecisionWeights":
        """Prepare machines for kernel blocks with these labeled rows as columns.

        All their rows must be among `numbers`, which stand class by class, each class
        code from its entry of `starts` on, and ascend within.
        """
        columns = np.empty(len(machines.numbers), dtype=np.int64)
        for place, code in enumerate(machines.present):
            mine = slice(machines.starts[place], machines.starts[place + 1])
            begin, end = int(starts[code]), int(starts[code + 1])
            found = np.searchsorted(numbers[begin:end], machines.numbers[mine])
            columns[mine] = begin + found
        return cls(machines, columns)

    @cached_property
    def layouts(self) -> tuple[tuple[Layout, Sums], ...]:
        """A layout for every `LANES` models, and the sums of their coefficients."""
        from dsel.families.svm import votes
        from dsel.families.svm.lanes import LANES

        coefs, starts = self.machines.coefs, self.machines.starts
        (n_rows, n_others, n_models), made = coefs.shape, []
        for first in range(0, n_models, LANES):
            columns = np.empty(n_rows * n_others, dtype=np.int64)
            weights = np.zeros((len(columns), LANES), dtype=np.float32)
            begins = np.zeros((n_others + 1) * n_others + 1, dtype=np.int64)
            count = min(LANES, n_models - first)
            sums = Sums(*np.zeros((3, n_others + 1, n_others, count)))
            into = Layout(columns, weights, begins, np.empty((0, 0)))
            size = votes.lay_out(coefs, starts, self.columns, first, into, sums)
            models = slice(first, first + count)
            bounds = self._bounds_of(models, np.diff(begins), sums)
            made.append((Layout(columns[:size], weights[:size], begins, bounds), sums))
        return tuple(made)

    def _bounds_of(self, models: slice, n_terms: Integers, sums: Sums) -> Floats:
        """Return the bounds of a layout in float32, (n_pairs, 5 * LANES)."""
        from dsel.families.svm.lanes import LANES

        offsets, sizes = self.machines.offsets[:, models], sums.sizes
        i, j = places_of_pairs(len(sizes))
        # Of a pair as many terms are added as any of the models has, some of them 0.
        union = n_terms.reshape(sizes.shape[:2])[..., np.newaxis]
        added = np.minimum(sums.counts, union / 4 + 3)
        unit = float(np.finfo(np.float32).eps) / 2
        slack = _slack(sums) + 1.2 * unit * (added + ROUNDINGS) * sizes
        both = sums.of_pairs()
        tiny = float(np.finfo(np.float32).tiny)
        fixed = 8.0 * EPS * np.abs(offsets) + tiny + LEAST * both.sizes
        bounds = np.zeros((len(offsets), 5, LANES))
        bounds[..., : sizes.shape[2]] = np.stack(
            (offsets, slack[i, j - 1], slack[j, i], both.sizes, fixed), axis=1
        )
        return bounds.reshape(len(offsets), -1)

    @cached_property
    def layouts_less_one(self) -> tuple[tuple[Layout, Sums], ...]:
        """The same for kernel values less 1: sums of coefficients join the offsets."""
        made = []
        for layout, sums in self.layouts:
            both = sums.of_pairs()
            bounds = layout.bounds.reshape(len(layout.bounds), 5, -1).copy()
            offsets, fixed = (bounds[:, k, : both.sizes.shape[1]] for k in (0, 4))
            offsets += both.signed
            fixed += EPS * (both.counts * both.sizes + 8.0 * np.abs(both.signed))
            flat = bounds.reshape(layout.bounds.shape)
            made.append((layout._replace(bounds=flat), sums))
        return tuple(made)

    @property
    def n_models(self) -> int:
        """Distinct models."""
        return self.machines.n_models

    def limits(self, changed: Floats, errors: Floats, models: Integers) -> Floats:
        """Bound what float64 and exact sums make of cells' decisions, (n_pairs, ...).

        By what adding changed, and by the errors of the cells' kernel values.
        """
        sizes = [sums.of_pairs().sizes for _, sums in self.layouts]
        off = 1.01 * errors * np.concatenate(sizes, axis=1)[:, models]
        return 4.0 * changed + off


def _slack(sums: Sums) -> Floats:
    """Return what float64 changes of each class's terms if no value exceeds 1."""
    return 4.0 * EPS * (sums.counts + 26) * sums.sizes


def decide(
    block: KernelBlock,
    duals: DecisionWeights,
    places: Integers,
    models: Integers,
    guess: Integers,
) -> Integers:
    """Return the codes of some rows of a block, (n_models of `duals`, n_rows).

    `places` of the rows ascend. Models that are not asked get any codes. `guess` has a
    class code for each row of the block, which is tried first, and changes no code.
    """
    from dsel.families.svm import votes

    present, shape = duals.machines.present, (duals.n_models, len(places))
    if len(present) == 1:
        return np.broadcast_to(present, shape)
    peaks = block.peaks if len(present) == len(block.peaks) else block.peaks[present]
    # Values that the user computed may stand column by column.
    values = np.ascontiguousarray(block.values)
    codes = np.zeros(shape, dtype=np.int64)
    codes[models] = -1
    first = 0
    for layout, sums in duals.layouts_less_one if block.less_one else duals.layouts:
        end = first + sums.sizes.shape[2]
        votes.settle(
            values, places, layout, peaks, block.errors, guess, present,
            codes[first:end],
        )  # fmt: skip
        first = end
    if codes.min(initial=0) < 0:
        at, rows = np.nonzero(codes < 0)
        codes[at, rows] = present[_count_again(block, duals, places[rows], at)]
    return codes


def _count_again(
    block: KernelBlock, duals: DecisionWeights, places: Integers, models: Integers
) -> Integers:
    """Return winners of cells by float64 and, in doubt, by exact sums, (n_cells,)."""
    rows, at = np.unique(places, return_inverse=True)
    decisions, changed = cell_decisions(duals, block.precise(rows), at, models)
    limits = duals.limits(changed, block.errors[places], models)
    n_present = len(duals.machines.present)
    winners = winners_of(decisions, limits, n_present)
    doubtful = winners < 0
    for row in np.unique(at[doubtful]):
        cells = np.flatnonzero(doubtful & (at == row))
        exact = exact_decisions(duals, block.exact(int(rows[row])), models[cells])
        winners[cells] = winners_of(exact, np.zeros_like(exact), n_present)
    return winners


def winners_of(decisions: Floats, limits: Floats, n_classes: int) -> Integers:
    """Return each cell's winner by its place, -1 where rounding could make another one.

    Decisions and bounds of their errors are (n_pairs, n_cells).
    """
    fewest = np.zeros((n_classes, decisions.shape[1]), dtype=np.int64)
    most = np.full_like(fewest, n_classes - 1)
    for first, second, won in (
        (0, 1, decisions > limits), (1, 0, decisions <= -limits),
    ):  # fmt: skip
        pairs = places_of_pairs(n_classes)
        np.add.at(fewest, pairs[first], won)
        np.subtract.at(most, pairs[second], won)
    best, cells = fewest.argmax(axis=0), np.arange(decisions.shape[1])
    # The first class with the most votes wins.
    wanted = most + (np.arange(n_classes)[:, np.newaxis] < best)
    wanted[best, cells] = 0
    return np.where((fewest[best, cells] < wanted).any(axis=0), -1, best)


def cell_decisions(
    duals: DecisionWeights, values: Floats, rows: Integers, models: Integers
) -> tuple[Floats, Floats]:
    """Return decisions of rows and models, and what adding them may have changed.

    Both are (n_pairs, n_cells). A cell's terms are added in a fixed order.
    """
    from dsel.families.svm import votes

    machines = duals.machines
    n_present = len(machines.present)
    terms, limits = np.zeros((2, n_present, n_present - 1, len(rows)))
    values, models = np.ascontiguousarray(values), np.ascontiguousarray(models)
    votes.add_terms(
        values, duals.columns, machines.coefs, machines.starts, rows, models, terms,
        limits,
    )  # fmt: skip
    i, j = places_of_pairs(n_present)
    offsets = machines.offsets[:, models]
    changed = limits[i, j - 1] + limits[j, i] + EPS * np.abs(offsets)
    return terms[i, j - 1] + terms[j, i] + offsets, changed


def exact_decisions(duals: DecisionWeights, values: Floats, models: Integers) -> Floats:
    """Return one row's decisions by sums in a fixed order, (n_pairs, n_cells).

    A decision within rounding of zero is exactly 0: duplicates and symmetric data make
    exact ties, which no order of adding should turn into a vote. The row's kernel
    values, (n_columns,), are computed for it alone; each cell has its model's place.
    """
    rows = np.zeros(len(models), dtype=np.int64)
    decisions, limits = cell_decisions(duals, values[np.newaxis], rows, models)
    return np.where(np.abs(decisions) > limits, decisions, 0.0)
