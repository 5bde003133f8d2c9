"""What a plan prints: fits, tasks, bytes, and what the number will rest on.

The constants of the scheduler's time are measured by
``tests/benchmarks/bench_scheduler.py``.
"""

from dataclasses import dataclass
from typing import Final

from dsel.data.trainings import FULL
from dsel.searches.assumptions import few_rows
from dsel.searches.spec import SearchSpec


def describe(plan: SearchSpec) -> str:
    """Return the plan in words, one fact a line."""
    lines = [
        f"Plan of {plan.n_candidates} candidates over ({', '.join(plan.axes.dims)}) "
        f"by {plan.criterion.name}",
        f"  labeled rows     {len(plan.work.y):,} x {plan.work.X.shape[1]}, "
        f"{len(plan.classes)} classes",
        _pool_line(plan),
        f"  trainings        {_trainings(plan)}",
        f"  fits             {_fits(plan)}",
        *_limit(plan),
        f"  tasks            {_tasks(plan)}",
        f"  projected memory {_memory(plan)}",
        f"  certificate      {plan.certificate.name} at delta={plan.delta:g}, "
        f"{plan.label_share:g} of it for the labeled rows{_model(plan)}",
        f"  seed             {plan.seed}",
        *(f"  {remark}" for remark in plan.remarks),
        *_small_folds(plan),
    ]
    violated = [each for each in plan.assumptions if each.is_violated]
    lines += [f"  NOT CERTIFIED: {each.name}, {each.reason}" for each in violated]
    return "\n".join(lines)


def _model(plan: SearchSpec) -> str:
    return "" if plan.certificate.deploys == FULL else "; the model is that of fold 0"


def _small_folds(plan: SearchSpec) -> list[str]:
    remark = few_rows(plan.scheme.trainings)
    return [f"  CAREFUL: {remark}"] if remark and plan.certificate.is_guarantee else []


def _pool_line(plan: SearchSpec) -> str:
    if plan.pool is None:
        return "  pool             none"
    size = format_bytes(plan.pool.nbytes)
    return f"  pool             {plan.pool.n_rows:,} rows, {size}, {_spans(plan)}"


def _spans(plan: SearchSpec) -> str:
    n = n_spans(plan)
    spans = f"{n} span{'s' if n != 1 else ''}, each read once a round"
    if not plan.stages.may_stop:
        return spans
    return (
        f"{spans}; {len(plan.stages.parts)} stages, until a bound is within "
        f"{plan.stages.stop_within:g} of what all rows would give"
    )


def _trainings(plan: SearchSpec) -> str:
    full = " and the full one" if plan.scheme.full is not None else ""
    return f"{plan.scheme.n_folds} folds{full}"


def _fits(plan: SearchSpec) -> str:
    n = plan.n_candidates * len(plan.work.trainings)
    return f"{n:,}" + (" at most: losers are dropped on the way" if plan.prune else "")


def _limit(plan: SearchSpec) -> list[str]:
    if plan.fit_timeout is None:
        return []
    return [
        f"  time limit       {plan.fit_timeout:g} s a fit; which candidates it fails, "
        f"and so the choice, depends on the machine"
    ]


def _tasks(plan: SearchSpec) -> str:
    found = project(plan)
    return (
        f"up to {found.fit_tasks:,} for fits, {found.span_tasks:,} for the pool, "
        f"{format_bytes(found.pool_nbytes)} read; of a scheduler's time about "
        f"{found.scheduler_seconds:.1f} s"
    )


def _memory(plan: SearchSpec) -> str:
    """Labeled rows, one kernel of theirs, and one block of the pool."""
    n, p = plan.work.X.shape
    itemsize = 8
    labeled = n * p * itemsize
    return f"{format_bytes(labeled + 32 * 2**20)} for each worker thread and its models"


def format_bytes(n: int) -> str:
    """Return a size in words.

    Examples
    --------
    >>> format_bytes(2_000_000_000)
    '1.9 GiB'
    """
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


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


def n_spans(plan: SearchSpec) -> int:
    """Return the parts in which the pool is counted, over all stages."""
    return sum(len(look.spans) for look in plan.stages.parts)


def project(plan: SearchSpec) -> Projection:
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
