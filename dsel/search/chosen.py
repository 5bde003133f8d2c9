"""The last step of a nested search: what was chosen is fitted, and counted on the pool.

The k models without a fold and that of all rows come to this process with their counts,
each in one message, before the pool is read; the first to arrive is used. The pass over
the pool gets these objects, so no task of it depends on a fit that could run twice, and
what is handed over is what was counted, whatever the learner draws.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.frames import Frame
from dsel.data.pool import Span
from dsel.errors import AllFitsFailedError
from dsel.families.family import FIT_DONE, FittedGroup
from dsel.runtime.submission import run_tasks
from dsel.runtime.tasks import Executor, Task
from dsel.search.fits import ATTEMPTS
from dsel.search.folds import Layout
from dsel.search.tasks import (
    ChosenJob,
    ChosenModels,
    Work,
    count_chosen,
    fit_chosen,
)

MakeExecutor = Callable[[Any], Executor]
"""Takes what every task of it gets first."""


@dataclass(frozen=True)
class ChosenCounts:
    """What was counted of the models of the last step."""

    candidates: tuple[int, ...]
    """Candidate chosen without each fold, then that of all rows."""
    errors: NDArray[np.int64]
    """Errors on each fold of the model without it, (n_folds,)."""
    rows: NDArray[np.int64]
    """Rows of each fold."""
    disagreements: NDArray[np.int64] | None
    """Pool rows on which each fold's model and that of all rows differ; None without a
    pool, or a model of all rows."""
    models: Mapping[int, Any] = field(default_factory=dict)
    """Fitted estimators by fold; that of all rows under `n_folds`."""
    seconds: NDArray[np.float64] | None = None
    """Time of each fit."""
    messages: tuple[str, ...] = ()
    """What went wrong in a fit."""


def count_what_was_chosen(
    work: Work,
    layout: Layout,
    chosen: Sequence[int],
    make_executor: MakeExecutor,
    *,
    pool: Any = None,
    spans: Sequence[Span] = (),
    store: Any = None,
) -> ChosenCounts:
    """Fit the k + 1 models, and count where those of the folds and of all rows differ.

    `chosen` are the candidate of all rows and that without each fold, in this order.

    Raises AllFitsFailedError where no model of a fold could be fitted.
    """
    k = layout.n_folds
    candidates = (*chosen[1:], chosen[0])
    work = replace(work, splits=layout.folds)
    splits = range(k + 1 if spans else k)
    jobs = [ChosenJob(candidates[split], (split,)) for split in splits]
    made = _fitted(work, jobs, make_executor(work))
    fitted = {job: group for job, (group, _) in made.items()}
    rows = layout.fold_rows
    errors = rows.copy()  # of a model that does not exist every row counts as wrong
    seconds = np.full(k + 1, np.nan)
    models, messages, there = {}, [], {}
    for job, group in fitted.items():
        split = job.splits[0]
        counts = group.counts
        seconds[split] = counts.seconds[0, 0]
        if counts.status[0, 0] != FIT_DONE:
            why = counts.messages.get((job.candidate, split), "the fit failed")
            messages.append(f"{layout.folds[split].name}: {why}")
            continue
        there[job] = group
        models[split] = group.model(job.candidate, split)
        if split < k:
            errors[split] = counts.test_errors[0, 0]
    if not any(split < k for split in models):
        raise AllFitsFailedError(f"what was chosen cannot be fitted: {messages[0]}")
    disagreements = None
    if k in models:
        disagreements = _disagreements(
            work, there, k, make_executor, pool=pool, spans=spans, store=store,
            tokens=[token for _, token in made.values()],
        )  # fmt: skip
    return ChosenCounts(
        candidates, errors, rows, disagreements, models, seconds, tuple(messages)
    )


def _fitted(
    work: Work, jobs: Sequence[ChosenJob], executor: Executor
) -> dict[ChosenJob, tuple[FittedGroup, str]]:
    """Fit each job as a task; tasks that are lost are made again."""
    waiting = deque(jobs)
    tries: Counter[ChosenJob] = Counter()
    running: dict[str, ChosenJob] = {}
    fitted: dict[ChosenJob, tuple[FittedGroup, str]] = {}

    def next_task() -> Task | None:
        if not waiting:
            return None
        job = waiting.popleft()
        tries[job] += 1
        name = work.splits[job.splits[0]].name.replace("fold-", "fold=")
        key = f"fit-chosen-{name}-{tries[job]}"
        running[key] = job
        return Task(key, fit_chosen, (job,))

    try:
        for finished in run_tasks(executor, next_task):
            job = running.pop(finished.key)
            if finished.error is None:
                fitted.setdefault(job, finished.record)
            elif tries[job] >= ATTEMPTS:
                raise finished.error
            else:
                waiting.append(job)
    finally:
        executor.close()
    return {job: fitted[job] for job in jobs}


def _disagreements(
    work: Work,
    fitted: Mapping[ChosenJob, FittedGroup],
    n_folds: int,
    make_executor: MakeExecutor,
    *,
    pool: Any,
    spans: Sequence[Span],
    store: Any,
    tokens: Sequence[str],
) -> NDArray[np.int64]:
    """Count in one pass the rows on which each fold's model and the full one differ."""
    digest = blake2b(f"{list(fitted)}{tokens}".encode(), digest_size=12).hexdigest()
    counted: dict[tuple[int, int], Any] = {}
    if store is not None:
        for span in spans:
            record = store.records.get(_key(span, digest))
            if record is not None:
                counted[span.start, span.stop] = np.array(record["differences"])
    chosen = ChosenModels(
        _joined(work, fitted), n_folds, isinstance(work.X, Frame), work.allow_nan
    )
    waiting = deque(span for span in spans if (span.start, span.stop) not in counted)
    tries: Counter[Span] = Counter()
    running: dict[str, Span] = {}

    def next_task() -> Task | None:
        if not waiting:
            return None
        span = waiting.popleft()
        tries[span] += 1
        key = f"count-rows={span.start}-{tries[span]}"
        running[key] = span
        return Task(key, count_chosen, (), lambda client: pool.sources(span, client))

    executor = make_executor(chosen)
    try:
        for finished in run_tasks(executor, next_task):
            span = running.pop(finished.key)
            if finished.error is not None:
                is_final = isinstance(finished.error, ValueError | TypeError | KeyError)
                if is_final or tries[span] >= ATTEMPTS:
                    raise finished.error
                waiting.append(span)
                continue
            counted[span.start, span.stop] = finished.record
            if store is not None:
                store.append(_key(span, digest), {"differences": finished.record})
    finally:
        executor.close()
    total = np.sum([counted[span.start, span.stop] for span in spans], axis=0)
    has_model = np.isin(range(n_folds), [job.splits[0] for job in fitted])
    n_rows = sum(span.n_rows for span in spans)
    # A model that does not exist differs everywhere.
    return np.where(has_model, total, n_rows).astype(np.int64)


def _joined(
    work: Work, fitted: Mapping[ChosenJob, FittedGroup]
) -> tuple[tuple[ChosenJob, FittedGroup], ...]:
    """Return the models of one candidate together: they share work when they answer."""
    by_candidate: dict[int, list[ChosenJob]] = {}
    for job in fitted:
        by_candidate.setdefault(job.candidate, []).append(job)
    joined = []
    for candidate, jobs in by_candidate.items():
        groups = [fitted[job] for job in jobs]
        family = work.group_of(candidate).family
        whole = family.join(groups, [candidate]) if len(groups) > 1 else groups[0]
        splits = tuple(job.splits[0] for job in jobs)
        joined.append((ChosenJob(candidate, splits), whole))
    return tuple(joined)


def _key(span: Span, digest: str) -> str:
    return f"last/{span.start}-{span.stop}/{digest}"
