"""Kernel SVMs of many candidates and trainings that predict from shared kernels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.base import Kernel
from dsel.kernels.parts import Anchors, anchor
from dsel.kernels.rbf import Rbf
from dsel.models.base import FitCounts
from dsel.models.kernel_svm_estimator import dummy_of, svc_of
from dsel.models.kernel_svm_frames import Frame
from dsel.models.kernel_svm_gram import BLOCK_NBYTES
from dsel.models.kernel_svm_machines import (
    Integers,
    Machines,
    Voter,
    count_votes,
    lay_out,
    settle,
)
from dsel.models.kernel_svm_readings import Reading, reading_of, row_order, slice_of
from dsel.models.kernel_svm_scores import score_block, write_scores

SQUARINGS = 3
"""How often a Gaussian kernel is squared, not computed: each doubles its error."""


@dataclass(frozen=True)
class KernelBlock:
    """One kernel between some rows and all rows of a frame."""

    kernel: Kernel
    """The kernel."""
    values: NDArray[Any]
    """Its values, (n_rows, n_frame_rows)."""
    relative: NDArray[np.float64]
    """Relative error of each row's values, (n_rows,)."""
    absolute: NDArray[np.float64]
    """Absolute error of each row's values, (n_rows,)."""


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


@dataclass(frozen=True)
class PackedSVMs:
    """Kernel SVMs of some candidates, one per training; a member of `FittedGroup`."""

    candidates: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""
    trainings: tuple[int, ...]
    """Numbers of the trainings, in the order of every training axis."""
    counts: FitCounts
    """Errors of every model on its test and training rows."""
    frames: Mapping[int, Frame]
    """Support vectors, by the training that made them or -1."""
    machines: tuple[Machines, ...]
    """One for each kernel and training that could be fitted."""
    estimators: Mapping[int, Any]
    """Unfitted estimator of each candidate."""
    train_rows: Mapping[int, NDArray[np.int64]]
    """Labeled rows of each training."""
    classes: NDArray[Any]
    """Label of each class code."""
    precision: str
    """``float64`` or ``mixed``."""

    @property
    def nbytes(self) -> int:
        """What moving the models costs."""
        rows = sum(
            frame.rows.data.nbytes + frame.numbers.nbytes
            for frame in self.frames.values()
        )
        indices = sum(rows.nbytes for rows in self.train_rows.values())
        return int(rows + indices) + sum(machines.nbytes for machines in self.machines)

    @property
    def row_nbytes(self) -> int:
        """Memory of `predict` for one row: two readings of its codes, and itself."""
        columns = max((f.rows.shape[1] for f in self.frames.values()), default=0)
        return 8 * (2 * len(self.candidates) + 4 * columns + 4)

    @cached_property
    def benches(self) -> tuple[Bench, ...]:
        """The machines laid out over the kernel blocks that they read."""
        return tuple(
            _bench(
                frame,
                [m for m in self.machines if m.framed_by == key],
                mixed=self.precision == "mixed",
            )
            for key, frame in self.frames.items()
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is laid out anew."""
        return {k: v for k, v in self.__dict__.items() if k != "benches"}

    def predict(self, X: Any, which: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return class codes; see `FittedGroup.predict`."""
        n_rows = X.shape[0]
        shape = (len(self.candidates), n_rows)
        readings = [reading_of(chosen, shape) for chosen in which]
        codes = np.full((len(which), *shape), -1, dtype=np.int64)
        order = row_order(readings, n_rows)
        for bench in self.benches:
            step = _block_rows(bench)
            for start in range(0, n_rows, step):
                rows = order[start : start + step]
                self._predict_block(bench, X, rows, readings, codes)
        return codes

    def _predict_block(
        self,
        bench: Bench,
        X: Any,
        rows: Integers,
        readings: list[Reading],
        codes: Integers,
    ) -> None:
        mine = [reading.at(rows) for reading in readings]
        trainings = {v.machines.training for _, vs in bench.voters for v in vs}
        asked = np.zeros(len(rows), dtype=np.bool_)
        for reading in mine:
            asked |= reading.rows_with(trainings)
        if not asked.any():
            return
        kept = np.flatnonzero(asked)
        mine = [reading.at(kept) for reading in mine]
        seen = bench.frame.transform(X[rows[kept]])
        positions = {number: place for place, number in enumerate(self.candidates)}
        for k, block in enumerate(_blocks(bench, seen)):
            voters = bench.voters[k][1]
            rough = bench.rough[k] if bench.rough else voters
            low = block.values.astype(np.float32) if bench.rough else block.values
            for voter, first in zip(voters, rough, strict=True):
                at = np.array([positions.get(c, -1) for c in voter.machines.candidates])
                for reading, target in zip(mine, codes, strict=True):
                    for chosen, places in reading.asks(voter.machines.training, at):
                        models = voter.machines.model_of[chosen]
                        found = _decide(
                            bench, block, low, seen, (voter, first), places, models
                        )
                        target[np.ix_(at[chosen], rows[kept[places]])] = found.T

    def scores(self, X: Any, which: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return real scores; see `FittedGroup.scores`.

        Two classes have the margin as the pair (-f, f). More classes have what
        ``SVC(decision_function_shape="ovr").decision_function`` gives: votes, and
        sums of decisions squeezed into (-1/3, 1/3).
        """
        n_rows = X.shape[0]
        shape = (len(self.candidates), n_rows)
        readings = [reading_of(chosen, shape) for chosen in which]
        found = np.full((len(which), *shape, len(self.classes)), np.nan)
        for bench in self.benches:
            step = _block_rows(bench)
            for start in range(0, n_rows, step):
                rows = np.arange(start, min(start + step, n_rows))
                self._score_rows(bench, X, rows, readings, found)
        return found

    def _score_rows(
        self,
        bench: Bench,
        X: Any,
        rows: Integers,
        readings: list[Reading],
        found: NDArray[np.float64],
    ) -> None:
        mine = [reading.at(rows) for reading in readings]
        seen = bench.frame.transform(X[rows[0] : rows[-1] + 1])
        positions = {number: place for place, number in enumerate(self.candidates)}
        for block, (_, voters) in zip(_blocks(bench, seen), bench.voters, strict=True):
            for voter in voters:
                machines = voter.machines
                at = np.array([positions.get(c, -1) for c in machines.candidates])
                asks = [list(each.asks(machines.training, at)) for each in mine]
                if not any(asks):
                    continue
                values = score_block(
                    voter,
                    block.values,
                    block.relative,
                    block.absolute,
                    _exact_values(bench, block.kernel, seen),
                )
                for pieces, target in zip(asks, found, strict=True):
                    for chosen, places in pieces:
                        models = machines.model_of[chosen]
                        scores = values[places][:, models]
                        write_scores(scores, voter, target, at[chosen], rows[places])

    def model(self, candidate: int, training: int) -> Any:
        """Return the fitted scikit-learn estimator; its predictions are the group's.

        Raises
        ------
        KeyError
            Where the fit failed or is not in this group.
        """
        for machines in self.machines:
            if machines.training == training and candidate in machines.candidates:
                frame = self.frames[machines.framed_by]
                rows = self.train_rows[training]
                estimator = self.estimators[candidate]
                if len(machines.present) < 2:
                    return dummy_of(machines, frame, self.classes)
                return svc_of(machines, frame, rows, estimator, candidate, self.classes)
        raise KeyError(f"candidate {candidate} has no model of training {training}")


def _bench(frame: Frame, machines: Sequence[Machines], *, mixed: bool) -> Bench:
    kernels = sorted({m.kernel for m in machines}, key=_kernel_order)
    by_kernel = [
        (kernel, [m for m in machines if m.kernel == kernel]) for kernel in kernels
    ]

    def laid_out(dtype: type) -> list[tuple[Voter, ...]]:
        return [
            tuple(lay_out(m, frame.numbers, frame.starts, dtype) for m in mine)
            for _, mine in by_kernel
        ]

    exact = laid_out(np.float64)
    rough = tuple(laid_out(np.float32)) if mixed else ()
    return Bench(frame, tuple(zip(kernels, exact, strict=True)), rough)


def _kernel_order(kernel: Kernel) -> tuple[str, float, str]:
    gamma = kernel.gamma if isinstance(kernel, Rbf) else 0.0
    return type(kernel).__name__, gamma, repr(kernel)


def _block_rows(bench: Bench) -> int:
    """Return rows of a block whose kernel values stay in the processor's cache."""
    return max(64, BLOCK_NBYTES // (8 * max(1, len(bench.frame.numbers))))


def _blocks(bench: Bench, seen: Any) -> Iterator[KernelBlock]:
    """Yield the kernel blocks of some rows; a Gaussian one squared from the one before.

    exp(-2 gamma d) is the square of exp(-gamma d). A block is overwritten by the next.
    """
    parts: dict[str, NDArray[np.float64]] = {}
    roundings = {kind: a.rounding(seen) for kind, a in bench.anchors.items()}
    before: Kernel | None = None
    squared, values = 0, np.empty(0)
    for kernel, _ in bench.voters:
        doubles = (
            isinstance(kernel, Rbf)
            and isinstance(before, Rbf)
            and kernel.gamma == 2.0 * before.gamma
            and squared < SQUARINGS
        )
        if doubles:
            np.multiply(values, values, out=values)
            squared += 1
        else:
            if kernel.part not in parts:
                parts[kernel.part] = bench.anchors[kernel.part].part_of(seen)
            values = kernel.values(parts[kernel.part])
            squared = 0
        relative, absolute = kernel.rounding(*roundings[kernel.part])
        unit = np.finfo(np.float64).eps * 4.0 * 2.0**squared
        yield KernelBlock(kernel, values, relative + unit, absolute)
        before = kernel


def _decide(
    bench: Bench,
    block: KernelBlock,
    low: NDArray[Any],
    seen: Any,
    voters: tuple[Voter, Voter],
    places: Integers,
    models: Integers,
) -> Integers:
    """Return the codes of some rows of a block, (n_rows, n_models).

    The rough voter goes first; what its rounding could change is voted on in float64,
    and what that rounding could change is summed in a fixed order.
    """
    voter, rough = voters
    distinct, back = np.unique(models, return_inverse=True)
    chosen = None if len(distinct) == voter.n_models else distinct
    rows = slice_of(places)
    relative, absolute = block.relative[rows], block.absolute[rows]
    bound = 1.0 if isinstance(block.kernel, Rbf) else None
    codes, doubtful = count_votes(
        rough, low[rows], relative, absolute, chosen,
        bound=bound if rough is voter else None,
    )  # fmt: skip
    if rough is not voter and doubtful.any():
        again = np.flatnonzero(doubtful.any(axis=1))
        codes[again], doubtful[again] = count_votes(
            voter, block.values[places[again]], relative[again], absolute[again],
            chosen, bound=bound,
        )  # fmt: skip
    if doubtful.any():
        alone = _exact_values(bench, block.kernel, seen)
        settle(voter, codes, doubtful, lambda row: alone(int(places[row])), distinct)
    return codes[:, back]


def _exact_values(
    bench: Bench, kernel: Kernel, seen: Any
) -> Callable[[int], NDArray[np.float64]]:
    """Return what computes the kernel values of one row for it alone."""
    anchors = bench.anchors[kernel.part]

    def values_of(row: int) -> NDArray[np.float64]:
        return kernel.values(anchors.exact_part_of(seen[row : row + 1]))

    return values_of
