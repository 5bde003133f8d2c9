"""What every iterative solver returns."""

from dataclasses import dataclass
from typing import Any, Final

SOLVED: Final = 0
STOPPED_EARLY: Final = 1


@dataclass(frozen=True)
class Solution:
    """A solver's answer, also where it stopped early: failure is data."""

    value: Any
    """What was solved for; see the solver."""
    status: int
    """``SOLVED`` or ``STOPPED_EARLY``."""
    stats: dict[str, Any]
    """Such as iterations and the gap that was left; see the solver."""
