"""Training of all models of a grid, which are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from dsel.arrays import Features, Floats, Integers
from dsel.data.cache import process_cache
from dsel.data.duplicate_rows import make_comparable
from dsel.data.splits import Split
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.families.assignment import assign_families, name_group
from dsel.families.family import Candidate, Family, FitId, FittedGroup
from dsel.families.fit_arguments import check_fit_params
from dsel.families.predictions import class_scores
from dsel.runtime.clients import resolve_client
from dsel.runtime.local_executor import LocalExecutor
from dsel.runtime.submission import results_in_order
from dsel.runtime.tasks import Inputs, Output, Task

SCORES_NBYTES: Final = 2**24
"""Bytes of the scores of a block of rows: large enough for fast products, and small
enough for caches."""

Trained = list[tuple[Family, list[FittedGroup]]]
"""Families with their fitted groups; each group is fitted on one split."""


@dataclass(frozen=True)
class ModelSet:
    """Fitted models, in the order of the grid."""

    candidates: tuple[Candidate, ...]
    """Candidates that can be used."""
    fitted: tuple[Any, ...]
    """Fitted scikit-learn estimator of each candidate."""
    classes: NDArray[Any]
    is_dense: bool
    """Whether the models were fitted on dense arrays; some then refuse sparse rows."""

    @property
    def block_rows(self) -> int:
        """Number of rows that are scored at once."""
        row = 8 * len(self.fitted) * len(self.classes)
        return int(np.clip(SCORES_NBYTES // row, 64, 16_384))

    def scores(self, X: Features) -> Floats:
        """Return real scores, shape (n_models, n_rows, n_classes).

        Scores of equal rows are equal up to rounding, whether the rows are dense or
        sparse, and of any type.
        """
        X = self._canonical_rows(X)
        return np.stack([class_scores(m, X, self.classes) for m in self.fitted])

    def failures_on(self, X: Features) -> dict[int, str]:
        """Return why models have no scores on some rows, by candidate number.

        If all models raise, the call is wrong, and the first exception is raised.
        """
        X = self._canonical_rows(X)
        failures = dict[int, str]()
        errors = list[Exception]()
        for candidate, model in zip(self.candidates, self.fitted, strict=True):
            try:
                scores = class_scores(model, X, self.classes)
            except Exception as error:  # learners may raise anything
                failures[candidate.number] = f"{type(error).__name__}: {error}"
                errors.append(error)
                continue
            if np.isnan(scores).any():
                failures[candidate.number] = "scores NaN on validation rows"
        if len(errors) == len(self.fitted):
            raise errors[0]
        return failures

    def _canonical_rows(self, X: Any) -> Any:
        # Learners compute in the type of the rows, and nearest neighbors use another
        # formula for sparse rows. So all rows become float64, and sparse only if those
        # of the fit were.
        X = X.toarray() if self.is_dense and issparse(X) else X
        X = csr_matrix(X) if not self.is_dense and not issparse(X) else X
        return make_comparable(X, np.dtype(np.float64))

    def models(self) -> list[Any]:
        """Return the fitted scikit-learn estimators in the order of the candidates."""
        return list(self.fitted)


def train_grid(
    candidates: Sequence[Candidate],
    X: Features,
    y: Integers,
    splits: Sequence[Split[int]],
    *,
    classes: NDArray[Any],
    seed: int,
    fit_params: Mapping[str, Any] | None = None,
    client: Any = None,
) -> tuple[Trained, dict[int, str]]:
    """Fit all candidates; each group and split is a task, on a cluster or threads.

    The second result has the reasons why candidates failed, by candidate number.
    """
    assignments = assign_families(
        candidates,
        X,
        classes=classes,
        seed=seed,
        fit_params=check_fit_params(fit_params, len(y)),
    )
    candidate_groups = [
        (a.family, candidate_group)
        for a in assignments
        for candidate_group in a.candidate_groups
    ]
    tasks = [
        Task(
            f"fit-{name_group(candidate_group, i)}-{split.short_name}-{i}",
            FitGroup(family, candidate_group, split),
        )
        for i, (family, candidate_group) in enumerate(candidate_groups)
        for split in splits
    ]
    client = resolve_client(client)
    if client is None and any(a.family.holds_interpreter for a in assignments):
        # Two threads would fit no faster, and warnings are collected by thread.
        client = partial(LocalExecutor, n_threads=1)
    fitted = results_in_order((X, y), tasks, client)
    trained = [
        (a.family, [next(fitted) for _ in a.candidate_groups for _ in splits])
        for a in assignments
    ]
    failures: dict[int, str] = {}
    for fitted_group in (
        fitted_group for _, fitted_groups in trained for fitted_group in fitted_groups
    ):
        # Each group was fitted on one split, which has the position 0.
        for i in np.flatnonzero(fitted_group.fit_counts.has_failed[:, 0]):
            key = FitId(
                fitted_group.candidate_numbers[i], fitted_group.split_numbers[0]
            )
            message = fitted_group.fit_counts.messages.get(key)
            failures.setdefault(key[0], message.text if message else "the fit failed")
    return trained, failures


@dataclass(frozen=True)
class FitGroup:
    """Fits a group of candidates on a split, and returns the models."""

    family: Family
    candidates: Sequence[Candidate]
    split: Split[int]

    def run(
        self, rows_and_codes: tuple[Any, Integers], inputs: Inputs
    ) -> Output[FittedGroup]:
        """Fit to rows and class codes."""
        X, y = rows_and_codes
        candidates = self.candidates
        splits = [self.split]
        return Output(self.family.fit(candidates, X, y, splits, cache=process_cache()))


def join_models(
    candidates: Sequence[Candidate],
    trained: Trained,
    failures: Mapping[int, str],
    classes: NDArray[np.generic],
    *,
    is_dense: bool,
) -> ModelSet:
    """Join the models of one split, without the candidates that failed.

    Raises AllFitsFailedError where none is left.
    """
    if failures:
        candidate, message = min(failures.items())
        text = (
            f"{len(failures)} of {len(candidates)} candidates failed and take no part; "
            f"candidate {candidate}: {message}"
        )
        if len(failures) == len(candidates):
            raise AllFitsFailedError(text)
        warn(text, FitFailedWarning)
    usable = tuple(c for c in candidates if c.number not in failures)
    group_of = {
        number: fitted_group
        for _, fitted_groups in trained
        for fitted_group in fitted_groups
        for number in fitted_group.candidate_numbers
    }
    models = [
        group_of[n].model(n, group_of[n].split_numbers[0])
        for n in (c.number for c in usable)
    ]
    return ModelSet(usable, tuple(models), classes, is_dense)
