"""The member of `Family` for kernel SVMs: one kernel, every C, all splits."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dsel.arrays import Integers
from dsel.data.frames import Frame, numbers
from dsel.data.splits import Split
from dsel.families.family import Cache, Candidate, Family, FitCounts, joined_numbers
from dsel.families.prefixes import first_step
from dsel.families.svm.fit import GroupFit
from dsel.families.svm.kernel import check_limit, whole_nbytes
from dsel.families.svm.predict import PackedSVMs
from dsel.families.svm.rows import packed_rows, usable
from dsel.families.svm.settings import (
    check_candidates,
    group_key,
    refusal,
    steps_before,
)


@dataclass(frozen=True)
class KernelSVMFamily(Family):
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
    holds_interpreter: ClassVar[bool] = False

    def refusal(self, estimator: Any) -> str | None:
        """Refuse what cannot be done exactly; say nothing of what is no SVC."""
        return refusal(estimator, self.fit_params)

    def rows_of(self, estimator: Any, X: Any) -> Any:
        """Return numbers, or a data frame for steps that make numbers of it."""
        if isinstance(X, Frame) and steps_before(estimator):
            names_columns = hasattr(first_step(estimator), "transformers")
            if names_columns or not X.schema.is_numeric:
                return X
        return numbers(X)

    def check(self, candidates: Sequence[Candidate], X: Any) -> None:
        """Raise where a candidate cannot work; see `Family.check`."""
        # What a pipeline makes of the rows is seen when it is fitted.
        bare = [c.estimator for c in candidates if not steps_before(c.estimator)]
        check_candidates(candidates, numbers(X) if bare else None)
        for kernel in sorted({estimator.kernel for estimator in bare}):
            usable(numbers(X), kernel)  # a fold must not fail what is chosen without it

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Return candidates that differ in C alone, together."""
        found: dict[str, list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda each: each.number):
            found.setdefault(group_key(candidate), []).append(candidate)
        return [tuple(group) for group in found.values()]

    def remark(self, n_groups: int, n_rows: int) -> str:
        """Return how many kernels there are, and their size."""
        size = whole_nbytes(n_rows) / 2**30
        return f"one kernel for all C and folds, {n_groups} in all, each {size:.2g} GiB"

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Raise where the kernel matrix does not fit; see `Family`."""
        check_limit(n_rows, limit)

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return the bytes of a kernel matrix for each group, and of making their base.

        The base, distances or products in float64, is made from another of its size.
        """
        base = 8 * n_rows**2
        return whole_nbytes(n_rows) + base + (n_groups - 1) * 4 * n_rows**2

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
        counts = FitCounts.empty(len(group), len(splits))
        X = self.rows_of(group[0].estimator, X)
        fits = GroupFit(self, group, X, y, budget, counts)
        for column, split in enumerate(splits):
            started = time.perf_counter()
            try:
                failures = fits.fit(column, split)
            except Exception as error:
                failures = [error]
            for failure in failures:
                for candidate in group:
                    counts.failed(candidate.number, split.number, failure)
            counts.seconds[:, column] = (time.perf_counter() - started) / len(group)
        return PackedSVMs(
            candidates=tuple(candidate.number for candidate in group),
            splits=tuple(split.number for split in splits),
            counts=counts,
            row_sets=packed_rows([fits.row_sets], fits.machines),
            machines=tuple(fits.machines),
            estimators={candidate.number: candidate.estimator for candidate in group},
            train_rows={split.number: split.train_rows for split in splits},
            classes=self.classes,
        )

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> PackedSVMs:
        """Pack groups into one that predicts together; see `Family.join`."""
        numbers, splits = joined_numbers(fitted, candidates)
        wanted = set(numbers)
        machines = [
            each.of(wanted)
            for piece in fitted
            for each in piece.machines
            if wanted & set(each.candidates)
        ]
        estimators: Mapping[int, Any] = {
            c: e for piece in fitted for c, e in piece.estimators.items() if c in wanted
        }
        return PackedSVMs(
            candidates=numbers,
            splits=splits,
            counts=FitCounts.empty(len(numbers), len(splits)),
            row_sets=packed_rows([piece.row_sets for piece in fitted], machines),
            machines=tuple(machines),
            estimators=estimators,
            train_rows={t: rows for p in fitted for t, rows in p.train_rows.items()},
            classes=self.classes,
        )
