"""Fitting the binary SVMs of a group of candidates, one training set after another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight

from dsel.arrays import Features, Floats, Integers, Singles, as_floats
from dsel.data.cache import GROUP_PREFIX
from dsel.data.frames import Frame, names_of_frame
from dsel.data.identity import content_hash, exact_text
from dsel.data.splits import Split
from dsel.families.family import Cache, Candidate, Family, FitCounts, FitId
from dsel.families.prefixes import clone_estimator, fit_prefix, set_missing_seeds
from dsel.families.svm.decisions import (
    DecisionWeights,
    arrange_duals,
    decide,
    kernel_block,
)
from dsel.families.svm.machines import (
    Machines,
    RowsByClass,
    check_row_norms,
    rows_by_class,
    split_svc,
)
from dsel.kernels.functions import KERNELS, Kernel, MakeKernel
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows
from dsel.results.fit_messages import FitMessage, FitProblem
from dsel.typing import AnyArray

KERNEL_BLOCK_NBYTES: Final = 2**23
"""Bytes of a kernel block at most, so that it is still in the cache when it is read."""


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """Kernel values of labeled rows, which every C and split share."""

    kernel: Kernel
    row_set: RowsByClass
    reference: ReferenceRows
    gram: Singles
    """Values of all rows with all rows, in float32 as in libsvm's cache."""
    diagonal: Floats
    """Values of all rows with themselves in float64, which libsvm uses, too."""
    has_overflow: bool
    """Whether some value is too large for float32."""

    def check_values(self, positions: Integers) -> None:
        """Raise ValueError where a kernel value of two training rows is too large.

        Values of other rows are not checked: a search that must not see a fold would
        lose a candidate by that fold's rows.
        """
        if self.has_overflow:
            largest = np.abs(self.gram[np.ix_(positions, positions)]).max(initial=0.0)
            if not largest <= np.finfo(np.float32).max:
                raise ValueError(
                    f"kernel values must be below 3.4e38, got {largest:.3g} for "
                    f"{self.kernel!r}; scale the features."
                )


