"""All models of a grid, trained once and kept: each test row may use another."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from dsel.data.blocks import summed
from dsel.data.labeled import check_labels
from dsel.data.splits import Split
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.families.answers import places_of_classes
from dsel.families.assignment import assign_families
from dsel.families.family import FIT_DONE, Candidate, FittedGroup
from dsel.families.fit_arguments import checked_params
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Task
from dsel.searches.engine.fit_task import FitJob, Group, Work, fit_jobs

BLOCK_NBYTES = 2**24
"""Scores of a block of rows: enough for fast products, and they stay in caches."""


@dataclass(frozen=True)
class ModelSet:
    """Fitted models of some candidates on one split, in the order of the grid."""

    candidates: tuple[Candidate, ...]
    """Those that could be fitted."""
    parts: tuple[FittedGroup, ...]
    """The models, one part a family."""
    split: int
    classes: NDArray[Any]
    failures: Mapping[int, str]
    """Why a candidate is not here, by its number."""

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.candidates)

    @property
    def nbytes(self) -> int:
        """Bytes of all models."""
        return sum(part.nbytes for part in self.parts)

    @property
    def block_rows(self) -> int:
        """Rows to score at once."""
        scores = 8 * self.n_models * len(self.classes)
        row = scores + max(part.row_nbytes for part in self.parts)
        return int(np.clip(BLOCK_NBYTES // row, 64, 16_384))

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return real scores, shape (n_models, n_rows, n_classes)."""
        place = {each.number: i for i, each in enumerate(self.candidates)}
        if len(self.parts) == 1 and self.parts[0].candidates == tuple(place):
            return self._part_scores(self.parts[0], X)
        scores = np.empty((self.n_models, X.shape[0], len(self.classes)))
        for part in self.parts:
            mine = [place[number] for number in part.candidates]
            scores[mine] = self._part_scores(part, X)
        return scores

    def _part_scores(self, part: FittedGroup, X: Any) -> NDArray[np.float64]:
        return np.asarray(part.scores(X, [np.array(self.split)])[0])

    def from_models(
        self, X: Any, measure: Callable[[Any, Any], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the values of ``measure(model, X)``, in the shape of `scores`.

        Classes that a model does not know get -inf.
        """
        values = np.full((self.n_models, X.shape[0], len(self.classes)), -np.inf)
        for value, model in zip(values, self.models(), strict=True):
            known = places_of_classes(model, self.classes)
            value[:, known] = _checked_shape(
                measure(model, X), (X.shape[0], len(known))
            )
        return values

    def models(self) -> list[Any]:
        """Return the fitted scikit-learn estimators in the order of the candidates."""
        where = {number: part for part in self.parts for number in part.candidates}
        numbers = [each.number for each in self.candidates]
        return [where[number].model(number, self.split) for number in numbers]


@dataclass(frozen=True)
class TrainedGroups:
    """Fitted groups, before their models are joined."""

    work: Work
    fitted: Mapping[FitJob, FittedGroup]
    """For each group in order, one entry for each split."""
    classes: NDArray[Any]

    def failures(self) -> dict[int, str]:
        """Return a message for every candidate of which a fit failed, by its number."""
        failures: dict[int, str] = {}
        for fitted in self.fitted.values():
            for number, status in zip(
                fitted.candidates, fitted.counts.status[:, 0], strict=True
            ):
                if status != FIT_DONE:
                    key = (number, fitted.splits[0])
                    message = fitted.counts.messages.get(key, "the fit failed")
                    failures.setdefault(number, message)
        return failures

    def pack(self, failures: Mapping[int, str]) -> ModelSet:
        """Join the models of the first split, except candidates that failed.

        Raises AllFitsFailedError where none is left.
        """
        every = sorted(
            (each for group in self.work.groups for each in group.candidates),
            key=lambda each: each.number,
        )
        kept = tuple(each for each in every if each.number not in failures)
        _report(failures, len(every))
        families: dict[int, list[int]] = {}
        for group in self.work.groups:
            families.setdefault(id(group.family), []).append(group.number)
        parts = [self.join(places, failures) for places in families.values()]
        return ModelSet(
            kept,
            tuple(part for part in parts if part is not None),
            self.work.splits[0].number,
            self.classes,
            dict(failures),
        )

    def join(
        self, places: Sequence[int], failures: Mapping[int, str]
    ) -> FittedGroup | None:
        """Join groups of one family, all splits; None where no candidate is left."""
        family = self.work.groups[places[0]].family
        fitted = [models for job, models in self.fitted.items() if job.group in places]
        numbers = sorted(
            {n for group in fitted for n in group.candidates if n not in failures}
        )
        return family.join(fitted, numbers) if numbers else None


def _report(failures: Mapping[int, str], n_candidates: int) -> None:
    if not failures:
        return
    number, message = min(failures.items())
    text = (
        f"{len(failures)} of {n_candidates} candidates failed and take no part; "
        f"candidate {number}: {message}"
    )
    if len(failures) == n_candidates:
        raise AllFitsFailedError(text)
    warn(text, FitFailedWarning)


def train_grid(
    candidates: Sequence[Candidate],
    X: Any,
    y: NDArray[np.int64],
    splits: Sequence[Split],
    *,
    classes: NDArray[Any],
    seed: int,
    fit_params: Mapping[str, Any] = MappingProxyType({}),
    client: Any = None,
) -> TrainedGroups:
    """Fit all candidates, each group on each split as a task: cluster or threads."""
    params = checked_params(fit_params, len(y))
    assignments = assign_families(
        candidates, X, classes=classes, seed=seed, fit_params=params
    )
    grouped = [(each.family, group) for each in assignments for group in each.groups]
    groups = [
        Group(number, family, tuple(group), keys=())
        for number, (family, group) in enumerate(grouped)
    ]
    work = Work(X, y, tuple(splits), tuple(groups))
    jobs = {
        f"fit-{group.number}-{split.number}": FitJob(
            group.number, tuple(each.number for each in group.candidates), split.number
        )
        for group in groups
        for split in splits
    }
    tasks = (
        Task(key, fit_jobs, ([job],), keeps_payload=True) for key, job in jobs.items()
    )
    with closing(make_executor(work, resolve_client(client))) as executor:
        for finished in completed(executor, tasks):
            finished.result()
        fitted = {job: executor.fetch(key)[job] for key, job in jobs.items()}
    return TrainedGroups(work, fitted, classes)


def _checked_shape(values: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(
            f"`measure` must return one number per row and class, shape {shape}, "
            f"got shape {array.shape}."
        )
    return array


def encode_labels(
    estimator: Any, X: ArrayLike, y: ArrayLike
) -> tuple[Any, NDArray[np.int64]]:
    """Check X and y, set `classes_` of the estimator, return rows and class codes.

    Raises ValueError where the labels are not classes, or all the same.
    """
    X, labels = validate_data(estimator, X, check_labels(y), accept_sparse="csr")
    estimator.classes_, codes = np.unique(labels, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"`y` must hold at least two classes, got one class: "
            f"{estimator.classes_.tolist()[0]!r}."
        )
    return summed(X), codes.astype(np.int64, copy=False)
