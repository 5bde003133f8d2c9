"""The fits of the candidates that a nested search has chosen.

The k models without a fold and the model of all rows come to this process with their
counts, each in one message, before the pool is counted. The pass over the pool, that of
`count_chosen`, uses these objects. Therefore none of its tasks depends on a fit that
could run twice, and the deployed model is the counted one, even if the learner draws at
random.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dsel import names
from dsel.arrays import Estimator, Floats
from dsel.criteria.criterion import Criterion
from dsel.data.labeled import LabeledRows
from dsel.errors import AllFitsFailedError
from dsel.losses.calls import limits_of_folds
from dsel.losses.declared import DeclaredLosses
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.joint import fold_to_deploy
from dsel.losses.protocols import (
    FoldCounts,
    PlannedDelta,
    Statistic,
    stack_folds,
)
from dsel.results.fit_messages import FitMessage
from dsel.runtime.tasks import Task
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL, CVScheme, ModelRef
from dsel.search.engine.counts import NestedCounts
from dsel.search.engine.fit_batch import ChosenFitBatch
from dsel.search.engine.inner_searches import ChosenCandidates, tie_ranks
from dsel.search.engine.job_queue import Engine, JobLoop, JobQueue
from dsel.search.engine.jobs import (
    ChosenFit,
    ChosenFitJob,
    FitStatus,
    JobContext,
)
from dsel.search.running.cube_caveats import name_column
from dsel.search.running.procedures import FunctionEstimator
from dsel.typing import Model


@dataclass(frozen=True, kw_only=True)
class FittedModels:
    """The fitted models of the chosen candidates, with their counts on the folds."""

    chosen_candidates: ChosenCandidates
    """The chosen candidates: one for each fold, and one by all rows."""
    models: Mapping[ModelRef, Model]
    """The fitted estimators, without those whose fit failed; that of all rows is fitted
    only with a pool."""
    fold_counts_of: Mapping[Statistic, FoldCounts]
    """Counts of the models without a fold on this fold."""
    fold_scores: Floats
    """The score of each model on its fold, (n_folds,)."""
    chosen_fits: Mapping[ModelRef, ChosenFit] = field(default_factory=dict)
    """Results of the fits, to be counted on the pool."""
    failures: Mapping[ModelRef, str] = field(default_factory=dict)
    """Cause where a fit failed, or a model cannot predict its fold: then all rows of
    the fold count as errors."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of completed fits by candidate, such as an early stop."""

    @property
    def failed_folds(self) -> dict[int, str]:
        """Cause by fold, for the folds whose rows all count as errors."""
        return {
            ref: reason
            for ref, reason in self.failures.items()
            if ref is not ALL_ROWS_MODEL
        }

    def without_failed_folds(self, statistic: Statistic) -> FoldCounts:
        """Return the counts of the folds that a model has predicted."""
        folds = self.fold_counts_of[statistic]
        predicted = sorted({*range(len(folds.n_rows))} - self.failed_folds.keys())
        return FoldCounts(folds.counts[predicted], folds.n_rows[predicted])


def add_chosen(
    inner_counts: NestedCounts, fitted: FittedModels, criterion: Criterion
) -> NestedCounts:
    """Return the counts of inner searches, completed by those of the chosen models."""
    counts = inner_counts
    if len(counts.status) == 1:  # inner searches of one candidate have counted nothing
        errors = fitted.fold_counts_of.get(ERROR_RATE.statistic)
        counts = replace(
            counts,
            fold_errors=None if errors is None else errors.integers[np.newaxis],
            fold_predictions=counts.fold_rows[np.newaxis],
            fold_loss_mean=fitted.fold_scores[np.newaxis],
        )
    if names.FOLD_LOSS_MEAN not in criterion.needs:  # errors say the same
        counts = replace(counts, fold_loss_mean=None)
    # The first message of a candidate is shown, and inner fits come first.
    return replace(counts, messages=dict(fitted.messages) | dict(counts.messages))


