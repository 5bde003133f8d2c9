"""The protocol of criteria: counts in, one number per candidate out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.errors import AllFitsFailedError

FULL: Final = "full"
"""A criterion that deploys it is about the model of all labeled rows."""
BEST_FOLD: Final = "best fold"
"""About the model of the fold with the smallest error rate."""
FIRST_FOLD: Final = "fold 0"
"""About the model that was trained without the first fold."""

Evidence = Mapping[str, NDArray[Any]]
"""Variables of the cube by name, the candidates flattened into the first axis.

Counts that were not made (yet) are -1. Scalars have shape ().
"""


@dataclass(frozen=True)
class Settings:
    """What a criterion needs beside the counts."""

    delta_shares: Floats
    """Share of delta of every candidate, (n_candidates,); the sum is at most delta."""


@dataclass(frozen=True)
class Terms:
    """A criterion's numbers, each of shape (n_candidates,); NaN where not computed."""

    estimate: Floats
    """The number that is compared, not clipped at 1; +inf where a fit failed."""
    label_term: Floats
    """Part of it that comes from labeled rows."""
    disagreement_term: Floats
    """Part of it that comes from the pool."""


class Criterion(Protocol):
    """One way to compare candidates: a pure function of the evidence."""

    @property
    def name(self) -> str:
        """Value of `criterion=`, and label along the cube's dimension ``criterion``."""

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
        """Which model it is about: `FULL`, `BEST_FOLD` or `FIRST_FOLD`."""

    @property
    def by_halves(self) -> bool:
        """Whether it reads counts of random halves, not of folds."""

    @property
    def holds_out_one_fold(self) -> bool:
        """Whether only the first fold is held out, as in a single split."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms of candidates whose evidence is complete, NaN for others."""

    def lower_bound(self, evidence: Evidence, settings: Settings) -> Floats:
        """Return every candidate's number with 0 for each count that is missing."""

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the number of the best candidate by this criterion's tie rule."""


def is_counted(evidence: Evidence, *variables: str) -> NDArray[np.bool_]:
    """Return which candidates have every count of the variables, (n_candidates,)."""
    counted = [
        (evidence[name] >= 0).reshape(len(evidence[name]), -1).all(axis=1)
        for name in variables
    ]
    return np.asarray(np.logical_and.reduce(counted))


def smallest(evidence: Evidence, *variables: str) -> dict[str, NDArray[Any]]:
    """Return the evidence with every missing count at 0, its smallest value."""
    return {**evidence, **{name: np.fmax(evidence[name], 0) for name in variables}}


def where_known(known: NDArray[np.bool_], evidence: Evidence, terms: Terms) -> Terms:
    """Return the terms with inf where a fit failed, and NaN where not known."""
    failed = evidence[names.STATUS] == names.STATUS_FAILED
    shown = {
        name: np.where(known & ~failed, term, np.nan)
        for name, term in vars(terms).items()
    }
    return replace(
        terms, **shown | {"estimate": np.where(failed, np.inf, shown["estimate"])}
    )


def first_smallest(values: Floats) -> int:
    """Return the smallest number among the candidates of smallest value.

    Raises AllFitsFailedError where no candidate has a finite value.
    """
    known = np.where(np.isnan(values), np.inf, values)
    if not np.isfinite(known).any():
        raise AllFitsFailedError(
            "no candidate has a value to compare: every fit failed, or none is "
            "complete; `results.message` says what happened to each."
        )
    return int(np.argmin(known))
