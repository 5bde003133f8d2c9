"""The protocol of criteria: counts in, one number per candidate out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.errors import AllFitsFailedError

BEST_FOLD: Final = "best fold"
"""Stands for the split of the fold with the smallest error rate."""
OUTER_FOLD: Final = "outer fold"
"""Stands for the same split and for the candidate chosen without that fold."""
VOTE: Final = "vote"
"""Stands for all folds; the models of the candidates chosen without each fold vote."""

POOL_SIZES: Final = (names.POOL_ROWS, names.N_UNLABELED)
"""Variables that say how much of the pool was read."""

Evidence = Mapping[str, NDArray[Any]]
"""Variables of the cube by name, the candidates flattened into the first axis.

Counts that were not made (yet) are -1. Scalars have shape ().
"""


@dataclass(frozen=True)
class Settings:
    """What a criterion needs beside the counts: how delta is divided."""

    delta_shares: NDArray[np.float64]
    """Share of delta of every candidate, (n_candidates,); the sum is at most delta."""
    label_share: float
    """Part of each share for the label term, in (0, 1)."""


@dataclass(frozen=True)
class Terms:
    """A criterion's numbers, each of shape (n_candidates,); NaN where not computed."""

    estimate: NDArray[np.float64]
    """The number that is compared, not clipped at 1; +inf where a fit failed."""
    label_term: NDArray[np.float64]
    """Part of it that comes from labeled rows."""
    disagreement_term: NDArray[np.float64]
    """Part of it that comes from the pool."""
    lower: NDArray[np.float64] | None = None
    """Lower end of an interval, for criteria that have one."""


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
        """Split whose model it is about, or `BEST_FOLD`, `OUTER_FOLD`, `VOTE`."""

    @property
    def reads_whole_pool(self) -> bool:
        """Whether every row of the pool must be read before it has a number."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Return the terms of candidates whose evidence is complete, NaN for others."""

    def lower_bound(
        self, evidence: Evidence, settings: Settings
    ) -> NDArray[np.float64]:
        """Return every candidate's number with 0 for each count that is missing."""

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the number of the best candidate by this criterion's tie rule."""

    @property
    def holds_out_one_fold(self) -> bool:
        """Whether only the first fold is held out, as in a single split."""

    @property
    def by_halves(self) -> bool:
        """Whether it reads counts of random halves, not of folds."""

    @property
    def only_about(self) -> str:
        """Which candidates have a number, and what helps others; empty: all have."""


def reads_folds(criterion: Criterion) -> bool:
    """Return whether a criterion reads errors of folds, not of random halves."""
    return names.FOLD_ERRORS in criterion.needs and not criterion.by_halves


def reads_pool(criterion: Criterion) -> bool:
    """Return whether a criterion reads what was counted on the pool."""
    of_pool = {names.POOL_ROWS, names.OUTER_DISAGREEMENTS, names.VOTE_DISAGREEMENTS}
    return not of_pool.isdisjoint(criterion.needs)


def is_nested(criterion: Criterion) -> bool:
    """Return whether a criterion is about what is chosen without each fold."""
    return names.OUTER_ERRORS in criterion.needs


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
    return {**evidence, **{name: np.fmax(evidence[name], 0) for name in variables}}


def where_known(
    known: NDArray[np.bool_], failed: NDArray[np.bool_], terms: Terms
) -> Terms:
    """Return the terms with inf where a fit failed, and NaN where not known."""
    found = {
        name: np.where(known & ~failed, term, np.nan)
        for name, term in vars(terms).items()
        if term is not None
    }
    return replace(
        terms, **found | {"estimate": np.where(failed, np.inf, found["estimate"])}
    )


def first_smallest(values: NDArray[np.float64]) -> int:
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
