"""What all estimates of a squared error share: how they judge and break ties."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.criteria.base import Evidence, Settings, Terms, first_smallest, has_failed

Floats = NDArray[np.float64]

ROUNDING = 1e-12
"""Scores this close, relative to the smallest, count as equal."""


@dataclass(frozen=True)
class LossCriterion:
    """An estimate of G + sigma^2; never a bound, and nothing is pruned by it.

    Ties go to the larger regularization, then to the larger width: the smoother model.
    """

    name: str
    """Value of `criterion=`."""
    needs: tuple[str, ...]
    """Variables of the cube that `formula` takes, in this order."""
    formula: Callable[..., Floats]
    """From the variables to one number per candidate."""
    is_guarantee: bool = False
    """No statement with a probability."""
    can_prune: bool = False
    """All regularizations of a width are known at once."""
    deploys: str = "full"
    """The model of all labeled rows."""
    holds_out_one_fold: bool = False
    """Whether only the first fold is held out."""

    def evaluate(self, evidence: Evidence, settings: Settings) -> Terms:
        """Judge candidates; NaN where a loss is missing."""
        del settings  # an estimate needs no delta
        values = self.formula(*(evidence[name] for name in self.needs))
        estimate = np.where(has_failed(evidence), np.inf, values)
        return Terms(estimate, estimate, np.full_like(estimate, np.nan))

    def lower_bound(self, evidence: Evidence, settings: Settings) -> Floats:
        """Return 0, which no squared error is below."""
        del settings
        return np.zeros(len(evidence[names.STATUS]))

    def choose(self, terms: Terms, evidence: Evidence) -> int:
        """Return the smoothest of the best; see `smoothest_of_best`."""
        return smoothest_of_best(
            terms.estimate, evidence[names.REGULARIZATION], evidence[names.WIDTH]
        )


def smoothest_of_best(
    estimates: Floats, regularizations: Floats, widths: Floats
) -> int:
    """Return the number of the smallest estimate; ties: larger lam, then larger c.

    Parameters
    ----------
    estimates
        One per candidate; NaN and inf are never chosen.
    regularizations, widths
        lam and c of each candidate.

    Raises
    ------
    AllFitsFailedError
        Where no estimate is finite.
    """
    best = estimates[first_smallest(estimates)]
    ties = np.flatnonzero(estimates <= best * (1.0 + ROUNDING))
    order = np.lexsort((-widths[ties], -regularizations[ties]))
    return int(ties[order[0]])
