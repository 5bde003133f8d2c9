"""Who may still win: an exact decision from lower bounds alone."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.criteria import Criterion, Evidence, Settings
from dsel.searches.engine.counts import Board

ROUNDING: Final = 1e-9
"""Two bounds nearer than this are not told apart while pruning."""


@dataclass(frozen=True)
class Referee:
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

    def prune(self, board: Board) -> NDArray[np.float64]:
        """Drop the candidates that no further count can let win.

        A lower bound only grows while counts come in, and the best complete number
        only falls, so that a dropped candidate stays beaten.

        Returns
        -------
        ndarray
            The lower bounds, shape (n_candidates,).
        """
        evidence = board.evidence()
        lower = self.lower_bounds(evidence)
        if self.prunes:
            best = self.best(evidence)
            board.pruned |= board.racing & (lower > best + ROUNDING)
        return lower
