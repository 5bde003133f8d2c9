"""All regularizations and all fold models of a width from one decomposition."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.checks import check_choice, check_positive
from dsel.data.trainings import Training
from dsel.models.base import FIT_DONE, Cache, Candidate
from dsel.models.kernel_coefficients import PENALTIES
from dsel.models.kernel_least_squares import KernelLeastSquaresClassifier
from dsel.models.kernel_least_squares_basis import (
    KernelBasis,
    as_floats,
    dependence,
    rows_token,
)
from dsel.models.kernel_least_squares_fits import LabeledTable, train_models
from dsel.models.kernel_least_squares_group import (
    Centers,
    FittedLeastSquares,
    Slab,
    empty_counts,
    join_slabs,
)


def is_kernel_least_squares(estimator: Any) -> bool:
    """Return whether the closed forms apply: a known class, centres not drawn."""
    is_known = type(estimator) is KernelLeastSquaresClassifier
    return is_known and estimator.n_centers is None


@dataclass(frozen=True)
class KernelLeastSquaresFamily:
    """Least-squares classifiers: a group is one width, penalty and set of centres."""

    classes: NDArray[Any]
    """Label of each class code."""
    seed: int = 0
    """Unused: the fits draw nothing."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Must be empty: the estimator's `fit` takes none."""

    @property
    def name(self) -> str:
        """Shown by the plan."""
        return "kernel least squares"

    @property
    def fits_trainings_together(self) -> bool:
        """They share the decomposition, nearly all of the work."""
        return True

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Take any budget."""

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Group candidates that differ in `regularization` only."""
        found: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            params = candidate.estimator.get_params()
            params.pop("regularization")
            params.pop("random_state")
            centers = params.pop("centers")
            where = "" if centers is None else rows_token(np.asarray(centers))
            found.setdefault(f"{params!r} {where}", []).append(candidate)
        return [
            tuple(sorted(members, key=lambda candidate: candidate.number))
            for members in found.values()
        ]

    def breaks_independence(self, group: Sequence[Candidate]) -> str:
        """Return why fold models see their held-out rows (A3), empty if they do not."""
        estimator = group[0].estimator
        return dependence(estimator.penalty, estimator.centers)

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: NDArray[np.int64],
        trainings: Sequence[Training],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedLeastSquares:
        """Fit every candidate on every training; see `Family.fit`."""
        del pool
        started = time.perf_counter()
        table = LabeledTable(as_floats(X), y, len(self.classes), "")
        try:
            basis = _basis(group[0].estimator)
            table = replace(table, token=basis.token(table.X))
            slab = _fit_slab(basis, group, table, trainings, budget)
        except Exception as error:
            # Whatever a fit raises is recorded, never passed on.
            message = f"{type(error).__name__}: {error}"
            slab = _failed_slab(group, table, trainings, message)
        slab.counts.seconds[:] = (
            time.perf_counter() - started
        ) / slab.counts.seconds.size
        return FittedLeastSquares((slab,), self.classes, slab.candidates)

    def join(
        self,
        fitted: Sequence[Any],
        candidates: Sequence[int] | None = None,
    ) -> FittedLeastSquares:
        """Pack slabs of the same width; see `Family.join`."""
        by_key: dict[str, list[Slab]] = {}
        for slab in (slab for models in fitted for slab in models.slabs):
            by_key.setdefault(slab.key, []).append(slab)
        if candidates is None:
            candidates = list(dict.fromkeys(n for f in fitted for n in f.candidates))
        joined = []
        for slabs in by_key.values():
            held = {number for slab in slabs for number in slab.candidates}
            mine = [number for number in candidates if number in held]
            if mine:
                joined.append(join_slabs(slabs, mine))
        joined.sort(key=lambda slab: slab.centers.token)
        return FittedLeastSquares(tuple(joined), self.classes, tuple(candidates))


def _basis(estimator: KernelLeastSquaresClassifier) -> KernelBasis:
    """Check what the candidates of a group share."""
    width = check_positive(estimator.width, "width")
    penalty = check_choice(estimator.penalty, "penalty", PENALTIES)
    centers = estimator.centers
    return KernelBasis(
        width, penalty, None if centers is None else np.asarray(centers, np.float64)
    )


def _fit_slab(
    basis: KernelBasis,
    group: Sequence[Candidate],
    table: LabeledTable,
    trainings: Sequence[Training],
    budget: Cache,
) -> Slab:
    """Fit all candidates on all trainings from one decomposition."""
    slab = _empty_slab(basis, group, table, trainings)
    for place, training in enumerate(trainings):
        models = train_models(
            basis,
            table,
            training,
            [candidate.estimator.regularization for candidate in group],
            fit_intercept=bool(group[0].estimator.fit_intercept),
            budget=budget,
        )
        slab.coefficients[place] = np.moveaxis(models.coefficients, 1, 2)
        slab.intercepts[place] = models.intercepts.T
        slab.seen[place] = models.seen
        for number, message in models.failures.items():
            cell = (group[number].number, training.number)
            slab.counts.messages[cell] = message
        ok = [n for n in range(len(group)) if n not in models.failures]
        slab.counts.status[ok, place] = FIT_DONE
        slab.counts.test_errors[ok, place] = models.test_errors[ok]
        slab.counts.train_errors[ok, place] = models.train_errors[ok]
    return slab


def _empty_slab(
    basis: KernelBasis,
    group: Sequence[Candidate],
    table: LabeledTable,
    trainings: Sequence[Training],
) -> Slab:
    """Return a slab in which every fit has failed, so far."""
    points = basis.centers_for(table.X)
    n_scores = table.n_classes if table.n_classes > 2 else 1
    shape = (len(trainings), points.shape[0], len(group), n_scores)
    return Slab(
        f"{table.token} {group[0].estimator.fit_intercept}",
        basis.width,
        Centers(points, rows_token(points)),
        {candidate.number: candidate.estimator for candidate in group},
        tuple(candidate.number for candidate in group),
        tuple(training.number for training in trainings),
        np.zeros(shape),
        np.zeros((shape[0], *shape[2:])),
        np.zeros((len(trainings), table.n_classes), bool),
        empty_counts(len(group), len(trainings)),
    )


def _failed_slab(
    group: Sequence[Candidate],
    table: LabeledTable,
    trainings: Sequence[Training],
    message: str,
) -> Slab:
    """Record that nothing of the group could be fitted."""
    nowhere = KernelBasis(1.0, "rkhs", np.zeros((1, table.X.shape[1])))
    slab = _empty_slab(nowhere, group, table, trainings)
    for candidate in group:
        for training in trainings:
            cell = (candidate.number, training.number)
            slab.counts.messages[cell] = message
    return slab
