"""All models of a grid, trained once and kept: each test row may use another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import process_cache
from dsel.data.splits import Split
from dsel.errors import AllFitsFailedError, FitFailedWarning, warn
from dsel.families.assignment import assign_families
from dsel.families.family import FIT_DONE, Candidate, Family, FittedGroup
from dsel.families.fit_arguments import checked_params
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import records_in_order
from dsel.runtime.tasks import Task

BLOCK_NBYTES: Final = 2**24
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
    def block_rows(self) -> int:
        """Rows to score at once."""
        scores = 8 * self.n_models * len(self.classes)
        row = scores + max(part.row_nbytes for part in self.parts)
        return int(np.clip(BLOCK_NBYTES // row, 64, 16_384))

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return real scores, shape (n_models, n_rows, n_classes)."""
        place = {each.number: i for i, each in enumerate(self.candidates)}
        scores = np.empty((self.n_models, X.shape[0], len(self.classes)))
        for part in self.parts:
            mine = [place[number] for number in part.candidates]
            scores[mine] = part.scores(X, [np.array(self.split)])[0]
        return scores

    def models(self) -> list[Any]:
        """Return the fitted scikit-learn estimators in the order of the candidates."""
        where = {number: part for part in self.parts for number in part.candidates}
        numbers = [each.number for each in self.candidates]
        return [where[number].model(number, self.split) for number in numbers]


@dataclass(frozen=True)
class TrainedGrid:
    """All candidates fitted on all splits, before their models are joined."""

    candidates: tuple[Candidate, ...]
    families: tuple[tuple[Family, tuple[FittedGroup, ...]], ...]
    """Each family, and what it fitted: a group of candidates on one split each."""
    classes: NDArray[Any]

    @cached_property
    def failures(self) -> dict[int, str]:
        """A message for every candidate of which a fit failed, by its number."""
        failures: dict[int, str] = {}
        for fitted in (each for _, groups in self.families for each in groups):
            status = fitted.counts.status[:, 0]
            for number in np.array(fitted.candidates)[status != FIT_DONE].tolist():
                key = number, fitted.splits[0]
                message = fitted.counts.messages.get(key, "the fit failed")
                failures.setdefault(number, message)
        return failures

    def pack(self, unusable: Mapping[int, str]) -> ModelSet:
        """Join the models of the only split, but failed and `unusable` candidates.

        Raises AllFitsFailedError where none is left.
        """
        failures = {**self.failures, **unusable}
        if failures:
            number, message = min(failures.items())
            text = (
                f"{len(failures)} of {len(self.candidates)} candidates failed and take "
                f"no part; candidate {number}: {message}"
            )
            if len(failures) == len(self.candidates):
                raise AllFitsFailedError(text)
            warn(text, FitFailedWarning)
        parts = []
        for family, fitted in self.families:
            fit = sorted({n for each in fitted for n in each.candidates} - {*failures})
            if fit:
                parts.append(family.join(fitted, fit))
        kept = tuple(each for each in self.candidates if each.number not in failures)
        split = self.families[0][1][0].splits[0]
        return ModelSet(kept, tuple(parts), split, self.classes, failures)


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
) -> TrainedGrid:
    """Fit all candidates, each group on each split as a task: cluster or threads."""
    assignments = assign_families(
        candidates, X, classes=classes, seed=seed,
        fit_params=checked_params(fit_params, len(y)),
    )  # fmt: skip
    tasks = [
        Task(f"fit-{family}-{group}-{split.number}", fit_group,
             (each.family, each.groups[group], split))
        for family, each in enumerate(assignments)
        for group in range(len(each.groups))
        for split in splits
    ]  # fmt: skip
    fitted = records_in_order((X, y), tasks, resolve_client(client))
    families = tuple(
        (each.family, tuple(next(fitted) for _ in each.groups for _ in splits))
        for each in assignments
    )
    return TrainedGrid(tuple(candidates), families, classes)


def fit_group(
    work: tuple[Any, NDArray[np.int64]],
    payloads: Sequence[Any],
    family: Family,
    group: Sequence[Candidate],
    split: Split,
) -> tuple[FittedGroup, None]:
    """Fit the candidates of a group on a split; the models are what comes back."""
    del payloads  # a fit starts from nothing
    X, y = work
    return family.fit(group, X, y, [split], budget=process_cache()), None
