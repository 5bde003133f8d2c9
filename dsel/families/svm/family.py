"""The member of `Family` for kernel SVMs: one kernel, every C, all splits."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Integers
from dsel.data.identity import content_hash, exact_text
from dsel.data.splits import Split
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
    MOST,
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
    holds_interpreter: ClassVar[bool] = False
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
        place = {candidate.number: row for row, candidate in enumerate(group)}
        ascending = [place[number] for number in shared.candidates]
        machines, row_sets = [], {}
        for column, split in enumerate(splits):
            started = time.perf_counter()
            failures: list[Exception] = []
            try:
                rows, fitted = shared.fit(split)
            except Exception as error:
                failures.append(error)
            else:
                counts.record((ascending, column), *fitted.errors)
                for number, remark in zip(
                    shared.candidates, fitted.remarks, strict=True
                ):
                    if remark:
                        counts.messages[number, split.number] = remark
                failures += filter(None, rows.refusals)
                machines.append(fitted.machines)
                row_sets[rows.labeled.origin] = rows.labeled
            for candidate, failure in product(group, failures):
                counts.failed(candidate.number, split.number, failure)
            counts.seconds[:, column] = (time.perf_counter() - started) / len(group)
        return PackedSVMs(
            candidates=tuple(candidate.number for candidate in group),
            splits=tuple(split.number for split in splits),
            counts=counts,
            row_sets=needed_rows(row_sets, machines),
            machines=tuple(machines),
            estimators={candidate.number: candidate.estimator for candidate in group},
            train_rows={split.number: split.train_rows for split in splits},
            classes=self.classes,
        )

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
            candidates=numbers,
            splits=splits,
            counts=FitCounts.empty(len(numbers), len(splits)),
            row_sets=needed_rows(join_rows([p.row_sets for p in pieces]), machines),
            machines=machines,
            estimators={
                c: e for p in pieces for c, e in p.estimators.items() if c in wanted
            },
            train_rows={t: rows for p in pieces for t, rows in p.train_rows.items()},
            classes=self.classes,
        )


@dataclass(frozen=True)
class SplitRows:
    """All labeled rows as one split sees them."""

    labeled: RowsByClass
    key: str
    """Names their contents."""
    refusals: tuple[Exception | None, ...] = ()
    """What cannot be predicted of each part of the test rows, None where nothing."""


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

    def fit(self, split: Split) -> tuple[SplitRows, Fitted]:
        """Return the rows as a split sees them, and its machines."""
        check_limit(len(self.y), self.budget.limit)
        labels = self.family.classes[self.y[split.train_rows]]
        of_classes, own = class_weights(self.svc, labels), self.sample_weight
        weights = row_weights(
            of_classes, labels, None if own is None else own[split.train_rows]
        )
        rows = self._rows(split)
        numbers, table = rows.labeled.numbers, rows.labeled.rows
        train = places_of(numbers, split.train_rows)
        kernel = self._labeled_kernel(rows, resolve_kernel(self.svc, table[train]))
        at_places = np.zeros(len(self.y))
        at_places[places_in_order(numbers, split.train_rows)] = weights
        task = Task(
            split.number, self.candidates, self.C_values, float(self.svc.tol),
            int(self.svc.max_iter), of_classes,
        )  # fmt: skip
        tests = tuple(places_of(numbers, part) for part in split.tests)
        fitted = fit_split(kernel, task, at_places, tests)
        for part, refused in enumerate(rows.refusals):
            if refused is not None:
                fitted.errors[part][:] = len(tests[part])
        return rows, fitted

    def _rows(self, split: Split) -> SplitRows:
        """Return the rows as a split sees them, from the cache where it has them."""
        self.data_key = self.data_key or content_hash(self.X, self.y)
        classes, kernel = self.family.classes, self.svc.kernel
        # Which kernels refuse the same rows, and need them alike.
        kind = kernel if kernel in ("precomputed", *MOST) else ""
        if not self.steps:
            key = f"{kind}-{self.data_key}"
            labeled, refused = self.budget.get(
                f"svm-rows-{key}",
                lambda: rows_as_given(self.X, self.y, len(classes), kernel),
            )
            train, *tests = (
                next((refused[row] for row in refused if row in part), None)
                for part in (split.train_rows, *split.tests)
            )
            if train is not None:
                raise train
            return SplitRows(labeled, key, tuple(tests))
        own = (exact_text(self.steps), self.family.seed, split.name)
        named = content_hash(split.train_rows, *split.tests)
        key = f"{kind}-{self.data_key}-{own}-{named}"
        labeled, refusals = self.budget.get(
            f"svm-rows-{key}",
            lambda: rows_of_split(
                self.steps, self.X, self.y, classes, split,
                kernel=kernel, seed=self.family.seed,
                origin=blake2b(key.encode(), digest_size=16).hexdigest(),
            ),
        )  # fmt: skip
        return SplitRows(labeled, key, refusals)

    def _labeled_kernel(self, rows: SplitRows, kernel: Kernel) -> LabeledKernel:
        """Return the kernel of the labeled rows; the last one is kept."""
        last, labeled = self.kernel, rows.labeled
        same_rows = last is not None and last.labeled.rows is labeled.rows
        if last is None or not same_rows or last.kernel != kernel:
            self.kernel = None  # let go of the old matrix before the new one is made
            last = labeled_kernel(labeled, kernel, rows.key, self.budget)
            self.kernel = last
        return last
