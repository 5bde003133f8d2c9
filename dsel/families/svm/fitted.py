"""Kernel SVMs of many candidates and splits that predict from shared kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.families.arrays import Floats, Integers
from dsel.families.family import FitCounts
from dsel.families.svm.decisions import Machines
from dsel.families.svm.estimators import dummy_of, svc_of
from dsel.families.svm.labeled_rows import RowsByClass
from dsel.families.svm.queries import Query, query_of, row_order, slice_of
from dsel.families.svm.scoring import (
    ScoringPlan,
    kernel_blocks,
    score_block,
    write_scores,
)
from dsel.families.svm.votes import decide


@dataclass(frozen=True)
class PackedSVMs:
    """Kernel SVMs of some candidates, one per split; a member of `FittedGroup`."""

    candidates: tuple[int, ...]
    """Numbers of the candidates, in the order of every candidate axis."""
    splits: tuple[int, ...]
    """Numbers of the splits, in the order of every split axis."""
    counts: FitCounts
    """Errors of every model on its test and training rows."""
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
        queries = [query_of(chosen, shape) for chosen in which]
        codes = np.full((len(which), *shape), -1, dtype=np.int64)
        order = row_order(queries, n_rows)
        for plan in self.plans:
            asked = np.zeros(n_rows, dtype=np.bool_)
            for query in queries:
                asked |= query.rows_with(plan.splits)
            places = np.flatnonzero(asked[order])
            for mine, seen in plan.blocks(X, order[places]):
                at = places[mine]
                self._predict_block(
                    plan, seen, [query.at(order[at]) for query in queries], at, codes
                )
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
        wanted = {split for query in queries for split in query.splits}
        blocks = kernel_blocks(plan, seen, single=True)
        for block, (_, each) in zip(blocks, plan.by_kernel, strict=True):
            for duals in each:
                if duals.machines.split not in wanted:
                    continue
                mine = self.place_of[list(duals.machines.candidates)]
                for query, target in zip(queries, codes, strict=True):
                    for chosen, places in query.asks(duals.machines.split, mine):
                        models = duals.machines.model_of[chosen]
                        found = decide(block, duals, places, models, guess)
                        guess[places] = found[models[len(models) // 2]]
                        where = slice_of(at[places])
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
        queries = [query_of(chosen, shape) for chosen in which]
        found = np.full((len(which), *shape, len(self.classes)), np.nan)
        for plan in self.plans:
            rows = np.arange(n_rows)
            for mine, seen in plan.blocks(X, rows):
                self._score_rows(plan, seen, rows[mine], queries, found)
        return found

    def _score_rows(
        self,
        plan: ScoringPlan,
        seen: Any,
        rows: Integers,
        queries: list[Query],
        found: Floats,
    ) -> None:
        mine = [query.at(rows) for query in queries]
        blocks = kernel_blocks(plan, seen, single=False)
        for block, (_, each) in zip(blocks, plan.by_kernel, strict=True):
            for duals in each:
                machines = duals.machines
                at = self.place_of[list(machines.candidates)]
                asks = [list(query.asks(machines.split, at)) for query in mine]
                if not any(asks):
                    continue
                values = score_block(duals, block)
                for pieces, target in zip(asks, found, strict=True):
                    for chosen, places in pieces:
                        models = machines.model_of[chosen]
                        scores = values[places][:, models]
                        write_scores(scores, duals, target, at[chosen], rows[places])

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
