"""A nested search: candidates without each pair of folds, then what was chosen.

In the last step the k models without a fold and that of all rows come to this process
with their counts, each in one message, before the pool is read. The pass over the pool
gets these objects, so no task of it depends on a fit that could run twice, and what is
deployed is what was counted, whatever the learner draws.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.data.equal_rows import duplicate_finder
from dsel.errors import AllFitsFailedError
from dsel.families.generic import collect_warnings
from dsel.losses.base import FoldCounts, PoolCounts, Statistic, stack_folds
from dsel.losses.joint import Evidence
from dsel.results import Choice
from dsel.results.certificate import ALL_ROWS, CHOICE
from dsel.results.cube import make_pair_cube
from dsel.runtime.clients import current_worker
from dsel.runtime.progress import CHECKING, CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.runtime.submission import Executor
from dsel.runtime.tasks import Task, is_task
from dsel.search.design.assumptions import PoolFacts
from dsel.search.design.comparisons import EachFold
from dsel.search.engine.counts import CountTable, cannot_predict
from dsel.search.engine.engine import Engine
from dsel.search.engine.jobs import (
    ChosenModels,
    FitBatch,
    FitJob,
    FitStatus,
    FittedJob,
    Keep,
)
from dsel.search.engine.pruning import Choices, NestedPruner
from dsel.search.outcomes.outcome import Outcome
from dsel.search.running.last_step import LastStep, add_counts, choose_models
from dsel.search.running.run import Remade, Run

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

NOTHING_DONE: Final = Progress()


def search_nested(run: Run) -> Outcome:
    """Search without each fold, then fit and count what was chosen.

    The pool is compared with the labeled rows next to the fits: no fit depends on what
    that shows.
    """
    plan = run.plan
    with closing(run.open_executor()) as executor, ThreadPoolExecutor(1) as beside:
        run.check_memory(executor)
        check: Future[PoolFacts] = Future()
        if is_task() or current_worker() is not None:
            # A thread of its own would not know that it is part of a task.
            check.set_result(run.check_pool())
        else:
            check = beside.submit(_check_pool, run)

        def report() -> None:
            if check.done():
                check.result()  # raises what is wrong with the pool while fits run
            # Of a single candidate there are no fits before the last step.
            if run.on_progress is not None and search.table.fit_status.size:
                phase = run.fitting_phase(search.table)
                report_last_step(run, search.progress(), phase)

        pruner = NestedPruner(plan.scheme, plan.prune)
        search = run.search(executor, pruner, Keep.NOWHERE, report)
        # Only what is chosen has a model of all rows to be compared with, so this loop
        # counts nothing on the pool, and no model need stay where it was fitted.
        assert not search.table.slices
        search.run()
        before = search.progress()
        if not check.done():
            report_last_step(run, before, Phase(CHECKING))
        facts, shown = check.result(), pruner.evidence(search.table)
        run.check_failures(shown, search.table.unpredicting)
        return certify_choices(
            run, executor, pruner, search.table, shown, facts, before
        )


def certify_choices(
    run: Run, executor: Executor, pruner: NestedPruner, table: CountTable,
    shown: Mapping[str, NDArray[Any]], facts: PoolFacts,
    before: Progress = NOTHING_DONE,
) -> Outcome:  # fmt: skip
    """Choose by what inner searches counted; fit, count and certify what was chosen.

    The table may have been filled by other means than fits, such as a closed form;
    `shown` is what the pruner shows of it.
    """
    plan = run.plan
    evidence = {**shown, **run.fixed_evidence(facts)}
    last = fit_chosen(run, executor, pruner.choices(table), facts.equal_rows, before)
    for number, why in last.stopped.items():
        evidence[names.MESSAGE][number] = evidence[names.MESSAGE][number] or why
    if plan.n_candidates == 1:  # nothing else was counted
        if names.OUTER_ERRORS in last.counts:
            evidence[names.FOLD_ERRORS] = last.counts[names.OUTER_ERRORS][np.newaxis]
        evidence[names.FOLD_ANSWERS] = plan.scheme.fold_rows[np.newaxis]
        evidence[names.FOLD_LOSS_MEAN] = last.scores[np.newaxis]
    if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
        del evidence[names.FOLD_LOSS_MEAN]
    evidence |= {names.OUTER_CANDIDATE: np.array(last.choices.by_fold)}
    cube = add_counts(run.make_cube({**evidence, **last.counts}, facts), last)
    choice, models = choose_models(plan, cube, last)
    cube = cube.assign_attrs({CHOICE: choice.to_json()})
    return Outcome(
        cube, choice, pair_results(plan, table), partial(dict, models),
        run.read_query_rows(choice),
    )  # fmt: skip


def _check_pool(run: Run) -> PoolFacts:
    """Compare the pool with the labeled rows, in a thread next to the fits.

    Filters of warnings belong to the process. What is called here may set some and put
    back what it found; the fits, which set some as well, must not end in between.
    """
    with collect_warnings():
        return run.check_pool()


def pair_results(plan: "Plan", table: CountTable) -> xr.Dataset:
    """Return what inner searches counted."""
    splits = plan.scheme.splits
    seconds = [0 if s.second_rows is None else len(s.second_rows) for s in splits]
    counted, values = names.FOLD_ERRORS, table.errors
    if plan.is_regression:
        counted, values = names.FOLD_LOSS_MEAN, table.scores
    return make_pair_cube(
        plan.axes,
        [(each.key[0], each.key[-1]) for each in splits],  # a quarter has one number
        {counted: values},
        np.stack([[len(s.test_rows) for s in splits], seconds], axis=-1),
        table.fit_seconds,
    )


def report_last_step(
    run: Run, before: Progress, phase: Phase | None = None, *, fits: int = 0,
    slices: int = 0, seconds: float = 0.0,
) -> None:  # fmt: skip
    """Report what is done before and of the last step, which is planned before."""
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
    run: Run, executor: Executor, choices: Choices, n_equal: int,
    before: Progress = NOTHING_DONE,
) -> LastStep:  # fmt: skip
    """Fit what was chosen, and count it; by all rows first, then without each fold.

    `n_equal` pool rows equal labeled ones: where there are none, the pass over the pool
    need not look for them.

    Raises AllFitsFailedError where no model of a fold could be fitted.
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
        group = plan.context.candidate_groups[job.group]
        split = scheme.splits[job.split]
        key = f"fit-chosen-{group.label}-{split.label}-{next(engine.serial)}"
        # Spread over the workers, as the first fits are.
        return Task(key, FitBatch((job,), Keep.IN_RESULT), place=job.split)

    jobs = [
        FitJob(plan.context.group_of(number).number, (number,), split, scheme=1)
        for split, number in enumerate(candidates[:n_splits])
    ]
    for each in engine.run_jobs(([job] for job in jobs), task_of, on_turn=report):
        fitted[each.job.split] = each
        table.add_fit(0, each.job.split, each.results[0])
    last = _sort_fitted(run, [fitted[split] for split in range(n_splits)], choices)
    if k in last.models:
        pool = _count_chosen(run, engine, fitted, last.evidence.folds, n_equal, report)
        evidence = replace(last.evidence, pool=pool)
        last = replace(last, evidence=evidence, drawn=table.drawn)
    report()
    return last


