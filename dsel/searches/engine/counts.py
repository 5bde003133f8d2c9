"""Counts of every candidate so far, and which candidates still need work."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.best_fold import smallest_rate
from dsel.data.blocks import Span
from dsel.families.family import FIT_DONE, FIT_FAILED
from dsel.searches.engine.comparisons import Comparison
from dsel.searches.engine.count_task import NO_ROWS, SpanJob, SpanRecord
from dsel.searches.engine.fit_task import FitRecord, Group
from dsel.searches.engine.scheme import Scheme
from dsel.searches.engine.stages import Stages

UNKNOWN = -1


@dataclass
class CountTable:
    """Counts by candidate; only the driver writes to it."""

    scheme: Scheme
    groups: tuple[Group, ...]
    stages: Stages
    n_candidates: int
    n_classes: int = 2
    n_labeled: int = 0
    compared: tuple[Comparison, ...] = field(init=False)
    test_errors: NDArray[np.int64] = field(init=False)
    train_errors: NDArray[np.int64] = field(init=False)
    fit_status: NDArray[np.int8] = field(init=False)
    fit_seconds: NDArray[np.float64] = field(init=False)
    score_seconds: NDArray[np.float64] = field(init=False)
    differences: list[NDArray[np.int64]] = field(init=False)
    pool_rows: list[NDArray[np.int64]] = field(init=False)
    spans: list[tuple[int, Span]] = field(init=False)
    stage_of: NDArray[np.int64] = field(init=False)
    visited: NDArray[np.bool_] = field(init=False)
    is_near: NDArray[np.bool_] = field(init=False)
    pruned: NDArray[np.bool_] = field(init=False)
    messages: dict[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fits = (self.n_candidates, len(self.scheme.splits))
        self.test_errors = np.full(fits, names.UNCOUNTED, np.int64)
        self.train_errors = np.full(fits, names.UNCOUNTED, np.int64)
        self.fit_status = np.full(fits, UNKNOWN, np.int8)
        self.fit_seconds = np.full(fits, np.nan)
        self.score_seconds = np.zeros(self.n_candidates)
        at_stages = (self.n_candidates, len(self.stages.parts))
        self.compared = self.scheme.all_comparisons(np.zeros(0, np.int64))
        bins = [(*at_stages, c.n_bins) for c in self.compared]
        self.differences = [np.zeros(shape, np.int64) for shape in bins]
        self.pool_rows = [np.zeros(shape, np.int64) for shape in bins]
        self.spans = [
            (number, span)
            for number, stage in enumerate(self.stages.parts)
            for span in stage.spans
        ]
        self.stage_of = np.array([stage for stage, _ in self.spans], np.int64)
        self.visited = np.zeros((self.n_candidates, len(self.spans)), bool)
        self.is_near = np.zeros(at_stages, bool)
        self.is_near[:, -1:] = True  # nothing is left to read
        self.pruned = np.zeros(self.n_candidates, bool)
        self.span_number = {
            (stage, span.start, span.stop): i
            for i, (stage, span) in enumerate(self.spans)
        }

    def add_fit(self, record: FitRecord) -> None:
        """Write the counts of one job; raise where those of an earlier fit differ."""
        counts, split = record.counts, record.job.split
        for i, number in enumerate(record.job.candidates):
            before, now = self.test_errors[number, split], counts.test_errors[i, 0]
            if min(before, now) >= 0 and before != now:
                raise RuntimeError(
                    f"candidate {number} gave another model when it was fitted again "
                    f"on {self.scheme.splits[split].name}: {now} errors where {before} "
                    f"were counted. Give it a fixed seed, and workers the same "
                    f"libraries and kind of processor."
                )
            self.set_fit(
                number,
                record.job.split,
                (int(counts.test_errors[i, 0]), int(counts.train_errors[i, 0])),
                bool(counts.status[i, 0] == FIT_FAILED),
                float(counts.seconds[i, 0]),
            )
        self.messages.update(counts.messages)

    def set_fit(
        self,
        number: int,
        split: int,
        errors: tuple[int, int],
        failed: bool,
        seconds: float,
    ) -> None:
        """Set the (test, train) errors of one fit."""
        self.test_errors[number, split], self.train_errors[number, split] = errors
        self.fit_status[number, split] = FIT_FAILED if failed else FIT_DONE
        self.fit_seconds[number, split] = seconds

    def fail(self, number: int, split: int, message: str) -> None:
        """Record that a fit failed."""
        self.set_fit(number, split, (-1, -1), True, float("nan"))
        self.messages[number, split] = message

    def add_span(self, record: SpanRecord) -> None:
        """Add the counts of one span, once for each candidate."""
        stage = record.job.stage
        span = self._number_of(record.job)
        numbers = np.array(record.job.candidates)
        fresh = ~self.visited[numbers, span]
        mine = numbers[fresh]
        for total, found in zip(self.differences, record.differences, strict=True):
            total[mine, stage] += found[fresh]
        for total, rows in zip(self.pool_rows, record.rows, strict=True):
            total[mine, stage] += rows
        self.visited[mine, span] = True
        self.score_seconds[mine] += record.seconds / max(1, len(numbers))
        self._stop_near(mine, stage)

    def span_of(self, job: SpanJob) -> Span:
        """Return the span of a job."""
        return self.spans[self._number_of(job)][1]

    def _number_of(self, job: SpanJob) -> int:
        return self.span_number[job.stage, job.start, job.stop]

    def _stop_near(self, numbers: NDArray[np.int64], first: int) -> None:
        """Decide after which of the stages that are now over candidates may stop."""
        over = self.stages_over[numbers]
        for stage in range(first, over.shape[1] - 1):
            if len(mine := numbers[over[:, stage]]):
                rates = self._rates(mine, stage)
                self.is_near[mine, stage] = self.stages.are_near(*rates)

    def _rates(
        self, numbers: NDArray[np.int64], stage: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return differences up to a stage and the rows read, (candidates, rates)."""
        pairs = []
        for comparison, *totals in zip(
            self.compared, self.differences, self.pool_rows, strict=True
        ):
            pair = [total[numbers, : stage + 1].sum(axis=1) for total in totals]
            if comparison.bins(NO_ROWS) is not None:  # a row is in one bin only
                pair = [each.sum(axis=1, keepdims=True) for each in pair]
            pairs.append(pair)
        counts, rows = zip(*pairs, strict=True)
        return np.concatenate(counts, axis=1), np.concatenate(rows, axis=1)

    @property
    def stages_over(self) -> NDArray[np.bool_]:
        """Stages of which every span is counted, and of all stages before them."""
        stages = range(len(self.stages.parts))
        over = [self.visited[:, self.stage_of == stage].all(axis=1) for stage in stages]
        empty = np.zeros((0, self.n_candidates), bool)
        return np.asarray(np.logical_and.accumulate(np.array(over or empty)).T)

    @property
    def stopped_at(self) -> NDArray[np.int64]:
        """Stage after which a candidate is compared no further; -1 before that."""
        may_stop = self.stages_over & self.is_near
        first = np.append(may_stop, np.ones((self.n_candidates, 1), bool), axis=1)
        return np.where(may_stop.any(axis=1), first.argmax(axis=1), -1)

    @property
    def pool_rows_done(self) -> int:
        """Most rows of the pool that a candidate was compared on."""
        if not self.pool_rows:
            return 0
        return int(self.pool_rows[0].sum(axis=(1, 2)).max(initial=0))

    def wanted(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which spans of its next stage each candidate still needs."""
        following = self.stages_over[numbers].sum(axis=1, keepdims=True)
        return np.asarray((self.stage_of == following) & ~self.visited[numbers])

    @property
    def in_order(self) -> NDArray[np.bool_]:
        """Fits that ended, and so did those of its earlier splits in `Scheme.order`.

        Pruning reads only these. A count that comes early waits for those before it, so
        that the outcome does not depend on the order in which tasks end.
        """
        order = self.scheme.order
        found = np.empty(self.fit_status.shape, bool)
        ended = self.fit_status[:, order] != UNKNOWN
        found[:, order] = np.logical_and.accumulate(ended, axis=1)
        return found

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Candidates that no choice can be, since some fit of it failed."""
        found = (self.fit_status == FIT_FAILED) & self.in_order
        ruled_out = [found[:, list(each)].any(axis=1) for each in self.scheme.searches]
        return np.asarray(np.logical_and.reduce(ruled_out))

    @property
    def fitted(self) -> NDArray[np.bool_]:
        """Candidates of which every fit is done; in a nested search, has ended."""
        if self.scheme.is_nested:
            return np.asarray((self.fit_status != UNKNOWN).all(axis=1))
        return np.asarray((self.fit_status == FIT_DONE).all(axis=1))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Candidates that are counted on as much of the pool as they need."""
        return np.asarray((self.stopped_at >= 0) | (not self.spans))

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Candidates that are fitted and scored."""
        return self.fitted & self.scored

    @property
    def active(self) -> NDArray[np.bool_]:
        """Candidates that may win and are not complete."""
        return ~(self.pruned | self.failed | self.complete)

    @property
    def status(self) -> NDArray[np.int8]:
        """Status of each candidate, as the cube has it."""
        status = np.full(self.n_candidates, names.STATUS_MISSING, np.int8)
        status[self.complete] = names.STATUS_DONE
        status[self.pruned] = names.STATUS_PRUNED
        status[self.failed] = names.STATUS_FAILED
        return status

    def best_folds(self) -> NDArray[np.int64]:
        """Return the fold that each candidate's best-fold certificate rests on."""
        k = self.scheme.n_folds
        rows = np.array([len(t.test_rows) for t in self.scheme.splits[:k]])
        return smallest_rate(self.test_errors[:, :k], rows)

    def message(self, number: int, shown: NDArray[np.bool_]) -> str:
        """Return the message of the first fit of a candidate that has one."""
        for split in self.scheme.splits:
            text = self.messages.get((number, split.number))
            if text and shown[split.number]:
                return f"{split.name}: {text}"
        return ""

    def evidence(
        self,
        shown: NDArray[np.bool_] | None = None,
        scored: NDArray[np.bool_] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the counts under the names of the cube, candidates first.

        By default of the fits in order, (n_candidates, n_splits), and the pool counts
        of the candidates that need no more.
        """
        k, splits = self.scheme.n_folds, self.scheme.splits
        shown = self.in_order if shown is None else shown
        scored = self.scored if scored is None else scored
        test_errors = np.where(shown, self.test_errors, names.UNCOUNTED)
        # An earlier run of the same place may have counted what this one does not show.
        counted = shown & np.array([split.counts_others for split in splits])
        train_errors = np.where(counted, self.train_errors, names.UNCOUNTED)
        seconds = np.where(shown, self.fit_seconds, np.nan)
        n = self.n_candidates
        evidence: dict[str, NDArray[Any]] = {
            names.FOLD_ERRORS: test_errors[:, :k],
            names.TRAIN_ERRORS: train_errors[:, :k],
            names.FOLD_ROWS: np.array([len(t.test_rows) for t in splits[:k]]),
            names.TRAIN_ROWS: np.array([len(t.train_rows) for t in splits[:k]]),
            names.FIT_SECONDS: seconds[:, :k],
            names.STATUS: self.status,
            names.N_UNLABELED: np.array(self.stages.n_rows),
            names.N_CLASSES: np.array(self.n_classes),
            names.N_LABELED: np.array(self.n_labeled),
            names.DISAGREEMENTS: np.full((n, k), names.UNCOUNTED),
            names.POOL_ROWS: np.zeros((n, k), np.int64),
            names.BEST_FOLD_DISAGREEMENTS: np.full(n, names.UNCOUNTED),
        }
        if self.scheme.full is not None:
            evidence[names.FULL_TRAIN_ERRORS] = train_errors[:, self.scheme.full]
            evidence[names.FULL_FIT_SECONDS] = seconds[:, self.scheme.full]
        if self.scheme.leave_one_out is not None:
            evidence[names.LOO_ERRORS] = test_errors[:, self.scheme.leave_one_out]
        return evidence | self._pool_evidence(scored)

    def _pool_evidence(self, scored: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        evidence: dict[str, NDArray[Any]] = {}
        if self.stages.may_stop:
            evidence[names.N_STAGES] = np.array(self.stages.reading.n_stages)
            evidence[names.STAGE_ROWS] = self.stages.rows
        place = np.arange(self.n_candidates), self.stopped_at.clip(min=0)
        for comparison, *totals in zip(
            self.compared, self.differences, self.pool_rows, strict=True
        ):
            found, rows = (
                total.cumsum(axis=1)[place] if self.spans else total.sum(axis=1)
                for total in totals
            )
            counts = np.where(scored[:, np.newaxis], found, names.UNCOUNTED)
            given = np.where(scored[:, np.newaxis], rows, 0)
            mine = comparison.evidence(counts, given)
            if names.POOL_ROWS in mine:
                mine[names.SCORE_SECONDS] = self._score_seconds(rows, scored)
            evidence |= mine
        return evidence

    def _score_seconds(
        self, rows: NDArray[np.int64], scored: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Divide each candidate's scoring time by the rows that each fold was given."""
        share = rows / np.maximum(1, rows.sum(axis=1, keepdims=True))
        seconds = share * self.score_seconds[:, np.newaxis]
        return np.where(scored[:, np.newaxis], seconds, np.nan)
