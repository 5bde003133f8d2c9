"""Pruning, which decides by the counts so far which fits of a search are still needed.

A pruner reads the fit table and never writes to it: the table keeps what it decides.
`exact_pruner` drops candidates that cannot win. `inner_searches` has the inner searches
of a nested search, which prune exactly or by halving.

How many fits of a dropped candidate are counted depends on the order in which tasks
end, but the cube must not depend on it. Therefore the cube shows only the first fits of
a dropped candidate that suffice to prove it worse than the final winner: see
`first_proofs`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np

from dsel.arrays import Bools, Floats
from dsel.search.engine.counts import FitTable

PRUNING_MARGIN: Final = 1e-9
"""A lower bound must exceed the best estimate by more than this to prune; relative to
an estimate above 1, such as a mean square."""
TableT = TypeVar("TableT", bound=FitTable, contravariant=True)


@dataclass(frozen=True)
class PruningDecision:
    """The fits that are still needed and the candidates that lose, by counts so far."""

    lower_bounds: Floats
    """Smallest score that each candidate can still get, (n_candidates,): a count that
    is not made yet is taken as 0."""
    needed_fits: Bools
    """Fits of the current round, (n_candidates, n_splits); all if there is one."""
    beaten_candidates: Bools
    """Whether each candidate can no longer be chosen, by counts, (n_candidates,)."""


class Pruner(Protocol[TableT]):
    """A rule that decides which fits of a search are needed. It changes nothing."""

    @property
    def best_first(self) -> bool:
        """Whether counts decide what is fitted next."""

    def decide(self, table: TableT) -> PruningDecision:
        """Return lower bounds of the candidates, and which of them are beaten."""


@dataclass(frozen=True)
class OnlyCandidate:
    """Pruner that needs only the fits of one candidate, which is fitted again."""

    number: int
    best_first: bool = False

    def decide(self, table: FitTable) -> PruningDecision:
        """Return bounds of 0, and all fits of the candidate."""
        is_candidate = np.arange(table.n_candidates) == self.number
        needed = np.broadcast_to(is_candidate[:, np.newaxis], table.fit_status.shape)
        none = np.zeros(table.n_candidates, bool)
        return PruningDecision(np.zeros(table.n_candidates), needed, none)


def margin_above(best: Floats | float) -> Floats:
    """Return the number that a lower bound must exceed to prune a candidate."""
    # Equal counts may give numbers that differ by rounding, and a tie must not be
    # pruned: the candidate with the smaller number wins it.
    return np.asarray(best + PRUNING_MARGIN * np.maximum(best, 1.0))


def first_proofs(
    shown: Bools, n_most: int, is_beaten: Callable[[Bools], Bools]
) -> tuple[Bools, Bools]:
    """Return the fits that the cube shows, and the candidates that they prove worse.

    `is_beaten` compares candidates with the final winner: it maps flags of the fits
    that it may read, which are the first 0 to `n_most` of those `shown`, to flags of
    candidates. Every run has counted the fits that are returned: it dropped the
    candidate by comparing it with the best one known at that time, which is at most as
    good as the winner. Therefore a run that was killed and resumed ends with the same
    cube.
    """
    proofs = shown.copy()
    beaten = np.zeros(len(shown), bool)
    # 0 fits may prove it: a candidate without a share of delta has an infinite bound.
    for n_splits in range(n_most + 1):
        first = np.arange(shown.shape[1]) < n_splits
        new = is_beaten(shown & first) & ~beaten
        proofs[new] &= first
        beaten |= new
    return proofs, beaten
