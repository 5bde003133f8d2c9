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
from dsel.data.sampled_rows import SampledRows
from dsel.errors import AllFitsFailedError
from dsel.losses.base import FoldCounts, stack_folds
from dsel.results.fit_messages import FitMessage
from dsel.runtime.progress import CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.runtime.submission import Executor
from dsel.runtime.tasks import Task
from dsel.search.design.assumptions import PoolCheck
from dsel.search.design.comparisons import EachFold
from dsel.search.engine.chosen_models import ONLY_MEMBER, ChosenModels, ChosenPass
from dsel.search.engine.count_batch import CountChosenBatch
from dsel.search.engine.engine import Engine
from dsel.search.engine.fit_batch import FitBatch
from dsel.search.engine.job_results import FitStatus, FittedJob, join_tokens
from dsel.search.engine.jobs import FitJob, JobContext, Keep
from dsel.search.engine.pool_table import PoolTable
from dsel.search.engine.pruning import ChosenCandidates
from dsel.search.running.last_step import FittedModels, LastStep
from dsel.search.running.run import Run

NOTHING_DONE: Final = Progress()


def show_last_step(
    run: Run,
    before: Progress,
    phase: Phase | None = None,
    *,
    fits: int = 0,
    slices: int = 0,
    seconds: float = 0.0,
) -> None:
    """Show the progress before and in the last step, whose size is known before."""
    pool, n_slices = run.plan.pool, len(run.plan.slices)
    n_fits = run.plan.n_last_fits
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
    run.show_progress(before + done, phase)


def fit_chosen(
    run: Run,
    executor: Executor,
    chosen: ChosenCandidates,
    pool_check: PoolCheck,
    before: Progress = NOTHING_DONE,
) -> LastStep:
    """Fit and count the chosen candidates: without each fold, then on all rows.

    Raises AllFitsFailedError if no model of a fold could be fitted.
    """
    plan, scheme, started = run.plan, run.plan.scheme.last, time.perf_counter()
    assert scheme is not None  # else the search is not nested
    k, n_splits = scheme.n_folds, plan.n_last_fits
    candidates = chosen.by_split
    engine = Engine(executor, run.store, plan.pool)
    fitted: dict[int, FittedJob] = {}

    def show_progress(slices: int = 0) -> None:
        passed = time.perf_counter() - started
        show_last_step(run, before, fits=len(fitted), slices=slices, seconds=passed)

    def task_of(jobs: list[FitJob]) -> Task[list[FittedJob]]:
        [job] = jobs
        group = plan.context.candidate_groups[job.candidate_group]
        split = scheme.splits[job.split]
        key = f"fit-chosen-{group.label}-{split.label}-{next(engine.serial)}"
        # Spread over the workers, as the first fits are.
        return Task(key, FitBatch((job,), Keep.IN_RESULT), affinity=job.split)

    jobs = [
        FitJob(
            plan.context.candidate_group_of(number).number,
            (number,),
            split,
            in_last_step=True,
        )
        for split, number in enumerate(candidates[:n_splits])
    ]
    # One model a task: these fits are few, and no slot should wait for another one.
    for each in engine.run_jobs(
        ([job] for job in jobs), task_of, on_turn=show_progress
    ):
        fitted[each.job.split] = each
    models = collect_models(run, [fitted[split] for split in range(n_splits)])
    show_progress()
    # Where the model of all rows failed, that of one fold still has its bound.
    if plan.pool is None or k not in models.models:
        return LastStep(chosen, models)
    n_duplicates, losses = pool_check.facts.equal_rows, plan.context.losses
    # The counts on the folds are complete here. From now on only the pool is random,
    # which is the order in which the proof conditions (docs/theory/nested.md).
    comparison = EachFold(
        models.folds,
        # Without any duplicate the pass does not search for them.
        duplicate_finder(plan.pool, plan.labeled) if n_duplicates else None,
        n_queries=plan.n_queries,
        # Fixed by labeled rows: the pool must not decide where it is queried.
        best_fold=losses.best_fold(models.folds, plan.delta, models.has_model),
        seed=plan.seed,
    )
    chosen_models = join_chosen(plan.context, fitted)
    table = count_chosen(
        run,
        engine,
        chosen_models,
        candidates,
        comparison,
        pool_check.sampled_rows,
        show_progress,
    )
    differences = table.differences[0][ONLY_MEMBER]
    pool = comparison.unpack(differences, plan.pool.n_rows, n_duplicates)
    return LastStep(chosen, models, pool, table.drawn)


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
    # A bound needs the model of one fold, whichever it is.
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


def join_chosen(context: JobContext, fitted: Mapping[int, FittedJob]) -> ChosenModels:
    """Return the models of all splits as one group, which predicts together."""
    done = [
        each for each in fitted.values() if each.results[0].status is FitStatus.DONE
    ]
    # Models of one candidate share work when they predict.
    by_candidate: dict[int, list[FittedJob]] = {}
    for each in done:
        by_candidate.setdefault(each.job.candidates[0], []).append(each)
    parts = []
    for number, same in by_candidate.items():
        groups = [each.models for each in same if each.models is not None]
        family = context.candidate_group_of(number).family
        whole = family.join(groups, [number]) if len(groups) > 1 else groups[0]
        parts.append((tuple(each.job.split for each in same), whole))
    token = join_tokens({n: each.results[0].token for n, each in fitted.items()})
    return ChosenModels(tuple(parts), tuple(sorted(fitted)), token)


def count_chosen(
    run: Run,
    engine: Engine,
    chosen: ChosenModels,
    candidates: tuple[int, ...],
    comparison: EachFold,
    sampled_rows: SampledRows | None,
    show_progress: Callable[[int], None],
) -> PoolTable:
    """Compare the chosen models on all pool rows, except those an earlier run counted.

    The models are those of `candidates`, by split.
    """
    key = f"chosen-{'-'.join(map(str, candidates))}"
    table = PoolTable(run.plan.slices, (comparison,), [key], lambda _: chosen.token)
    run.replay(table)
    reading = replace(run.plan.context.pool_reading, sampled_rows=sampled_rows)
    sent = ChosenPass(chosen, table.comparisons, reading)
    for _ in engine.count_pool(
        table,
        (ONLY_MEMBER,),
        CountChosenBatch,
        context=engine.executor.put(sent),
        on_turn=lambda: show_progress(int(table.counted.sum())),
    ):
        raise AssertionError("these models were sent with their pass")
    show_progress(int(table.counted.sum()))
    return table
