"""The family of kernel SVMs: one kernel matrix for every C.

All splits share it, unless gamma or the rows depend on the training rows.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from scipy import sparse
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from dsel.arrays import Estimator, Features, Integers
from dsel.checks import check_choice, check_integer, check_positive
from dsel.data.frames import number_matrix
from dsel.data.identity import exact_text
from dsel.data.pool import Pool
from dsel.data.splits import Split
from dsel.families.family import Cache, Candidate, Family, FitCounts, join_order
from dsel.families.svm.fit import GroupFit
from dsel.families.svm.machines import (
    Machines,
    RowsByClass,
    check_row_norms,
    rows_by_class,
    split_svc,
)
from dsel.families.svm.packed_svms import PackedSVMs
from dsel.kernels.functions import KERNELS, MakeKernel, find_user_kernels
from dsel.kernels.kernel_checks import check_kernel
from dsel.results.fit_messages import FitProblem

SYMMETRY: Final = 1e-8  # times the largest entry
PARAMETERS: Final = tuple(SVC().get_params())  # `get_params` of each SVC takes .1 ms
MATRIX_FRACTION: Final = 0.6
"""Part of a task's memory for the kernel matrix; the rest is for copied rows and
votes."""


@dataclass(frozen=True)
class KernelSVMFamily(Family):
    """SVCs, alone or at the end of a pipeline; SVCs that differ in C share a kernel.

    A fit takes exactly the steps of libsvm, so it depends only on its training rows and
    its C. Several values of C share their first steps, up to the first step that the
    smaller C stops.
    """

    name: ClassVar[str] = "kernel SVM"
    holds_interpreter: ClassVar[bool] = False

    user_kernels: Mapping[str, MakeKernel] = field(
        default_factory=find_user_kernels, repr=False, compare=False
    )
    """Functions that the user has added to `KERNELS` in the process of the plan. They
    are sent with the family, since the `KERNELS` of a worker does not have them."""

    def refusal(self, estimator: Estimator) -> str | None:
        """Return why an SVC cannot be fitted exactly here; "" for other estimators."""
        _, prefix, svc = split_svc(estimator)
        if type(svc) is not SVC:
            return ""
        unknown_params = set(self.fit_params) - {f"{prefix}sample_weight"}
        is_function = callable(svc.kernel)
        # The sigmoid kernel is not positive definite, so `KERNELS` does not have it.
        is_known = is_function or svc.kernel in KERNELS
        is_inside = type(estimator) is Pipeline
        reasons = {
            "the kernel is a function that only SVC can call": is_function,
            f"the kernel {svc.kernel!r} is fitted by scikit-learn alone": not is_known,
            "probability=True needs libsvm's own fit": svc.probability is True,
            "break_ties=True predicts by confidences, not by votes": svc.break_ties,
            "a precomputed kernel inside a pipeline is changed by its other steps": (
                is_inside and not is_function and svc.kernel == "precomputed"
            ),
            f"the fit parameter {min(unknown_params, default='')!r} is not for the "
            f"SVC": unknown_params,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def rows_of(self, estimator: Estimator, X: Features) -> Any:
        """Return numbers, or what was given where steps of a pipeline come first."""
        return X if split_svc(estimator)[0] else number_matrix(X)

    def check(self, candidates: Sequence[Candidate], X: Features) -> None:
        """Raise if a candidate cannot be fitted; see `Family.check`."""
        kernels = set()
        unchecked = dict(self.user_kernels)
        for candidate in candidates:
            steps, _, svc = split_svc(candidate.estimator)
            if make := unchecked.pop(svc.kernel, None):
                # A function that is no kernel would make fits that do not end.
                check_kernel(
                    make(svc, 1.0 if isinstance(svc.gamma, str) else svc.gamma)
                )
            # The rows that a pipeline passes to its SVC are known only once it is
            # fitted.
            numbers = None if steps else number_matrix(X)
            with candidate.name_in_errors():
                check_svc(svc, numbers)
            if not steps:
                kernels.add(svc.kernel)
        for kernel in sorted(kernels):
            if kernel == "precomputed":
                check_gram(number_matrix(X))
            # All rows are checked here, before the fits: a row whose norm is too large
            # must not fail the candidates on some folds only.
            check_row_norms(number_matrix(X), kernel)

    def group_candidates(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[Candidate, ...]]:
        """Group candidates that differ only in C."""
        candidate_groups: dict[str, list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda candidate: candidate.number):
            steps, _, svc = split_svc(candidate.estimator)
            params = {name: getattr(svc, name) for name in PARAMETERS if name != "C"}
            candidate_groups.setdefault(exact_text([steps, params]), []).append(
                candidate
            )
        return [tuple(candidate_group) for candidate_group in candidate_groups.values()]

    def fit_note(
        self, candidate_groups: Sequence[Sequence[Candidate]], n_rows: int
    ) -> str:
        """Return the number and the size of the kernel matrices, as text."""
        n_shared = sum(self._shares_kernel(group[0]) for group in candidate_groups)
        n_others = len(candidate_groups) - n_shared
        texts = []
        if n_shared:
            texts.append(f"one kernel matrix for all C and folds, {n_shared} in all")
        if n_others:
            each = f", {n_others} on each" if n_others > 1 else ""
            texts.append(f"one kernel matrix for all C of a training set{each}")
        size = 4 * n_rows**2 / 2**20
        return f"{'; '.join(texts)}; a matrix of all rows has {size:.3g} MiB"

    def _shares_kernel(self, candidate: Candidate) -> bool:
        """Return whether the kernel matrix of a candidate is the same on all splits.

        Steps of a pipeline are fitted to the training rows, and ``gamma="scale"`` is
        computed from them; a linear kernel has no gamma.
        """
        steps, _, svc = split_svc(candidate.estimator)
        if steps or svc.gamma != "scale":
            return not steps
        make = self.user_kernels.get(svc.kernel) or KERNELS[svc.kernel]
        return bool(make(svc, 1.0) == make(svc, 2.0))

    def check_memory(self, n_rows: int, limit: int) -> None:
        """Raise where the kernel matrix of all rows does not fit; see `Family`."""
        needed = int(4 * n_rows**2 / MATRIX_FRACTION)
        most = int((limit * MATRIX_FRACTION / 4) ** 0.5)
        if limit < needed:
            raise MemoryError(
                f"the memory of a task must hold the kernel matrix of {n_rows:,} "
                f"labeled rows and copies of parts of it, {needed:,} bytes, got "
                f"{limit:,}; give each worker thread more memory, or use at most "
                f"{most:,} labeled rows."
            )

    def shared_nbytes(
        self, candidate_groups: Sequence[Sequence[Candidate]], n_rows: int
    ) -> int:
        """Return the bytes of the kernel matrices of some groups, and to compute them.

        Distances or products in float64, and a temporary array of the same size, are
        needed in addition to the float32 matrices. Of matrices of one split each only
        the last one is needed again; the others are kept while there is memory.
        """
        n_shared = sum(self._shares_kernel(group[0]) for group in candidate_groups)
        n_matrices = n_shared + (n_shared < len(candidate_groups))
        return (4 * n_matrices + 8 + 8) * n_rows**2

    def fit(
        self,
        candidates: Sequence[Candidate],
        X: Features,
        y: Integers,
        splits: Sequence[Split[int]],
        *,
        pool: Pool | None = None,
        cache: Cache,
    ) -> PackedSVMs:
        """Fit every candidate on every split; see `Family.fit`."""
        fit_counts = FitCounts.empty(len(candidates), len(splits))
        rows = self.rows_of(candidates[0].estimator, X)
        fits = GroupFit(self, candidates, rows, y, cache, self.user_kernels)
        machines, row_sets = [], {}
        for column, split in enumerate(splits):
            started = time.perf_counter()
            try:
                split_machines, row_set, failures = fits.fit(split, fit_counts, column)
                problem = FitProblem.UNPREDICTED  # it was fitted, and `predict` raised
                machines.append(split_machines)
                row_sets[row_set.origin] = row_set
            except Exception as error:
                failures, problem = [error], FitProblem.FAILED
            for failure in failures:
                for candidate in candidates:
                    fit_counts.record_error(
                        candidate.number, split.number, failure, problem
                    )
            seconds = (time.perf_counter() - started) / len(candidates)
            fit_counts.record_seconds(column, seconds)
        return PackedSVMs(
            candidate_numbers=tuple(candidate.number for candidate in candidates),
            split_numbers=tuple(split.number for split in splits),
            fit_counts=fit_counts,
            row_sets=pack_rows([row_sets], machines),
            machines=tuple(machines),
            estimators={
                candidate.number: candidate.estimator for candidate in candidates
            },
            train_rows={split.number: split.train_rows for split in splits},
            classes=self.classes,
        )

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> PackedSVMs:
        """Pack groups into one that predicts together; see `Family.join`."""
        candidate_numbers, splits = join_order(fitted, candidates)
        wanted = set(candidate_numbers)
        machines = [
            machines.of(wanted)
            for fitted_group in fitted
            for machines in fitted_group.machines
            if wanted & set(machines.candidate_numbers)
        ]
        return PackedSVMs(
            candidate_numbers=candidate_numbers,
            split_numbers=splits,
            fit_counts=FitCounts.empty(len(candidate_numbers), len(splits)),
            row_sets=pack_rows(
                [fitted_group.row_sets for fitted_group in fitted], machines
            ),
            machines=tuple(machines),
            estimators={
                candidate: estimator
                for fitted_group in fitted
                for candidate, estimator in fitted_group.estimators.items()
                if candidate in wanted
            },
            train_rows={t: rows for g in fitted for t, rows in g.train_rows.items()},
            classes=self.classes,
        )


CHECKED_HERE: Final = {
    **{"C": 1.0, "tol": 1e-3, "max_iter": -1, "gamma": "scale", "degree": 3},
    **{"kernel": "rbf", "class_weight": None},
}
"""Valid values of the parameters for which this family takes other ones than
scikit-learn, or whose fits fail one by one."""


def check_svc(svc: Any, X: Any) -> None:
    """Raise if a parameter is invalid, by itself or for these rows."""
    # scikit-learn would refuse the others only where a model is made of what was fitted
    # here, after all fits.
    if not get_config()["skip_parameter_validation"]:
        SVC(**svc.get_params(deep=False) | CHECKED_HERE)._validate_params()
    check_positive(svc.C, "C")
    check_positive(svc.tol, "tol")
    check_integer(svc.max_iter, "max_iter", at_least=-1)
    if isinstance(svc.gamma, str):
        check_choice(svc.gamma, "gamma", ("auto", "scale"))
    else:
        check_positive(svc.gamma, "gamma")
    if svc.kernel != "poly":
        return
    if svc.degree != 0:
        check_positive(svc.degree, "degree")
    if X is None or float(svc.degree).is_integer():
        return
    lowest = X.min() if X.shape[0] else 0.0
    if lowest < 0 or svc.coef0 < 0:
        raise ValueError(
            f"`degree` must be whole where features or `coef0` are negative, got "
            f"{svc.degree!r} with a smallest feature of {lowest:.6g} and "
            f"coef0={svc.coef0!r}; scale the features to be >= 0."
        )


def check_gram(X: Features) -> None:
    """Raise if the rows are no Gram matrix."""
    if issparse(X):
        raise TypeError("`X` must be a dense Gram matrix for kernel='precomputed'.")
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"`X` must be the square Gram matrix of the labeled rows for "
            f"kernel='precomputed', got shape {X.shape}."
        )
    X = np.asarray(X, dtype=np.float64)
    gap = float(np.abs(X - X.T).max(initial=0.0))
    if not gap <= SYMMETRY * float(np.abs(X).max(initial=0.0)):
        raise ValueError(
            f"`X` must be symmetric for kernel='precomputed', but two entries that "
            f"should be equal differ by {gap:.3g}; pass (X + X.T) / 2 if that is "
            f"rounding."
        )


def pack_rows(
    row_sets: Sequence[Mapping[str, RowsByClass]], machines: Sequence[Machines]
) -> dict[str, RowsByClass]:
    """Return the support vectors of the SVMs, by `RowsByClass.origin`."""
    support: dict[str, list[Integers]] = {}
    for svms in machines:
        support.setdefault(svms.rows_of, []).append(svms.row_numbers)
    packed = {}
    for origin, wanted in support.items():
        sources = [row_set[origin] for row_set in row_sets if origin in row_set]
        first = sources[0]
        n_classes = len(first.starts) - 1
        codes = np.concatenate(
            [np.repeat(np.arange(n_classes), np.diff(s.starts)) for s in sources]
        )
        row_numbers = np.concatenate([source.row_numbers for source in sources])
        _, places = np.unique(row_numbers, return_index=True)
        places = places[np.isin(row_numbers[places], np.concatenate(wanted))]
        # Precomputed kernel values come with the rows that are predicted, so the
        # columns are not stored.
        tables = [s.rows[:, :0] if first.n_values else s.rows for s in sources]
        stack: Any = sparse.vstack if sparse.issparse(first.rows) else np.concatenate
        rows = stack(tables) if len(tables) > 1 else tables[0]
        rows = rows.tocsr() if sparse.issparse(rows) else rows
        packed[origin] = rows_by_class(
            codes[places],
            n_classes,
            row_numbers[places],
            rows[places],
            origin=origin,
            steps=first.steps,
            n_values=first.n_values,
            takes_frames=first.takes_frames,
            columns=first.columns,
        )
    return packed
