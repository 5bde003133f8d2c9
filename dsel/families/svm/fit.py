"""Fitting the machines of a group of candidates, one training set after another."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers
from dsel.data.identity import content_hash, exact_text
from dsel.data.splits import Split
from dsel.families.family import Cache, Candidate, Family, FitCounts
from dsel.families.svm.decisions import DecisionWeights, decide
from dsel.families.svm.kernel import LabeledKernel, check_limit, labeled_kernel
from dsel.families.svm.machines import Machines
from dsel.families.svm.rows import (
    RowsByClass,
    rows_as_given,
    rows_of_split,
)
from dsel.families.svm.settings import (
    last_step,
    resolve_kernel,
    step_prefix,
    steps_before,
    weights_of,
)

if TYPE_CHECKING:
    from dsel.families.svm.smo import Paths


class GroupFit:
    """The fits of one group, what they share, and what they found."""

    def __init__(
        self,
        family: Family,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        budget: Cache,
        counts: FitCounts,
    ) -> None:
        self.family, self.X, self.y, self.budget = family, X, y, budget
        self.counts = counts
        C_values = [float(last_step(each.estimator).C) for each in group]
        self.places = np.lexsort(([each.number for each in group], C_values))
        """Of the candidates in ascending order of C."""
        self.candidates = tuple(group[place].number for place in self.places)
        self.C_values = np.array(C_values)[self.places]
        estimator = group[0].estimator
        self.svc, self.steps = last_step(estimator), steps_before(estimator)
        given = family.fit_params.get(f"{step_prefix(estimator)}sample_weight")
        self.sample_weight = None if given is None else np.asarray(given, dtype=float)
        self.data_key = content_hash(X, y)
        self.kernel: LabeledKernel | None = None
        self.machines: list[Machines] = []
        self.row_sets: dict[str, RowsByClass] = {}

    def fit(self, column: int, split: Split) -> list[Exception]:
        """Fit a split, and count errors; return what cannot be predicted of its tests.

        `column` of the counts is that of the split.
        """
        check_limit(len(self.y), self.budget.limit)
        labels, own = self.family.classes[self.y[split.train_rows]], self.sample_weight
        of_classes, weights = weights_of(
            self.svc, labels, None if own is None else own[split.train_rows]
        )
        labeled, key, refusals = self._rows(split)
        place_of = np.argsort(labeled.numbers)
        train = place_of[split.train_rows]
        kernel = self._kernel(
            labeled, key, resolve_kernel(self.svc, labeled.rows[np.sort(train)])
        )
        at_places = np.zeros(len(self.y))
        at_places[train] = weights
        machines, gaps = self._solve(kernel, split, at_places, of_classes)
        duals = DecisionWeights.from_machines(machines, labeled.numbers, labeled.starts)
        errors = [
            len(part) if refusal else
            count_errors(kernel, duals, np.sort(place_of[part]))
            for part, refusal in zip(split.tests, refusals, strict=True)
        ]  # fmt: skip
        self.counts.record((self.places, column), *errors)
        for number, gap in zip(self.candidates, gaps, strict=True):
            if gap >= self.svc.tol:
                self.counts.messages[number, split.number] = (
                    f"The solver stopped at max_iter={self.svc.max_iter} with a KKT "
                    f"gap of {gap:.3g}, above tol={self.svc.tol:g}; scale the features "
                    f"or raise max_iter."
                )
        self.machines.append(machines)
        self.row_sets[labeled.origin] = labeled
        return [each for each in refusals if each]

    def _rows(
        self, split: Split
    ) -> tuple[RowsByClass, str, Sequence[Exception | None]]:
        """Return all labeled rows as a split sees them, and a name of their contents.

        From the cache where it has them. What cannot be predicted of each part of the
        test rows comes with them, None where nothing.
        """
        classes, kernel, seed = self.family.classes, self.svc.kernel, self.family.seed
        key = f"{kernel}-{self.data_key}"
        if not self.steps:
            labeled = self.budget.get(
                f"svm-rows-{key}",
                lambda: rows_as_given(self.X, self.y, len(classes), kernel),
            )
            return labeled, key, [None] * len(split.tests)
        named = content_hash(split.train_rows, *split.tests)
        key += f"-{(exact_text(self.steps), seed, split.name)}-{named}"
        labeled, refusals = self.budget.get(
            f"svm-rows-{key}",
            lambda: rows_of_split(
                self.steps, self.X, self.y, classes, split,
                kernel=kernel, seed=seed, cache=self.budget,
                origin=blake2b(key.encode(), digest_size=16).hexdigest(),
            ),
        )  # fmt: skip
        return labeled, key, refusals

    def _kernel(self, labeled: RowsByClass, key: str, kernel: Any) -> LabeledKernel:
        """Return the kernel of the labeled rows; the last one is kept."""
        last = self.kernel
        if not last or last.labeled.rows is not labeled.rows or last.kernel != kernel:
            self.kernel = last = None  # let go of the old matrix before the new one
            self.kernel = labeled_kernel(labeled, kernel, key, self.budget)
        assert self.kernel is not None
        return self.kernel

    def _solve(
        self, kernel: LabeledKernel, split: Split, weights: Floats, of_classes: Floats
    ) -> tuple[Machines, Floats]:
        """Solve all pairs of classes for every C; return what gaps are left, too.

        `weights` are factors of C of each of the kernel's rows, 0 for rows left out.
        Support vectors alone are kept, and equal solutions once.
        """
        used = np.flatnonzero(weights > 0)
        codes = codes_at(kernel, used)
        present = np.unique(codes)
        starts = np.append(np.searchsorted(codes, present), len(used))
        paths = solve_pairs(
            kernel.gram, used, starts, weights[used], kernel.diagonal[used],
            C_values=self.C_values, tol=self.svc.tol, max_iter=self.svc.max_iter,
        )  # fmt: skip
        coefs, offsets = paths.coefs, paths.offsets
        is_new = np.ones(len(self.candidates), dtype=np.bool_)
        is_new[1:] = (coefs[..., 1:] != coefs[..., :-1]).any(axis=(0, 1))
        is_new[1:] |= (offsets[:, 1:] != offsets[:, :-1]).any(axis=0)
        kept = coefs.any(axis=(1, 2))
        return Machines(
            split=split.number,
            rows_of=kernel.labeled.origin,
            kernel=kernel.kernel,
            candidates=self.candidates,
            model_of=np.cumsum(is_new) - 1,
            present=present,
            numbers=kernel.labeled.numbers[used[kept]],
            starts=np.concatenate(([0], np.cumsum(kept)))[starts],
            coefs=np.ascontiguousarray(coefs[kept][:, :, is_new]),
            offsets=offsets[:, is_new],
            steps=paths.steps,
            stopped=np.asarray((paths.gaps >= self.svc.tol).any(axis=0)),
            class_weight=of_classes,
        ), paths.gaps.max(axis=0, initial=0.0)


def solve_pairs(
    gram: NDArray[np.float32],
    members: Integers,
    starts: Integers,
    weights: Floats,
    diagonal: Floats,
    *,
    C_values: Floats,
    tol: float,
    max_iter: int,
) -> "Paths":
    """Solve for ascending C, for every two classes; see `smo.solve_pairs`."""
    from dsel.families.svm import smo

    n_others, n_C = max(len(starts) - 2, 0), len(C_values)
    n_pairs = (n_others + 1) * n_others // 2
    paths = smo.Paths(
        np.zeros((len(members), n_others, n_C)),
        np.zeros((n_pairs, n_C)),
        np.zeros((n_pairs, n_C), dtype=np.int64),
        np.zeros((n_pairs, n_C)),
    )
    if n_pairs:
        stops = float(tol), int(max_iter)
        smo.solve_pairs(
            gram, members, starts, weights, diagonal, C_values, stops, paths
        )
    return paths


def codes_at(kernel: LabeledKernel, places: Integers) -> Integers:
    """Return the class codes of places among the kernel's rows."""
    return np.searchsorted(kernel.labeled.starts, places, side="right") - 1


def count_errors(
    kernel: LabeledKernel, duals: DecisionWeights, places: Integers
) -> Integers:
    """Return the errors on some of the kernel's rows, (n_candidates,)."""
    errors, models = np.zeros(duals.n_models, np.int64), np.arange(duals.n_models)
    for start in range(0, len(places), kernel.block_rows):
        rows = places[start : start + kernel.block_rows]
        own = codes_at(kernel, rows)
        codes = decide(
            kernel.block(rows), duals, np.arange(len(rows)), models, guess=own
        )
        errors += np.count_nonzero(codes != own, axis=1)
    return errors[duals.machines.model_of]
