"""The fits and counts of the candidates that a nested search has chosen.

The k models without a fold and that of all rows come to this process with their counts,
each in one message, before the pool is read. The pass over the pool gets these objects.
Therefore none of its tasks depends on a fit that could run twice, and the deployed
model is the counted one, even if the learner draws at random.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

import numpy as np

from dsel import names
from dsel.arrays import Floats
from dsel.criteria.base import CandidateCounts
from dsel.data.duplicates import duplicate_finder
from dsel.errors import AllFitsFailedError
from dsel.losses.base import FoldCounts, PoolCounts, Statistic, stack_folds
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import Evidence, fold_to_deploy
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results.cube import cv_error
from dsel.results.fit_messages import FitMessage
from dsel.runtime.progress import CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.runtime.tasks import Task
from dsel.search.design.assumptions import PoolFindings
from dsel.search.design.comparisons import DrawnRows, EachFold
from dsel.search.engine.count_batch import (
    CHOSEN_SET,
    ComparedModels,
    CountChosenBatch,
    JoinedModels,
)
from dsel.search.engine.counts import PoolTable, SearchCounts
from dsel.search.engine.fit_batch import FitChosenBatch
from dsel.search.engine.inner_searches import ChosenCandidates, tie_ranks
from dsel.search.engine.job_queue import Engine, JobQueue
from dsel.search.engine.jobs import (
    ChosenFit,
    ChosenFitJob,
    FitStatus,
    JobContext,
    join_tokens,
)
from dsel.search.engine.pool_pass import PoolPass
from dsel.search.running.cube_caveats import name_column
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.procedures import FunctionEstimator
from dsel.search.running.run import Run, chosen_progress, replay_counts, show_progress
from dsel.typing import Model

NOTHING_DONE: Final = Progress()


@dataclass(frozen=True, kw_only=True)
class ChosenModels:
    """The fitted models of the chosen candidates, with their counts on the folds."""

    candidates: ChosenCandidates
    """The chosen candidates: one for each fold, and one by all rows."""
    models: Mapping[int, Model]
    """Fitted estimators by fold; that of all rows, if there is one, has the key
    `all_rows_number`."""
    folds: Mapping[Statistic, FoldCounts]
    """Counts of the models without a fold on this fold."""
    limits: Floats
    """Limits of the main loss of these models, (n_folds,), which hold at once."""
    fold_losses: Floats
    """The ranking loss of each model on its fold, (n_folds,)."""
    deployed_fold: int
    """The fold whose model is deployed: labeled rows decide it, before the pool."""
    fits: Mapping[int, ChosenFit] = field(default_factory=dict)
    """Results of the fits by the number of the split, to be counted on the pool."""
    all_rows_failure: str = ""
    """Cause, if the fit on all rows failed; else ""."""
    failed_folds: Mapping[int, str] = field(default_factory=dict)
    """Cause by fold, where the fit without it failed, or its model cannot predict it:
    then all of its rows count as errors."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of completed fits by candidate, such as an early stop."""

    @property
    def all_rows_number(self) -> int:
        """Number of the split on all rows: it follows those without a fold."""
        return len(self.fold_losses)

    @property
    def split_of_model(self) -> dict[str, int]:
        """Number of the split of each bounded model, by the name of the model."""
        splits = {ONE_FOLD: self.deployed_fold}
        if self.all_rows_number in self.models:
            splits[ALL_ROWS] = self.all_rows_number
        return splits

    def without_failed_folds(self, statistic: Statistic) -> FoldCounts:
        """Return the counts of the folds that a model has predicted."""
        folds = self.folds[statistic]
        kept = sorted({*range(len(folds.n_rows))} - self.failed_folds.keys())
        return FoldCounts(folds.counts[kept], folds.n_rows[kept])


