"""Kernel SVMs of many candidates and splits that predict from shared kernels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.data.frames import numbers
from dsel.families.family import FitCounts, FittedGroup, asked
from dsel.families.svm.decisions import (
    EPS,
    LEAST,
    ROUNDINGS,
    DecisionWeights,
    KernelBlock,
    cell_decisions,
    decide,
    errors_of,
    exact_decisions,
    flush_to_peaks,
    places_of_pairs,
)
from dsel.families.svm.kernel import BLOCK_NBYTES
from dsel.families.svm.machines import Machines, svc_of
from dsel.families.svm.rows import RowsByClass
from dsel.kernels.functions import Kernel, Rbf
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows

TINY: Final = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class ScoringPlan:
    """Everything that predicts from the same rows, laid out."""

    labeled: RowsByClass
    """The rows."""
    by_kernel: tuple[tuple[Kernel, tuple[DecisionWeights, ...]], ...]
    """Machines of each kernel; Gaussian ones by ascending gamma: neighbours mostly give
    a row one label, which is tried first."""

    @classmethod
    def of_machines(
        cls, labeled: RowsByClass, machines: Sequence[Machines]
    ) -> "ScoringPlan":
        """Lay out all machines over the same support vectors."""
        by_kernel: dict[Kernel, list[DecisionWeights]] = {}
        for each in sorted(machines, key=lambda m: _kernel_order(m.kernel)):
            duals = DecisionWeights.from_machines(each, labeled.numbers, labeled.starts)
            by_kernel.setdefault(each.kernel, []).append(duals)
        return cls(labeled, tuple((k, tuple(some)) for k, some in by_kernel.items()))

    @property
    def splits(self) -> list[int]:
        """Numbers of the splits whose machines are here."""
        return [each.machines.split for _, some in self.by_kernel for each in some]

    def blocks(self, X: Any, rows: Integers) -> Iterator[tuple[Integers, Any]]:
        """Yield some of the row numbers, and `X` there as the machines see it.

        Data frames are transformed in one piece, since each call takes milliseconds.
        """
        in_one = self.labeled.takes_frames and len(rows)
        whole = self.labeled.transform(X[rows]) if in_one else None
        for start in range(0, len(rows), self.block_rows):
            mine = slice(start, start + self.block_rows)
            seen = (
                self.labeled.transform(numbers(X)[rows[mine]])
                if whole is None
                else whole[mine]
            )
            yield rows[mine], seen

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


def kernel_blocks(plan: ScoringPlan, seen: Any) -> Iterator[KernelBlock]:
    """Yield the kernels of a plan for some rows; each is overwritten by the next."""
    bases = {kind: each.base_of(seen) for kind, each in plan.reference.items()}
    farthest = float(bases[DISTANCES].max(initial=0.0)) if DISTANCES in bases else 0.0
    n_rows, starts = seen.shape[0], plan.labeled.starts
    into = np.empty((n_rows, len(plan.labeled.numbers)), dtype=np.float32)
    for kernel, _ in plan.by_kernel:
        reference, base = plan.reference[kernel.base], bases[kernel.base]
        less_one = isinstance(kernel, Rbf) and kernel.gamma * farthest <= 1.0
        values = _in_float32(kernel, base, into, less_one=less_one)
        peaks = flush_to_peaks(values, starts)  # what was flushed may be off, too
        largest = 1.0 if less_one else peaks.max(axis=0, initial=LEAST)
        if kernel.base == DISTANCES and not less_one:
            # Exponents are rounded: their error is the larger the smaller the value.
            peaks *= 1.0 - np.log(np.maximum(peaks, TINY)) / ROUNDINGS
        relative, absolute = errors_of(kernel, reference, seen)
        yield KernelBlock(
            kernel, reference, seen, base, values, peaks,
            (relative + 4.0 * EPS) * largest + absolute, less_one,
        )  # fmt: skip


def _in_float32(
    kernel: Kernel, base: Floats, into: NDArray[np.float32], *, less_one: bool
) -> NDArray[np.float32]:
    """Return kernel values; of a Gaussian one the exponent is rounded first.

    Small numbers have more digits left for what tells apart rows whose values are all
    close to 1: these are made less 1.
    """
    from dsel.families.svm import votes

    if not isinstance(kernel, Rbf):
        into[:] = kernel.values(base)
    elif less_one:
        votes.exponentials_less_one(base, kernel.gamma, into)
    else:
        with np.errstate(over="ignore"):  # beyond float32 it is 0 in any case
            np.multiply(base, -kernel.gamma, out=into, casting="same_kind")
        np.exp(into, out=into)
    return into


def score_block(duals: DecisionWeights, block: KernelBlock) -> Floats:
    """Return a score for every row, model and class present.

    Decisions that rounding could turn round are summed anew in a fixed order, so that
    the largest score is the class that the machines predict. The shape is (n_rows,
    n_models, n_present). Two classes have the pair (f, -f); more have votes, and sums
    of decisions squeezed into (-1/3, 1/3).
    """
    present, shape = duals.machines.present, (len(block.values), duals.n_models)
    if len(present) == 1:
        return np.zeros((*shape, 1))
    rows, models = (each.ravel() for each in np.indices(shape))
    values = block.precise(np.arange(len(block.values)))
    cells, changed = cell_decisions(duals, values, rows, models)
    limits = duals.limits(changed, block.errors[rows], models)
    decisions = cells.reshape(-1, *shape)
    doubtful = (np.abs(cells) <= limits).reshape(-1, *shape)
    for row in np.flatnonzero(doubtful.any(axis=(0, 2))):
        some = np.flatnonzero(doubtful[:, row].any(axis=0))
        decisions[:, row, some] = exact_decisions(duals, block.exact(int(row)), some)
    if len(present) == 2:
        return np.stack((decisions[0], -decisions[0]), axis=-1)
    votes, sums = np.zeros((2, *shape, len(present)))
    for decision, i, j in zip(decisions, *places_of_pairs(len(present)), strict=True):
        votes[..., i] += decision > 0
        votes[..., j] += decision <= 0
        sums[..., i] += decision
        sums[..., j] -= decision
    return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))


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
        """What moving the models costs."""
        rows = sum(
            labeled.rows.data.nbytes + labeled.numbers.nbytes
            for labeled in self.row_sets.values()
        )
        indices = sum(rows.nbytes for rows in self.train_rows.values())
        return int(rows + indices) + sum(machines.nbytes for machines in self.machines)

    @property
    def row_nbytes(self) -> int:
        """Memory of `predict` for one row: two queries of its codes, and itself."""
        columns = max((f.rows.shape[1] for f in self.row_sets.values()), default=0)
        return 8 * (2 * len(self.candidates) + 4 * columns + 4)

    @cached_property
    def plans(self) -> tuple[ScoringPlan, ...]:
        """The machines laid out over the kernel blocks that they read."""
        return tuple(
            ScoringPlan.of_machines(
                labeled, [m for m in self.machines if m.rows_of == key]
            )
            for key, labeled in self.row_sets.items()
        )

    @cached_property
    def place_of(self) -> Integers:
        """Place of each candidate number on the candidate axis."""
        places = np.full(max(self.candidates, default=-1) + 1, -1)
        places[list(self.candidates)] = np.arange(len(self.candidates))
        return places

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is laid out anew."""
        made = ("plans", "place_of")
        return {k: v for k, v in self.__dict__.items() if k not in made}

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
        """Write the codes of some rows; what they take is free for the next ones."""
        # The label that was found last, mostly of a neighbouring gamma or training set.
        guess = np.zeros(len(rows), dtype=np.int64)
        for block, duals, query, at, models, places in self._asked(
            plan, seen, which, rows
        ):
            found = decide(block, duals, places, models, guess)
            guess[places] = found[models[len(models) // 2]]
            where, target = rows[places], codes[query]
            for place, model in zip(at, models, strict=True):
                target[place, where] = found[model]

    def scores(self, X: Any, which: Sequence[Integers]) -> Floats:
        """Return real scores; see `FittedGroup.scores`.

        Two classes have the margin as the pair (-f, f). More classes have what
        ``SVC(decision_function_shape="ovr").decision_function`` gives: votes, and
        sums of decisions squeezed into (-1/3, 1/3).
        """
        shape = len(which), len(self.candidates), X.shape[0], len(self.classes)
        scores = np.full(shape, -np.inf)
        for plan in self.plans:
            for rows, seen in plan.blocks(X, np.arange(X.shape[0])):
                last = None
                for block, duals, query, at, models, places in self._asked(
                    plan, seen, which, rows
                ):
                    if duals is not last:
                        last, values = duals, score_block(duals, block)
                    for place, model in zip(at, models, strict=True):
                        cells = np.ix_([place], rows[places], duals.machines.present)
                        scores[query][cells] = values[places, model]
        return scores

    def _asked(
        self,
        plan: ScoringPlan,
        seen: Any,
        which: Sequence[Integers],
        rows: Integers,
    ) -> Iterator[
        tuple[KernelBlock, DecisionWeights, int, Integers, Integers, Integers]
    ]:
        """Yield kernels for some rows, machines, and what a query asks of these.

        The last three are places on the candidate axis, the models of the machines
        that belong to them, and places among the rows.
        """
        every = np.arange(len(self.candidates))
        which = [each[rows] if np.ndim(each) == 1 else each for each in which]
        asks: dict[int, list[tuple[int, Any, Integers]]] = {}
        for query, split, some, places in asked(which, len(every)):
            at = np.arange(len(rows))[places]
            asks.setdefault(split, []).append((query, some, at))
        blocks = kernel_blocks(plan, seen)
        for block, (_, each) in zip(blocks, plan.by_kernel, strict=True):
            for duals in each:
                machines = duals.machines
                own = self.place_of[list(machines.candidates)]
                for query, some, places in asks.get(machines.split, ()):
                    mine = np.isin(own, every[some])
                    if mine.any():
                        at, models = own[mine], machines.model_of[mine]
                        yield block, duals, query, at, models, places

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted estimator, whose predictions are the group's."""
        for machines in self.machines:
            if machines.split == split and candidate in machines.candidates:
                return svc_of(
                    machines, self.row_sets[machines.rows_of], self.train_rows[split],
                    self.estimators[candidate], candidate, self.classes,
                )  # fmt: skip
        raise KeyError(f"candidate {candidate} has no model of split {split}")
