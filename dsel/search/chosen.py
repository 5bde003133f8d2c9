"""The last step of a nested search: what was chosen is fitted, and counted on the pool.

The k models without a fold and that of all rows come to this process with their counts,
each in one message, before the pool is read; the first to arrive is used. The pass over
the pool gets these objects, so no task of it depends on a fit that could run twice, and
what is handed over is what was counted, whatever the learner draws.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.frames import Frame
from dsel.data.pool import Span
from dsel.errors import AllFitsFailedError
from dsel.families.family import FIT_DONE, FittedGroup
from dsel.runtime.tasks import Executor, Task
from dsel.search.fits import attempts
from dsel.search.folds import Layout
from dsel.search.tasks import FitJob, Work, count_chosen, fit_chosen

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
    jobs = [
        FitJob(work.group_of(number).number, (number,), split)
        for split, number in enumerate(candidates[: k + 1 if spans else k])
    ]
    serial, waiting = count(1), ([job] for job in jobs)

    def task_of(jobs: list[FitJob]) -> Task:
        name = layout.folds[jobs[0].split].name.replace("fold-", "fold=")
        return Task(f"fit-chosen-{name}-{next(serial)}", fit_chosen, (jobs[0],))

    with closing(make_executor(work)) as executor:
        made = {job: record for [job], record in attempts(executor, waiting, task_of)}
    rows = layout.fold_rows
    errors = rows.copy()  # of a model that does not exist every row counts as wrong
    models, messages, fitted = {}, [], {}
    for job in jobs:
        (group, _), split, [number] = made[job], job.split, job.candidates
        if group.counts.status[0, 0] != FIT_DONE:
            why = group.counts.messages.get((number, split), "the fit failed")
            messages.append(f"{layout.folds[split].name}: {why}")
            continue
        fitted[job] = group
        models[split] = group.model(number, split)
        if split < k:
            errors[split] = group.counts.test_errors[0, 0]
    if not any(split < k for split in models):
        raise AllFitsFailedError(f"what was chosen cannot be fitted: {messages[0]}")
    disagreements = None
    if k in models:
        told = f"{[(job, made[job][1]) for job in jobs]}"
        disagreements = _disagreements(
            work, fitted, k, make_executor, pool=pool, spans=spans, store=store,
            token=blake2b(told.encode(), digest_size=12).hexdigest(),
        )  # fmt: skip
    return ChosenCounts(
        candidates, errors, rows, disagreements, models, tuple(messages)
    )


def _disagreements(
    work: Work,
    fitted: Mapping[FitJob, FittedGroup],
    n_folds: int,
    make_executor: MakeExecutor,
    *,
    pool: Any,
    spans: Sequence[Span],
    store: Any,
    token: str,
) -> NDArray[np.int64]:
    """Count in one pass the rows on which each fold's model and the full one differ."""
    keys = {span: f"last/{span.start}-{span.stop}/{token}" for span in spans}
    known = {} if store is None else store.records
    counted = {
        span: known[key]["differences"] for span, key in keys.items() if key in known
    }
    together: dict[int, list[FitJob]] = {}  # they share work when they answer
    for job in fitted:
        together.setdefault(job.candidates[0], []).append(job)
    models = []
    for number, jobs in together.items():
        groups = [fitted[job] for job in jobs]
        family = work.group_of(number).family
        whole = family.join(groups, [number]) if len(groups) > 1 else groups[0]
        models.append(([job.split for job in jobs], whole))
    arguments = n_folds, isinstance(work.X, Frame), work.allow_nan
    serial, waiting = count(1), ([span] for span in spans if span not in counted)

    def task_of(spans: list[Span]) -> Task:
        sources = partial(pool.sources, spans[0])
        key = f"count-rows={spans[0].start}-{next(serial)}"
        return Task(key, count_chosen, arguments, sources)

    with closing(make_executor(models)) as executor:
        for [span], found in attempts(executor, waiting, task_of):
            counted[span] = found
            if store is not None:
                store.append(keys[span], {"differences": found})
    total = np.sum([counted[span] for span in spans], axis=0)
    has_model = np.isin(range(n_folds), [job.split for job in fitted])
    n_rows = sum(span.n_rows for span in spans)
    # A model that does not exist differs everywhere.
    return np.where(has_model, total, n_rows).astype(np.int64)