@dataclass(frozen=True)
class CountedModels:
    """The chosen models, with their counts on the pool."""

    chosen: ChosenModels
    pool_counts: Mapping[Statistic, PoolCounts] = field(default_factory=dict)
    """Counts on the pool; empty without a pool, or without a model of all rows."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Pool rows to label."""

    @property
    def evidence(self) -> Evidence:
        """The counts from which losses bound the models."""
        return Evidence(self.chosen.folds, self.pool_counts)


def add_chosen(
    plan: PlannedSearch, counts: SearchCounts, counted: CountedModels
) -> SearchCounts:
    """Return the counts of inner searches, completed by those of the chosen models."""
    chosen = counted.chosen
    if plan.n_candidates == 1:  # inner searches have counted nothing
        errors, n_rows = chosen.folds.get(ERROR_RATE.statistic), counts.fold_rows
        counts = replace(
            counts,
            fold_errors=None if errors is None else errors.integers[np.newaxis],
            fold_answers=n_rows[np.newaxis],
            fold_loss_mean=chosen.fold_losses[np.newaxis],
        )
    if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
        counts = replace(counts, fold_loss_mean=None)
    return replace(
        counts,
        messages={**chosen.messages, **counts.messages},
        outer_candidate=np.array(chosen.candidates.by_fold),
        evidence=counted.evidence,
    )


def mean_inner_loss(counts: CandidateCounts, candidate: int) -> float:
    """Return the mean over folds of the loss by which inner searches ranked it."""
    means = counts.get(names.FOLD_LOSS_MEAN)
    if means is None:
        return cv_error(counts, candidate)
    return float(means[candidate].mean())


@dataclass(frozen=True)
class ChosenProgress:
    """Shows the progress of the chosen candidates."""

    run: Run
    before: Progress = NOTHING_DONE
    """Progress of inner searches, to which this one is added."""
    started: float = field(default_factory=time.perf_counter)

    def show(self, n_fits: int, n_slices: int = 0) -> None:
        """Show the progress of the fits, then of the pass over the pool."""
        plan = self.run.plan
        # Of a single candidate nothing is chosen before.
        name = CHOSEN if plan.n_candidates > 1 else FITTING
        phase = Phase(name, n_fits, plan.n_chosen_fits)
        if n_fits == plan.n_chosen_fits and plan.pool is not None:
            phase = Phase(COUNTING, n_slices, len(plan.slices))
        seconds = time.perf_counter() - self.started
        done = chosen_progress(plan, n_fits, n_slices, seconds)
        show_progress(self.run, self.before + done, phase)


def fit_chosen(
    run: Run,
    engine: Engine,
    candidates: ChosenCandidates,
    inner_counts: CandidateCounts,
    progress: ChosenProgress,
) -> ChosenModels:
    """Fit the chosen candidates without each fold and on all rows; count the folds.

    The counts of inner searches decide which model is deployed where limits are nearly
    equal.

    Raises AllFitsFailedError if no model of a fold could be fitted.
    """
    fits = run_chosen_fits(run.plan, engine, candidates, progress)
    return collect_models(run, candidates, fits, inner_counts)


def run_chosen_fits(
    plan: PlannedSearch,
    engine: Engine,
    candidates: ChosenCandidates,
    progress: ChosenProgress,
) -> dict[int, ChosenFit]:
    """Fit the chosen candidates; return the results by the number of the split."""
    fits: dict[int, ChosenFit] = {}
    numbers = candidates.by_split[: plan.n_chosen_fits]
    # One model a task: these fits are few, and no slot should wait for another one.
    waiting = (
        [
            ChosenFitJob(
                plan.context.candidate_group_of(number).number, number, split_number
            )
        ]
        for split_number, number in enumerate(numbers)
    )

    def make_task(jobs: list[ChosenFitJob]) -> Task[JobContext, list[ChosenFit]]:
        [job] = jobs
        group = plan.context.candidate_groups[job.candidate_group]
        split_label = plan.scheme.splits_of_chosen[job.chosen_split].label
        key = f"fit-chosen-{group.label}-{split_label}-{next(engine.serial)}"
        # Spread over the workers, as the first fits are.
        return Task(key, FitChosenBatch(job), affinity=job.chosen_split)

    queue: JobQueue[ChosenFitJob, ChosenFit] = JobQueue(engine.executor)
    for _, ended in queue.run(
        lambda: next(waiting, []), make_task, lambda: progress.show(len(fits))
    ):
        fits.update((fit.job.chosen_split, fit) for fit in ended.get())
    return fits


