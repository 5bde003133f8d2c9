"""Which candidates can still win: an exact decision from lower bounds alone.

A run drops a candidate as soon as its counts prove that it cannot win. How much of it
was counted by then depends on the order in which tasks end. The cube therefore shows of
each pruned candidate only the first folds that suffice to prove it worse than the final
winner. Every run has counted these, because no estimate that candidates were compared
with during the run is smaller than the winner's. So runs that were killed and resumed
end with the same cube as others.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria import Criterion, Evidence, Settings
from dsel.families.family import FIT_FAILED
from dsel.searches.engine.counts import CountTable

ROUNDING: Final = 1e-9
"""A lower bound must exceed the best estimate by more than this to prune."""


class Race(Protocol):
    """What a driver asks: which candidates to drop, and who leads."""

    @property
    def prunes(self) -> bool:
        """Whether any candidate is ever dropped."""

    def prune(self, table: CountTable) -> NDArray[np.float64]:
        """Drop candidates that cannot win; return numbers to order the others by."""

    def leader(self, table: CountTable) -> int:
        """Return the best complete candidate."""

    def evidence(self, table: CountTable) -> dict[str, NDArray[Any]]:
        """Return the evidence of a finished run, as the cube shows it."""


@dataclass(frozen=True)
class Pruning:
    """Decides for one criterion which candidates may still win."""

    criterion: Criterion
    """Criterion of the plan."""
    settings: Settings
    """Its shares of delta."""
    may_prune: bool
    """False for the exhaustive search."""

    @property
    def prunes(self) -> bool:
        """Whether any candidate is ever dropped."""
        return self.may_prune and self.criterion.can_prune

    def lower_bounds(self, evidence: Evidence) -> NDArray[np.float64]:
        """Return lower bounds of the estimates that candidates will have in the end."""
        return self.criterion.lower_bound(evidence, self.settings)

    def best(self, evidence: Evidence) -> float:
        """Return the smallest estimate of a complete candidate, or infinity."""
        found = self.criterion.evaluate(evidence, self.settings).estimate
        return float(np.min(found[~np.isnan(found)], initial=np.inf))

    def leader(self, table: CountTable) -> int:
        """Return the first complete candidate of smallest estimate."""
        found = self.criterion.evaluate(table.evidence(), self.settings).estimate
        return int(np.nanargmin(np.where(np.isnan(found), np.inf, found)))

    def prune(self, table: CountTable) -> NDArray[np.float64]:
        """Drop the candidates that cannot win whatever is counted from now on.

        While counts come in, lower bounds only grow and the best estimate only falls,
        so a candidate that is dropped would never win later. Returns the lower bounds.
        """
        evidence = table.evidence()
        lower = self.lower_bounds(evidence)
        if self.prunes:
            best = self.best(evidence)
            table.pruned |= table.active & (lower > best + ROUNDING)
        return lower

    def evidence(self, table: CountTable) -> dict[str, NDArray[Any]]:
        """Return the evidence of a finished run, as the cube shows it."""
        shown, scored, status = table.in_order, table.scored, table.status
        if self.prunes:
            shown, scored, status = _trimmed(table, self)
        return with_messages(table, shown, status, scored)


def with_messages(
    table: CountTable, shown: NDArray[np.bool_], status: NDArray[np.int8], *scored: Any
) -> dict[str, NDArray[Any]]:
    """Return the evidence of the fits shown, with what went wrong in them."""
    messages = [table.message(j, shown[j]) for j in range(table.n_candidates)]
    said = {names.STATUS: status, names.MESSAGE: np.array(messages)}
    return table.evidence(shown, *scored) | said


def _trimmed(
    table: CountTable, pruning: Pruning
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int8]]:
    """Return the fits shown, whose pool counts are shown, and the status."""
    shown, scored, status = table.in_order, table.scored, table.status
    evidence = table.evidence()
    best = pruning.best(evidence)
    undecided = np.ones(table.n_candidates, bool)
    no_candidate = np.zeros(table.n_candidates, bool)
    for n_folds in range(table.scheme.n_folds + 1):
        first = np.arange(len(table.scheme.splits)) < n_folds
        evidence = table.evidence(shown & first, no_candidate)
        fine = np.zeros_like(status)
        lower = pruning.lower_bounds({**evidence, names.STATUS: fine})
        undecided &= ~_fails(table, n_folds)
        beaten = undecided & (lower > best + ROUNDING)
        shown[beaten] &= first
        scored[beaten] = False
        status[beaten] = names.STATUS_PRUNED
        undecided &= ~beaten
    return shown, scored, status


def _fails(table: CountTable, n_folds: int) -> NDArray[np.bool_]:
    """Return the candidates of which one of the first fits failed."""
    failed = (table.fit_status == FIT_FAILED) & table.in_order
    return np.asarray(failed[:, :n_folds].any(axis=1))
