"""What a plan asks of scheduler and storage, known before anything runs.

The constants are those of ``tests/benchmarks/bench_scheduler.py``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dsel.searches.plan import Plan

FIT_SECONDS: Final = 0.003
"""Processor time of the scheduler for a task that fits, which is two of Dask's."""
SPAN_SECONDS: Final = 0.002
"""The same for a task of the pool."""
INPUT_SECONDS: Final = 0.00001
"""The same for one pack of models that a task of the pool takes as its input."""


@dataclass(frozen=True)
class Projection:
    """Tasks, bytes and time of the scheduler; all of them upper limits."""

    fit_tasks: int
    """Tasks that fit."""
    span_tasks: int
    """Tasks that count over spans of the pool, in all rounds; short ones share one."""
    pool_nbytes: int
    """Bytes of the pool that are read, in all rounds."""
    scheduler_seconds: float
    """Time of the scheduler, which does one thing at a time."""


def n_spans(plan: "Plan") -> int:
    """Return the parts in which the pool is counted, over all looks."""
    return sum(len(look.spans) for look in plan.looks.parts)


def project(plan: "Plan") -> Projection:
    """Return what a run of the plan costs beside its work."""
    n_trainings = len(plan.work.trainings)
    fit_tasks = sum(
        1 if group.family.fits_trainings_together else n_trainings
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
