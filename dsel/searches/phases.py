"""The time of a run, phase by phase."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dsel import names

PHASE_SECONDS: Final = "phase_seconds"
"""Attribute of the cube that holds them. The stored cube was written before `save` and
`model` ended, so it lacks these two."""
PHASES: Final = ("prepare", "resume", "search", "evaluate", "save", "model")
"""All wall time of a run in this process: checks of the pool and the workers, reading
the store, fits and rounds over the pool, criteria, writing the cube, the model."""
WORK: Final = {
    "fits": names.FIT_SECONDS,
    "inner fits": names.INNER_FIT_SECONDS,
    "full fits": names.FULL_FIT_SECONDS,
    "scoring": names.SCORE_SECONDS,
}
"""Time in tasks of all counts in the cube, over all workers and runs."""


@dataclass
class PhaseClock:
    """Measures the wall time of phases."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def as_json(self, evidence: Mapping[str, Any], n_slots: int) -> str:
        """Return phases, and the time in tasks of what was counted, for the cube."""
        work = {
            name: float(np.nansum(evidence[variable]))
            for name, variable in WORK.items()
            if variable in evidence
        }
        every = {**self.seconds, **work}
        rounded = {name: round(seconds, 3) for name, seconds in every.items()}
        return json.dumps({**rounded, "slots": n_slots})


def describe_times(attribute: str) -> str:
    """Return the attribute ``phase_seconds`` of a cube as one line.

    Examples
    --------
    >>> describe_times('{"resume": 0.5, "search": 2.0, "fits": 3.5, "slots": 2}')
    '2.5 s (resume 0.5, search 2.0); in tasks: fits 3.5 on 2 slots'
    """
    found = json.loads(attribute)
    phases = [(name, found[name]) for name in PHASES if name in found]
    tasks = [(name, found[name]) for name in WORK if name in found]
    return (
        f"{sum(value for _, value in phases):.1f} s ({_listed(phases)}); "
        f"in tasks: {_listed(tasks)} on {found['slots']} slots"
    )


def _listed(entries: list[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in entries)
