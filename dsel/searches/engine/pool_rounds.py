"""Rounds of a run: in each, the pool is read for candidates that may still win."""

import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.pool import SPAN_NBYTES
from dsel.runtime.tasks import Executor, Finished, Task
from dsel.searches.engine.count_task import SpanJob, SpanRecord, count_spans, models_of
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fit_queue import BatchSize
from dsel.searches.engine.fits import ATTEMPTS, ModelRegistry
from dsel.searches.engine.pool_sample import PoolSample
from dsel.searches.engine.records import CountCheckpoint, log_retry, log_span

LEADERS = 4  # candidates of the first round, whose counts then prune the others


@dataclass
class Round:
    """One reading of the pool for some candidates."""

    key: str
    """Part of the key of the joined models in the workers' caches."""
    members: tuple[int, ...]
    waiting: list[SpanJob]
    """Spans that are not submitted yet."""
    in_flight: int = 0
    """Number of spans that are submitted and not counted."""
    derived: dict[str, str] = field(default_factory=dict)
    """For each task that keeps members' models, the task to take them from: itself,
    or one derived from it that keeps less of other candidates."""
    batch_size: BatchSize = field(default_factory=BatchSize)
    """How many spans make a task."""

    @property
    def is_over(self) -> bool:
        """Whether every span is counted."""
        return not self.waiting and not self.in_flight

    def take(self, n_slots: int, n_rows: int) -> list[SpanJob]:
        """Return the spans of the next task, all for the same candidates; or none.

        A task may read `n_rows` stored rows; a longer span is a task of its own.
        """
        most = self.batch_size.jobs_per_task(len(self.waiting), n_slots)
        taken: list[SpanJob] = []
        for job in self.waiting[:most]:
            n_rows -= job.stop - job.start
            if taken and (n_rows < 0 or not job.can_join(taken[0])):
                break
            taken.append(job)
        del self.waiting[: len(taken)]
        self.in_flight += len(taken)
        return taken


MODELS_NBYTES: Final = 2**30  # of one round at most, on every worker
WORTH_A_TASK = 2**17  # bytes not moved, as many as a slow network moves in 10 ms


