"""Kernels between a block of rows and the support vectors, and what machines say there.

Votes are counted in the type of the block's values. What their rounding could change is
counted anew in float64, and what that rounding could change is summed in a fixed order:
a code does not depend on the precision, nor on the rows beside.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import frexp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import DISTANCES, Kernel
from dsel.kernels.parts import Anchors, anchor
from dsel.kernels.rbf import Rbf
from dsel.models.arrays import Bools, Floats, Integers
from dsel.models.svm.decisions import (
    EPS,
    DecisionWeights,
    Machines,
    class_products,
    count_votes,
    decide_exactly,
    exact_decisions,
)
from dsel.models.svm.labeled_kernel import BLOCK_NBYTES
from dsel.models.svm.labeled_rows import RowsByClass
from dsel.models.svm.queries import slice_of

SQUARINGS: Final = 3
"""How often a Gaussian kernel is squared, not computed: each doubles its error."""


@dataclass(frozen=True)
class ScoringPlan:
    """Everything that predicts from the same rows, laid out."""

    labeled: RowsByClass
    """The rows."""
    by_kernel: tuple[tuple[Kernel, tuple[DecisionWeights, ...]], ...]
    """Machines of each kernel; Gaussian ones by ascending gamma."""

    @classmethod
    def of_machines(
        cls, labeled: RowsByClass, machines: Sequence[Machines]
    ) -> "ScoringPlan":
        """Lay out all machines over the same support vectors."""
        kernels = sorted({m.kernel for m in machines}, key=_kernel_order)
        numbers, starts = labeled.numbers, labeled.starts
        by_kernel = tuple(
            (
                kernel,
                tuple(
                    DecisionWeights.from_machines(m, numbers, starts)
                    for m in machines
                    if m.kernel == kernel
                ),
            )
            for kernel in kernels
        )
        return cls(labeled, by_kernel)

    @cached_property
    def anchors(self) -> Mapping[str, Anchors]:
        """The rows as anchors, by kind of part."""
        kinds = {kernel.part for kernel, _ in self.by_kernel}
        return {kind: anchor(self.labeled.rows, kind) for kind in kinds}

    @property
    def block_rows(self) -> int:
        """Rows of a block whose kernel values stay in the processor's cache."""
        return max(64, BLOCK_NBYTES // (8 * max(1, len(self.labeled.numbers))))


@dataclass(frozen=True)
class KernelBlock:
    """One kernel between some rows and all support vectors."""

    kernel: Kernel
    """The kernel."""
    anchors: Anchors
    """The support vectors."""
    seen: Any
    """The other rows."""
    part: Floats
    """What the kernel is made of, (n_rows, n_frame_rows)."""
    values: NDArray[Any]
    """Its values, of the same shape, in float64 or float32."""
    peaks: Floats
    """Bound of each row's absolute values, (n_rows,)."""
    errors: Floats
    """Bound of each row's errors beside the rounding to float32, (n_rows,)."""

    def precise(self, places: Integers) -> NDArray[Any]:
        """Return some rows' values in float64."""
        return self.kernel.values(self.part[places])

    def exact(self, place: int) -> Floats:
        """Return a row's values, computed for it alone."""
        part = self.anchors.exact_part_of(self.seen[place : place + 1])
        return self.kernel.values(part)


def _kernel_order(kernel: Kernel) -> tuple[str, float, str]:
    gamma = kernel.gamma if isinstance(kernel, Rbf) else 0.0
    return type(kernel).__name__, gamma, repr(kernel)


def kernel_blocks(
    plan: ScoringPlan, seen: Any, *, single: bool
) -> Iterator[KernelBlock]:
    """Yield the kernels of a plan for some rows, in float32 if `single`.

    Each is overwritten by the next.

    In float64 a Gaussian kernel is squared from the one before where it can be:
    exp(-2 gamma d) is the square of exp(-gamma d).
    """
    parts = {kind: anchors.part_of(seen) for kind, anchors in plan.anchors.items()}
    sizes = {kind: a.rounding(seen) for kind, a in plan.anchors.items()}
    low = {kind: part.astype(np.float32) for kind, part in parts.items() if single}
    before: Kernel | None = None
    squared, values = 0, np.empty(0)
    for kernel, _ in plan.by_kernel:
        part = parts[kernel.part]
        steps = _squarings(before, kernel)
        if single:
            values = _single_values(kernel, part, low[kernel.part])
        elif 0 < steps <= SQUARINGS - squared:
            squared += steps
            for _ in range(steps):
                np.multiply(values, values, out=values)
        else:
            squared, values = 0, kernel.values(part)
        peaks = _peaks(kernel, values)
        relative, absolute = kernel.rounding(*sizes[kernel.part])
        errors = (relative + EPS * 4.0 * 2.0**squared) * peaks + absolute
        yield KernelBlock(
            kernel, plan.anchors[kernel.part], seen, part, values, peaks, errors
        )
        before = kernel


def _squarings(before: Kernel | None, kernel: Kernel) -> int:
    """Return how often the kernel before is to be squared; 0 where that is no way."""
    if not (isinstance(kernel, Rbf) and isinstance(before, Rbf)):
        return 0
    fraction, exponent = frexp(kernel.gamma / before.gamma)
    return exponent - 1 if fraction == 0.5 else 0


def _single_values(
    kernel: Kernel, part: Floats, low: NDArray[np.float32]
) -> NDArray[Any]:
    """Return kernel values in float32, off by a few units of the largest.

    A distance may be rounded first: x exp(-x) < 0.37 is what a unit of it changes.
    """
    if kernel.part == DISTANCES:
        return kernel.values(low)
    return np.asarray(kernel.values(part), dtype=np.float32)


def _peaks(kernel: Kernel, values: NDArray[Any]) -> Floats:
    if kernel.part == DISTANCES:
        return np.ones(len(values))
    return np.asarray(np.abs(values).max(axis=1, initial=0), dtype=np.float64)


def decide(
    block: KernelBlock, duals: DecisionWeights, places: Integers, models: Integers
) -> Integers:
    """Return the codes of some rows of a block, (n_rows, n_models).

    Parameters
    ----------
    block
        Kernel values in float32.
    duals
        Machines over its columns.
    places
        Rows of the block, ascending.
    models
        Model of each column of the codes; may repeat.
    """
    distinct, back = np.unique(models, return_inverse=True)
    chosen = None if len(distinct) == duals.n_models else distinct
    rows = slice_of(places)
    codes, doubtful = count_votes(
        duals.in_float32,
        block.values[rows],
        block.peaks[rows],
        block.errors[rows],
        chosen,
    )
    if doubtful.any():
        again = np.flatnonzero(doubtful.any(axis=1))
        mine = places[again]
        codes[again], doubtful[again] = count_votes(
            duals, block.precise(mine), block.peaks[mine], block.errors[mine], chosen
        )
    if doubtful.any():
        decide_exactly(
            duals, codes, doubtful, lambda r: block.exact(int(places[r])), distinct
        )
    return codes[:, back]


def score_block(
    duals: DecisionWeights,
    values: Floats,
    peaks: Floats,
    errors: Floats,
    exact_values: Callable[[int], Floats],
) -> Floats:
    """Return a score for every row, model and class present.

    Decisions that rounding could turn round are summed anew in a fixed order, so that
    the largest score is the class that the machines predict.

    Parameters
    ----------
    duals
        Machines over the columns of `values`.
    values
        Kernel block, (n_rows, n_columns), in float64.
    peaks, errors
        Bounds of each row's absolute kernel values and of their error, (n_rows,).
    exact_values
        Gives a row's kernel values by its place, computed for it alone.

    Returns
    -------
    ndarray
        Shape (n_rows, n_models, n_present). Two classes have the pair (f, -f); more
        have votes, and sums of decisions squeezed into (-1/3, 1/3).
    """
    n_present = len(duals.machines.present)
    if n_present == 1:
        return np.zeros((len(values), duals.n_models, 1))
    decisions = _decisions(duals, values)
    doubtful = np.abs(decisions) <= duals.limits(peaks, errors)
    for row in np.flatnonzero(doubtful.any(axis=(0, 2))):
        alone = exact_values(int(row))
        for model in np.flatnonzero(doubtful[:, row].any(axis=0)):
            decisions[:, row, model] = exact_decisions(duals, alone, int(model))
    if n_present == 2:
        return np.stack((decisions[0], -decisions[0]), axis=-1)
    return _votes(decisions, duals.machines)


def _decisions(duals: DecisionWeights, values: Floats) -> Floats:
    """Return decisions, (n_pairs, n_rows, n_models)."""
    products = class_products(duals, values)
    return np.stack(
        [
            products[i, :, j - 1] + products[j, :, i] + offset
            for (i, j), offset in zip(
                duals.machines.pairs, duals.machines.offsets, strict=True
            )
        ]
    )


def _votes(decisions: Floats, machines: Machines) -> Floats:
    votes = np.zeros((*decisions.shape[1:], len(machines.present)))
    sums = np.zeros_like(votes)
    for decision, (i, j) in zip(decisions, machines.pairs, strict=True):
        wins: Bools = decision > 0
        votes[..., i] += wins
        votes[..., j] += ~wins
        sums[..., i] += decision
        sums[..., j] -= decision
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))


def write_scores(
    found: Floats, duals: DecisionWeights, target: Floats, at: Integers, rows: Integers
) -> None:
    """Write block scores of some models to (n_candidates, n_rows, n_classes).

    Parameters
    ----------
    found
        Scores of these rows and of the models asked, (n_rows, n_models, n_present).
    duals
        Whose they are.
    target
        Written to; classes that are not present get -inf.
    at
        Place of each of the models on the candidate axis.
    rows
        Row numbers.
    """
    where = slice_of(rows)
    for model, place in enumerate(at):
        if len(duals.machines.present) < target.shape[-1]:
            target[place, where] = -np.inf
        for column, code in enumerate(duals.machines.present):
            target[place, where, code] = found[:, model, column]
