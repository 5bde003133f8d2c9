"""What a plan prints: fits, tasks, bytes, and what the number will rest on."""

from typing import TYPE_CHECKING

from dsel.data.trainings import FULL
from dsel.searches.projection import n_spans, project
from dsel.searches.signs import few_rows

if TYPE_CHECKING:
    from dsel.searches.plan import Plan


def describe(plan: "Plan") -> str:
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


def _model(plan: "Plan") -> str:
    return "" if plan.certificate.deploys == FULL else "; the model is that of fold 0"


def _small_folds(plan: "Plan") -> list[str]:
    remark = few_rows(plan.scheme.trainings)
    return [f"  CAREFUL: {remark}"] if remark and plan.certificate.is_guarantee else []


def _pool_line(plan: "Plan") -> str:
    if plan.pool is None:
        return "  pool             none"
    size = format_bytes(plan.pool.nbytes)
    return f"  pool             {plan.pool.n_rows:,} rows, {size}, {_spans(plan)}"


def _spans(plan: "Plan") -> str:
    n = n_spans(plan)
    spans = f"{n} span{'s' if n != 1 else ''}, each read once a round"
    if not plan.looks.may_stop:
        return spans
    return (
        f"{spans}; {len(plan.looks.parts)} looks, until a bound is within "
        f"{plan.looks.stop_within:g} of what all rows would give"
    )


def _trainings(plan: "Plan") -> str:
    full = " and the full one" if plan.scheme.full is not None else ""
    return f"{plan.scheme.n_folds} folds{full}"


def _fits(plan: "Plan") -> str:
    n = plan.n_candidates * len(plan.work.trainings)
    return f"{n:,}" + (" at most: losers are dropped on the way" if plan.prune else "")


def _limit(plan: "Plan") -> list[str]:
    if plan.fit_timeout is None:
        return []
    return [
        f"  time limit       {plan.fit_timeout:g} s a fit; which candidates it fails, "
        f"and so the choice, depends on the machine"
    ]


def _tasks(plan: "Plan") -> str:
    found = project(plan)
    return (
        f"up to {found.fit_tasks:,} for fits, {found.span_tasks:,} for the pool, "
        f"{format_bytes(found.pool_nbytes)} read; of a scheduler's time about "
        f"{found.scheduler_seconds:.1f} s"
    )


def _memory(plan: "Plan") -> str:
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
