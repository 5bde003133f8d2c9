"""Kernels between a block of rows and the support vectors, and what machines say there.

Votes are counted in the type of the block's values. What their rounding could change is
counted anew in float64, and what that rounding could change is summed in a fixed order:
a code does not depend on the precision, nor on the rows beside.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import frexp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import DISTANCES, Kernel
from dsel.kernels.parts import Anchors, anchor
from dsel.kernels.rbf import Rbf
from dsel.models.kernel_svm_frames import Frame
from dsel.models.kernel_svm_gram import BLOCK_NBYTES
from dsel.models.kernel_svm_machines import Floats, Integers, Machines
from dsel.models.kernel_svm_readings import slice_of
from dsel.models.kernel_svm_votes import EPS, Voter, count_votes, lay_out, settle

SQUARINGS: Final = 3
"""How often a Gaussian kernel is squared, not computed: each doubles its error."""


@dataclass(frozen=True)
class Bench:
    """Everything that predicts from one frame, laid out."""

    frame: Frame
    """The rows."""
    voters: tuple[tuple[Kernel, tuple[Voter, ...]], ...]
    """Voters of each kernel; Gaussian ones by ascending gamma."""
    rough: tuple[tuple[Voter, ...], ...]
    """The same in float32, kernel by kernel; empty where not asked for."""

    @cached_property
    def anchors(self) -> Mapping[str, Anchors]:
        """The rows as anchors, by kind of part."""
        kinds = {kernel.part for kernel, _ in self.voters}
        return {kind: anchor(self.frame.rows, kind) for kind in kinds}

    @property
    def block_rows(self) -> int:
        """Rows of a block whose kernel values stay in the processor's cache."""
        return max(64, BLOCK_NBYTES // (8 * max(1, len(self.frame.numbers))))


@dataclass(frozen=True)
class KernelBlock:
    """One kernel between some rows and all rows of a frame."""

    kernel: Kernel
    """The kernel."""
    anchors: Anchors
    """The frame's rows."""
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
        if self.values.dtype == np.float64:
            return self.values[slice_of(places)]
        return self.kernel.values(self.part[places])

    def exact(self, place: int) -> Floats:
        """Return a row's values, computed for it alone."""
        part = self.anchors.exact_part_of(self.seen[place : place + 1])
        return self.kernel.values(part)


def lay_out_bench(
    frame: Frame, machines: Sequence[Machines], *, with_rough: bool
) -> Bench:
    """Prepare all machines of a frame, with voters in float32 as well if asked."""
    kernels = sorted({m.kernel for m in machines}, key=_kernel_order)
    by_kernel = [[m for m in machines if m.kernel == kernel] for kernel in kernels]

    def laid_out(dtype: type) -> tuple[tuple[Voter, ...], ...]:
        return tuple(
            tuple(lay_out(m, frame.numbers, frame.starts, dtype) for m in mine)
            for mine in by_kernel
        )

    precise = zip(kernels, laid_out(np.float64), strict=True)
    return Bench(frame, tuple(precise), laid_out(np.float32) if with_rough else ())


def _kernel_order(kernel: Kernel) -> tuple[str, float, str]:
    gamma = kernel.gamma if isinstance(kernel, Rbf) else 0.0
    return type(kernel).__name__, gamma, repr(kernel)


def kernel_blocks(bench: Bench, seen: Any, *, rough: bool) -> Iterator[KernelBlock]:
    """Yield the kernels of a bench for some rows; each is overwritten by the next.

    In float64 a Gaussian kernel is squared from the one before where it can be:
    exp(-2 gamma d) is the square of exp(-gamma d).
    """
    parts = {kind: anchors.part_of(seen) for kind, anchors in bench.anchors.items()}
    sizes = {kind: a.rounding(seen) for kind, a in bench.anchors.items()}
    low = {kind: part.astype(np.float32) for kind, part in parts.items() if rough}
    before: Kernel | None = None
    squared, values = 0, np.empty(0)
    for kernel, _ in bench.voters:
        part = parts[kernel.part]
        steps = _squarings(before, kernel)
        if rough:
            values = _rough_values(kernel, part, low[kernel.part])
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
            kernel, bench.anchors[kernel.part], seen, part, values, peaks, errors
        )
        before = kernel


def _squarings(before: Kernel | None, kernel: Kernel) -> int:
    """Return how often the kernel before is to be squared; 0 where that is no way."""
    if not (isinstance(kernel, Rbf) and isinstance(before, Rbf)):
        return 0
    fraction, exponent = frexp(kernel.gamma / before.gamma)
    return exponent - 1 if fraction == 0.5 else 0


def _rough_values(
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
    block: KernelBlock,
    voter: Voter,
    rough: Voter,
    places: Integers,
    models: Integers,
) -> Integers:
    """Return the codes of some rows of a block, (n_rows, n_models).

    Parameters
    ----------
    block
        Kernel values, in the type of the weights of `rough`.
    voter
        With weights in float64.
    rough
        The same machines in the block's type; `voter` itself where that is float64.
    places
        Rows of the block, ascending.
    models
        Model of each column of the codes; may repeat.
    """
    distinct, back = np.unique(models, return_inverse=True)
    chosen = None if len(distinct) == voter.n_models else distinct
    rows = slice_of(places)
    codes, doubtful = count_votes(
        rough, block.values[rows], block.peaks[rows], block.errors[rows], chosen
    )
    if rough is not voter and doubtful.any():
        again = np.flatnonzero(doubtful.any(axis=1))
        mine = places[again]
        codes[again], doubtful[again] = count_votes(
            voter, block.precise(mine), block.peaks[mine], block.errors[mine], chosen
        )
    if doubtful.any():
        settle(voter, codes, doubtful, lambda r: block.exact(int(places[r])), distinct)
    return codes[:, back]
