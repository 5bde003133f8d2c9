"""Kernel SVMs of many candidates and splits that predict from shared kernels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Integers
from dsel.data.cache import nbytes_of
from dsel.data.frames import numbers
from dsel.families.family import FitCounts, FittedGroup, iter_splits
from dsel.families.svm.decisions import (
    DecisionWeights,
    KernelBlock,
    decide,
    kernel_block,
    lay_out,
)
from dsel.families.svm.fit import BLOCK_NBYTES
from dsel.families.svm.machines import Machines, svc_of
from dsel.families.svm.rows import RowsByClass
from dsel.kernels.functions import Kernel, Rbf
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows


@dataclass(frozen=True)
class ScoringPlan:
    """Models that predict from the same support rows, arranged for one kernel block."""

    labeled: RowsByClass
    """The rows."""
    by_kernel: Mapping[Kernel, Sequence[DecisionWeights]]
    """Machines of each kernel; Gaussian ones by ascending gamma: neighbors mostly give
    a row one label, which is tried first."""
    reference: Mapping[str, ReferenceRows]
    """The rows as reference rows, by the base of the kernels."""
    splits: Sequence[int]
    """Numbers of the splits whose machines are here."""

    def blocks(self, X: Any, rows: Integers) -> Iterator[tuple[Integers, Any]]:
        """Yield blocks of row numbers, and of `X` transformed for the SVMs.

        Data frames are transformed in one piece, since each call takes milliseconds.
        """
        labeled = self.labeled
        in_one = labeled.takes_frames and len(rows)
        whole = labeled.transform(X[rows]) if in_one else None
        # A block's values in float32 take 4 MiB. Twice as many take as long on one
        # thread, and a tenth longer on two, which share a cache. Of many classes, few
        # rows seldom have four of one guess.
        n_classes, n_columns = len(labeled.starts) - 1, len(labeled.numbers)
        step = max(128, 8 * n_classes, BLOCK_NBYTES // (8 * max(1, n_columns)))
        for start in range(0, len(rows), step):
            mine = slice(start, start + step)
            if whole is None:
                yield rows[mine], labeled.transform(numbers(X)[rows[mine]])
            else:
                yield rows[mine], whole[mine]

    def kernels(self, seen: Any) -> Iterator[KernelBlock]:
        """Yield the kernel values of some rows; each block overwrites the last one."""
        from dsel.families.svm import votes

        bases = {kind: each.base_of(seen) for kind, each in self.reference.items()}
        far = float(bases[DISTANCES].max(initial=0.0)) if DISTANCES in bases else 0.0
        starts = self.labeled.starts
        values = np.empty((seen.shape[0], starts[-1]), dtype=np.float32)
        for kernel in self.by_kernel:
            base = bases[kernel.base]
            less_one = isinstance(kernel, Rbf) and bool(kernel.gamma * far <= 1.0)
            if not isinstance(kernel, Rbf):
                values[:] = kernel.values(base)
            elif less_one:
                # Small numbers have more digits left for what tells apart rows whose
                # values are all close to 1.
                votes.exponentials_less_one(base, kernel.gamma, values)
            else:
                with np.errstate(over="ignore"):  # beyond float32 it is 0 in any case
                    np.multiply(base, -kernel.gamma, out=values, casting="same_kind")
                np.exp(values, out=values)
            yield kernel_block(
                kernel,
                self.reference[kernel.base],
                seen,
                values,
                starts,
                less_one=less_one,
            )


@dataclass(frozen=True)
class PackedSVMs(FittedGroup):
    """Kernel SVMs of some candidates, one per split."""

    candidates: tuple[int, ...]
    splits: tuple[int, ...]
    counts: FitCounts
    row_sets: Mapping[str, RowsByClass]
    """Support vectors, by their `RowsByClass.origin`."""
    machines: tuple[Machines, ...]
    """One for each kernel and split that could be fitted."""
    estimators: Mapping[int, Any]
    """Unfitted estimator of each candidate."""
    train_rows: Mapping[int, Integers]
    """Labeled rows of each split."""
    classes: NDArray[Any]
    """Label of each class code."""

    @property
    def nbytes(self) -> int:
        """Bytes to send the models."""
        return nbytes_of([self.train_rows, self.row_sets, self.machines])

    @property
    def row_nbytes(self) -> int:
        """Memory of `predict` for one row: two items of its codes, and itself."""
        columns = max((f.rows.shape[1] for f in self.row_sets.values()), default=0)
        return 8 * (2 * len(self.candidates) + 4 * columns + 4)

    @cached_property
    def plans(self) -> tuple[ScoringPlan, ...]:
        """The models, arranged over the kernel blocks that they read."""

        def order(machines: Machines) -> tuple[str, float, str]:
            kernel = machines.kernel
            gamma = kernel.gamma if isinstance(kernel, Rbf) else 0.0
            return type(kernel).__name__, gamma, repr(kernel)

        plans = []
        for origin, labeled in self.row_sets.items():
            by_kernel: dict[Kernel, list[DecisionWeights]] = {}
            mine = [each for each in self.machines if each.rows_of == origin]
            for each in sorted(mine, key=order):
                by_kernel.setdefault(each.kernel, []).append(lay_out(each, labeled))
            kinds = {kernel.base for kernel in by_kernel}
            reference = {kind: reference_rows(labeled.rows, kind) for kind in kinds}
            splits = [each.split for each in mine]
            plans.append(ScoringPlan(labeled, by_kernel, reference, splits))
        return tuple(plans)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out arrays that are computed again after unpickling."""
        return {name: v for name, v in self.__dict__.items() if name != "plans"}

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        n_rows = X.shape[0]
        codes = np.full((len(which), len(self.candidates), n_rows), -1, dtype=np.int64)
        by_row = [each for each in which if np.ndim(each) == 1]
        # Rows that ask one split stand together.
        order = np.argsort(by_row[0], kind="stable") if by_row else np.arange(n_rows)
        for plan in self.plans:
            is_asked = np.zeros(n_rows, dtype=np.bool_)
            for chosen in which:
                is_asked |= np.isin(np.atleast_2d(chosen), plan.splits).any(axis=0)
            for rows, seen in plan.blocks(X, order[is_asked[order]]):
                self._predict_block(plan, seen, which, rows, codes)
        return codes

    def _predict_block(
        self,
        plan: ScoringPlan,
        seen: Any,
        which: Sequence[Integers],
        rows: Integers,
        codes: Integers,
    ) -> None:
        """Write the class codes of some rows; memory is reused for the next ones."""
        # The label that was found last, mostly of a neighboring gamma or training set.
        guess = np.zeros(len(rows), dtype=np.int64)
        every, numbered = np.arange(len(self.candidates)), np.arange(len(rows))
        place_of = dict(zip(self.candidates, every.tolist(), strict=True))
        which = [each[rows] if np.ndim(each) == 1 else each for each in which]
        asks: dict[int, list[tuple[int, Integers, Integers]]] = {}
        for item, split, some, places in iter_splits(which, len(every)):
            asks.setdefault(split, []).append((item, every[some], numbered[places]))
        for block in plan.kernels(seen):
            for duals in plan.by_kernel[block.kernel]:
                machines = duals.machines
                own = np.array([place_of[number] for number in machines.candidates])
                for item, some, places in asks.get(machines.split, ()):
                    mine = np.isin(own, some)
                    if not mine.any():
                        continue
                    models = machines.model_of[mine]
                    found = decide(block, duals, places, models, guess)
                    guess[places] = found[models[len(models) // 2]]
                    where, target = rows[places], codes[item]
                    for place, model in zip(own[mine], models, strict=True):
                        target[place, where] = found[model]

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted estimator, which predicts as the group does."""
        for machines in self.machines:
            if machines.split == split and candidate in machines.candidates:
                return svc_of(
                    machines,
                    self.row_sets[machines.rows_of],
                    self.train_rows[split],
                    self.estimators[candidate],
                    candidate,
                    self.classes,
                )
        raise KeyError(f"candidate {candidate} has no model of split {split}")