def _sort_fitted(run: Run, fitted: list[FittedJob], choices: Choices) -> LastStep:
    """Return models and counts of the last step, without those of the pool."""
    scheme, k = run.plan.scheme.last, run.plan.scheme.n_folds
    assert scheme is not None  # else there is no last step
    models, messages = {}, []
    stopped: dict[int, str] = {}
    unpredicting: dict[int, str] = {}
    for split, each in enumerate(fitted):
        [result], [number], where = (
            each.results,
            each.job.candidates,
            scheme.splits[split],
        )
        if result.status is FitStatus.FAILED:
            why = result.message or "the fit failed"
            if run.raise_failures:
                raise RuntimeError(why)
            messages.append(f"{where.name}: {why}")
            continue
        if result.message:
            stopped.setdefault(number, f"{where.name}: {result.message}")
        assert each.models is not None  # they were asked for
        models[split] = each.models.model(number, split)
        rows = [len(where.test_rows)]
        if split < k and cannot_predict(result.message, result.errors, rows):
            unpredicting[split] = f"{where.name}: {result.message}"
    of_folds = [split for split in models if split < k]
    if not of_folds:
        raise AllFitsFailedError(f"what was chosen cannot be fitted: {messages[0]}")
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
    evidence = Evidence(folds, {})
    # Of a fit that failed there is none.
    scores = [each.results[0].scores[:1] or (np.nan,) for each in fitted[:k]]
    return LastStep(
        choices, models, evidence, np.ravel(scores), tuple(messages), stopped
    )


def _count_chosen(
    run: Run, engine: Engine, fitted: Mapping[int, FittedJob],
    folds: Mapping[Statistic, FoldCounts], n_equal: int, report: Callable[[], None],
) -> dict[Statistic, PoolCounts]:  # fmt: skip
    """Compare the model of each fold with that of all rows, on all pool rows.

    In the same pass those rows are counted apart that equal labeled rows.
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
        family = context.group_of(number).family
        whole = family.join(groups, [number]) if len(groups) > 1 else groups[0]
        parts.append((tuple(each.job.split for each in same), whole))
    splits = tuple(sorted(fitted))
    models = ChosenModels(tuple(parts), splits, table.joined_token(0))
    comparison = EachFold(
        folds,
        duplicate_finder(plan.pool, plan.labeled) if n_equal else None,
        n_queries=plan.n_queries,
        # Fixed by labeled rows: the pool must not decide where it is queried.
        best_fold=context.losses.best_fold(folds, plan.delta),
        seed=plan.seed,
    )
    table.compare((comparison,))
    run.replay(table)
    # Without the labeled rows, which predictions do not need.
    sent = replace(
        context, X=context.X[:0], y=context.y[:0], schemes=(), chosen=models,
        comparisons=(comparison,), sampled_rows=run.sampled_rows, baseline=None,
    )  # fmt: skip
    key = engine.executor.put(sent)
    for _ in engine.count_pool((0,), (), context=key, on_turn=report):
        raise AssertionError("these models were sent with their pass")
    return comparison.unpack(table.differences[0][0], plan.pool.n_rows, n_equal)


def remake_nested(run: Run, cube: xr.Dataset, choice: Choice) -> Remade:
    """Fit what a run has chosen anew, and make all their counts again."""
    outer = cube[names.OUTER_CANDIDATE].values.astype(int).tolist()
    choices = Choices(choice.candidates.get(ALL_ROWS, outer[0]), tuple(outer))
    with closing(run.open_executor()) as executor:
        last = fit_chosen(run, executor, choices, int(cube[names.EQUAL_ROWS]))
    models = {
        deploy: last.models[run.plan.scheme.n_folds if c.fold is None else c.fold]
        for deploy, c in choice.certificates.items()
    }
    # What 0.2 finished has no counts of duplicates.
    there = {name: n for name, n in last.counts.items() if name in cube}
    counts = {name: (cube[name].values, n) for name, n in there.items()}
    if choice.queries is not None:
        counts["queries"] = np.array(choice.queries.rows), np.sort(last.drawn.rows)
    return Remade(models, counts)
