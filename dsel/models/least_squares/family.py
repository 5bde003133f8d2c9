"""The member of `Family` for least squares: one decomposition a width."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.checks import check_choice, check_positive
from dsel.data.content import content_hash
from dsel.data.trainings import Training
from dsel.models.arrays import Integers, as_floats
from dsel.models.family import Cache, Candidate
from dsel.models.least_squares.coefficients import PENALTIES
from dsel.models.least_squares.estimators import KernelLeastSquaresClassifier
from dsel.models.least_squares.fits import KernelBasis, dependence, fit_width
from dsel.models.least_squares.fitted import (
    FittedLeastSquares,
    WidthModels,
    empty_models,
    join_models,
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
    """Not needed: the fits draw nothing."""
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
            found.setdefault(_group_key(candidate), []).append(candidate)
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
        y: Integers,
        trainings: Sequence[Training],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedLeastSquares:
        """Fit every candidate on every training; see `Family.fit`."""
        del pool
        started = time.perf_counter()
        try:
            models = fit_width(
                _basis(group[0].estimator),
                group,
                as_floats(X),
                y,
                trainings,
                key=_group_key(group[0]),
                n_classes=len(self.classes),
                budget=budget,
            )
        except Exception as error:
            # Whatever a fit raises is recorded, never passed on.
            key, nowhere = _group_key(group[0]), np.zeros((1, X.shape[1]))
            n_classes = len(self.classes)
            models = empty_models(key, 1.0, nowhere, group, trainings, n_classes)
            for candidate, training in product(group, trainings):
                models.counts.failed(candidate.number, training.number, error)
        seconds = models.counts.seconds
        seconds[:] = (time.perf_counter() - started) / seconds.size
        return FittedLeastSquares((models,), self.classes, models.candidates)

    def join(
        self,
        fitted: Sequence[Any],
        candidates: Sequence[int] | None = None,
    ) -> FittedLeastSquares:
        """Pack models of the same width; see `Family.join`."""
        by_key: dict[str, list[WidthModels]] = {}
        for models in (models for group in fitted for models in group.widths):
            by_key.setdefault(models.key, []).append(models)
        if candidates is None:
            candidates = list(dict.fromkeys(n for f in fitted for n in f.candidates))
        joined = []
        for pieces in by_key.values():
            held = {number for models in pieces for number in models.candidates}
            mine = [number for number in candidates if number in held]
            if mine:
                joined.append(join_models(pieces, mine))
        joined.sort(key=lambda models: models.centers_token)
        return FittedLeastSquares(tuple(joined), self.classes, tuple(candidates))


def _group_key(candidate: Candidate) -> str:
    """Return what candidates have in common that differ in `regularization` only."""
    params = candidate.estimator.get_params()
    params.pop("regularization")
    params.pop("random_state")
    centers = params.pop("centers")
    where = "" if centers is None else content_hash(np.asarray(centers))
    return f"{params!r} {where}"


def _basis(estimator: KernelLeastSquaresClassifier) -> KernelBasis:
    """Check what the candidates of a group share."""
    width = check_positive(estimator.width, "width")
    penalty = check_choice(estimator.penalty, "penalty", PENALTIES)
    centers = estimator.centers
    return KernelBasis(
        width, penalty, None if centers is None else np.asarray(centers, np.float64)
    )
