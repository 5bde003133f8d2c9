"""What runs on a worker: counting the rows of a span on which models disagree."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.blocks import Block, read_blocks, stacked
from dsel.data.cache import process_cache, spare_memory
from dsel.data.filters import RandomFraction
from dsel.data.frames import Frame
from dsel.families.family import Family, FittedGroup
from dsel.searches.engine.comparisons import Comparison
from dsel.searches.engine.fit_task import Payload, Work

BLOCK_NBYTES = 32 * 2**20  # working memory of a block: a few times the caches
BLOCK_ROWS = (64, 2**15)  # fewest and most: a block costs 0.2 ms beside its rows
FRAME_NBYTES = 2**27  # the same of data frames, of which a call costs milliseconds
FRAME_ROWS = 2**16
NO_ROWS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class SpanJob:
    """Candidates to be compared on some consecutive rows of the pool."""

    start: int
    """First global row number."""
    stop: int
    """One past the last."""
    candidates: tuple[int, ...]
    stage: int = 0

    def can_join(self, other: "SpanJob") -> bool:
        """Whether both can be jobs of one task: the same models, the same stage."""
        return (self.candidates, self.stage) == (other.candidates, other.stage)


@dataclass(frozen=True)
class SpanRecord:
    """Counts of one span."""

    job: SpanJob
    differences: tuple[NDArray[np.int64], ...]
    """Per comparison, (n_candidates, n_bins)."""
    rows: tuple[NDArray[np.int64], ...]
    """Per comparison, pool rows in each bin, (n_bins,)."""
    seconds: float
    """Time of the span, reading included."""
    sample: Any = None
    """Rows that were to be returned, (n_drawn, n_columns); None for none."""


def models_of(
    work: Work, payloads: Sequence[Payload], candidates: tuple[int, ...]
) -> tuple[None, Payload]:
    """Return the models of some candidates only, so that less is sent to workers."""
    held: Payload = {}
    for job, models in (item for payload in payloads for item in payload.items()):
        mine = [number for number in models.candidates if number in candidates]
        if mine:
            held[job] = work.groups[job.group].family.join([models], mine)
    return None, held


def count_spans(
    work: Work,
    payloads: Sequence[Payload],
    sources: Sequence[list[Any]],
    jobs: Sequence[SpanJob],
    comparisons: Sequence[Comparison],
    round_key: str,
    drawn: Sequence[RandomFraction | None],
) -> tuple[list[SpanRecord], None]:
    """Count over spans of the pool where the compared models differ.

    All jobs have the same candidates. With the counts of each span, the rows that its
    entry of `drawn` picks are returned.
    """
    parts = process_cache().get(
        f"joined-{round_key}", lambda: _join(work, payloads, jobs[0].candidates)
    )
    records = [
        _count_span(work, parts, job, rows, comparisons, picked)
        for job, rows, picked in zip(jobs, sources, drawn, strict=True)
    ]
    return records, None


def _count_span(
    work: Work,
    parts: Sequence[FittedGroup],
    job: SpanJob,
    sources: list[Any],
    comparisons: Sequence[Comparison],
    drawn: RandomFraction | None,
) -> SpanRecord:
    started = time.perf_counter()
    brought = None if drawn is None else drawn.rows(job.start, job.stop)
    tally = SpanTally(comparisons, job.candidates, brought)
    row_nbytes = max(part.row_nbytes for part in parts) + tally.row_nbytes
    n_rows = rows_of_block(
        row_nbytes, spare_memory(), are_frames=isinstance(work.X, Frame)
    )
    for block in read_blocks(sources, n_rows, allow_nan=work.allow_nan):
        try:
            tally.add(block, parts)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Models cannot predict pool rows {block.rows[0]} to {block.rows[-1]}: "
                f"{error}. All rows of `pool` must be such as `predict` takes; where "
                f"it has categories of its own, encoders must take unknown ones, as "
                f'OneHotEncoder(handle_unknown="ignore") does.'
            ) from error
        del block  # else it would be in memory beside the next one
    seconds = time.perf_counter() - started
    return SpanRecord(job, *tally.counts, seconds, tally.sample)


def _join(
    work: Work, payloads: Sequence[Payload], candidates: Sequence[int]
) -> list[FittedGroup]:
    """Return the models of the candidates joined, one group for each family."""
    wanted = set(candidates)
    by_family: dict[int, tuple[Family, list[FittedGroup], list[int]]] = {}
    for payload in payloads:
        for job, models in payload.items():
            family = work.groups[job.group].family
            numbers = [number for number in models.candidates if number in wanted]
            if numbers:
                entry = by_family.setdefault(id(family), (family, [], []))
                entry[1].append(models)
                entry[2].extend(numbers)
    return [
        family.join(models, sorted(set(numbers)))
        for family, models, numbers in by_family.values()
    ]


def rows_of_block(row_nbytes: int, spare: int, *, are_frames: bool = False) -> int:
    """Return the rows of a block: fewer where the process has little memory left."""
    fewest, most = BLOCK_ROWS
    most = FRAME_ROWS if are_frames else most
    nbytes = min(FRAME_NBYTES if are_frames else BLOCK_NBYTES, spare // 16)
    return int(np.clip(nbytes // max(1, row_nbytes), fewest, most))


class SpanTally:
    """Differences by candidate and bin, the rows compared, and rows to return.

    `drawn` are the ascending numbers of the rows to return; None for none.
    """

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        candidates: Sequence[int],
        drawn: NDArray[np.int64] | None = None,
    ) -> None:
        self._comparisons, self._drawn = comparisons, drawn
        self._place = {number: i for i, number in enumerate(candidates)}
        n, bins = len(candidates), [c.n_bins for c in comparisons]
        self._differences = tuple(np.zeros((n, n_bins), np.int64) for n_bins in bins)
        self._rows = tuple(np.zeros(n_bins, np.int64) for n_bins in bins)
        self._brought: list[Any] = []
        queries = sum(len(c.queries(NO_ROWS, candidates)) for c in comparisons)
        self.row_nbytes = 16 * queries * n
        """Bytes of a row's predictions, and of what comparing them allocates."""

    @property
    def counts(
        self,
    ) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.int64], ...]]:
        """Differences, (n_candidates, n_bins), and rows, (n_bins,), per comparison."""
        return self._differences, self._rows

    @property
    def sample(self) -> Any:
        """The rows to return, (n_drawn, n_columns), or None."""
        return stacked(self._brought) if self._brought else None

    def add(self, block: Block, parts: Sequence[FittedGroup]) -> None:
        """Count a block; `parts` together have the models of all candidates."""
        for part in parts:
            mine = [self._place[number] for number in part.candidates]
            found = _differences(part, block, self._comparisons)
            for total, more in zip(self._differences, found, strict=True):
                total[mine] += more
        for comparison, rows in zip(self._comparisons, self._rows, strict=True):
            rows += _rows_by_bin(comparison, block.rows)
        if self._drawn is not None:
            self._brought.append(block.X[_places(self._drawn, block.rows)])


def _places(wanted: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where wanted numbers stand among others; both ascend."""
    first, last = np.searchsorted(wanted, [rows[0], rows[-1] + 1])
    near = wanted[first:last]
    places = np.searchsorted(rows, near)
    return np.asarray(places[rows[places] == near])


def _rows_by_bin(comparison: Comparison, rows: NDArray[np.int64]) -> Any:
    bins = comparison.bins(rows)
    if bins is None:
        return len(rows)
    return np.bincount(bins, minlength=comparison.n_bins)


def _differences(
    part: FittedGroup, block: Any, comparisons: Sequence[Comparison]
) -> list[NDArray[np.int64]]:
    """Predict each distinct query once, then count every comparison."""
    queries: list[NDArray[np.int64]] = []
    places: list[list[int]] = []
    for comparison in comparisons:
        places.append([])
        for query in comparison.queries(block.rows, part.candidates):
            found = next(
                (i for i, known in enumerate(queries) if _same(known, query)), None
            )
            if found is None:
                found = len(queries)
                queries.append(query)
            places[-1].append(found)
    codes = part.predict(block.X, queries)
    return [
        comparison.tally(codes[place], block.rows)
        for comparison, place in zip(comparisons, places, strict=True)
    ]


def _same(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one, other))
