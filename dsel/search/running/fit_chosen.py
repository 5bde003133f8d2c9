"""The fits and counts of the candidates that a nested search has chosen.

The k models without a fold and that of all rows come to this process with their counts,
each in one message, before the pool is read. The pass over the pool gets these objects.
Therefore none of its tasks depends on a fit that could run twice, and the deployed
model is the counted one, even if the learner draws at random.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.criteria.base import CandidateCounts
from dsel.data.equal_rows import duplicate_finder
from dsel.errors import AllFitsFailedError
from dsel.losses.base import FoldCounts, PoolCounts, Statistic, stack_folds
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import Evidence
from dsel.results.fit_messages import FitMessage
from dsel.runtime.progress import CHOSEN, COUNTING, FITTING, Phase, Progress
from dsel.runtime.tasks import Task
from dsel.search.design.assumptions import PoolCheck
from dsel.search.design.comparisons import DrawnRows, EachFold
from dsel.search.engine.count_batch import (
    CHOSEN_SET,
    ComparedModels,
    CountChosenBatch,
    JoinedModels,
)
from dsel.search.engine.counts import PoolTable, SearchCounts
from dsel.search.engine.engine import Engine
from dsel.search.engine.fit_batch import FitChosenBatch
from dsel.search.engine.jobs import (
    ChosenFit,
    FitJob,
    FitStatus,
    JobContext,
    join_tokens,
)
from dsel.search.engine.nested_pruner import ChosenCandidates, tie_ranks
from dsel.search.running.cube_caveats import name_column
from dsel.search.running.procedures import FunctionEstimator
from dsel.search.running.run import Run, chosen_progress, replay_counts, show_progress
from dsel.search.running.select import cv_error
from dsel.typing import Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

NOTHING_DONE: Final = Progress()


@dataclass(frozen=True)
class ChosenModels:
    """The fitted models of the chosen candidates, with all counts of them."""

    candidates: ChosenCandidates
    """The chosen candidates: one for each fold, and one by all rows."""
    models: Mapping[int, Model]
    """Fitted estimators by fold; that of all rows, if there is one, has the key k."""
    folds: Mapping[Statistic, FoldCounts]
    """Counts of the models without a fold on this fold."""
    scores: Floats
    """The ranking loss of each model on its fold, (n_folds,)."""
    deployed_fold: int
    """The fold whose model is deployed: labeled rows decide it, before the pool."""
    failures: tuple[str, ...] = ()
    """Cause, if the fit on all rows failed."""
    failed_folds: Mapping[int, str] = field(default_factory=dict)
    """Cause by fold, where the fit without it failed, or its model cannot predict it:
    then all of its rows count as errors."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of completed fits by candidate, such as an early stop."""
    pool: Mapping[Statistic, PoolCounts] = field(default_factory=dict)
    """Counts on the pool; empty without a pool, or without a model of all rows."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Pool rows to label."""

    @property
    def evidence(self) -> Evidence:
        """The counts from which losses bound the models."""
        return Evidence(self.folds, self.pool)

    def without_failed_folds(self, statistic: Statistic) -> FoldCounts:
        """Return the counts of the folds that a model has predicted."""
        folds = self.folds[statistic]
        kept = sorted({*range(len(folds.n_rows))} - self.failed_folds.keys())
        return FoldCounts(folds.counts[kept], folds.n_rows[kept])


def add_chosen(
    plan: "Plan", counts: SearchCounts, chosen: ChosenModels
) -> SearchCounts:
    """Return the counts of inner searches, completed by those of the chosen models."""
    if plan.n_candidates == 1:  # inner searches have counted nothing
        errors, n_rows = chosen.folds.get(ERROR_RATE.statistic), counts.fold_rows
        counts = replace(
            counts,
            fold_errors=None if errors is None else errors.integers[np.newaxis],
            fold_answers=n_rows[np.newaxis],
            fold_loss_mean=chosen.scores[np.newaxis],
        )
    if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
        counts = replace(counts, fold_loss_mean=None)
    return replace(
        counts,
        messages={**chosen.messages, **counts.messages},
        outer_candidate=np.array(chosen.candidates.by_fold),
        evidence=chosen.evidence,
    )


