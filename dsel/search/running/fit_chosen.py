"""The fits and counts of the candidates that a nested search has chosen.

The k models without a fold and that of all rows come to this process with their counts,
each in one message, before the pool is read. The pass over the pool gets these objects.
Therefore none of its tasks depends on a fit that could run twice, and the deployed
model is the counted one, even if the learner draws at random.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from dsel.data.equal_rows import duplicate_finder
from dsel.errors import AllFitsFailedError
from dsel.losses.base import FoldCounts, PoolCounts, Statistic, stack_folds
from dsel.results.fit_messages import FitMessage
from dsel.runtime.progress import CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.runtime.submission import Executor
from dsel.runtime.tasks import Task
from dsel.search.design.comparisons import EachFold
from dsel.search.engine.counts import CountTable
from dsel.search.engine.engine import Engine
from dsel.search.engine.jobs import (
    ChosenModels,
    FitBatch,
    FitJob,
    FitStatus,
    FittedJob,
    Keep,
)
from dsel.search.engine.pruning import Choices
from dsel.search.running.last_step import FittedModels, LastStep
from dsel.search.running.run import Run

NOTHING_DONE: Final = Progress()


def report_last_step(
    run: Run,
    before: Progress,
    phase: Phase | None = None,
    *,
    fits: int = 0,
    slices: int = 0,
    seconds: float = 0.0,
) -> None:
    """Report the progress before and in the last step, whose size is known before."""
    pool, n_slices = run.plan.pool, len(run.plan.slices)
    n_fits = run.plan.scheme.n_folds + (pool is not None)
    done = Progress(
        fits_done=fits,
        fits_total=n_fits,
        slices_done=slices,
        slices_total=n_slices,
        pool_rows_done=0 if pool is None else pool.n_rows * slices // n_slices,
        seconds=seconds,
    )
    if phase is None and fits >= n_fits and pool is not None:
        phase = Phase(COUNTING, slices, n_slices)
    elif phase is None:  # of a single candidate nothing is chosen before
        phase = Phase(CHOSEN if run.plan.n_candidates > 1 else FITTING, fits, n_fits)
    run.report(before + done, phase)


def fit_chosen(
    run: Run,
    executor: Executor,
    choices: Choices,
    n_equal: int,
    before: Progress = NOTHING_DONE,
) -> LastStep:
    """Fit and count the chosen candidates: on all rows first, then without each fold.

    `n_equal` pool rows equal labeled ones; if there are none, the pass over the pool
    does not search for them.

    Raises AllFitsFailedError if no model of a fold could be fitted.
    """
    plan, scheme, started = run.plan, run.plan.scheme.last, time.perf_counter()
    assert scheme is not None  # else the search is not nested
    k, n_splits = scheme.n_folds, scheme.n_folds + bool(plan.slices)
    candidates = choices.by_split
    table = CountTable(scheme, (), (), plan.slices, 1, chosen=candidates)
    engine = Engine(executor, run.store, table, plan.pool)
    fitted: dict[int, FittedJob] = {}

    def report() -> None:
        passed = time.perf_counter() - started
        n_counted = int(table.visited.sum())
        report_last_step(
            run, before, fits=len(fitted), slices=n_counted, seconds=passed
        )

    def task_of(jobs: list[FitJob]) -> Task:
        [job] = jobs
        group = plan.context.candidate_groups[job.candidate_group]
        split = scheme.splits[job.split]
        key = f"fit-chosen-{group.label}-{split.label}-{next(engine.serial)}"
        # Spread over the workers, as the first fits are.
        return Task(key, FitBatch((job,), Keep.IN_RESULT), place=job.split)

    jobs = [
        FitJob(
            plan.context.candidate_group_of(number).number, (number,), split, scheme=1
        )
        for split, number in enumerate(candidates[:n_splits])
    ]
    for each in engine.run_jobs(([job] for job in jobs), task_of, on_turn=report):
        fitted[each.job.split] = each
        # This table has one candidate: what was chosen, which may differ by split.
        table.add_fit(0, each.job.split, each.results[0])
    models = collect_models(run, [fitted[split] for split in range(n_splits)])
    # Where the model of all rows failed, that of one fold still has its bound.
    pool = {}
    if k in models.models:
        pool = count_chosen(run, engine, fitted, models, n_equal, report)
    report()
    return LastStep(choices, models, pool, table.drawn)


def collect_models(run: Run, fitted: list[FittedJob]) -> FittedModels:
    """Return the models of the last step, with the counts on their folds.

    Raises AllFitsFailedError if no model of a fold was fitted, or none can predict.
    """
    scheme, k = run.plan.scheme.last, run.plan.scheme.n_folds
    assert scheme is not None  # else there is no last step
    models, failures = {}, []
    messages: dict[int, FitMessage] = {}
    unpredicting: dict[int, str] = {}
    for split, each in enumerate(fitted):
        [result], [number], where = (
            each.results,
            each.job.candidates,
            scheme.splits[split],
        )
        if result.status is FitStatus.FAILED:
            why = "the fit failed" if result.message is None else result.message.text
            if run.raise_failures:
                raise RuntimeError(why)
            failures.append(f"{where.name}: {why}")
            continue
        if result.message is not None:
            text = f"{where.name}: {result.message.text}"
            messages.setdefault(number, replace(result.message, text=text))
            if split < k and result.predicts_none_of(where):
                unpredicting[split] = text
        assert each.models is not None  # they were asked for
        models[split] = each.models.model(number, split)
    of_folds = [split for split in models if split < k]
    if not of_folds:
        raise AllFitsFailedError(f"what was chosen cannot be fitted: {failures[0]}")
    if len(unpredicting) == len(of_folds):
        raise AllFitsFailedError(
            f"what was chosen cannot predict; `predict` raised on all rows: "
            f"{unpredicting[of_folds[0]]}"
        )
    counts = zip(*(each.counts for each in fitted[:k]), strict=True)
    folds = {
        statistic: FoldCounts(stack_folds(each), scheme.fold_rows)
        for statistic, each in zip(
            run.plan.context.losses.statistics, counts, strict=True
        )
    }
    # A failed fit has no score.
    scores = [each.results[0].scores[:1] or (np.nan,) for each in fitted[:k]]
    return FittedModels(models, folds, np.ravel(scores), tuple(failures), messages)


def count_chosen(
    run: Run,
    engine: Engine,
    fitted: Mapping[int, FittedJob],
    counted: FittedModels,
    n_equal: int,
    report: Callable[[], None],
) -> dict[Statistic, PoolCounts]:
    """Compare the model of each fold with that of all rows, on all pool rows.

    The same pass counts duplicates of labeled rows separately.
    """
    plan, table, context = run.plan, engine.table, run.plan.context
    assert plan.pool is not None  # else there is no model of all rows
    together: dict[int, list[FittedJob]] = {}  # they share work when they predict
    for each in fitted.values():
        if each.results[0].status is FitStatus.DONE:
            together.setdefault(each.job.candidates[0], []).append(each)
    parts = []
    for number, same in together.items():
        groups = [each.models for each in same if each.models is not None]
        family = context.candidate_group_of(number).family
        whole = family.join(groups, [number]) if len(groups) > 1 else groups[0]
        parts.append((tuple(each.job.split for each in same), whole))
    splits = tuple(sorted(fitted))
    models = ChosenModels(tuple(parts), splits, table.joined_token(0))
    comparison = EachFold(
        counted.folds,
        duplicate_finder(plan.pool, plan.labeled) if n_equal else None,
        n_queries=plan.n_queries,
        # Fixed by labeled rows: the pool must not decide where it is queried.
        best_fold=context.losses.best_fold(
            counted.folds, plan.delta, counted.has_model
        ),
        seed=plan.seed,
    )
    table.compare((comparison,))
    run.replay(table)
    # Without the labeled rows, which predictions do not need.
    sent = replace(
        context,
        X=context.X[:0],
        y=context.y[:0],
        schemes=(),
        chosen=models,
        comparisons=(comparison,),
        sampled_rows=run.sampled_rows,
        baseline=None,
    )
    key = engine.executor.put(sent)
    for _ in engine.count_pool((0,), (), context=key, on_turn=report):
        raise AssertionError("these models were sent with their pass")
    return comparison.unpack(table.differences[0][0], plan.pool.n_rows, n_equal)
