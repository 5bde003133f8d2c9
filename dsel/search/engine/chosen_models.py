"""The models of the last step, and its pass over the pool."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Features
from dsel.families.family import FitCounts, FittedGroup
from dsel.losses.base import no_predictions
from dsel.search.design.comparisons import Comparison
from dsel.search.engine.jobs import PoolReading

ONLY_MEMBER: Final = 0
"""Number of the only member of this pass, where other passes have candidates."""


@dataclass(frozen=True)
class ChosenModels(FittedGroup):
    """Models of the chosen candidates, which may differ between splits.

    They predict together, as the only member of their pass. A split without a model
    gives no predictions.
    """

    parts: tuple[tuple[tuple[int, ...], FittedGroup], ...]
    """Splits, and the group that has their models; each has one candidate."""
    splits: tuple[int, ...]
    token: str
    """Identifies these models among those of other fits."""
    counts: FitCounts = field(default_factory=lambda: FitCounts.empty(0, 0))
    candidates: tuple[int, ...] = (ONLY_MEMBER,)

    @property
    def nbytes(self) -> int:
        """Bytes of all models."""
        return sum(group.nbytes for _, group in self.parts)

    @property
    def row_nbytes(self) -> int:
        """Working memory for one row."""
        return max(group.row_nbytes for _, group in self.parts)

    def predict(self, X: Features, which: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
        """Return predictions, (len(which), 1, n_rows); each item has one split."""
        wanted = [int(each) for each in which]
        predicted: dict[int, NDArray[Any]] = {}
        for splits, group in self.parts:
            places = [place for place, split in enumerate(wanted) if split in splits]
            parts = group.predict(X, [which[place] for place in places])
            predicted |= dict(zip(places, parts, strict=True))
        kind = next(iter(predicted.values())).dtype
        nothing = no_predictions((1, X.shape[0]), kind)
        return np.stack([predicted.get(n, nothing) for n in range(len(wanted))])


@dataclass(frozen=True)
class ChosenPass:
    """The context of the tasks of this pass: predictions need no labeled rows."""

    models: ChosenModels
    comparisons: tuple[Comparison, ...]
    reading: PoolReading
