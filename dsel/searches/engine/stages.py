"""The pool as a search reads it: stage by stage, until the limits are near enough.

At each stage some rows that were fixed in advance are read; a candidate whose limits
are then as near as wished to what the whole pool would give is read no further. Which
rows a stage has is a function of row numbers and seed, and whether to go on one of that
candidate's own counts: no outcome depends on chunks, workers, order or interruption.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.bounds.looks import look_schedule
from dsel.bounds.reading import WHOLE_POOL, StoppingRule, reading_of
from dsel.data.base import Span
from dsel.data.words import LOOK_STREAM, SUBSET_STREAM
from dsel.searches.pool_reading import PoolReading

SPANS: Final = 64  # spans of a stage of medium size: enough for tens of workers
SPAN_ROWS: Final = (8_192, 2**20)  # fewest and most stored rows of a span
ANY_TIME_STAGES: Final = 10


@dataclass(frozen=True)
class Stage:
    """Rows that are read together."""

    pool: Any
    """The pool, filtered to them."""
    spans: tuple[Span, ...]
    """Parts that are counted by one task each."""


@dataclass(frozen=True)
class Stages:
    """When and where reading the pool may stop."""

    pool: Any = None
    """All rows that may be read; None where there is no pool."""
    reading: StoppingRule = WHOLE_POOL
    """What limits hold at every stage."""
    stop_within: float = 0.0
    """How near a limit must be to what the whole pool would give."""
    share: float = 0.5
    """What a candidate's limit of disagreement may spend."""
    is_shuffled: bool = False
    """Whether rows stand in random order, so that the first ones are a random part."""
    seed: int = 0
    """Source of the random parts otherwise."""

    @property
    def may_stop(self) -> bool:
        """Whether reading may stop before the end."""
        return self.reading != WHOLE_POOL

    @property
    def n_rows(self) -> int:
        """Rows that may be read."""
        return 0 if self.pool is None else int(self.pool.n_rows)

    @property
    def fingerprint(self) -> dict[str, str]:
        """What counts depend on beside the rows: which are read at which stage."""
        if not self.may_stop:
            return {}
        order = "first rows" if self.is_shuffled else "drawn rows"
        return {"stages": f"{self.reading!r} at {order}"}

    @cached_property
    def parts(self) -> tuple[Stage, ...]:
        """The stages; their rows are disjoint and together the whole pool."""
        if not self.n_rows:
            return ()
        if not self.may_stop:
            return (Stage(self.pool, _spans(self.pool, self.n_rows)),)
        schedule = look_schedule(self.n_rows, self.reading.n_looks or ANY_TIME_STAGES)
        ends = [0.0, *(schedule / self.n_rows).tolist()]
        parts = [self._part(*pair) for pair in pairwise(ends)]
        return tuple(part for part in parts if part.spans)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows up to each stage."""
        return np.cumsum([part.pool.n_rows for part in self.parts], dtype=np.int64)

    def are_near(
        self, counts: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether reading on would bring no limit down by more than wished.

        Parameters
        ----------
        counts
            Rows on which two answers differ, (n_candidates, n_comparisons).
        rows
            Rows read, broadcast against them.
        """
        expected = -(-counts * self.n_rows // np.maximum(rows, 1))
        now = self.reading.limits(counts, rows, self.share)
        whole = self.reading.limits(
            np.minimum(expected, self.n_rows), np.array(self.n_rows), self.share
        )
        return np.asarray((now - whole <= self.stop_within).all(axis=-1))

    def _part(self, lower: float, upper: float) -> Stage:
        if self.is_shuffled:
            stored = int(self.pool.boundaries[-1])
            first, last = round(lower * stored), round(upper * stored)
            pool = self.pool.between(first, last)
            return Stage(pool, _spans(pool, last - first))
        pool = self.pool.part(lower, upper, seed=self.seed, stream=LOOK_STREAM)
        return Stage(pool, _spans(pool, self.n_rows))


def plan_stages(pool: Any, reading: PoolReading, *, share: float, seed: int) -> Stages:
    """Return how a pool is read, as `plan_search` is told."""
    shuffled, near = reading.is_shuffled, reading.stop_within
    counted = at_most(pool, reading.max_rows, shuffled=shuffled, seed=seed)
    if near is None:
        return Stages(counted, share=share, is_shuffled=shuffled, seed=seed)
    return Stages(counted, reading_of(reading.n_stages), near, share, shuffled, seed)


def at_most(pool: Any, n_rows: int | None, *, shuffled: bool, seed: int) -> Any:
    """Return a random part of a pool of about so many rows, or all if it has fewer.

    Parameters
    ----------
    pool
        The pool, or None.
    n_rows
        Rows wanted; None for all.
    shuffled
        Whether its rows stand in random order, so that the first ones will do.
    seed
        Source of a random part otherwise.
    """
    if pool is None or n_rows is None or n_rows >= pool.n_rows:
        return pool
    if shuffled:
        return pool.between(0, round(n_rows / pool.n_rows * int(pool.boundaries[-1])))
    return pool.part(0.0, n_rows / pool.n_rows, seed=seed, stream=SUBSET_STREAM)


def _spans(pool: Any, n_stored: int) -> tuple[Span, ...]:
    """Divide rows that lie among `n_stored`, whatever the cluster."""
    fewest, most = SPAN_ROWS
    return tuple(pool.spans(int(np.clip(-(-n_stored // SPANS), fewest, most))))
