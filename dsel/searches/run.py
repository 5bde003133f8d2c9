"""The driver: submits fits and spans, takes what ends, prunes, records, goes on.

One loop for every kind of search and every executor. The driver alone writes to the
board and to the journal; tasks return counts. Nothing here decides a number: which
losers are pruned depends on timing, the winner and its counts do not.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.passes import SPAN_NBYTES
from dsel.models.base import FIT_DONE
from dsel.searches.board import Board
from dsel.searches.executors import Executor, Finished, check_alive
from dsel.searches.held import HeldModels
from dsel.searches.journaling import Journaling
from dsel.searches.logs import log_fit, log_retry, log_span
from dsel.searches.queue import FitQueue
from dsel.searches.referee import Referee
from dsel.searches.rounds import Round, next_members, span_jobs
from dsel.searches.shift import PoolSample
from dsel.searches.tasks import (
    FitJob,
    FitRecord,
    SpanJob,
    SpanRecord,
    count_spans,
    fit_jobs,
    models_of,
)
from dsel.searches.time_limits import fit_jobs_in_time

logger = logging.getLogger(__name__)

AHEAD = 2  # tasks submitted for each slot: one runs, one is there when it ends
ATTEMPTS = 3  # of one task, before its worker's death is laid at its own door
WORTH_A_TASK = 2**17  # bytes not moved: some milliseconds on a slow network
BEAT_SECONDS = 0.5  # longest wait before journal and progress are looked after


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    fits_done: int
    """Fits counted."""
    fits_total: int
    """Fits of the exhaustive search."""
    fits_dropped: int
    """Fits that pruning made unnecessary."""
    candidates_racing: int
    """Candidates that may still win and are not complete."""
    candidates_pruned: int
    """Candidates that were shown not to win."""
    spans_done: int
    """Spans of the pool counted in all rounds."""
    spans_total: int
    """Spans of all rounds begun so far."""
    pool_rows_done: int
    """Rows of the pool compared, over all rounds."""
    seconds: float
    """Time since the run began."""


@dataclass
class Driver:
    """State of one run beside the counts."""

    board: Board
    """Counts by candidate."""
    referee: Referee
    """Who may still win."""
    executor: Executor
    """Where tasks run."""
    journal: Journaling
    """Where finished tasks are written."""
    run_id: str
    """Tells this run's cached models from those of others."""
    on_progress: Callable[[Progress], None] | None = None
    """Called a few times a second."""
    raise_failures: bool = False
    """Whether a fit that raises ends the run."""
    budget: int = 2**30
    """Bytes of models in one round at most, on every worker."""
    fit_timeout: float | None = None
    """Seconds that one fit may take; None for as long as it takes."""
    sample: PoolSample | None = None
    """Pool rows that spans bring along; None for none."""
    queue: FitQueue = field(init=False)
    fits: dict[str, list[FitJob]] = field(default_factory=dict)
    spans: dict[str, list[SpanJob]] = field(default_factory=dict)
    models: HeldModels = field(default_factory=HeldModels)
    attempts: dict[Any, int] = field(default_factory=dict)
    current: Round | None = None
    n_rounds: int = 0
    n_spans: int = 0
    serial: int = 0

    def __post_init__(self) -> None:
        self.queue = FitQueue(self.board, best_first=self.referee.prunes)
        self.started = time.perf_counter()

    def run(self) -> Board:
        """Go on until every candidate is complete, pruned or failed."""
        try:
            while True:
                self._submit(self.referee.prune(self.board))
                if not self.fits and not self.spans:
                    return self.board
                for finished in self.executor.wait(BEAT_SECONDS):
                    self._take(finished)
                self.journal.check()
                self._report()
        finally:
            self.journal.flush()

    def has_ended(self) -> bool:
        """Prune by what is known, and return whether nothing is left to count."""
        self.referee.prune(self.board)
        return not self.board.racing.any()

    def model(self, candidate: int, training: int) -> Any:
        """Return one fitted model, fitted again if it is no longer there."""
        if not self.models.has(candidate, training):
            wanted = np.zeros(self.board.fit_status.shape, bool)
            wanted[candidate, training] = True
            self._submit_fits(self.queue.jobs(wanted))
            while self.fits:
                for finished in self.executor.wait(BEAT_SECONDS):
                    self._take(finished)
        key = self.models.keys[candidate, training]
        for models in self.executor.fetch(key).values():
            if training in models.trainings and candidate in models.candidates:
                return models.model(candidate, training)
        raise KeyError(f"no model of candidate {candidate}, training {training}")

    def _submit(self, lower: NDArray[np.float64]) -> None:
        slots = self.executor.n_slots
        if self.current is None and self.board.spans:
            self._begin_round(lower)
        while len(self.fits) + len(self.spans) < AHEAD * slots:
            spans = self._next_spans(slots)
            if spans:
                self._submit_spans(spans)
                continue
            jobs = self.queue.take(slots, lower)
            if not jobs:
                return
            self._submit_fits(jobs)

    def _submit_fits(self, jobs: list[FitJob]) -> None:
        key = self._next_key("fit")
        self.fits[key] = jobs
        limit = self.fit_timeout
        if limit is None or all(map(self._was_fitted, jobs)):
            self.executor.submit(key, fit_jobs, jobs, keeps_payload=True)
        else:
            self.executor.submit(key, fit_jobs_in_time, jobs, limit, keeps_payload=True)

    def _was_fitted(self, job: FitJob) -> bool:
        """Whether all fits of a job ended well before, and only the models are lost."""
        status = self.board.fit_status[list(job.candidates), job.training]
        return bool((status == FIT_DONE).all())

    def _begin_round(self, lower: NDArray[np.float64]) -> None:
        """Begin the next reading of the pool, or fit again what it lacks."""
        members = next_members(
            self.board,
            lower,
            leaders_first=self.queue.best_first and not self.board.complete.any(),
            fits_are_over=not (self.queue.open_fits().any() or self.fits),
            nbytes=self.models.nbytes,
            # As many bytes again when they are joined, and what a block takes.
            budget=min(self.budget, self.executor.slot_memory // 4),
        )
        lost = self._lost_models(members)
        for job in self.queue.jobs(lost & ~self._running_fits()):
            self._submit_fits([job])
        if members and not lost.any():
            self.n_rounds += 1
            jobs = span_jobs(self.board, members)
            self.n_spans += len(jobs)
            self.current = Round(f"round-{self.n_rounds}", members, jobs)

    def _lost_models(self, members: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return the fits whose counts are known but whose models are not held."""
        lost = np.zeros(self.board.fit_status.shape, bool)
        for training in self.board.scheme.with_models:
            for number in members:
                held = self.models.has(number, training.number)
                lost[number, training.number] = not held
        return lost

    def _running_fits(self) -> NDArray[np.bool_]:
        """Return the fits that are submitted, (n_candidates, n_trainings)."""
        running = np.zeros(self.board.fit_status.shape, bool)
        for job in (job for jobs in self.fits.values() for job in jobs):
            running[list(job.candidates), job.training] = True
        return running

    def _next_spans(self, slots: int) -> list[SpanJob]:
        if self.current is None or not self.current.waiting:
            return []
        look = self.board.looks.parts[self.current.waiting[0].look]
        n_rows = SPAN_NBYTES // look.pool.row_nbytes
        return self.current.take(slots, n_rows)

    def _submit_spans(self, jobs: list[SpanJob]) -> None:
        assert self.current is not None
        key = self._next_key("span")
        self.spans[key] = jobs
        first, sample, client = jobs[0], self.sample, self.executor.client
        pool = self.board.looks.parts[first.look].pool
        self.executor.submit(
            key,
            count_spans,
            jobs,
            [pool.sources(self.board.span_of(job), client) for job in jobs],
            self.board.comparisons(),
            f"{self.run_id}-{self.current.key}-{hash(first.candidates)}",
            [None if sample is None else sample.wanted_of(job) for job in jobs],
            inputs=self._inputs(first),
            priority=10,
        )

    def _inputs(self, job: SpanJob) -> list[str]:
        """Return the keys of the models that a span counts, and of few others."""
        assert self.current is not None
        derived, members = self.current.derived, self.current.members
        trainings = (training.number for training in self.board.scheme.with_models)
        whole = self.models.keys_of(job.candidates, trainings)
        for key in whole - set(derived):
            derived[key] = key
            if self.models.unwanted_nbytes(key, members) > WORTH_A_TASK:
                derived[key] = self._next_key("models")
                self.executor.derive(derived[key], models_of, members, source=key)
        return sorted(derived[key] for key in whole)

    def _take(self, finished: Finished) -> None:
        if finished.key in self.fits:
            jobs = self.fits.pop(finished.key)
            if finished.error is not None:
                self._retry_fits(jobs, finished.error)
            else:
                self._take_fits(finished.key, finished.record)
        elif finished.key in self.spans:
            spans = self.spans.pop(finished.key)
            self.executor.forget(finished.key)
            if finished.error is not None:
                self._retry_spans(spans, finished.error)
            else:
                self._take_spans(finished.record)

    def _take_fits(self, key: str, records: list[FitRecord]) -> None:
        for record in records:
            self.queue.pace.learn(float(np.nansum(record.counts.seconds)))
            if self.raise_failures and record.counts.messages:
                raise RuntimeError(next(iter(record.counts.messages.values())))
            log_fit(self.board.scheme, record)
            if not self._was_fitted(record.job):
                self.journal.fit(record)
            self.board.add_fit(record)
            self.models.add(key, record)

    def _take_spans(self, records: list[SpanRecord]) -> None:
        for record in records:
            self.board.add_span(record)
            log_span(record)
            self.journal.span(record)
            if self.sample is not None:
                self.sample.add(record)
            if self.current is not None:
                self.current.pace.learn(record.seconds)
                self.current.in_flight -= 1
        if self.current is not None and self.current.is_over:
            self._release(self.current)
            self.current = None

    def _release(self, ended: Round) -> None:
        """Drop models that no candidate in the race needs, and keep the winner's."""
        for key in set(ended.derived.values()) - set(ended.derived):
            self.executor.forget(key)
        estimate = self.referee.criterion.evaluate(
            self.board.evidence(), self.referee.settings
        ).estimate
        best = int(np.nanargmin(np.where(np.isnan(estimate), np.inf, estimate)))
        needed = {best, *map(int, np.flatnonzero(self.board.racing))}
        for key in self.models.release(needed):
            self.executor.forget(key)

    def _retry_fits(self, jobs: list[FitJob], error: BaseException) -> None:
        """Run jobs again, one by one, then each candidate; who keeps failing fails."""
        check_alive(error)
        if len(jobs) == 1 and not isinstance(error, MemoryError):
            jobs = jobs[0].apart()  # what memory they need, they need for shared work
        for job in jobs:
            tries = self.attempts[job] = self.attempts.get(job, 0) + 1
            if len(jobs) == 1 and (tries >= ATTEMPTS or self.raise_failures):
                self._give_up(job, error)
            else:
                log_retry(f"fit-{job.group}-{job.training}", error)
                self._submit_fits([job])

    def _give_up(self, job: FitJob, error: BaseException) -> None:
        if self.raise_failures:
            raise error
        message = f"{type(error).__name__}: {error}"
        logger.warning("fit given up: %s: %s", job, message)
        for number in job.candidates:
            self.board.fail(number, job.training, message)

    def _retry_spans(self, jobs: list[SpanJob], error: BaseException) -> None:
        """Count spans again one by one; a span that keeps failing ends the run."""
        check_alive(error)
        is_final = isinstance(error, ValueError | TypeError | KeyError)
        for job in jobs:
            tries = self.attempts[job] = self.attempts.get(job, 0) + 1
            if is_final or tries >= ATTEMPTS:
                raise error
            log_retry(f"span-{job.start}-{job.stop}", error)
            self._submit_spans([job])

    def _next_key(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}-{self.serial}"

    def _report(self) -> None:
        if self.on_progress is None:
            return
        board = self.board
        done = self.n_spans - sum(map(len, self.spans.values()))
        done -= len(self.current.waiting) if self.current is not None else 0
        self.on_progress(
            Progress(
                fits_done=int((board.fit_status >= 0).sum()),
                fits_total=board.fit_status.size,
                fits_dropped=int((board.fit_status[board.pruned] < 0).sum()),
                candidates_racing=int(board.racing.sum()),
                candidates_pruned=int(board.pruned.sum()),
                spans_done=done,
                spans_total=self.n_spans,
                pool_rows_done=board.pool_rows_done,
                seconds=time.perf_counter() - self.started,
            )
        )
