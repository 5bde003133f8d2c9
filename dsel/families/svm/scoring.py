"""Kernels between a block of rows and the support vectors, and machines' scores there.

The machines' votes there are counted in `votes`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import frexp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.frames import numbers
from dsel.families.arrays import Bools, Floats, Integers
from dsel.families.svm.decisions import (
    EPS,
    LEAST,
    DecisionWeights,
    Machines,
    decisions_of,
)
from dsel.families.svm.labeled_kernel import BLOCK_NBYTES
from dsel.families.svm.labeled_rows import RowsByClass
from dsel.families.svm.queries import slice_of
from dsel.families.svm.votes import KernelBlock, exact_decisions, flush_to_peaks
from dsel.kernels.functions import Kernel, Rbf, reach_of
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows

TINY: Final = float(np.finfo(np.float32).tiny)
SQUARINGS: Final = 2
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

    @property
    def splits(self) -> set[int]:
        """Numbers of the splits whose machines are here."""
        return {each.machines.split for _, some in self.by_kernel for each in some}

    def blocks(self, X: Any, rows: Integers) -> Iterator[tuple[slice, Any]]:
        """Yield places among `rows`, and `X` there as the machines see it.

        Data frames are transformed in one piece, since each call takes milliseconds.
        """
        whole = None
        if self.labeled.takes_frames and len(rows):
            whole = self.labeled.transform(X[rows])
        X = X if self.labeled.takes_frames else numbers(X)
        for start in range(0, len(rows), self.block_rows):
            mine = slice(start, start + self.block_rows)
            some = (
                self.labeled.transform(X[rows[mine]]) if whole is None else whole[mine]
            )
            yield mine, some

    @cached_property
    def reference(self) -> Mapping[str, ReferenceRows]:
        """The rows as reference rows, by the base of the kernels."""
        kinds = {kernel.base for kernel, _ in self.by_kernel}
        return {kind: reference_rows(self.labeled.rows, kind) for kind in kinds}

    @property
    def block_rows(self) -> int:
        """Rows of a block: its values in float32 take 4 MiB.

        Twice as many take as long on one thread, and a tenth longer on two, which share
        a cache. Of many classes, few rows seldom have four of one guess.
        """
        n_classes, n_columns = len(self.labeled.starts) - 1, len(self.labeled.numbers)
        return max(128, 8 * n_classes, BLOCK_NBYTES // (8 * max(1, n_columns)))


def _kernel_order(kernel: Kernel) -> tuple[str, float, str]:
    gamma = kernel.gamma if isinstance(kernel, Rbf) else 0.0
    return type(kernel).__name__, gamma, repr(kernel)


def kernel_blocks(
    plan: ScoringPlan, seen: Any, *, single: bool
) -> Iterator[KernelBlock]:
    """Yield the kernels of a plan for some rows, in float32 if `single`.

    Each is overwritten by the next.
    """
    from dsel.families.svm import compiled_votes

    made = _BlockValues(plan, seen, single=single)
    lengths = {kind: a.lengths_of(seen) for kind, a in plan.reference.items()}
    n_classes = len(plan.labeled.starts) - 1
    room = compiled_votes.room_for(seen.shape[0], n_classes) if single else ()
    for kernel, _ in plan.by_kernel:
        peaks = made.step_to(kernel)
        reference = plan.reference[kernel.base]
        relative, absolute = kernel.rounding(
            *reference.rounding(lengths[kernel.base], reach_of(kernel))
        )
        least = LEAST[made.values.dtype.type]  # what was flushed may be off, too
        largest = 1.0 if made.less_one else peaks.max(axis=0, initial=least)
        errors = (relative + EPS * 4.0 * 2.0**made.squared) * largest + absolute
        yield KernelBlock(
            made.values, peaks, errors,
            partial(_precise_values, kernel, made.bases[kernel.base]),
            partial(_exact_values, kernel, reference, seen),
            room, made.less_one,
        )  # fmt: skip


class _BlockValues:
    """Values of one kernel after another for the same rows, in the same place.

    A Gaussian kernel is squared from the one before where it can be: exp(-2 gamma d)
    is the square of exp(-gamma d). In float32 its values less 1 are made where all
    gamma d are at most 1: small numbers have more digits left for what tells apart
    rows that are all close to 1.
    """

    def __init__(self, plan: ScoringPlan, seen: Any, *, single: bool) -> None:
        self.single, self.starts = single, plan.labeled.starts
        self.bases = {kind: a.base_of(seen) for kind, a in plan.reference.items()}
        self.farthest = np.inf
        if DISTANCES in self.bases:
            self.farthest = float(self.bases[DISTANCES].max(initial=0.0))
        self.kernel: Kernel | None = None
        self.values: NDArray[Any] = np.empty(0)
        self.less_one = False
        """Whether `values` are those of `kernel` less 1."""
        self.squared = 0
        """How often they have been squared."""

    def step_to(self, kernel: Kernel) -> Floats:
        """Make the values those of another kernel; return their peaks by class.

        Those of a Gaussian kernel are p (1 + log(1/p) / 24), for what rounding its
        exponents changes: see `decisions`.
        """
        is_near = isinstance(kernel, Rbf) and kernel.gamma * self.farthest <= 1.0
        less_one = bool(self.single and is_near)
        steps = _squarings(self.kernel, kernel) if less_one == self.less_one else 0
        again = 0 < steps <= SQUARINGS - self.squared
        self.kernel, self.less_one = kernel, less_one
        self.squared = self.squared + steps if again else 0
        if again:
            for _ in range(steps - 1):
                np.multiply(self.values, self.values + 2 * less_one, out=self.values)
        else:
            self.values = self._computed(kernel)
        peaks = flush_to_peaks(
            self.values, self.starts, squared=again, less_one=less_one
        )
        if kernel.base == DISTANCES and not less_one:
            peaks *= 1.0 - np.log(np.maximum(peaks, TINY)) / 24.0
        return peaks

    def _computed(self, kernel: Kernel) -> NDArray[Any]:
        """Return the values of a kernel; in float32 its exponent is rounded first."""
        from dsel.families.svm import compiled_votes

        base = self.bases[kernel.base]
        if not self.single:
            return kernel.values(base)
        if not isinstance(kernel, Rbf):
            return np.asarray(kernel.values(base), dtype=np.float32)
        values = np.empty(base.shape, dtype=np.float32)
        if self.less_one:
            compiled_votes.exponentials_less_one(base, kernel.gamma, values)
            return values
        with np.errstate(over="ignore"):  # beyond float32 it is 0 in any case
            np.multiply(base, -kernel.gamma, out=values, casting="same_kind")
        return np.asarray(np.exp(values, out=values))


def _squarings(before: Kernel | None, kernel: Kernel) -> int:
    """Return how often the kernel before is to be squared; 0 where that is no way."""
    if not (isinstance(kernel, Rbf) and isinstance(before, Rbf)):
        return 0
    fraction, exponent = frexp(kernel.gamma / before.gamma)
    return exponent - 1 if fraction == 0.5 else 0


def _precise_values(kernel: Kernel, base: Floats, places: Integers) -> Floats:
    return kernel.values(base[places])


def _exact_values(
    kernel: Kernel, reference: ReferenceRows, seen: Any, place: int
) -> Floats:
    return kernel.values(reference.exact_base_of(seen[place : place + 1]))


def score_block(duals: DecisionWeights, block: KernelBlock) -> Floats:
    """Return a score for every row, model and class present.

    Decisions that rounding could turn round are summed anew in a fixed order, so that
    the largest score is the class that the machines predict.

    Parameters
    ----------
    duals
        Machines over the columns of the block.
    block
        Kernel values, in float64.

    Returns
    -------
    ndarray
        Shape (n_rows, n_models, n_present). Two classes have the pair (f, -f); more
        have votes, and sums of decisions squeezed into (-1/3, 1/3).
    """
    n_present = len(duals.machines.present)
    if n_present == 1:
        return np.zeros((len(block.values), duals.n_models, 1))
    decisions = decisions_of(duals, block.values)
    limits = duals.limits(block.peaks[duals.machines.present], block.errors)
    doubtful = np.abs(decisions) <= limits
    for row in np.flatnonzero(doubtful.any(axis=(0, 2))):
        models = np.flatnonzero(doubtful[:, row].any(axis=0))
        exact = exact_decisions(duals, block.exact(int(row)), models)
        decisions[:, row, models] = exact
    if n_present == 2:
        return np.stack((decisions[0], -decisions[0]), axis=-1)
    return _votes(decisions, duals.machines)


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
