"""The seam by which counts become one number per candidate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Evidence = Mapping[str, NDArray[Any]]
"""Variables of the cube by name, the candidates flattened into the first axis.

Integers that were not counted (yet) are -1. Scalars have shape ().
"""


@dataclass(frozen=True)
class Settings:
    """What a criterion needs beside the evidence."""

    delta_shares: NDArray[np.float64]
    """Share of delta of every candidate, (n_candidates,); the sum is at most delta."""
    label_share: float
    """Part of each share that goes to the first term, in (0, 1)."""


@dataclass(frozen=True)
class Terms:
    """A criterion's numbers, one per candidate; NaN where not computed."""

    estimate: NDArray[np.float64]
    """Unclipped; smaller is better; +inf where a fit failed."""
    label_term: NDArray[np.float64]
    """Part that comes from labeled rows."""
    disagreement_term: NDArray[np.float64]
    """Part that comes from the pool."""


class Criterion(Protocol):
    """One way to judge candidates: a pure function of the evidence."""

    @property
    def name(self) -> str:
        """Value of `criterion=` and of the coordinate of that name."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the cube that `evaluate` reads."""

    @property
    def is_guarantee(self) -> bool:
        """Whether the number bounds the true error with probability 1 - delta."""

    @property
    def can_prune(self) -> bool:
        """Whether the number never falls when a count grows."""

    @property
    def deploys(self) -> str:
        """Name of the training whose model the number is about, such as ``full``."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose evidence is complete; the others get NaN."""

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate with each missing count at its smallest value."""

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the number of the best candidate by this criterion's tie rule."""