def fit_chosen(
    context: JobContext,
    engine: Engine,
    chosen_candidates: ChosenCandidates,
    *,
    models_to_fit: Sequence[ModelRef],
    on_turn: Callable[[int], object],
    raise_failures: bool,
) -> FittedModels:
    """Fit the chosen candidates without each fold and on all rows; count the folds.

    `on_turn` is called with the number of finished fits at each turn.

    Raises AllFitsFailedError if no model of a fold could be fitted, or none can
    predict; with `raise_failures` RuntimeError if any fit failed.
    """
    chosen_fits = ChosenFitLoop(
        context, engine, chosen_candidates, models_to_fit, on_turn
    ).fit()
    chosen_failures = find_failures(context.scheme, chosen_fits)
    if raise_failures:
        raise_first_failure(context.scheme, chosen_failures)
    check_any_predicts(
        context.scheme, context.labeled, context.estimators, chosen_failures
    )
    models = {
        ref: fit.model
        for ref, fit in chosen_fits.items()
        if ref not in chosen_failures.of_fit
    }
    fits_by_fold = [chosen_fits[fold] for fold in range(context.scheme.n_folds)]
    by_statistic = zip(*(fit.counts_on_fold for fit in fits_by_fold), strict=True)
    fold_counts_of = {
        statistic: FoldCounts(stack_folds(by_fold), context.scheme.fold_rows)
        for statistic, by_fold in zip(
            context.losses.statistics, by_statistic, strict=True
        )
    }
    return FittedModels(
        chosen_candidates=chosen_candidates,
        models=models,
        fold_counts_of=fold_counts_of,
        # A failed fit has no score.
        fold_scores=np.array([(*fit.result.scores, np.nan)[0] for fit in fits_by_fold]),
        chosen_fits=chosen_fits,
        failures=chosen_failures.causes,
        messages=first_messages(context.scheme, chosen_fits),
    )


def first_messages(
    scheme: CVScheme, chosen_fits: Mapping[ModelRef, ChosenFit]
) -> dict[int, FitMessage]:
    """Return the first message of completed fits by candidate."""
    messages = dict[int, FitMessage]()
    for ref, fit in chosen_fits.items():
        message = fit.result.message
        if message is not None and fit.result.status is not FitStatus.FAILED:
            text = f"{scheme.outer_split(ref).trained_on}: {message.text}"
            messages.setdefault(fit.job.candidate_number, replace(message, text=text))
    return messages


@dataclass(eq=False)
class ChosenFitLoop(JobLoop[ChosenFitJob, ChosenFit]):
    """Fits of the chosen candidates, each without a fold or on all rows."""

    context: JobContext
    engine: Engine
    chosen_candidates: ChosenCandidates
    models_to_fit: Sequence[ModelRef]
    on_turn: Callable[[int], object]
    """Called with the number of finished fits at each turn, at least every half second;
    an error in it ends the run."""
    waiting: deque[ModelRef] = field(init=False)
    """Models whose fits are not submitted yet."""
    finished: dict[ModelRef, ChosenFit] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = deque(self.models_to_fit)

    def fit(self) -> dict[ModelRef, ChosenFit]:
        """Make all fits, and return their results in the order of `models_to_fit`."""
        queue: JobQueue[ChosenFitJob, ChosenFit] = JobQueue(self.engine.executor)
        for _, task in queue.run(self):
            self.finished.update((fit.job.model_ref, fit) for fit in task.get())
        return {ref: self.finished[ref] for ref in self.models_to_fit}

    def begin_turn(self) -> None:
        """Call `on_turn`."""
        self.on_turn(len(self.finished))

    def next_jobs(self) -> list[ChosenFitJob]:
        """Return the next fit, or none."""
        # A task fits one model: these fits are few, and no slot should wait for another
        # one.
        if not self.waiting:
            return []
        model_ref = self.waiting.popleft()
        candidate = self.chosen_candidates.candidate_of(model_ref)
        candidate_group = self.context.candidate_group_of(candidate)
        return [ChosenFitJob(candidate_group.number, candidate, model_ref)]

    def make_task(self, jobs: list[ChosenFitJob]) -> Task[JobContext, list[ChosenFit]]:
        """Return the task of a fit."""
        [job] = jobs
        candidate_group = self.context.candidate_groups[job.group_number]
        split = self.context.scheme.outer_split(job.model_ref)
        key = f"fit-chosen-{candidate_group.short_name}-{split.short_name}"
        key += f"-{next(self.engine.serial)}"
        # The affinity spreads them over the workers, like the first fits.
        return Task(key, ChosenFitBatch(job), affinity=split.number)


