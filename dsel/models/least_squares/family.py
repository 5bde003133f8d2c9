"""The member of `Family` for least squares: one decomposition a width."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsel.checks import check_choice, check_positive
from dsel.data.identity import content_hash
from dsel.data.splits import Split
from dsel.families.arrays import Integers, as_floats
from dsel.families.family import Assignment, Cache, Candidate, group_by, joined_numbers
from dsel.kernels.eigen import decomposition_nbytes
from dsel.models.least_squares.coefficients import PENALTIES
from dsel.models.least_squares.estimators import KernelLeastSquaresClassifier
from dsel.models.least_squares.fits import KernelBasis, dependence, fit_width
from dsel.models.least_squares.fitted import (
    FittedLeastSquares,
    WidthModels,
    empty_models,
    join_models,
)


@dataclass(frozen=True)
class KernelLeastSquaresFamily:
    """Least-squares classifiers: a group is one width, penalty and set of centres."""

    name: ClassVar[str] = "kernel least squares"
    fits_splits_together: ClassVar[bool] = True
    takes_frames: ClassVar[bool] = False
    classes: NDArray[Any]
    seed: int = 0
    """Not needed: the fits draw nothing."""
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    """Refused unless empty: the estimator's `fit` takes none."""

    def refusal(self, estimator: Any) -> str | None:
        """Refuse what has no closed form: centres drawn from the training rows."""
        is_known = type(estimator) is KernelLeastSquaresClassifier
        if is_known and estimator.n_centers is None and not self.fit_params:
            return None
        return ""

    def assign(self, candidates: Sequence[Candidate], X: Any) -> Assignment:
        """Let `fit` raise where a candidate cannot work."""
        groups = tuple(self.groups(candidates))
        reasons = dict.fromkeys(map(self.breaks_independence, groups))
        return Assignment(
            self,
            tuple(candidates),
            groups,
            f"{len(groups)} decompositions for all folds",
            "; ".join(filter(None, reasons)),
        )

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Take any budget."""

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return the bytes of one decomposition, and of the others' eigenvectors."""
        return decomposition_nbytes(n_rows) + (n_groups - 1) * 8 * n_rows**2

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Group candidates that differ in `regularization` only."""
        return group_by(candidates, _group_key)

    def breaks_independence(self, group: Sequence[Candidate]) -> str:
        """Return why fold models see their held-out rows (A3), empty if they do not."""
        estimator = group[0].estimator
        return dependence(estimator.penalty, estimator.centers)

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedLeastSquares:
        """Fit every candidate on every split; see `Family.fit`."""
        del pool
        started = time.perf_counter()
        try:
            models = fit_width(
                _basis(group[0].estimator),
                group,
                as_floats(X),
                y,
                splits,
                key=_group_key(group[0]),
                n_classes=len(self.classes),
                budget=budget,
            )
        except Exception as error:
            # Whatever a fit raises is recorded, never passed on.
            key, nowhere = _group_key(group[0]), np.zeros((1, X.shape[1]))
            n_classes = len(self.classes)
            models = empty_models(key, 1.0, nowhere, group, splits, n_classes)
            for candidate, split in product(group, splits):
                models.counts.failed(candidate.number, split.number, error)
        seconds = models.counts.seconds
        seconds[:] = (time.perf_counter() - started) / seconds.size
        return FittedLeastSquares((models,), self.classes, models.candidates)

    def join(
        self, fitted: Sequence[Any], candidates: Sequence[int] | None = None
    ) -> FittedLeastSquares:
        """Pack models of the same width; see `Family.join`."""
        by_key: dict[str, list[WidthModels]] = {}
        for models in (models for group in fitted for models in group.widths):
            by_key.setdefault(models.key, []).append(models)
        numbers, _ = joined_numbers(fitted, candidates)
        joined = []
        for pieces in by_key.values():
            held = {number for models in pieces for number in models.candidates}
            mine = [number for number in numbers if number in held]
            if mine:
                joined.append(join_models(pieces, mine))
        joined.sort(key=lambda models: models.centers_token)
        return FittedLeastSquares(tuple(joined), self.classes, numbers)


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