def mean_inner_loss(counts: CandidateCounts, candidate: int) -> float:
    """Return the mean over folds of the loss by which inner searches ranked it."""
    means = counts.get(names.FOLD_LOSS_MEAN)
    if means is None:
        return cv_error(counts, candidate)
    return float(means[candidate].mean())


def fit_chosen(
    run: Run,
    engine: Engine,
    candidates: ChosenCandidates,
    inner_counts: CandidateCounts,
    pool_check: PoolCheck,
    before: Progress = NOTHING_DONE,
) -> ChosenModels:
    """Fit and count the chosen candidates: without each fold, then on all rows.

    The counts of inner searches decide which model is deployed where limits are nearly
    equal.

    Raises AllFitsFailedError if no model of a fold could be fitted.
    """
    plan, n_splits, started = run.plan, run.plan.n_chosen_fits, time.perf_counter()
    chosen_fits: dict[int, ChosenFit] = {}

    def show(n_slices: int = 0) -> None:
        n_fits, seconds = len(chosen_fits), time.perf_counter() - started
        # Of a single candidate nothing is chosen before.
        name = CHOSEN if plan.n_candidates > 1 else FITTING
        phase = Phase(name, n_fits, n_splits)
        if n_fits == n_splits and plan.pool is not None:
            phase = Phase(COUNTING, n_slices, len(plan.slices))
        done = chosen_progress(plan, n_fits, n_slices, seconds)
        show_progress(run, before + done, phase)

    def make_task(jobs: list[FitJob]) -> Task[list[ChosenFit]]:
        # One model a task: these fits are few, and no slot should wait for another one.
        [job] = jobs
        label = plan.context.candidate_groups[job.candidate_group].label
        split = plan.scheme.splits_of_chosen[job.split].label
        key = f"fit-chosen-{label}-{split}-{next(engine.serial)}"
        # Spread over the workers, as the first fits are.
        return Task(key, FitChosenBatch(job), affinity=job.split)

    jobs = (
        [FitJob(plan.context.candidate_group_of(number).number, (number,), split)]
        for split, number in enumerate(candidates.by_split[:n_splits])
    )
    for fit in engine.run_jobs(jobs, make_task, on_turn=show):
        chosen_fits[fit.job.split] = fit
    losses = [mean_inner_loss(inner_counts, n) for n in candidates.by_fold]
    by_split = [chosen_fits[n] for n in range(n_splits)]
    chosen = collect_models(run, candidates, by_split, tie_ranks(np.array(losses)))
    show()
    # Where the model of all rows failed, that of one fold still has its bound.
    if plan.pool is None or plan.scheme.n_folds not in chosen.models:
        return chosen
    # The counts on the folds are complete here. From now on only the pool is random,
    # which is the order in which the proof conditions (docs/theory/nested.md).
    return count_on_pool(run, engine, chosen, chosen_fits, pool_check, show)


