"""The seam by which counts become one number per candidate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.errors import AllFitsFailedError

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
    lower: NDArray[np.float64] | None = None
    """Lower end of an interval, for criteria that have one."""


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

    @property
    def reads_whole_pool(self) -> bool:
        """Whether reading the pool may not stop before its end."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates whose evidence is complete; the others get NaN."""

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Judge every candidate with each missing count at its smallest value."""

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the number of the best candidate by this criterion's tie rule."""

    @property
    def holds_out_one_fold(self) -> bool:
        """Whether only the first fold is held out, as in a single split."""

    @property
    def by_halves(self) -> bool:
        """Whether it reads random halvings, which are no folds."""

    @property
    def only_about(self) -> str:
        """Which candidates have a number, and what helps others; empty: all have."""


def reads_folds(criterion: Criterion) -> bool:
    """Return whether a criterion reads errors of folds, not of random halves."""
    return names.FOLD_ERRORS in criterion.needs and not criterion.by_halves


def has_failed(evidence: Evidence) -> NDArray[np.bool_]:
    """Return which candidates failed, shape (n_candidates,)."""
    return np.asarray(evidence[names.STATUS] == names.STATUS_FAILED)


def is_counted(evidence: Evidence, *variables: str) -> NDArray[np.bool_]:
    """Return which candidates have every count of the variables, (n_candidates,)."""
    counted = [
        (evidence[name] >= 0).reshape(len(evidence[name]), -1).all(axis=1)
        for name in variables
    ]
    return np.asarray(np.logical_and.reduce(counted))


def smallest(evidence: Evidence, *variables: str) -> dict[str, NDArray[Any]]:
    """Return the evidence with every missing count at 0, its smallest value."""
    return {**evidence, **{name: evidence[name].clip(min=0) for name in variables}}


def judged(known: NDArray[np.bool_], failed: NDArray[np.bool_], terms: Terms) -> Terms:
    """Return the terms with inf where a fit failed, and NaN where not known."""
    shown = {
        name: np.where(known & ~failed, term, np.nan)
        for name, term in vars(terms).items()
        if term is not None
    }
    return replace(
        terms, **shown | {"estimate": np.where(failed, np.inf, shown["estimate"])}
    )


def first_smallest(values: NDArray[np.float64]) -> int:
    """Return the smallest number among the candidates of smallest value.

    Raises
    ------
    AllFitsFailedError
        Where no candidate has a finite value.
    """
    known = np.where(np.isnan(values), np.inf, values)
    if not np.isfinite(known).any():
        raise AllFitsFailedError(
            "no candidate has a value to compare: every fit failed, or none is "
            "complete; `results.message` says what happened to each."
        )
    return int(np.argmin(known))
