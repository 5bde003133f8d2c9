"""Kernel SVMs of many candidates and splits that predict from shared kernels."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Bools, Floats, Integers
from dsel.data.frames import numbers
from dsel.families.family import FitCounts
from dsel.families.svm.decisions import (
    EPS,
    LEAST,
    ROUNDINGS,
    DecisionWeights,
    KernelBlock,
    cell_decisions,
    decide,
    exact_decisions,
    flush_to_peaks,
    places_of_pairs,
)
from dsel.families.svm.kernel import BLOCK_NBYTES
from dsel.families.svm.machines import Machines, dummy_of, svc_of
from dsel.families.svm.rows import RowsByClass
from dsel.kernels.functions import Kernel, Rbf, reach_of
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows

TINY: Final = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Query:
    """One entry of `which`: the split that each candidate and row asks."""

    view: Integers
    """Split numbers, (n_candidates, n_rows); axes that repeat have stride 0."""

    @classmethod
    def of(cls, chosen: Any, shape: tuple[int, int]) -> "Query":
        """Return an entry of `which`, broadcast to (n_candidates, n_rows)."""
        return cls(np.broadcast_to(np.asarray(chosen, dtype=np.int64), shape))

    @property
    def same_for_candidates(self) -> bool:
        """Whether all candidates ask alike."""
        return self.view.strides[0] == 0 or self.view.shape[0] == 1

    @property
    def same_for_rows(self) -> bool:
        """Whether all rows ask alike."""
        return self.view.strides[1] == 0 or self.view.shape[1] == 1

    def at(self, rows: Integers) -> "Query":
        """Return the query of some rows."""
        if self.same_for_rows:
            return Query.of(self.view[:, :1], (self.view.shape[0], len(rows)))
        if self.same_for_candidates:
            return Query.of(self.view[0, rows], (self.view.shape[0], len(rows)))
        return Query(self.view[:, rows])

    def rows_with(self, splits: Collection[int]) -> Bools:
        """Return which rows ask one of these splits for any candidate."""
        view = self.view[:1] if self.same_for_candidates else self.view
        return np.asarray(np.isin(view, list(splits)).any(axis=0))

    @cached_property
    def rows_of(self) -> dict[int, Integers]:
        """Row numbers by the split that they ask, where all candidates ask alike."""
        return {int(t): np.flatnonzero(self.view[0] == t) for t in set(self.view[0])}

    def asks(self, split: int, at: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Yield pieces of machines' candidates and rows that ask a split.

        `at` has the place of each of the candidates on the candidate axis. Pieces are
        places among the candidates, and row numbers; neither is empty.
        """
        if self.same_for_candidates:
            if self.view.size and split in self.rows_of:
                yield np.arange(len(at)), self.rows_of[split]
        elif self.same_for_rows:
            chosen = np.flatnonzero(self.view[at, 0] == split)
            if len(chosen):
                yield chosen, np.arange(self.view.shape[1])
        else:
            for place, row in enumerate(at):
                rows = np.flatnonzero(self.view[row] == split)
                if len(rows):
                    yield np.array([place]), rows


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
    from dsel.families.svm import votes

    bases = {kind: each.base_of(seen) for kind, each in plan.reference.items()}
    lengths = {kind: each.lengths_of(seen) for kind, each in plan.reference.items()}
    farthest = float(bases[DISTANCES].max(initial=0.0)) if DISTANCES in bases else 0.0
    n_rows, starts = seen.shape[0], plan.labeled.starts
    room = votes.room_for(n_rows, len(starts) - 1) if single else None
    into = np.empty((n_rows, len(plan.labeled.numbers)), dtype=np.float32)
    for kernel, _ in plan.by_kernel:
        reference, base = plan.reference[kernel.base], bases[kernel.base]
        less_one = single and isinstance(kernel, Rbf) and kernel.gamma * farthest <= 1.0
        values = _in_float32(kernel, base, into, less_one=less_one) if single else (
            kernel.values(base)
        )  # fmt: skip
        peaks = flush_to_peaks(values, starts)
        least = LEAST[values.dtype.type]  # what was flushed may be off, too
        largest = 1.0 if less_one else peaks.max(axis=0, initial=least)
        if kernel.base == DISTANCES and not less_one:
            # Exponents are rounded: their error is the larger the smaller the value.
            peaks *= 1.0 - np.log(np.maximum(peaks, TINY)) / ROUNDINGS
        relative, absolute = kernel.rounding(
            *reference.rounding(lengths[kernel.base], reach_of(kernel))
        )
        yield KernelBlock(
            values, peaks, (relative + 4.0 * EPS) * largest + absolute,
            partial(_precise_values, kernel, base),
            partial(_exact_values, kernel, reference, seen),
            room, less_one,
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


def _precise_values(kernel: Kernel, base: Floats, places: Integers) -> Floats:
    return kernel.values(base[places])


def _exact_values(
    kernel: Kernel, reference: ReferenceRows, seen: Any, place: int
) -> Floats:
    return kernel.values(reference.exact_base_of(seen[place : place + 1]))


def score_block(duals: DecisionWeights, block: KernelBlock) -> Floats:
    """Return a score for every row, model and class present.

    Decisions that rounding could turn round are summed anew in a fixed order, so that
    the largest score is the class that the machines predict. The block is in float64,
    the shape (n_rows, n_models, n_present). Two classes have the pair (f, -f); more
    have votes, and sums of decisions squeezed into (-1/3, 1/3).
    """
    present, shape = duals.machines.present, (len(block.values), duals.n_models)
    if len(present) == 1:
        return np.zeros((*shape, 1))
    rows, models = (each.ravel() for each in np.indices(shape))
    cells, _ = cell_decisions(duals, block.values, rows, models)
    decisions = cells.reshape(-1, *shape)
    doubtful = np.abs(decisions) <= duals.limits(block.peaks[present], block.errors)
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
class PackedSVMs:
    """Kernel SVMs of some candidates, one per split; a member of `FittedGroup`."""

    candidates: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""
    splits: tuple[int, ...]
    """Numbers of the splits, in the order of every split axis."""
    counts: FitCounts
    """Errors of every model on each part of its test rows."""
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

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size."""
        return self.nbytes

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is laid out anew."""
        made = ("plans", "place_of")
        return {k: v for k, v in self.__dict__.items() if k not in made}

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        n_rows = X.shape[0]
        shape = (len(self.candidates), n_rows)
        queries = [Query.of(chosen, shape) for chosen in which]
        codes = np.full((len(which), *shape), -1, dtype=np.int64)
        order = np.arange(n_rows)  # in which rows that ask one split stand together
        for query in (each for each in queries if not each.same_for_rows):
            order = np.argsort(query.view[0], kind="stable")
            break
        for plan in self.plans:
            asked = np.zeros(n_rows, dtype=np.bool_)
            for query in queries:
                asked |= query.rows_with(plan.splits)
            places = np.flatnonzero(asked[order])
            for mine, seen in plan.blocks(X, order[places]):
                at = places[mine]
                some = [query.at(order[at]) for query in queries]
                self._predict_block(plan, seen, some, at, codes)
        if (order[1:] < order[:-1]).any():
            for row in codes.reshape(-1, n_rows):
                row[order] = row.copy()
        return codes

    def _predict_block(
        self,
        plan: ScoringPlan,
        seen: Any,
        queries: list[Query],
        at: Integers,
        codes: Integers,
    ) -> None:
        """Write the codes of some rows at their places, (n_queries, ..., n_rows)."""
        # The label that was found last, mostly of a neighbouring gamma or training set.
        guess = np.zeros(len(at), dtype=np.int64)
        blocks = kernel_blocks(plan, seen, single=True)
        for block, (_, each) in zip(blocks, plan.by_kernel, strict=True):
            for duals in each:
                mine = self.place_of[list(duals.machines.candidates)]
                for query, target in zip(queries, codes, strict=True):
                    for chosen, places in query.asks(duals.machines.split, mine):
                        models = duals.machines.model_of[chosen]
                        found = decide(block, duals, places, models, guess)
                        guess[places] = found[models[len(models) // 2]]
                        where = _slice_of(at[places])
                        for place, model in zip(mine[chosen], models, strict=True):
                            target[place, where] = found[model]

    def scores(self, X: Any, which: Sequence[Integers]) -> Floats:
        """Return real scores; see `FittedGroup.scores`.

        Two classes have the margin as the pair (-f, f). More classes have what
        ``SVC(decision_function_shape="ovr").decision_function`` gives: votes, and
        sums of decisions squeezed into (-1/3, 1/3).
        """
        n_rows = X.shape[0]
        shape = (len(self.candidates), n_rows)
        queries = [Query.of(chosen, shape) for chosen in which]
        found = np.full((len(which), *shape, len(self.classes)), -np.inf)
        for plan in self.plans:
            for rows, seen in plan.blocks(X, np.arange(n_rows)):
                some = [query.at(np.arange(n_rows)[rows]) for query in queries]
                self._score_block(plan, seen, some, found[:, :, rows])
        return found

    def _score_block(
        self, plan: ScoringPlan, seen: Any, queries: list[Query], found: Floats
    ) -> None:
        """Write the scores of some rows, (n_queries, n_candidates, n_rows, ...)."""
        blocks = kernel_blocks(plan, seen, single=False)
        for block, (_, each) in zip(blocks, plan.by_kernel, strict=True):
            for duals in each:
                machines = duals.machines
                at = self.place_of[list(machines.candidates)]
                asks = [list(query.asks(machines.split, at)) for query in queries]
                if not any(asks):
                    continue
                values = score_block(duals, block)
                for pieces, target in zip(asks, found, strict=True):
                    for chosen, rows in pieces:
                        for place in chosen:
                            scores = values[rows, machines.model_of[place]]
                            cells = np.ix_([at[place]], rows, machines.present)
                            target[cells] = scores

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted scikit-learn estimator; its predictions are the group's.

        Raises
        ------
        KeyError
            Where the fit failed or is not in this group.
        """
        for machines in self.machines:
            if machines.split == split and candidate in machines.candidates:
                labeled = self.row_sets[machines.rows_of]
                rows = self.train_rows[split]
                estimator = self.estimators[candidate]
                if len(machines.present) < 2:
                    return dummy_of(machines, labeled, self.classes)
                return svc_of(
                    machines, labeled, rows, estimator, candidate, self.classes
                )
        raise KeyError(f"candidate {candidate} has no model of split {split}")


def _slice_of(places: Integers) -> slice | Integers:
    """Return ascending places as a slice where they are contiguous: no copy."""
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def needed_rows(
    row_sets: Mapping[str, RowsByClass], machines: Sequence[Machines]
) -> dict[str, RowsByClass]:
    """Return the rows of the machines with none but their support vectors."""
    needed: dict[str, list[Integers]] = {}
    for each in machines:
        needed.setdefault(each.rows_of, []).append(each.numbers)
    return {
        key: row_sets[key].cut(
            np.flatnonzero(np.isin(row_sets[key].numbers, np.concatenate(numbers)))
        )
        for key, numbers in needed.items()
    }
