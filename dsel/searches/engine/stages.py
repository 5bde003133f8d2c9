"""How much of the pool a search reads: all of it, a part, or stage by stage.

Each stage is a set of rows that was fixed in advance. After a stage, a candidate is
compared on no further rows if its limits are near enough to what the whole pool would
give. The rows of a stage depend on row numbers and seed only, and whether a candidate
stops depends on its own counts only: nothing depends on chunks, workers, order or
interruptions.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.bounds.stopping import (
    WHOLE_POOL,
    StoppingRule,
    stage_schedule,
    stopping_rule,
)
from dsel.checks import check_flag, check_integer, check_positive
from dsel.data.blocks import Span
from dsel.data.row_random import STAGE_STREAM, SUBSET_STREAM

SPANS: Final = 64  # spans of a stage, unless they get too small or too large
SPAN_ROWS: Final = (8_192, 2**20)  # fewest and most stored rows of a span
ANY_TIME_STAGES: Final = 10


@dataclass(frozen=True, kw_only=True)
class PoolReading:
    """How much of a pool a search reads; without arguments, all of it.

    Parameters
    ----------
    max_rows
        About how many pool rows to use at most: a random part, fixed in advance. The
        bound ``transductive`` is then about these rows only.
    stop_within
        If given, a candidate is compared on the pool only until its bound is at most
        this much above what the whole pool would give. The bounds then hold at every
        stage, which makes them slightly larger.
    n_stages
        Number of places where reading may stop, at numbers of rows that grow by a
        factor; delta is divided among them. With 0 the limits hold after every row;
        they are larger, but later searches of the same data may stop at other places.
        Used with `stop_within` only.
    is_shuffled
        Whether the pool's rows are in random order. If so, its first rows are used and
        the others are not read. If not, rows are drawn at random: all chunks are read,
        but only the drawn rows are predicted.

    Raises
    ------
    TypeError, ValueError
        Where a value is of the wrong kind or out of range.

    See Also
    --------
    dsel.bounds.stage_schedule : Where reading may stop.
    dsel.bounds.anytime_limit : Limits that hold at every row.

    Examples
    --------
    >>> PoolReading(stop_within=0.01).n_stages
    10
    """

    max_rows: int | None = None
    stop_within: float | None = None
    n_stages: int = 10
    is_shuffled: bool = False

    def __post_init__(self) -> None:
        if self.max_rows is not None:
            check_integer(self.max_rows, "max_rows", at_least=1)
        if self.stop_within is not None:
            check_positive(self.stop_within, "stop_within")
        check_integer(self.n_stages, "n_stages", at_least=0)
        check_flag(self.is_shuffled, "is_shuffled")

    @property
    def takes_first_rows(self) -> bool:
        """Whether a part is read, and its rows are the first ones."""
        is_part = self.max_rows is not None or self.stop_within is not None
        return self.is_shuffled and is_part


def checked_reading(reading: PoolReading | None) -> PoolReading:
    """Return the reading, all of the pool where it is None, or raise TypeError."""
    if reading is None:
        return PoolReading()
    if not isinstance(reading, PoolReading):
        raise TypeError(
            f"`reading` must be a dsel.PoolReading or None, got {reading!r}; write "
            f"reading=PoolReading(max_rows=...)."
        )
    return reading


@dataclass(frozen=True)
class Stage:
    """Rows that are read together."""

    pool: Any
    spans: tuple[Span, ...]
    """Parts that are counted by one task each."""


@dataclass(frozen=True)
class Stages:
    """The stages of a pool, and when a candidate stops being compared."""

    pool: Any = None
    """All rows that may be read; None where there is no pool."""
    reading: StoppingRule = WHOLE_POOL
    stop_within: float = 0.0
    """How near a limit must be to the one that the whole pool would give."""
    share: float = 0.5
    """Part of delta for a candidate's limit of disagreement."""
    is_shuffled: bool = False
    """Whether rows stand in random order, so that the first ones are a random part."""
    seed: int = 0

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
        """What counts depend on besides the rows: which are read at which stage."""
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
        schedule = stage_schedule(self.n_rows, self.reading.n_stages or ANY_TIME_STAGES)
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
        """Return whether the whole pool would lower no limit by more than wished.

        `counts` are rows on which two answers differ, (n_candidates, n_comparisons);
        `rows`, those that were read, are broadcast against them.
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
        pool = self.pool.part(lower, upper, seed=self.seed, stream=STAGE_STREAM)
        return Stage(pool, _spans(pool, self.n_rows))


def plan_stages(pool: Any, reading: PoolReading, *, share: float, seed: int) -> Stages:
    """Return the stages of a pool that a `PoolReading` means."""
    shuffled, near = reading.is_shuffled, reading.stop_within
    counted = at_most(pool, reading.max_rows, shuffled=shuffled, seed=seed)
    if near is None:
        return Stages(counted, share=share, is_shuffled=shuffled, seed=seed)
    return Stages(counted, stopping_rule(reading.n_stages), near, share, shuffled, seed)


def at_most(pool: Any, n_rows: int | None, *, shuffled: bool, seed: int) -> Any:
    """Return a random part of a pool with about `n_rows` rows, or all if it has fewer.

    Of a `shuffled` pool the first ones will do.
    """
    if pool is None or n_rows is None or n_rows >= pool.n_rows:
        return pool
    if shuffled:
        return pool.between(0, round(n_rows / pool.n_rows * int(pool.boundaries[-1])))
    return pool.part(0.0, n_rows / pool.n_rows, seed=seed, stream=SUBSET_STREAM)


def _spans(pool: Any, n_stored: int) -> tuple[Span, ...]:
    """Divide a pool with `n_stored` rows in storage, independently of the cluster."""
    fewest, most = SPAN_ROWS
    return tuple(pool.spans(int(np.clip(-(-n_stored // SPANS), fewest, most))))