def collect_models(
    run: Run,
    candidates: ChosenCandidates,
    fits: Mapping[int, ChosenFit],
    inner_counts: CandidateCounts,
) -> ChosenModels:
    """Return the models of the chosen candidates, with the counts on their folds.

    Raises AllFitsFailedError if no model of a fold was fitted, or none can predict.
    """
    plan = run.plan
    losses, n_folds = plan.context.losses, plan.scheme.n_folds
    by_split = [fits[split] for split in range(plan.n_chosen_fits)]
    models: dict[int, Model] = {}
    messages: dict[int, FitMessage] = {}
    why_failed: dict[int, str] = {}
    unpredicting: dict[int, str] = {}
    for split, fit in zip(plan.scheme.splits_of_chosen, by_split, strict=False):
        message, number = fit.result.message, fit.job.candidate
        if fit.result.status is FitStatus.FAILED:
            why_failed[split.number] = message.text if message else "the fit failed"
            continue
        models[split.number] = fit.fitted_group.model(number, split.number)
        if message is not None:
            text = f"{split.trained_on}: {message.text}"
            messages.setdefault(number, replace(message, text=text))
            if fit.result.predicts_none_of(split):
                unpredicting[split.number] = message.text
    check_chosen_fits(run, why_failed, unpredicting)
    fold_fits = by_split[:n_folds]
    counts = zip(*(fit.counts for fit in fold_fits), strict=True)
    folds = {
        statistic: FoldCounts(stack_folds(by_fold), plan.scheme.fold_rows)
        for statistic, by_fold in zip(losses.statistics, counts, strict=True)
    }
    limits = losses.limit_folds(folds, plan.planned_delta)
    inner_losses = [mean_inner_loss(inner_counts, n) for n in candidates.by_fold]
    causes = why_failed | {n: f"`predict`: {why}" for n, why in unpredicting.items()}
    return ChosenModels(
        candidates=candidates,
        models=models,
        folds=folds,
        limits=limits,
        # A failed fit has no loss.
        fold_losses=np.ravel([fit.result.losses[:1] or (np.nan,) for fit in fold_fits]),
        # By labeled rows alone, so that it is known before the pool is read.
        deployed_fold=fold_to_deploy(
            limits,
            np.isin(np.arange(n_folds), list(models)),
            tie_ranks(np.array(inner_losses)),
        ),
        fits=fits,
        all_rows_failure=why_failed.get(n_folds, ""),
        failed_folds={n: causes[n] for n in sorted(causes) if n < n_folds},
        messages=messages,
    )


def check_chosen_fits(
    run: Run, why_failed: Mapping[int, str], unpredicting: Mapping[int, str]
) -> None:
    """Raise if no fold has a model that predicts, or if any failure ends the run.

    A bound needs the model of one fold, whichever it is. Both have a cause by split:
    of a fit that failed, and of a model that predicts no row of its fold.
    """
    if run.options.raise_failures and why_failed:
        raise RuntimeError(next(iter(why_failed.values())))
    plan, folds = run.plan, range(run.plan.scheme.n_folds)
    first = next((fold for fold in folds if fold not in why_failed), None)
    if first is None:
        why, begin = why_failed[0], "what was chosen cannot be fitted:"
        if isinstance(plan.context.estimators[0], FunctionEstimator):
            begin = "your function raised an error when called"
    elif all(fold in why_failed or fold in unpredicting for fold in folds):
        why = unpredicting[first]
        begin = "what was chosen cannot predict; `predict` raised on all rows:"
    else:
        return
    trained_on = plan.scheme.splits_of_chosen[first or 0].trained_on
    message = name_column(f"{trained_on}: {why}", plan.labeled)
    raise AllFitsFailedError(f"{begin} {message}")


