"""Kernel SVMs of many candidates and trainings that predict from shared kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.models.base import FitCounts
from dsel.models.kernel_svm_blocks import (
    Bench,
    decide,
    kernel_blocks,
    lay_out_bench,
)
from dsel.models.kernel_svm_estimator import dummy_of, svc_of
from dsel.models.kernel_svm_frames import Frame
from dsel.models.kernel_svm_machines import Integers, Machines
from dsel.models.kernel_svm_readings import Reading, reading_of, row_order
from dsel.models.kernel_svm_scores import score_block, write_scores


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
            lay_out_bench(
                frame,
                [m for m in self.machines if m.framed_by == key],
                with_rough=self.precision == "mixed",
            )
            for key, frame in self.frames.items()
        )

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size."""
        return self.nbytes

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
            step = bench.block_rows
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
        blocks = kernel_blocks(bench, seen, rough=bool(bench.rough))
        for k, block in enumerate(blocks):
            voters = bench.voters[k][1]
            for v, voter in enumerate(voters):
                rough = bench.rough[k][v] if bench.rough else voter
                at = np.array([positions.get(c, -1) for c in voter.machines.candidates])
                for reading, target in zip(mine, codes, strict=True):
                    for chosen, places in reading.asks(voter.machines.training, at):
                        models = voter.machines.model_of[chosen]
                        found = decide(block, voter, rough, places, models)
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
            step = bench.block_rows
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
        blocks = kernel_blocks(bench, seen, rough=False)
        for block, (_, voters) in zip(blocks, bench.voters, strict=True):
            for voter in voters:
                machines = voter.machines
                at = np.array([positions.get(c, -1) for c in machines.candidates])
                asks = [list(each.asks(machines.training, at)) for each in mine]
                if not any(asks):
                    continue
                values = score_block(
                    voter, block.values, block.peaks, block.errors, block.exact
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


def needed_rows(
    frames: Mapping[int, Frame], machines: Sequence[Machines]
) -> dict[int, Frame]:
    """Return the frames of the machines with no rows but their support vectors."""
    needed: dict[int, list[Integers]] = {}
    for each in machines:
        needed.setdefault(each.framed_by, []).append(each.numbers)
    cut = {}
    for key, numbers in needed.items():
        frame = frames[key]
        is_needed = np.isin(frame.numbers, np.concatenate(numbers))
        cut[key] = frame.cut(np.flatnonzero(is_needed))
    return cut
