"""Random pool rows, to be compared with the labeled ones.

They are the rows of the first stage whose random numbers are smallest, so that any task
that reads them can return them: those that count disagreements do. Only where a resumed
run does not read all of these rows again is the first stage read for the sample alone.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.blocks import stacked
from dsel.data.filters import RandomFraction
from dsel.data.row_random import SHIFT_STREAM
from dsel.searches.engine.count_task import SpanJob, SpanRecord
from dsel.searches.engine.stages import Stage

SAMPLE_ROWS: Final = 500
"""Rows of the pool that are compared with as many labeled ones."""


@dataclass
class PoolSample:
    """About `SAMPLE_ROWS` random rows of a pool, collected from span tasks."""

    pool: Any
    """The rows of the first stage."""
    starts: frozenset[int]
    """First row numbers of its spans."""
    drawn: RandomFraction
    found: dict[int, Any] = field(default_factory=dict)
    """Rows that tasks returned, by the first row number of their span."""

    def wanted_of(self, job: SpanJob) -> RandomFraction | None:
        """Return which rows a task should return; None if they are known."""
        is_known = job.stage > 0 or job.start in self.found
        return None if is_known else self.drawn

    def add(self, record: SpanRecord) -> None:
        """Keep the rows that a task returned."""
        if record.sample is not None:
            self.found[record.job.start] = record.sample

    def rows(self, **ways: Any) -> Any:
        """Return the sample, in row order; `ways` are options of `Pool.reduce`."""
        if self.starts <= self.found.keys():
            return stacked([self.found[start] for start in sorted(self.starts)])
        return stacked(self.pool.reduce(self._draw, _joined, **ways))

    def _draw(self, X: Any, rows: NDArray[np.int64]) -> list[Any]:
        drawn = self.drawn.rows(int(rows[0]), int(rows[-1]) + 1)
        return [X[np.isin(rows, drawn)]]


def sample_of_stage(stage: Stage, *, seed: int) -> PoolSample:
    """Return the sample of a stage, with none of its rows read."""
    share = min(1.0, SAMPLE_ROWS / stage.pool.n_rows)
    starts = frozenset(span.start for span in stage.spans)
    return PoolSample(
        stage.pool, starts, RandomFraction(0.0, share, seed, SHIFT_STREAM)
    )


def _joined(earlier: list[Any], later: list[Any]) -> list[Any]:
    return earlier + later
