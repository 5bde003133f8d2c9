"""The text of a plan: fits, tasks, bytes, certificate.

The constants of the scheduler's time are measured by
``tests/benchmarks/bench_scheduler.py``.
"""

import math
from collections import Counter
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

import numpy as np
from dask.utils import format_bytes

from dsel.criteria.base import BEST_FOLD, OUTER_FOLD, VOTE
from dsel.data.cache import nbytes_of
from dsel.data.splits import FULL
from dsel.results.rounding import at_most
from dsel.searches.assumptions import few_rows
from dsel.searches.recommended import (
    DISAGREEMENT,
    ERROR,
    expected_bound,
    is_certifiable,
    too_large,
)
from dsel.searches.spec import SearchSpec

WIDTH: Final = 88
"""Columns of a plan's text."""


def describe(plan: SearchSpec) -> str:
    """Return the text of a plan: its facts, wrapped."""
    lines = _wrapped("", title(plan), 4)
    for name, text in facts(plan):
        begin, indent = (f"  {name:<16} ", 19) if name else ("  ", 4)
        lines += _wrapped(begin, text, indent)
    return "\n".join(lines)


def _wrapped(begin: str, text: str, indent: int) -> list[str]:
    return wrap(
        begin + text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def title(plan: SearchSpec) -> str:
    """Return the first line: how many candidates, over what, by which criterion."""
    dims = ", ".join(plan.axes.dims)
    return (
        f"Plan of {plan.n_candidates} candidates over ({dims}) by {plan.criterion.name}"
    )


def facts(plan: SearchSpec) -> list[tuple[str, str]]:
    """Return names and texts of what will be done; remarks have no name."""
    violated = [each for each in plan.assumptions if each.is_violated]
    found = [
        (
            "labeled rows",
            f"{len(plan.work.y):,} x {plan.work.X.shape[1]}, "
            f"{len(plan.classes)} classes",
        ),
        ("pool", _pool(plan)),
        ("splits", _splits(plan)),
        ("fits", _fits(plan)),
        ("tasks", _tasks(plan)),
        ("projected memory", _memory(plan)),
        (
            "certificate",
            f"{plan.certificate.name} at delta={plan.delta:g}, {plan.label_share:g} of "
            f"it for the labeled rows{_model(plan)}",
        ),
        ("expected bound", _bound(plan)),
        ("seed", str(plan.seed)),
    ]
    remarks = [*plan.remarks, *(f"CAREFUL: {each}" for each in _doubts(plan))]
    remarks += [f"NOT CERTIFIED: {each.name}, {each.reason}" for each in violated]
    return [fact for fact in found if fact[1]] + [("", each) for each in remarks]


def _model(plan: SearchSpec) -> str:
    """Say which model is handed over, where it is not that of all labeled rows."""
    models = {
        FULL: "",
        BEST_FOLD: "; the model is that of the best fold",
        OUTER_FOLD: "; the model is that of the best fold, as chosen without it",
        VOTE: "; the model is the vote of what is chosen without each fold",
    }
    return models.get(plan.certificate.deploys, "; the model is that of fold 0")


def _doubts(plan: SearchSpec) -> list[str]:
    """Return why a guarantee may be worth little."""
    if not plan.certificate.is_guarantee:
        return []
    return list(filter(None, (too_large(plan), few_rows(plan.scheme.splits))))


def _bound(plan: SearchSpec) -> str:
    bound = expected_bound(plan) if is_certifiable(plan) else math.nan
    if math.isnan(bound):
        return ""
    return (
        f"{at_most(bound)} on average, if the chosen model errs on "
        f"{ERROR:g} and models of ten folds differ on {DISAGREEMENT:g} of the rows"
    )


def _pool(plan: SearchSpec) -> str:
    if plan.pool is None:
        return "none"
    return (
        f"{plan.pool.n_rows:,} rows, {format_bytes(plan.pool.nbytes)}, {_spans(plan)}"
    )


def _spans(plan: SearchSpec) -> str:
    n = n_spans(plan)
    spans = f"{n} span{'s' if n != 1 else ''}, each read once in a round"
    if not plan.stages.may_stop:
        return spans
    return (
        f"{spans}; {len(plan.stages.parts)} stages, until a bound is within "
        f"{plan.stages.stop_within:g} of what all rows would give"
    )


def _splits(plan: SearchSpec) -> str:
    k, pairs = plan.scheme.n_folds, len(plan.scheme.pairs)
    if pairs:
        return f"{k} folds, {pairs} pairs of folds, and all rows for what is chosen"
    return f"{k} folds{' and all rows' if plan.scheme.full is not None else ''}"


def _fits(plan: SearchSpec) -> str:
    k = plan.scheme.n_folds
    n = plan.n_candidates * len(plan.work.splits)
    if plan.scheme.is_nested:  # the full model, and the folds' once more, of few
        n = plan.n_candidates * (len(plan.work.splits) - 1) + k + 1
    return f"{n:,}" + (
        " at most: candidates that cannot win are dropped" if plan.prune else ""
    )


def _tasks(plan: SearchSpec) -> str:
    found = project(plan)
    return (
        f"up to {found.fit_tasks:,} for fits, {found.span_tasks:,} for the pool, "
        f"{format_bytes(found.pool_nbytes)} read; the scheduler needs about "
        f"{found.scheduler_seconds:.1f} s"
    )


def _memory(plan: SearchSpec) -> str:
    whole, shared = projected_memory(plan)
    kept = f", {format_bytes(shared)} of it to share work between fits"
    return (
        f"{format_bytes(whole)} for each worker of one thread{kept if shared else ''}"
    )


def projected_memory(plan: SearchSpec) -> tuple[int, int]:
    """Return bytes that a worker process of one thread takes, and those fits share.

    They do not contain models whose size only their fits tell, as that of trees.
    """
    families = {id(group.family): group.family for group in plan.work.groups}
    number = Counter(id(group.family) for group in plan.work.groups)
    shared = sum(
        family.shared_nbytes(number[key], len(plan.work.y))
        for key, family in families.items()
    )
    read = 0
    if plan.pool is not None:
        longest = int(np.diff(plan.pool.boundaries).max(initial=0))
        read = COPIES_OF_CHUNK * longest * plan.pool.row_nbytes
    labeled = COPIES_OF_ROWS * nbytes_of(plan.work.X)
    return PROCESS_NBYTES + labeled + shared + read, shared


PROCESS_NBYTES: Final = 400 * 2**20
"""Memory of a worker that has imported everything."""
COPIES_OF_ROWS: Final = 3
"""Of the labeled rows: themselves, those of a fit, and support vectors."""
COPIES_OF_CHUNK: Final = 3
"""Of a chunk of the pool: as it is stored, decoded, and as rows."""

FIT_SECONDS: Final = 0.003
"""Processor time of the scheduler for a task that fits, which is two tasks to Dask."""
SPAN_SECONDS: Final = 0.002
"""The same for a task that counts over the pool."""
INPUT_SECONDS: Final = 0.00001
"""The same for each input of such a task: the models of one fit task."""


@dataclass(frozen=True)
class Projection:
    """Upper limits of tasks, bytes read, and time of the scheduler."""

    fit_tasks: int
    span_tasks: int
    """Spans counted in all rounds, which is at least the number of their tasks."""
    pool_nbytes: int
    scheduler_seconds: float
    """Processor time of the scheduler, which has one thread."""


def n_spans(plan: SearchSpec) -> int:
    """Return the number of spans of the pool, over all stages."""
    return sum(len(stage.spans) for stage in plan.stages.parts)


def project(plan: SearchSpec) -> Projection:
    """Return what a run of the plan costs besides the fits and counts themselves."""
    n_splits = len(plan.work.splits)
    fit_tasks = sum(
        1 if group.family.fits_splits_together else n_splits
        for group in plan.work.groups
    )
    rounds = 2 if plan.prune and plan.n_candidates > 1 else 1
    span_tasks = rounds * n_spans(plan)
    return Projection(
        fit_tasks,
        span_tasks,
        0 if plan.pool is None else rounds * int(plan.pool.nbytes),
        FIT_SECONDS * fit_tasks
        + span_tasks * (SPAN_SECONDS + INPUT_SECONDS * fit_tasks),
    )
