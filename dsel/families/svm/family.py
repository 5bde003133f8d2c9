"""The member of `Family` for kernel SVMs: one kernel, every C, all splits."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsel.data.identity import content_hash, exact_text
from dsel.data.splits import Split
from dsel.families.arrays import Integers
from dsel.families.family import (
    Assignment,
    Cache,
    Candidate,
    FitCounts,
    group_by,
    joined_numbers,
)
from dsel.families.svm.fit import Fitted, Task, fit_split
from dsel.families.svm.kernel import (
    LabeledKernel,
    check_limit,
    labeled_kernel,
    whole_nbytes,
)
from dsel.families.svm.predict import PackedSVMs, needed_rows
from dsel.families.svm.rows import (
    RowsByClass,
    join_rows,
    places_in_order,
    places_of,
    rows_as_given,
    rows_of_split,
)
from dsel.families.svm.settings import (
    check_candidates,
    class_weights,
    group_key,
    is_svc,
    last_step,
    refusal,
    resolve_kernel,
    row_weights,
    step_prefix,
    steps_before,
)
from dsel.kernels.functions import Kernel


@dataclass(frozen=True)
class KernelSVMFamily:
    """SVCs, alone or at the end of a pipeline, that differ in C share one kernel.

    A fit takes the steps of libsvm, so it depends on its training rows and its own C,
    on nothing else; the values of C share the steps that none of them stops.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> family = KernelSVMFamily(classes=np.array(["a", "b"]), seed=0)
    >>> grid = [SVC(C=C, gamma=g) for C in (1.0, 2.0) for g in (0.1, 0.2)]
    >>> candidates = [Candidate(i, {}, svc) for i, svc in enumerate(grid)]
    >>> [[c.number for c in group] for group in family.groups(candidates)]
    [[0, 2], [1, 3]]
    """

    name: ClassVar[str] = "kernel SVM"
    # Splits share the gram matrix, which is cheap beside a fit.
    fits_splits_together: ClassVar[bool] = False
    classes: NDArray[Any]
    seed: int
    """A pipeline's random steps get a hash of it."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Nothing, or sample weights of all labeled rows, named as `fit` takes them."""
    takes_frames: bool = False
    """Whether steps before the SVC get data frames, of which they make numbers."""

    def refusal(self, estimator: Any) -> str | None:
        """Refuse what cannot be done exactly; say nothing of what is no SVC."""
        return refusal(estimator, self.fit_params) if is_svc(estimator) else ""

    def assign(self, candidates: Sequence[Candidate], X: Any) -> Assignment:
        """Group candidates by kernel; raise where one cannot work; see `Family`."""
        check_candidates(candidates, X)
        groups = tuple(self.groups(candidates))
        remark = (
            f"one kernel for all C and folds, {len(groups)} in all, each "
            f"{whole_nbytes(X.shape[0]) / 2**30:.2g} GiB"
        )
        return Assignment(self, tuple(candidates), groups, remark)

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Raise where the kernel matrix does not fit; see `Family`."""
        check_limit(n_rows, limit)

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return the bytes of a kernel matrix for each group, and of making their base.

        The base, distances or products in float64, is made from another of its size.
        """
        base = 8 * n_rows**2
        return whole_nbytes(n_rows) + base + (n_groups - 1) * 4 * n_rows**2

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Return candidates that differ in C alone, together."""
        return group_by(candidates, group_key)

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> PackedSVMs:
        """Fit every candidate on every split; see `Family.fit`."""
        shared = GroupFit(self, tuple(group), X, y, budget)
        counts = FitCounts.empty(len(group), len(splits))
        done: list[tuple[RowsByClass, Fitted]] = []
        for column, split in enumerate(splits):
            started = time.perf_counter()
            try:
                labeled, fitted, refusals = shared.fit(split)
            except Exception as error:
                for candidate in group:
                    counts.failed(candidate.number, split.number, error)
            else:
                _note(counts, group, column, fitted)
                for candidate, raised in product(group, filter(None, refusals)):
                    counts.failed(candidate.number, split.number, raised)
                done.append((labeled, fitted))
            counts.seconds[:, column] = (time.perf_counter() - started) / len(group)
        return _pack(self, group, splits, counts, done)

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> PackedSVMs:
        """Pack groups into one that predicts together; see `Family.join`."""
        pieces = [piece for piece in fitted if isinstance(piece, PackedSVMs)]
        numbers, splits = joined_numbers(pieces, candidates)
        wanted = set(numbers)
        machines = tuple(
            each.of(wanted)
            for piece in pieces
            for each in piece.machines
            if wanted & set(each.candidates)
        )
        return PackedSVMs(
            numbers,
            splits,
            FitCounts.empty(len(numbers), len(splits)),
            needed_rows(join_rows([piece.row_sets for piece in pieces]), machines),
            machines,
            {
                c: e
                for piece in pieces
                for c, e in piece.estimators.items()
                if c in wanted
            },
            {t: rows for piece in pieces for t, rows in piece.train_rows.items()},
            self.classes,
        )


class GroupFit:
    """What the fits of one group share while it is fitted."""

    def __init__(
        self,
        family: KernelSVMFamily,
        group: tuple[Candidate, ...],
        X: Any,
        y: Integers,
        budget: Cache,
    ) -> None:
        self.family, self.X, self.y, self.budget = family, X, y, budget
        ascending = sorted(group, key=lambda c: (last_step(c.estimator).C, c.number))
        self.candidates = tuple(candidate.number for candidate in ascending)
        self.C_values = np.array([float(last_step(c.estimator).C) for c in ascending])
        self.estimator = group[0].estimator
        self.svc = last_step(self.estimator)
        self.steps = steps_before(self.estimator)
        name = f"{step_prefix(self.estimator)}sample_weight"
        given = family.fit_params.get(name)
        self.sample_weight = None if given is None else np.asarray(given, dtype=float)
        self.data_key = ""
        self.kernel: LabeledKernel | None = None

    def fit(
        self, split: Split
    ) -> tuple[RowsByClass, Fitted, tuple[Exception | None, ...]]:
        """Return one split's rows and machines, and refusals of its test rows."""
        check_limit(len(self.y), self.budget.limit)
        labels = self.family.classes[self.y[split.train_rows]]
        of_classes = class_weights(self.svc, labels)
        own = self.sample_weight
        weights = row_weights(
            of_classes, labels, None if own is None else own[split.train_rows]
        )
        labeled, refusals, key = self._rows(split)
        train = places_of(labeled.numbers, split.train_rows)
        kernel = self._labeled_kernel(labeled, key, resolve_kernel(
            self.svc, labeled.rows[train]
        ))  # fmt: skip
        at_places = np.zeros(len(self.y))
        at_places[places_in_order(labeled.numbers, split.train_rows)] = weights
        task = Task(
            split.number, self.candidates, self.C_values, float(self.svc.tol),
            int(self.svc.max_iter), of_classes,
        )  # fmt: skip
        tests = tuple(places_of(labeled.numbers, part) for part in split.tests)
        fitted = fit_split(kernel, task, at_places, tests)
        for errors, raised, part in zip(
            fitted.errors, refusals, split.tests, strict=False
        ):
            if raised is not None:
                errors[:] = len(part)
        return labeled, fitted, refusals

    def _rows(
        self, split: Split
    ) -> tuple[RowsByClass, tuple[Exception | None, ...], str]:
        """Return the rows as this split sees them, and a name for their contents.

        Between them is what was raised on each part of the test rows.
        """
        if not self.data_key:
            self.data_key = content_hash(self.X, self.y)
        classes = self.family.classes
        if not self.steps:
            by_column = self.svc.kernel == "precomputed"
            key = f"{by_column}-{self.data_key}"
            made = self.budget.get(
                f"svm-rows-{key}",
                lambda: rows_as_given(
                    self.X, self.y, len(classes), by_column=by_column
                ),
            )
            return made, (), key
        own = (exact_text(self.steps), self.family.seed, split.name)
        rows = content_hash(split.train_rows, *split.tests)
        key = f"{self.data_key}-{own}-{rows}"
        labeled, refusals = self.budget.get(
            f"svm-rows-{key}",
            lambda: rows_of_split(
                self.steps, self.X, self.y, classes, split,
                seed=self.family.seed,
                origin=blake2b(key.encode(), digest_size=16).hexdigest(),
            ),
        )  # fmt: skip
        return labeled, refusals, key

    def _labeled_kernel(
        self, labeled: RowsByClass, key: str, kernel: Kernel
    ) -> LabeledKernel:
        """Return the kernel of the labeled rows; the last one is kept."""
        last = self.kernel
        same_rows = last is not None and last.labeled.rows is labeled.rows
        if last is None or not same_rows or last.kernel != kernel:
            self.kernel = None  # let go of the old matrix before the new one is made
            last = self.kernel = labeled_kernel(labeled, kernel, key, self.budget)
        return last


def _note(
    counts: FitCounts, group: Sequence[Candidate], column: int, fitted: Fitted
) -> None:
    """Write what one split showed; `fitted` is in ascending order of C."""
    place = {candidate.number: row for row, candidate in enumerate(group)}
    rows = [place[number] for number in fitted.machines.candidates]
    counts.record((rows, column), *fitted.errors)
    for number, message in zip(
        fitted.machines.candidates, fitted.messages, strict=True
    ):
        if message:
            counts.messages[number, fitted.machines.split] = message


def _pack(
    family: KernelSVMFamily,
    group: Sequence[Candidate],
    splits: Sequence[Split],
    counts: FitCounts,
    done: Sequence[tuple[RowsByClass, Fitted]],
) -> PackedSVMs:
    """Keep the support vectors and leave the other rows behind."""
    machines = tuple(fitted.machines for _, fitted in done)
    return PackedSVMs(
        tuple(candidate.number for candidate in group),
        tuple(split.number for split in splits),
        counts,
        needed_rows({labeled.origin: labeled for labeled, _ in done}, machines),
        machines,
        {candidate.number: candidate.estimator for candidate in group},
        {split.number: split.train_rows for split in splits},
        family.classes,
    )
