"""When reading a pool may stop, and the limits of a rate that then hold.

Where reading stops because of what was counted, a limit must hold at every place where
it could have stopped. Bounds of several terms take their limit from here, so that none
of them can be computed with the plain limit after such a stop by mistake.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsel import checks
from dsel.bounds.anytime import JEFFREYS, anytime_limit
from dsel.bounds.binomial import Floats, upper_limits

Counts = NDArray[np.int64]


class StoppingRule(Protocol):
    """When reading may stop.

    Notes
    -----
    Guarantee: `limits` fail with probability at most their share, at all places where
    reading may stop taken together.
    Assumes: independent rows, in an order that depends on no model; a schedule that is
    fixed before the pool is read.
    Source: see the members.
    """

    @property
    def n_stages(self) -> int:
        """Number of stages that the share is divided by; 0 where it is not divided."""

    def limits(
        self, n_disagreements: Counts, n_rows: Counts, share: Floats | float
    ) -> Floats:
        """Return upper limits of the rate after so many rows, in the broadcast shape.

        Parameters
        ----------
        n_disagreements, n_rows
            Counted so far, and in how many rows.
        share
            Probability with which any of the limits may fail.
        """

    def event(self, name: str) -> str:
        """Return the name of the event that all of these limits hold."""


@dataclass(frozen=True)
class FixedStages:
    """Reading that may stop at some numbers of rows, fixed in advance.

    Notes
    -----
    Guarantee: the limits of all stages hold at once.
    Assumes: as `StoppingRule`.
    Source: the union bound over stages; with one stage it is the plain limit.
    """

    n_stages: int = 1
    """Number of stages; each gets the same part of the share."""

    def __post_init__(self) -> None:
        checks.check_integer(self.n_stages, "n_stages", at_least=1)

    def limits(
        self, n_disagreements: Counts, n_rows: Counts, share: Floats | float
    ) -> Floats:
        """Return the binomial limits at each stage's part of the share."""
        # Declared stages count, reached or not: the union is over all of them.
        part = np.asarray(share) / self.n_stages
        return np.asarray(upper_limits(n_disagreements, n_rows, part))

    def event(self, name: str) -> str:
        """Name the stages, if there are several."""
        return (
            name if self.n_stages == 1 else f"{name} at each of {self.n_stages} stages"
        )


@dataclass(frozen=True)
class AnyTime:
    """Reading that may stop after any row.

    Its limits are larger than those of a few fixed stages, but the places where reading
    may stop need not be fixed in advance.

    Notes
    -----
    Guarantee: the limits after every number of rows hold at once.
    Assumes: as `StoppingRule`, without a schedule.
    Source: :func:`anytime_limit`.
    """

    prior: tuple[float, float] = JEFFREYS
    """Parameters of its Beta prior."""
    n_stages: int = 0
    """No stages divide the share."""

    def limits(
        self, n_disagreements: Counts, n_rows: Counts, share: Floats | float
    ) -> Floats:
        """Return the limits of the confidence sequence."""
        return np.asarray(
            anytime_limit(n_disagreements, n_rows, delta=share, prior=self.prior)
        )

    def event(self, name: str) -> str:
        """Say that it holds at every row."""
        return f"{name} at every row"


WHOLE_POOL = FixedStages()
"""All of the pool is read, whatever it says: the plain limit."""


def stopping_rule(n_stages: int) -> StoppingRule:
    """Return the rule of so many stages, 0 standing for `AnyTime`."""
    return FixedStages(n_stages) if n_stages else AnyTime()