class GroupFit:
    """Rows, kernel and settings that the fits of one group share."""

    def __init__(
        self,
        family: Family,
        candidates: Sequence[Candidate],
        X: Features,
        y: Integers,
        cache: Cache,
        user_kernels: Mapping[str, MakeKernel],
    ) -> None:
        self.user_kernels = user_kernels
        self.family, self.X, self.y, self.cache = family, X, y, cache
        self.classes = family.classes
        C_values = np.array([float(split_svc(c.estimator)[2].C) for c in candidates])
        candidate_numbers = np.array([c.number for c in candidates])
        # The order is ascending, because the solver starts each C where the bound of
        # the next smaller one first stopped a step.
        self.order = np.lexsort((candidate_numbers, C_values))
        """Positions of the candidates in the group, in ascending order of C."""
        self.candidate_numbers = tuple(candidates[i].number for i in self.order)
        self.C_values = C_values[self.order]
        self.steps, prefix, self.svc = split_svc(candidates[0].estimator)
        weights = family.fit_params.get(f"{prefix}sample_weight")
        weights = np.ones(len(y)) if weights is None else weights
        self.sample_weight = np.asarray(weights, dtype=np.float64)
        self.matrix: KernelMatrix | None = None
        self.untransformed: RowsByClass | None = None
        """The labeled rows if no step transforms them; they are the same for all
        splits."""
        self.content = content_hash(X, y)
        if not self.steps:
            n_values = len(y) if self.svc.kernel == "precomputed" else 0
            origin = f"{'values' if n_values else 'rows'}-{self.content}"
            known: RowsByClass = cache.get(
                f"svm-{origin}",
                lambda: rows_by_class(
                    y,
                    len(self.classes),
                    np.arange(len(y)),
                    as_floats(X[:, np.argsort(y, kind="stable")] if n_values else X),
                    origin=origin,
                    steps=(),
                    n_values=n_values,
                ),
            )
            # Other names of the same rows do not change what is computed of them.
            self.untransformed = replace(known, columns=family.columns)

    def fit(
        self, split: Split[int], fit_counts: FitCounts, column_number: int
    ) -> tuple[Machines, RowsByClass, list[Exception]]:
        """Fit all candidates on a split, and write their errors into the counts.

        Returns the machines, their labeled rows, and the exceptions from test rows.
        """
        self.family.check_memory(len(self.y), self.cache.limit)
        train = split.train_rows
        class_weight, weights = weights_of(
            self.svc, self.classes[self.y[train]], self.sample_weight[train]
        )
        row_set, tests = self._transform_rows(split)
        positions = row_set.positions(train)
        order = np.argsort(positions)
        rows = row_set.rows[positions[order]]
        kernel = resolve_kernel(self.svc, rows, self.user_kernels)
        matrix = self._kernel_matrix(kernel, row_set)
        matrix.check_values(positions[order])
        # Rows of weight 0 cannot become support vectors; libsvm leaves them out, too.
        order = order[weights[order] > 0]
        machines, gaps = self._solve(
            matrix, split, positions[order], weights[order], class_weight
        )
        errors, failures = self._test(matrix, machines, split, tests)
        fit_counts.record((self.order, column_number), *errors)
        for fit, message in self._messages_of_stops(split, gaps):
            fit_counts.record_message(fit, message)
        return machines, row_set, failures

    def _transform_rows(self, split: Split[int]) -> tuple[RowsByClass, tuple[Any, ...]]:
        """Return the rows for the SVMs, by the steps that are fitted on the split.

        The result also has the test rows of each part, or the reason why they could not
        be transformed. There are none if no step transforms rows, since the test rows
        are among the labeled rows.
        """
        if self.untransformed is not None:
            return self.untransformed, ()
        front = clone_estimator(Pipeline(self.steps))
        front = set_missing_seeds(front, self.family.seed, split.name)
        prefix = fit_prefix(
            lambda: front,
            self.X,
            self.y,
            self.classes,
            split,
            content=self.content,
            text=exact_text(front),
            cache=self.cache,
        )
        row_set = rows_by_class(
            self.y[split.train_rows],
            len(self.classes),
            split.train_rows,
            check_row_norms(prefix.train_rows, self.svc.kernel),
            origin=prefix.key,
            steps=prefix.steps,
            takes_frames=isinstance(self.X, Frame),
            columns=names_of_frame(prefix.train_rows),
        )
        return row_set, prefix.tests

    def _test(
        self,
        matrix: KernelMatrix,
        machines: Machines,
        split: Split[int],
        tests: tuple[Any, ...],
    ) -> tuple[list[Integers], list[Exception]]:
        """Return the errors on each part of the test rows, and the exceptions there."""
        duals = arrange_duals(machines, matrix.row_set, self.svc)
        errors, failures = list[Integers](), list[Exception]()
        for i, test_rows in enumerate(split.row_parts):
            try:
                transformed = tests[i] if tests else None
                if isinstance(transformed, Exception):
                    raise transformed
                if tests and len(test_rows):
                    transformed = check_row_norms(transformed, self.svc.kernel)
                errors.append(self._count_errors(matrix, duals, test_rows, transformed))
            except Exception as error:  # all rows of the part count as errors
                errors.append(np.full(len(self.order), len(test_rows)))
                failures.append(error)
        return errors, failures

    def _messages_of_stops(
        self, split: Split[int], gaps: Floats
    ) -> Iterator[tuple[FitId[int], FitMessage]]:
        """Yield a message for each candidate whose solver stopped early."""
        for candidate, gap in zip(self.candidate_numbers, gaps, strict=True):
            if not gap >= self.svc.tol:  # NaN is not
                continue
            text = (
                f"The solver stopped at max_iter={self.svc.max_iter} with a KKT gap of "
                f"{gap:.3g}, above tol={self.svc.tol:g}; scale the features or raise "
                f"max_iter."
            )
            yield FitId(candidate, split.number), FitMessage(FitProblem.STOPPED, text)

    def _kernel_matrix(self, kernel: Kernel, row_set: RowsByClass) -> KernelMatrix:
        """Return the kernel matrix of labeled rows, which is made once for each."""
        known = self.matrix
        if known and known.kernel == kernel and known.row_set is row_set:
            return known
        known = self.matrix = None  # free the old matrix before making the new one
        cache, base = self.cache, None
        n_rows, key = len(row_set.row_numbers), f"{kernel.base}-{row_set.origin}"
        reference: ReferenceRows = cache.get(
            f"svm-reference-{key}", lambda: reference_rows(row_set.rows, kernel.base)
        )
        if 12 * n_rows**2 <= 0.8 * cache.limit:  # float64 base and float32 matrix
            base = cache.get(
                f"svm-base-{key}", lambda: reference.base_of(reference.rows)
            )

        def compute() -> Singles:
            """Return the kernel matrix, made in blocks because float64 is large."""
            gram = np.empty((n_rows, n_rows), dtype=np.float32)
            # All exponentials are computed: half of them and a mirrored copy take as
            # long.
            step = max(16, KERNEL_BLOCK_NBYTES // (16 * max(1, n_rows)))
            for start in range(0, n_rows, step):
                rows = slice(start, start + step)
                if base is not None:
                    block = base[rows]
                else:
                    block = reference.base_of(reference.rows[rows])
                    if kernel.base == DISTANCES:
                        # Distances of rows to themselves are exactly 0 where the base
                        # is made in one piece; blocks must not differ from it.
                        diagonal = np.arange(len(block))
                        block[diagonal, start + diagonal] = 0.0
                with np.errstate(over="ignore"):  # `check_values` reports it
                    gram[rows] = kernel.values(block)
            return gram

        gram = cache.get(f"{GROUP_PREFIX}svm-gram-{kernel!r}-{key}", compute)
        largest = 1.0 if kernel.base == DISTANCES else np.abs(gram).max(initial=0.0)
        norms = np.diagonal(row_set.rows) if row_set.n_values else reference.lengths
        self.matrix = KernelMatrix(
            kernel,
            row_set,
            reference,
            gram,
            diagonal=kernel.diagonal(norms),
            has_overflow=not largest <= np.finfo(np.float32).max,
        )
        return self.matrix

    def _solve(
        self,
        matrix: KernelMatrix,
        split: Split[int],
        positions: Integers,
        weights: Floats,
        class_weight: Floats,
    ) -> tuple[Machines, Floats]:
        """Solve all pairs of classes for every C; also return the KKT violations left.

        `positions` of the training rows ascend, `weights` are their factors of C. Only
        support vectors are kept, and equal solutions only once.
        """
        from dsel.families.svm import smo

        row_numbers = matrix.row_set.row_numbers[positions]
        present, firsts = np.unique(self.y[row_numbers], return_index=True)
        starts = np.append(firsts, len(positions))
        coefs, offsets, steps, gaps = smo.solve_pairs(
            matrix.gram,
            positions,
            starts,
            weights,
            matrix.diagonal[positions],
            self.C_values,
            float(self.svc.tol),
            int(self.svc.max_iter),
        )
        # From some C on no dual variable reaches its bound, and all solutions are
        # equal.
        is_new = np.ones(len(self.candidate_numbers), dtype=np.bool_)
        is_new[1:] = (coefs[..., 1:] != coefs[..., :-1]).any(axis=(0, 1))
        is_new[1:] |= (offsets[:, 1:] != offsets[:, :-1]).any(axis=0)
        is_support = coefs.any(axis=(1, 2))
        return Machines(
            split_number=split.number,
            rows_of=matrix.row_set.origin,
            kernel=matrix.kernel,
            candidate_numbers=self.candidate_numbers,
            model_of=np.cumsum(is_new) - 1,
            present=present,
            row_numbers=row_numbers[is_support],
            starts=np.concatenate(([0], np.cumsum(is_support)))[starts],
            coefs=np.ascontiguousarray(coefs[is_support][:, :, is_new]),
            offsets=offsets[:, is_new],
            steps=steps,
            stopped=np.asarray((gaps >= self.svc.tol).any(axis=0)),
            class_weight=class_weight,
        ), gaps.max(axis=0, initial=0.0)

    def _count_errors(
        self,
        matrix: KernelMatrix,
        duals: DecisionWeights,
        test_rows: Integers,
        transformed: Any,
    ) -> Integers:
        """Count the errors on some labeled rows, (n_candidates,).

        `transformed` are these rows as input of the SVMs, or None where they are among
        the rows of the kernel matrix.
        """
        kernel, reference = matrix.kernel, matrix.reference
        starts = matrix.row_set.starts
        models = np.arange(duals.machines.n_models)
        n_errors = np.zeros_like(models)
        positions = (
            matrix.row_set.positions(test_rows) if transformed is None else test_rows
        )
        step = max(16, KERNEL_BLOCK_NBYTES // (8 * max(1, len(matrix.gram))))
        for start in range(0, len(test_rows), step):
            block_rows = slice(start, start + step)
            if transformed is None:
                at = positions[block_rows]
                rows, values = reference.rows[at], matrix.gram[at]
            else:
                rows = transformed[block_rows]
                values = kernel.values(reference.base_of(rows)).astype(np.float32)
            block = kernel_block(kernel, reference, rows, values, starts)
            # The true class is the best first guess: most predictions are right.
            truth = self.y[test_rows[block_rows]]
            codes = decide(block, duals, np.arange(len(truth)), models, truth)
            n_errors += np.count_nonzero(codes != truth, axis=1)
        return n_errors[duals.machines.model_of]


def resolve_kernel(svc: Any, X: Any, user_kernels: Mapping[str, MakeKernel]) -> Kernel:
    """Return the kernel of an SVC that is fitted on these rows, as scikit-learn does.

    ``gamma="scale"`` is 1 / (n_columns variance of all entries), ``"auto"`` is
    1 / n_columns. `user_kernels` makes kernels that the user has added to `KERNELS`.
    """
    gamma = svc.gamma
    if gamma == "auto":
        gamma = 1.0 / X.shape[1]
    elif gamma == "scale":
        variance = X.multiply(X).mean() - X.mean() ** 2 if issparse(X) else X.var()
        gamma = 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    make = user_kernels.get(svc.kernel) or KERNELS[svc.kernel]
    return make(svc, float(gamma))


def weights_of(
    svc: Any, labels: AnyArray, sample_weight: Floats
) -> tuple[Floats, Floats]:
    """Return the factor of C of each class of the labels, ascending, and of each row.

    Raises ValueError where no row of a class has a positive weight.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    class_weight = np.ones(len(classes))
    if svc.class_weight is not None:
        factors = compute_class_weight(svc.class_weight, classes=classes, y=labels)
        class_weight = np.asarray(factors, dtype=np.float64)
    weights = class_weight[codes] * sample_weight
    empty = set(codes.tolist()) - set(codes[weights > 0].tolist())
    if empty:
        label = classes[min(empty)]
        raise ValueError(f"`sample_weight` leaves no training row of class {label}.")
    return class_weight, weights
