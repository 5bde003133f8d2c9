"""One candidate made of several: another candidate's model on each split.

What is chosen without a fold differs from fold to fold. Put together, the models are
compared on the pool like those of one candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dsel.data.frames import numbers
from dsel.data.splits import Split
from dsel.families.arrays import Floats, Integers
from dsel.families.family import (
    Assignment,
    Cache,
    Candidate,
    Family,
    FitCounts,
    FittedGroup,
)


@dataclass(frozen=True)
class ChosenFamily:
    """Fits on each split what was chosen for it, by the family of that candidate."""

    name: ClassVar[str] = "chosen"
    fits_splits_together: ClassVar[bool] = False
    takes_frames: ClassVar[bool] = True
    families: tuple[Family, ...]
    """By split number."""
    candidates: tuple[Candidate, ...]
    """What they fit, numbered 0 each."""

    @property
    def fit_params(self) -> Mapping[str, Any]:
        """Keyword arguments of every `fit`."""
        return self.families[0].fit_params

    def refusal(self, estimator: Any) -> str | None:
        """Leave every estimator to other families: this one is put together."""
        del estimator
        return ""

    def assign(self, candidates: Sequence[Candidate], X: Any) -> Assignment:
        """Return what was chosen as one group."""
        return Assignment(self, tuple(candidates), (tuple(candidates),), "chosen")

    def check_budget(self, n_rows: int, limit: int) -> None:
        """Raise where a task's limit of bytes is too small for a fit."""
        for family in self.families:
            family.check_budget(n_rows, limit)

    def shared_nbytes(self, n_groups: int, n_rows: int) -> int:
        """Return the bytes of what each family's fits share."""
        return sum(
            family.shared_nbytes(n_groups, n_rows)
            for family in {id(each): each for each in self.families}.values()
        )

    def groups(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
        """Return one group."""
        return [tuple(candidates)]

    def fit(
        self,
        group: Sequence[Candidate],
        X: Any,
        y: Integers,
        splits: Sequence[Split],
        *,
        pool: Any = None,
        budget: Cache,
    ) -> FittedGroup:
        """Fit on each split the candidate that was chosen for it; see `Family.fit`."""
        del group
        fitted = []
        for split in splits:
            family, candidate = (
                self.families[split.number],
                self.candidates[split.number],
            )
            rows = X if family.takes_frames else numbers(X)
            fitted.append(
                family.fit([candidate], rows, y, [split], pool=pool, budget=budget)
            )
        return _joined(fitted)

    def join(
        self, fitted: Sequence[FittedGroup], candidates: Sequence[int] | None = None
    ) -> FittedGroup:
        """Return the models of all splits; there is one candidate."""
        del candidates
        return _joined(fitted)


@dataclass(frozen=True)
class ChosenModels:
    """Models of one candidate by split, each fitted by a family of its own."""

    parts: Mapping[int, FittedGroup]
    """By split number."""
    counts: FitCounts
    candidates: tuple[int, ...] = (0,)
    """The one that they are put together as."""

    @property
    def splits(self) -> tuple[int, ...]:
        """Numbers of the splits, in order."""
        return tuple(self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the models."""
        return sum(part.nbytes for part in self.parts.values())

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size."""
        return self.nbytes

    @property
    def row_nbytes(self) -> int:
        """Working memory of `predict` for one row."""
        return max(part.row_nbytes for part in self.parts.values())

    def predict(self, X: Any, which: Sequence[Integers]) -> Integers:
        """Return class codes; see `FittedGroup.predict`."""
        n_rows = X.shape[0]
        codes = np.full((len(which), 1, n_rows), -1, dtype=np.int64)
        for place, chosen in enumerate(which):
            wanted = np.broadcast_to(chosen, (1, n_rows))[0]
            for number in np.unique(wanted):
                rows = np.flatnonzero(wanted == number)
                part = X if len(rows) == n_rows else X[rows]
                found = self.parts[int(number)].predict(part, [np.array(number)])
                codes[place, 0, rows] = found[0, 0]
        return codes

    def scores(self, X: Any, which: Sequence[Integers]) -> Floats:
        """Raise: scores of different families do not compare."""
        raise TypeError("models that different families fitted have no common scores.")

    def model(self, candidate: int, split: int) -> Any:
        """Return the fitted estimator of a split."""
        return self.parts[split].model(candidate, split)


def _joined(fitted: Sequence[FittedGroup]) -> ChosenModels:
    parts: dict[int, FittedGroup] = {}
    for each in fitted:
        own = dict.fromkeys(each.splits, each)
        parts |= each.parts if isinstance(each, ChosenModels) else own
    parts = dict(sorted(parts.items()))
    counts = FitCounts.empty(1, len(parts))
    for place, (number, part) in enumerate(parts.items()):
        column = part.splits.index(number)
        if len(part.counts.status):
            counts.copy(np.s_[:, [place]], part.counts.select(np.s_[:, [column]]))
    return ChosenModels(parts, counts)