def collect_models(
    run: Run,
    candidates: ChosenCandidates,
    chosen_fits: list[ChosenFit],
    ranks: NDArray[np.intp],
) -> ChosenModels:
    """Return the models of the chosen candidates, with the counts on their folds.

    `ranks` of the candidates of all folds decide which model is deployed where limits
    are nearly equal.

    Raises AllFitsFailedError if no model of a fold was fitted, or none can predict.
    """
    scheme, k = run.plan.scheme, run.plan.scheme.n_folds
    models, failures = {}, []
    messages: dict[int, FitMessage] = {}
    failed_folds: dict[int, str] = {}
    unpredicting: dict[int, str] = {}
    for split, fit in enumerate(chosen_fits):
        result, [number] = fit.result, fit.job.candidates
        where = scheme.splits_of_chosen[split]
        if result.status is FitStatus.FAILED:
            why = "the fit failed" if result.message is None else result.message.text
            if run.raise_failures:
                raise RuntimeError(why)
            if split < k:
                failed_folds[split] = why
            else:
                failures.append(why)
            continue
        if result.message is not None:
            text = f"{where.trained_on}: {result.message.text}"
            messages.setdefault(number, replace(result.message, text=text))
            if split < k and result.predicts_none_of(where):
                unpredicting[split] = text
                failed_folds[split] = f"`predict`: {result.message.text}"
        models[split] = fit.fitted_group.model(number, split)
    # A bound needs the model of one fold, whichever it is.
    of_folds = [split for split in models if split < k]
    if not of_folds:
        first = f"{scheme.splits_of_chosen[0].trained_on}: {failed_folds[0]}"
        why = name_column(first, run.plan.labeled)
        begin = "what was chosen cannot be fitted:"
        if isinstance(run.plan.context.estimators[0], FunctionEstimator):
            begin = "your function raised an error when called"
        raise AllFitsFailedError(f"{begin} {why}")
    if len(unpredicting) == len(of_folds):
        raise AllFitsFailedError(
            f"what was chosen cannot predict; `predict` raised on all rows: "
            f"{name_column(unpredicting[of_folds[0]], run.plan.labeled)}"
        )
    counts = zip(*(fit.counts for fit in chosen_fits[:k]), strict=True)
    folds = {
        statistic: FoldCounts(stack_folds(each), scheme.fold_rows)
        for statistic, each in zip(
            run.plan.context.losses.statistics, counts, strict=True
        )
    }
    losses = run.plan.context.losses
    deployed_fold = losses.fold_to_deploy(
        folds,
        losses.main_shares(
            run.plan.delta,
            has_pool=run.plan.pool is not None,
            has_queries=run.plan.n_queries > 0,
        ),
        np.isin(np.arange(k), of_folds),
        ranks,
    )
    # A failed fit has no score.
    scores = [fit.result.scores[:1] or (np.nan,) for fit in chosen_fits[:k]]
    return ChosenModels(
        candidates,
        models,
        folds,
        np.ravel(scores),
        deployed_fold,
        failures=tuple(failures),
        failed_folds=failed_folds,
        messages=messages,
    )


def join_models(
    context: JobContext, chosen_fits: Mapping[int, ChosenFit]
) -> JoinedModels:
    """Return the models of all splits as one group, which predicts together."""
    done = [fit for fit in chosen_fits.values() if fit.result.status is FitStatus.DONE]
    # Models of one candidate share work when they predict.
    by_candidate: dict[int, list[ChosenFit]] = {}
    for fit in done:
        by_candidate.setdefault(fit.job.candidates[0], []).append(fit)
    groups = []
    for number, fits in by_candidate.items():
        fitted_groups = [fit.fitted_group for fit in fits]
        joined = fitted_groups[0]
        if len(fitted_groups) > 1:
            family = context.candidate_group_of(number).family
            joined = family.join(fitted_groups, [number])
        groups.append((tuple(fit.job.split for fit in fits), joined))
    return JoinedModels(tuple(groups), tuple(sorted(chosen_fits)))


def count_on_pool(
    run: Run,
    engine: Engine,
    chosen: ChosenModels,
    chosen_fits: Mapping[int, ChosenFit],
    pool_check: PoolCheck,
    show: Callable[[int], None],
) -> ChosenModels:
    """Return the chosen models with their counts on the pool.

    They are compared on all pool rows, except those that an earlier run has counted.
    """
    plan, pool, n_duplicates = run.plan, run.plan.pool, pool_check.facts.equal_rows
    assert pool is not None  # else nothing is compared
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
    key += "".join(f"-without-{split}" for split in lacking)
    key += f"-best-{comparison.deployed_fold}" * (plan.n_queries > 0)
    token = join_tokens({split: fit.result.token for split, fit in chosen_fits.items()})
    table = PoolTable(plan.slices, (comparison,), [key], lambda _: token)
    replay_counts(run, table)
    reading = replace(plan.context.pool_reading, sampled_rows=pool_check.sampled_rows)
    models = [((CHOSEN_SET,), join_models(plan.context, chosen_fits))]
    context = ComparedModels(models, (token,), table.comparisons, reading)
    changed = list(
        engine.count_pool(
            table,
            (CHOSEN_SET,),
            CountChosenBatch,
            context=engine.executor.put(context),
            on_turn=lambda: show(int(table.is_counted.sum())),
        )
    )
    if changed:  # a certificate must not rest on counts of another model
        raise RuntimeError(
            "models counted on the pool are not those that were sent with it; run the "
            "search again with the same `out`."
        )
    show(int(table.is_counted.sum()))
    counts = comparison.unpack(
        table.differences[0][CHOSEN_SET], pool.n_rows, n_duplicates
    )
    return replace(chosen, pool=counts, drawn=table.drawn)