def join_models(
    context: JobContext, chosen_fits: Mapping[int, ChosenFit]
) -> JoinedModels:
    """Return the models of all splits, which predict together."""
    done = [fit for fit in chosen_fits.values() if fit.result.status is FitStatus.DONE]
    # Models of one candidate share work when they predict.
    by_candidate: dict[int, list[ChosenFit]] = {}
    for fit in done:
        by_candidate.setdefault(fit.job.candidate, []).append(fit)
    groups = []
    for number, fits in by_candidate.items():
        fitted_groups = [fit.fitted_group for fit in fits]
        joined = fitted_groups[0]
        if len(fitted_groups) > 1:
            family = context.candidate_group_of(number).family
            joined = family.join(fitted_groups, [number])
        groups.append((tuple(fit.job.chosen_split for fit in fits), joined))
    return JoinedModels(tuple(groups))


def count_chosen(
    run: Run,
    engine: Engine,
    chosen: ChosenModels,
    pool_check: PoolFindings,
    progress: ChosenProgress,
) -> CountedModels:
    """Return the chosen models with their counts on the pool, if there is one.

    They are compared on all pool rows, except those that an earlier run has counted.
    """
    plan, pool = run.plan, run.plan.pool
    # Where the model of all rows failed, that of one fold still has its bound.
    if pool is None or ALL_ROWS not in chosen.split_of_model:
        return CountedModels(chosen)
    fits, n_duplicates = chosen.fits, plan.counted_duplicates(pool_check.facts)
    comparison = EachFold(
        chosen.folds,
        # Without any duplicate the pass does not search for them.
        duplicate_finder(pool, plan.labeled) if n_duplicates else None,
        n_queries=plan.n_queries,
        # Fixed by labeled rows: the pool must not decide where it is queried.
        deployed_fold=chosen.deployed_fold,
        seed=plan.seed,
    )
    # Slices that an earlier run has counted are of these models only if the same fits
    # have failed; which rows it has drawn depends on the deployed fold.
    key = f"chosen-{'-'.join(map(str, chosen.candidates.by_split))}"
    lacking = sorted({*range(plan.n_chosen_fits)} - chosen.models.keys())
    key += "".join(f"-without-{split_number}" for split_number in lacking)
    key += f"-deployed-{comparison.deployed_fold}" * (plan.n_queries > 0)
    token = join_tokens(
        {split_number: fit.result.token for split_number, fit in fits.items()}
    )
    table = PoolTable(plan.slices, (comparison,), [key], lambda _: token)
    replay_counts(run, table)
    reading = replace(plan.context.reading, sampled_rows=pool_check.sampled_rows)
    models = [((CHOSEN_SET,), join_models(plan.context, fits))]
    compared = ComparedModels(models, (token,), table.comparisons, reading)
    pool_pass = PoolPass(
        engine,
        table,
        CountChosenBatch,
        show_progress=lambda: progress.show(len(fits), int(table.is_counted.sum())),
        adopt_models=refuse_other_models,
        context_key=engine.executor.put(compared),
    )
    pool_pass.run((CHOSEN_SET,))
    counts = comparison.unpack(
        table.differences[0][CHOSEN_SET], pool.n_rows, n_duplicates
    )
    return CountedModels(chosen, counts, table.drawn)


def refuse_other_models(model_sets: list[int]) -> NoReturn:
    """Raise: a certificate must not rest on counts of other models."""
    raise RuntimeError(
        "models counted on the pool are not those that were sent with it; run the "
        "search again with the same `out`."
    )