class ChosenFailures(NamedTuple):
    """Causes of failures among the fits of chosen candidates, by model."""

    of_fit: Mapping[ModelRef, str]
    """Causes of the fits that failed."""
    of_predict: Mapping[ModelRef, str]
    """Causes for the models that predict no row of their fold."""

    @property
    def causes(self) -> dict[ModelRef, str]:
        """All causes; those of predictions name `predict`."""
        unpredicted = {
            ref: f"`predict`: {reason}" for ref, reason in self.of_predict.items()
        }
        return {**self.of_fit, **unpredicted}


def find_failures(
    scheme: CVScheme, chosen_fits: Mapping[ModelRef, ChosenFit]
) -> ChosenFailures:
    """Return the causes of failed fits, and of models that predict no row."""
    of_fit, of_predict = dict[ModelRef, str](), dict[ModelRef, str]()
    for ref, fit in chosen_fits.items():
        result = fit.result
        if result.status is FitStatus.FAILED:
            of_fit[ref] = result.message.text if result.message else "the fit failed"
        elif result.message and result.predicts_none_of(scheme.outer_split(ref)):
            of_predict[ref] = result.message.text
    return ChosenFailures(of_fit, of_predict)


def raise_first_failure(scheme: CVScheme, chosen_failures: ChosenFailures) -> None:
    """Raise RuntimeError if a fit failed, with the cause of the first one."""
    for ref, reason in chosen_failures.of_fit.items():
        raise RuntimeError(
            f"what was chosen, {scheme.outer_split(ref).trained_on}: {reason}; leave "
            f"on_failure='raise' out for a bound of the models that can be fitted."
        )


def check_any_predicts(
    scheme: CVScheme,
    labeled: LabeledRows,
    estimators: Sequence[Estimator],
    chosen_failures: ChosenFailures,
) -> None:
    """Raise AllFitsFailedError if no fold has a model that predicts.

    A bound needs the model of one fold, whichever it is.
    """
    folds = range(scheme.n_folds)
    if any(fold not in chosen_failures.causes for fold in folds):
        return
    first = next((fold for fold in folds if fold not in chosen_failures.of_fit), None)
    what = "what was chosen" if len(estimators) > 1 else "the model"
    if first is None:
        reason = chosen_failures.of_fit[0]
        begin = f"{what} cannot be fitted:"
        if isinstance(estimators[0], FunctionEstimator):
            begin = "your function failed when called"
    else:
        reason = chosen_failures.of_predict[first]
        begin = f"{what} cannot predict; `predict` raised on all rows:"
    trained_on = scheme.outer_split(first or 0).trained_on
    message = name_column(f"{trained_on}: {reason}", labeled)
    # Splitters of scikit-learn, as the `cv` of a model that is a search, say so.
    if "'groups' parameter should not be None" in reason:
        message = (
            f"{message.rstrip('.')}; pass `groups`, the group of each labeled row."
        )
    raise AllFitsFailedError(f"{begin} {message}")


def choose_deployed_fold(
    losses: DeclaredLosses,
    planned_delta: PlannedDelta,
    fitted: FittedModels,
    inner_scores: Floats,
) -> int:
    """Return the fold whose model is the one of `one_fold`.

    Labeled rows alone decide, before the pool is counted. `inner_scores` are mean
    scores of the candidates without each fold in inner searches, (n_folds,); they
    decide where limits are nearly equal.
    """
    folds = fitted.fold_counts_of[losses.main.statistic]
    has_model = np.array([fold in fitted.models for fold in range(len(folds.n_rows))])
    label_delta = losses.main_division(planned_delta).label_delta
    limits = limits_of_folds(losses.main, folds, label_delta)
    return fold_to_deploy(limits, has_model, tie_ranks(inner_scores))