@dataclass
class Scoring:
    """Tasks that count disagreements over spans of the pool, round by round."""

    table: CountTable
    executor: Executor
    checkpoint: CountCheckpoint
    models: ModelRegistry
    """Which task keeps each model."""
    sample: PoolSample | None = None
    """Pool rows that span tasks return with their counts; None for none."""
    current: Round | None = None
    running: dict[str, list[SpanJob]] = field(default_factory=dict)
    """Jobs of each task that has not ended."""
    again: deque[Task] = field(default_factory=deque)
    """Tasks to submit before any other: what failed once."""
    attempts: dict[SpanJob, int] = field(default_factory=dict)
    n_rounds: int = 0
    n_spans: int = 0
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    """Part of the keys of joined models in the workers' caches, which outlive a run."""
    serial: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def is_due(self) -> bool:
        """Whether a round may begin."""
        return self.current is None and bool(self.table.spans)

    @property
    def n_spans_done(self) -> int:
        """Spans counted in all rounds."""
        waiting = [] if self.current is None else self.current.waiting
        return self.n_spans - len(waiting) - sum(map(len, self.running.values()))

    def next_members(
        self, lower: NDArray[np.float64], *, leaders_first: bool, fits_are_over: bool
    ) -> tuple[int, ...]:
        """Return the candidates of the next round, smallest lower bound first; or none.

        With pruning, a first round of a few leaders starts as soon as the candidate of
        smallest lower bound is fitted: its estimate prunes others. All other rounds
        wait until no fit is left, or their models take all the memory that a round may
        have, so that the pool is read as few times as possible. The models of a round
        must fit into the memory of every worker.
        """
        active = np.flatnonzero(self.table.active)
        order = active[np.lexsort((active, lower[active]))]
        ready = order[self.table.fitted[order]]
        leads = leaders_first and np.array_equal(order[:1], ready[:1])
        budget = self._budget()
        may_be_full = self.models.kept_nbytes >= budget
        if not (len(ready) and (fits_are_over or leads or may_be_full)):
            return ()
        sizes = np.cumsum([self.models.nbytes.get(number, 0) for number in ready])
        if not (fits_are_over or leads or sizes[-1] >= budget):
            return ()
        n_fitting = max(1, int(np.searchsorted(sizes, budget, side="right")))
        most = LEADERS if leaders_first else n_fitting
        return tuple(ready[: min(n_fitting, most)].tolist())

    def _budget(self) -> int:
        """Return the bytes that models of a round may have.

        Joining copies them, and a block needs memory too. Asked each time: a worker's
        process grows with what it loads, which leaves less for models.
        """
        return min(MODELS_NBYTES, self.executor.slot_memory // 4)

    def begin(self, members: tuple[int, ...]) -> None:
        """Begin a round for candidates whose models are all kept."""
        numbers = np.array(members)
        jobs = [
            SpanJob(span.start, span.stop, tuple(numbers[missing].tolist()), stage)
            for (stage, span), missing in zip(
                self.table.spans, self.table.wanted(numbers).T, strict=True
            )
            if missing.any()
        ]
        self.n_rounds += 1
        self.n_spans += len(jobs)
        self.current = Round(f"round-{self.n_rounds}", members, jobs)

    def next_task(self, n_slots: int) -> Task | None:
        """Return the round's next task, if there is one."""
        if self.again:
            return self.again.popleft()
        if self.current is None or not self.current.waiting:
            return None
        stage = self.table.stages.parts[self.current.waiting[0].stage]
        n_rows = SPAN_NBYTES // stage.pool.row_nbytes
        return self._task(self.current, self.current.take(n_slots, n_rows))

    def take(self, finished: Finished) -> bool:
        """Write counts to the table, or submit again; return whether a round ended."""
        jobs = self.running.pop(finished.key)
        assert self.current is not None  # a round outlives its tasks
        if finished.error is not None:
            self._try_again(self.current, jobs, finished.error)
        else:
            self._add(self.current, finished.record)
        if not self.current.is_over:
            return False
        for key in set(self.current.derived.values()) - set(self.current.derived):
            self.executor.forget(key)
        self.current = None
        return True

    def _task(self, current: Round, jobs: list[SpanJob]) -> Task:
        """Return jobs as one task, and count them as running."""
        key = f"span-{next(self.serial)}"
        self.running[key] = jobs
        first, sample, scheme = jobs[0], self.sample, self.table.scheme
        start, stop = min(job.start for job in jobs), max(job.stop for job in jobs)
        pool = self.table.stages.parts[first.stage].pool
        spans = [self.table.span_of(job) for job in jobs]
        return Task(
            key,
            count_spans,
            (
                jobs,
                scheme.comparisons_of_rows(self.table.best_folds(), start, stop),
                f"{self.run_id}-{current.key}-{hash(first.candidates)}",
                [None if sample is None else sample.wanted_of(job) for job in jobs],
            ),
            lambda client: [pool.sources(span, client) for span in spans],
            inputs=self._inputs(current, first),
            priority=10,
        )

    def _inputs(self, current: Round, job: SpanJob) -> tuple[str, ...]:
        """Return the keys of tasks that keep the models which a span compares."""
        derived, members = current.derived, current.members
        splits = (split.number for split in self.table.scheme.with_models)
        whole = self.models.keys_of(job.candidates, splits)
        for key in whole - set(derived):
            derived[key] = key
            if self.models.unwanted_nbytes(key, members) > WORTH_A_TASK:
                derived[key] = f"models-{next(self.serial)}"
                task = Task(derived[key], models_of, (members,))
                self.executor.derive(task, source=key)
        return tuple(sorted(derived[key] for key in whole))

    def _add(self, current: Round, records: list[SpanRecord]) -> None:
        for record in records:
            self.table.add_span(record)
            log_span(record, self._nbytes(record.job))
            self.checkpoint.span(record)
            if self.sample is not None:
                self.sample.add(record)
            current.batch_size.add(record.seconds)
            current.in_flight -= 1

    def _nbytes(self, job: SpanJob) -> int:
        """Return the bytes of a span's rows in memory."""
        pool = self.table.stages.parts[job.stage].pool
        return (job.stop - job.start) * int(pool.row_nbytes)

    def _try_again(
        self, current: Round, jobs: list[SpanJob], error: BaseException
    ) -> None:
        """Count spans again, one by one; after some attempts the error ends the run."""
        is_final = isinstance(error, ValueError | TypeError | KeyError)
        for job in jobs:
            tries = self.attempts[job] = self.attempts.get(job, 0) + 1
            if is_final or tries >= ATTEMPTS:
                raise error
            log_retry(f"span-{job.start}-{job.stop}", error)
            self.again.append(self._task(current, [job]))
