"""Which candidates can still win: an exact decision from lower bounds alone.

A run drops a candidate as soon as its counts prove it beaten, and how far it got by
then depends on the order in which tasks ended. The cube shows of each loser just the
folds, in their order, that prove it beaten by the final winner. Every exact run has
counted those, since the winner's number is the smallest that ever did the pruning; so
killed, resumed and undisturbed runs end with the same cube.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria import Criterion, Evidence, Settings
from dsel.models.family import FIT_FAILED
from dsel.searches.engine.counts import CountTable

ROUNDING: Final = 1e-9
"""Two bounds nearer than this are not told apart while pruning."""


@dataclass(frozen=True)
class Pruning:
    """Decides who may still win, for one criterion; knows only lower bounds."""

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
        """Return what each candidate's number is at least, once it is complete."""
        return self.criterion.lower_bound(evidence, self.settings)

    def best(self, evidence: Evidence) -> float:
        """Return the smallest number of a candidate that is complete, or infinity."""
        found = self.criterion.evaluate(evidence, self.settings).estimate
        return float(np.min(found[~np.isnan(found)], initial=np.inf))

    def prune(self, table: CountTable) -> NDArray[np.float64]:
        """Drop the candidates that no further count can let win.

        A lower bound only grows while counts come in, and the best complete number
        only falls, so that a dropped candidate stays beaten.

        Returns
        -------
        ndarray
            The lower bounds, shape (n_candidates,).
        """
        evidence = table.evidence()
        lower = self.lower_bounds(evidence)
        if self.prunes:
            best = self.best(evidence)
            table.pruned |= table.active & (lower > best + ROUNDING)
        return lower


def final_evidence(table: CountTable, pruning: Pruning) -> dict[str, NDArray[Any]]:
    """Return the evidence of a finished run, with messages, as the cube shows it."""
    shown, scored = table.in_order, table.scored
    status = table.status
    if pruning.prunes:
        shown, scored, status = _trimmed(table, pruning)
    evidence = table.evidence(shown, scored)
    messages = [table.message(j, shown[j]) for j in range(table.n_candidates)]
    text = np.array(messages)
    return evidence | {names.STATUS: status, names.MESSAGE: text}


def _trimmed(
    table: CountTable, pruning: Pruning
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int8]]:
    """Return the fits shown, whose pool counts are shown, and the status."""
    shown, scored, status = table.in_order, table.scored, table.status
    evidence = table.evidence()
    best = pruning.best(evidence)
    undecided = np.ones(table.n_candidates, bool)
    nobody = np.zeros(table.n_candidates, bool)
    for n_folds in range(table.scheme.n_folds + 1):
        first = np.arange(len(table.scheme.trainings)) < n_folds
        evidence = table.evidence(shown & first, nobody)
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
