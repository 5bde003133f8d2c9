"""Fitting the binary SVMs of a group of candidates, one training set after another."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dsel.arrays import Floats, Integers, as_floats
from dsel.data.cache import OWN
from dsel.data.frames import Frame
from dsel.data.identity import content_hash, exact_text
from dsel.data.splits import Split
from dsel.families.family import Cache, Candidate, Family, FitCounts
from dsel.families.prefixes import clone_estimator, fit_prefix, with_seeds
from dsel.families.svm.decisions import DecisionWeights, decide, kernel_block, lay_out
from dsel.families.svm.machines import Machines
from dsel.families.svm.rows import RowsByClass, check_row_lengths, rows_by_class
from dsel.families.svm.settings import resolve_kernel, split_svc, weights_of
from dsel.kernels.functions import Kernel
from dsel.kernels.reference_rows import DISTANCES, ReferenceRows, reference_rows

BLOCK_NBYTES: Final = 2**23
"""Kernel blocks stay below this, so that what reads them finds them in the cache."""


class GroupFit:
    """Rows, kernel and settings that the fits of one group share."""

    def __init__(
        self,
        family: Family,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        budget: Cache,
    ) -> None:
        self.family, self.X, self.y, self.budget = family, X, y, budget
        self.classes = family.classes
        C_values = np.array([float(split_svc(each.estimator)[2].C) for each in group])
        numbers = np.array([each.number for each in group])
        # Ascending, since each C goes on from where the one before was first stopped
        # by its bound.
        self.places = np.lexsort((numbers, C_values))
        """Of the candidates in ascending order of C."""
        self.candidates = tuple(group[place].number for place in self.places)
        self.C_values = C_values[self.places]
        self.steps, prefix, self.svc = split_svc(group[0].estimator)
        weights = family.fit_params.get(f"{prefix}sample_weight")
        weights = np.ones(len(y)) if weights is None else weights
        self.sample_weight = np.asarray(weights, dtype=np.float64)
        self.kernel: Any = None
        self.gram: Any = None
        """Kernel values of all rows with all rows, in float32 as libsvm keeps them."""
        self.as_given: RowsByClass | None = None
        if not self.steps:
            n_values = len(y) if self.svc.kernel == "precomputed" else 0
            origin = f"{'values' if n_values else 'rows'}-{content_hash(X, y)}"
            self.as_given = budget.get(
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

    def fit(
        self, split: Split, counts: FitCounts, column: int
    ) -> tuple[Machines, RowsByClass, list[Exception]]:
        """Fit all candidates on a split, and write their errors into the counts.

        Beside the machines are their labeled rows, and what was raised on test rows.
        """
        self.family.check_budget(len(self.y), self.budget.limit)
        svc, train = self.svc, split.train_rows
        of_classes, weights = weights_of(
            svc, self.classes[self.y[train]], self.sample_weight[train]
        )
        labeled, tests = self.as_given, tuple[Any, ...]()
        if labeled is None:
            front = with_seeds(
                clone_estimator(Pipeline(self.steps)),
                self.family.seed,
                behind=(split.name,),
            )
            origin, steps, rows, tests = fit_prefix(
                front,
                self.X,
                self.y,
                self.classes,
                split,
                text=exact_text(front),
                cache=self.budget,
            )
            labeled = rows_by_class(
                self.y[train],
                len(self.classes),
                train,
                check_row_lengths(rows, svc.kernel),
                origin=origin,
                steps=steps,
                takes_frames=isinstance(self.X, Frame),
            )
        places = labeled.places_of(train)
        by_place = np.argsort(places)
        kernel = resolve_kernel(svc, labeled.rows[places[by_place]])
        if kernel != self.kernel or labeled is not self.labeled:
            self._compute_kernel(kernel, labeled)
        # Rows of weight 0 cannot become support vectors; libsvm leaves them out, too.
        by_place = by_place[weights[by_place] > 0]
        machines, gaps = self._solve(
            split, places[by_place], weights[by_place], of_classes
        )
        duals, errors, refused = lay_out(machines, labeled), [], []
        for place, part in enumerate(split.tests):
            try:
                seen = tests[place] if tests else None
                if isinstance(seen, Exception):
                    raise seen
                if tests and len(part):
                    seen = check_row_lengths(seen, svc.kernel)
                errors.append(self._count_errors(duals, part, seen))
            except Exception as error:  # all rows of the part are wrong
                errors.append(np.full(len(self.places), len(part)))
                refused.append(error)
        counts.record((self.places, column), *errors)
        for number, gap in zip(self.candidates, gaps, strict=True):
            if gap >= svc.tol:
                counts.messages[number, split.number] = (
                    f"The solver stopped at max_iter={svc.max_iter} with a KKT gap of "
                    f"{gap:.3g}, above tol={svc.tol:g}; scale the features or raise "
                    f"max_iter."
                )
        return machines, labeled, refused

    def _compute_kernel(self, kernel: Kernel, labeled: RowsByClass) -> None:
        """Compute a kernel over labeled rows, which every C and all splits share.

        Raises ValueError where a kernel value is too large, or cannot be computed.
        """
        self.kernel = self.gram = None  # let go of the old matrix before the new one
        budget, base = self.budget, None
        n_rows, key = len(labeled.numbers), f"{kernel.base}-{labeled.origin}"
        reference: ReferenceRows = budget.get(
            f"svm-reference-{key}", lambda: reference_rows(labeled.rows, kernel.base)
        )
        if 12 * n_rows**2 <= 0.8 * budget.limit:  # base and matrix
            base = budget.get(
                f"svm-base-{key}", lambda: reference.base_of(reference.rows)
            )

        def make() -> NDArray[np.float32]:
            gram = np.empty((n_rows, n_rows), dtype=np.float32)
            # All exponentials: to compute half of them and mirror that takes as long.
            step = max(16, BLOCK_NBYTES // (16 * max(1, n_rows)))
            for start in range(0, n_rows, step):
                rows = slice(start, start + step)
                if base is not None:
                    block = base[rows]
                else:
                    block = reference.base_of(reference.rows[rows])
                    if kernel.base == DISTANCES:  # as where it is made in one piece
                        places = np.arange(len(block))
                        block[places, start + places] = 0.0
                gram[rows] = kernel.values(block)
            return gram

        gram = budget.get(f"{OWN}svm-gram-{kernel!r}-{key}", make)
        largest = 1.0 if kernel.base == DISTANCES else np.abs(gram).max(initial=0.0)
        if not largest <= np.finfo(np.float32).max:
            raise ValueError(
                f"kernel values must be below 3.4e38, got {largest:.3g} for "
                f"{kernel!r}; scale the features."
            )
        own = np.diagonal(labeled.rows) if labeled.n_values else reference.lengths
        self.kernel, self.labeled, self.reference = kernel, labeled, reference
        self.gram = gram
        self.diagonal = kernel.diagonal(own)
        """Kernel of all rows with themselves, which libsvm keeps without rounding."""

    def _solve(
        self, split: Split, places: Integers, weights: Floats, of_classes: Floats
    ) -> tuple[Machines, Floats]:
        """Solve all pairs of classes for every C; return remaining KKT violations, too.

        `places` of the training rows ascend, `weights` are their factors of C. Support
        vectors alone are kept, and equal solutions once.
        """
        from dsel.families.svm import smo

        numbers = self.labeled.numbers[places]
        present, firsts = np.unique(self.y[numbers], return_index=True)
        starts = np.append(firsts, len(places))
        coefs, offsets, steps, gaps = smo.solve_pairs(
            self.gram,
            places,
            starts,
            weights,
            self.diagonal[places],
            self.C_values,
            float(self.svc.tol),
            int(self.svc.max_iter),
        )
        # From some C on no variable meets its bound, and all machines are the same.
        is_new = np.ones(len(self.candidates), dtype=np.bool_)
        is_new[1:] = (coefs[..., 1:] != coefs[..., :-1]).any(axis=(0, 1))
        is_new[1:] |= (offsets[:, 1:] != offsets[:, :-1]).any(axis=0)
        kept = coefs.any(axis=(1, 2))
        return Machines(
            split=split.number,
            rows_of=self.labeled.origin,
            kernel=self.kernel,
            candidates=self.candidates,
            model_of=np.cumsum(is_new) - 1,
            present=present,
            numbers=numbers[kept],
            starts=np.concatenate(([0], np.cumsum(kept)))[starts],
            coefs=np.ascontiguousarray(coefs[kept][:, :, is_new]),
            offsets=offsets[:, is_new],
            steps=steps,
            stopped=np.asarray((gaps >= self.svc.tol).any(axis=0)),
            class_weight=of_classes,
        ), gaps.max(axis=0, initial=0.0)

    def _count_errors(
        self, duals: DecisionWeights, part: Integers, seen: Any
    ) -> Integers:
        """Return the errors on some labeled rows, (n_candidates,).

        `seen` are the rows as the machines see them, or None where they are among the
        rows of the kernel.
        """
        kernel, reference, starts = self.kernel, self.reference, self.labeled.starts
        models = np.arange(duals.machines.n_models)
        wrong = np.zeros_like(models)
        at = self.labeled.places_of(part) if seen is None else part
        step = max(16, BLOCK_NBYTES // (8 * max(1, len(self.gram))))
        for start in range(0, len(part), step):
            mine = slice(start, start + step)
            if seen is None:
                rows, values = reference.rows[at[mine]], self.gram[at[mine]]
            else:
                rows = seen[mine]
                values = kernel.values(reference.base_of(rows)).astype(np.float32)
            block = kernel_block(kernel, reference, rows, values, starts)
            own = self.y[part[mine]]
            codes = decide(block, duals, np.arange(len(own)), models, own)
            wrong += np.count_nonzero(codes != own, axis=1)
        return wrong[duals.machines.model_of]
