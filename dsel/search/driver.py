"""The driver: submits fits and passes over the pool, takes their counts, and prunes.

There is one loop for every kind of search and every executor: fit until a pass over the
pool is worth its while, count, go on. Tasks return counts; only the driver writes them
to the table and to the store. How early a candidate is pruned depends on timing; the
winner and its counts do not.
"""

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from dsel.data.pool import SPAN_NBYTES, Pool
from dsel.families.family import FittedGroup
from dsel.runtime.progress import Progress
from dsel.runtime.submission import Executor, run_tasks
from dsel.runtime.tasks import Task
from dsel.search.counts import CountTable, span_key
from dsel.search.fits import ATTEMPTS, BatchSize, Fitting, attempts, logger
from dsel.search.pruning import ROUNDING, ExactRace, NestedRace
from dsel.search.tasks import Call, SpanJob, count_spans

LEADERS: Final = 4  # candidates of the first pass, whose counts then prune the others
MODELS_NBYTES: Final = 2**30  # of one pass at most, on every worker


@dataclass
class Driver:
    """One run: its loop, its fits and its passes over the pool."""

    table: CountTable
    race: ExactRace | NestedRace
    executor: Executor
    fitting: Fitting
    pool: Pool | None = None
    on_progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        self.run_id, self.serial = uuid.uuid4().hex[:12], count(1)
        self.started = time.perf_counter()
        self.n_spans = self.n_spans_done = 0  # of all passes that have begun
        # How often models of a candidate were others than those that were counted.
        self.changed: Counter[int] = Counter()
        # Of every candidate's criterion, by the counts so far.
        self.lower = np.zeros(self.table.n_candidates)

    def run(self) -> None:
        """Run until every candidate is complete, pruned or failed."""
        while True:
            turns = run_tasks(self.executor, self._next_fit, on_turn=self._begin_turn)
            for finished in turns:
                self.fitting.take(finished)
            members = self._next_members()
            if not members:
                return
            if self.fitting.restore_models(members):
                self._count(members)

    def _begin_turn(self) -> None:
        self.lower = self.race.prune(self.table)
        if self.fitting.keeps_models and not self.table.spans:
            self._release()  # else what reads the pool does
        self._report()

    def _next_fit(self) -> Task | None:
        if not self.fitting.again and self._next_members():
            return None  # what is running ends, then the pool is read
        return self.fitting.next_task(self.lower)

    def model(self, candidate: int, split: int) -> FittedGroup:
        """Return the group that holds the counted model, fitted again if it is lost."""
        for _ in range(ATTEMPTS):
            if self.fitting.restore_models([candidate]):
                found = self.fitting.fetch(candidate, split)
                if found is not None:
                    return found
                self.forget(candidate)
            self.run()
        raise RuntimeError(f"the model of candidate {candidate} was lost several times")

    def forget(self, number: int) -> None:
        """Drop all that was counted of a candidate whose models are others now."""
        self.table.forget_fits(number)
        self.fitting.forget(number)
        self.changed[number] += 1
        if self.changed[number] >= ATTEMPTS:
            why = "its models were lost and made again several times, never the same"
            self.table.fail(number, self.table.layout.with_models[0], why)

    def _next_members(self) -> tuple[int, ...]:
        """Return the candidates of the next pass, smallest lower bound first; or none.

        With pruning, a first pass for a few leaders begins as soon as the candidate of
        smallest lower bound is fitted: its estimate prunes others. All other passes
        wait until no fit is left, or their models take all the memory that a pass may
        have, so that the pool is read as few times as possible. The models of a pass
        must fit into the memory of every worker.
        """
        table = self.table
        if not table.spans:
            return ()
        active = np.flatnonzero(table.active)
        order = active[np.lexsort((active, self.lower[active]))]
        ready = order[table.fitted[order]]
        if not len(ready):
            return ()
        leaders_first = self.race.best_first and not (table.fitted & table.scored).any()
        leads = leaders_first and order[0] == ready[0]
        is_over = self.fitting.is_over
        # Joining copies the models, and a block needs memory too.
        budget = min(MODELS_NBYTES, self.executor.slot_memory // 4)
        sizes = np.cumsum([self.fitting.model_nbytes[int(n)] for n in ready])
        if not (is_over or leads or sizes[-1] >= budget):
            return ()
        n_fitting = max(1, int(np.searchsorted(sizes, budget, side="right")))
        most = LEADERS if leaders_first else n_fitting
        return tuple(ready[: min(n_fitting, most)].tolist())

    def _count(self, members: tuple[int, ...]) -> None:
        """Read the pool once for some candidates, whose models are all kept."""
        table, fitting, pool = self.table, self.fitting, self.pool
        assert pool is not None  # else there are no spans
        numbers = np.array(members)
        waiting = deque(
            SpanJob(span.start, span.stop, tuple(numbers[missing].tolist()))
            for span, missing in zip(
                table.spans, ~table.visited[numbers].T, strict=True
            )
            if missing.any()
        )
        self.n_spans += len(waiting)
        comparisons = table.current_comparisons()
        splits = table.layout.with_models
        inputs = sorted({fitting.model_keys[c, s] for c in members for s in splits})
        this_pass = f"{self.run_id}-{next(self.serial)}"
        size = BatchSize()

        def jobs_of_tasks() -> Iterator[list[SpanJob]]:
            """Yield spans of the same candidates, few enough to be read at once."""
            while waiting:
                n_left, rows_left = len(waiting), SPAN_NBYTES // pool.row_nbytes
                most = size.jobs_per_task(n_left, self.executor.n_slots)
                jobs: list[SpanJob] = []
                while waiting and len(jobs) < most:
                    job = waiting[0]
                    rows_left -= job.stop - job.start
                    if jobs and (rows_left < 0 or job.candidates != jobs[0].candidates):
                        break
                    jobs.append(waiting.popleft())
                yield jobs

        def task_of(jobs: list[SpanJob]) -> Task:
            numbers = [table.span_number[job.start, job.stop] for job in jobs]
            cached = f"{this_pass}-{hash(jobs[0].candidates)}"
            return Task(
                f"count-rows={jobs[0].start}-{next(self.serial)}",
                Call(count_spans, (jobs, comparisons, cached)),
                lambda client: [pool.sources(table.spans[n], client) for n in numbers],
                inputs=tuple(inputs),
                priority=10,
            )

        with pool.unchanged():
            self._take_spans(
                attempts(self.executor, jobs_of_tasks(), task_of, on_turn=self._report),
                size,
            )
        self.lower = self.race.prune(table)
        self._release()

    def _take_spans(self, ended: Iterator[tuple[Any, Any]], size: BatchSize) -> None:
        """Write what tasks have counted into the table and the store."""
        table, fitting = self.table, self.fitting
        for _, records in ended:
            for record in records:
                job, entries = record.job, record.entries
                size.seconds.append(sum(entry["seconds"] for entry in entries))
                logger.info(
                    "span rows=%d-%d candidates=%s seconds=%.6f",
                    job.start, job.stop, job.candidates, size.seconds[-1],
                )  # fmt: skip
                for number, entry in zip(job.candidates, entries, strict=True):
                    # Of a model that was made again on the way, and is another one than
                    # was counted, nothing is kept.
                    if not table.add_span(number, entry):
                        self.forget(number)
                    if fitting.store is not None:
                        fitting.store.append(span_key(table, number, entry), entry)
                self.n_spans_done += 1

    def _release(self) -> None:
        """Drop models that nobody needs; whoever leads may be handed over."""
        complete = self.table.fitted & self.table.scored
        least = np.min(self.lower[complete], initial=np.inf)
        leads = complete & (self.lower <= least + ROUNDING)
        self.fitting.release(set(np.flatnonzero(self.table.active | leads).tolist()))

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.progress())

    def progress(self) -> Progress:
        """Return how much is done."""
        table = self.table
        needed = table.allowed & ~table.pruned[:, np.newaxis]
        rows = [total.sum(axis=1).max(initial=0) for total in table.pool_rows]
        return Progress(
            fits_done=int((table.fit_status >= 0).sum()),
            fits_total=table.fit_status.size,
            fits_dropped=int(((table.fit_status < 0) & ~needed).sum()),
            candidates_active=int(table.active.sum()),
            candidates_pruned=int(table.pruned.sum()),
            spans_done=self.n_spans_done,
            spans_total=self.n_spans,
            pool_rows_done=int(max(rows, default=0)),
            seconds=time.perf_counter() - self.started,
        )
