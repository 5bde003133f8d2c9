"""Code of workers: fits on splits, their scores, and a check of `predict`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import FunctionTransformer

from dsel.arrays import Features, Integers
from dsel.data.cache import LastUseCache, process_cache
from dsel.data.labeled import LabeledRows
from dsel.data.splits import Number, Split, SplitIndex
from dsel.families.family import Cache, FitCounts, FitId, FittedGroup
from dsel.losses import calls
from dsel.losses.protocols import Counts, Loss, Rows, no_predictions
from dsel.runtime.tasks import Inputs, Output
from dsel.search.design.cv_schemes import CVScheme
from dsel.search.engine.jobs import (
    CandidateGroup,
    ChosenFit,
    ChosenFitJob,
    FitJob,
    FitResult,
    FitStatus,
    FittedJob,
    JobContext,
)

TOGETHER_ROWS: Final = 64
"""Rows that are predicted in one call; eight of them are predicted alone, too."""


@dataclass(frozen=True)
class FitBatch:
    """Fits that are one task, whose models are dropped once they are tested."""

    jobs: tuple[FitJob, ...]
    ending_groups: frozenset[int] = frozenset()
    """Groups that have no later task, unless a task is retried."""
    keeps_models: ClassVar[bool] = False

    def run(self, context: JobContext, inputs: Inputs) -> Output[list[FittedJob]]:
        """Fit; the result is a `FittedJob` for each job."""
        fitted_jobs: list[FittedJob] = []
        for jobs, fitted_group in fit_jobs(context, self.jobs, self.ending_groups):
            for job in jobs:
                results = make_results(
                    context.labeled,
                    context.losses.main,
                    job.candidate_numbers,
                    split_of(context.scheme, job),
                    fitted_group,
                )
                fitted_jobs.append(FittedJob(job, results))
        return Output(fitted_jobs)


@dataclass(frozen=True)
class ChosenFitBatch:
    """The fit of a chosen candidate, which is a task.

    Its model comes back in one message with its counts, so that the deployed object is
    the one that was counted.
    """

    job: ChosenFitJob

    def run(self, context: JobContext, inputs: Inputs) -> Output[list[ChosenFit]]:
        """Fit and count; the result is one `ChosenFit`."""
        candidate_group = context.candidate_groups[self.job.group_number]
        split = context.scheme.outer_split(self.job.model_ref)
        candidate = self.job.candidate_number
        fitted_group = fit_splits(context, candidate_group, [candidate], [split])
        # A resumed run fits again: slices that were counted before are of this model
        # only if it has the same token.
        tokens = model_tokens(fitted_group, [FitId(candidate, split.number)])
        [result] = make_results(
            context.labeled,
            context.losses.main,
            [candidate],
            split,
            fitted_group,
            tokens,
        )
        counts_on_fold = count_statistics(context, split, fitted_group, result)
        # These predictions were counted above, and would be pickled with the model.
        fitted_group.forget_test_predictions()
        return Output([ChosenFit(self.job, result, fitted_group, counts_on_fold)])


def split_of(scheme: CVScheme, job: FitJob) -> Split[SplitIndex]:
    """Return the split of a job, without the rows that the job does not test."""
    split = scheme.splits[job.split_number]
    return split if job.part_number is None else split.test_only(job.part_number)


def fit_jobs(
    context: JobContext, jobs: Collection[FitJob], ending_groups: frozenset[int]
) -> Iterator[tuple[list[FitJob], FittedGroup]]:
    """Yield jobs whose fits share work, with the group of their models."""
    shared = process_cache()
    last_use = LastUseCache(shared)
    jobs_by_call: dict[Any, list[FitJob]] = {}  # splits of one group share work
    for job in jobs:
        # A split has one number, whichever of its parts are tested, so that two parts
        # of it cannot be in one call.
        call = job.group_number, job.candidate_numbers, job.part_number
        jobs_by_call.setdefault(call, []).append(job)
    for same_call in jobs_by_call.values():
        first = same_call[0]
        candidate_group = context.candidate_groups[first.group_number]
        splits = [split_of(context.scheme, job) for job in same_call]
        # Data that no other fit reads must not push shared data out of the cache.
        cache = last_use if candidate_group.number in ending_groups else shared
        yield (
            same_call,
            fit_splits(
                context, candidate_group, first.candidate_numbers, splits, cache
            ),
        )
    shared.forget(last_use.own_keys)


def make_results(
    labeled: LabeledRows,
    loss: Loss,
    candidate_numbers: Sequence[int],
    split: Split[Number],
    fitted_group: FittedGroup,
    tokens: Mapping[FitId[Number], str] = MappingProxyType({}),
) -> tuple[FitResult, ...]:
    """Return the results of candidates on a split, with scores by the plan's loss."""
    column = fitted_group.split_numbers.index(split.number)
    scores = zip(
        *(
            score_candidates(labeled, loss, fitted_group, split, part_number)
            for part_number in range(len(split.row_parts))
        ),
        strict=True,
    )
    fits = [FitId(candidate, split.number) for candidate in candidate_numbers]
    return tuple(
        make_result(
            fitted_group.fit_counts, (row, column), fit, tokens.get(fit, ""), its_scores
        )
        for row, (fit, its_scores) in enumerate(zip(fits, scores, strict=True))
    )


def make_result(
    fit_counts: FitCounts,
    index: tuple[int, int],
    fit: FitId[int],
    token: str = "",
    scores: Sequence[float] = (),
) -> FitResult:
    """Return the result of one fit, at `index` of the arrays."""
    seconds = round(float(fit_counts.seconds[index]), 6)
    message = fit_counts.messages.get(fit)
    if fit_counts.has_failed[index]:
        return FitResult(FitStatus.FAILED, seconds, message=message)
    errors = tuple(fit_counts.errors[index].tolist())
    return FitResult(FitStatus.DONE, seconds, errors, tuple(scores), message, token)


def fit_splits(
    context: JobContext,
    candidate_group: CandidateGroup,
    candidate_numbers: Collection[int],
    splits: Sequence[Split[int]],
    cache: Cache | None = None,
) -> FittedGroup:
    """Fit candidates of a group on some splits, and count their errors."""
    fitted_group = candidate_group.family.fit(
        candidate_group.select(candidate_numbers),
        context.labeled.X,
        context.labeled.y,
        splits,
        pool=context.fitting_pool,
        cache=cache or process_cache(),
    )
    # A transformer that mixes rows, such as one that ranks them among each other,
    # breaks the assumption that `predict` treats each row by itself.
    params = (
        p
        for c in candidate_group.select(candidate_numbers)
        for p in c.all_params.values()
    )
    if any(isinstance(param, FunctionTransformer) for param in params):
        for split in splits:
            mark_row_mixers_failed(fitted_group, split, context.labeled.X)
    return fitted_group


def score_candidates(
    labeled: LabeledRows,
    loss: Loss,
    fitted_group: FittedGroup,
    split: Split[int],
    part_number: int,
) -> list[float]:
    """Return the score of each candidate on one part of a split's test rows."""
    rows = split.row_parts[part_number]
    column = fitted_group.split_numbers.index(split.number)
    has_failed = fitted_group.fit_counts.has_failed[:, column].tolist()
    errors = fitted_group.fit_counts.errors[:, column, part_number].tolist()
    # A model of all rows has no test rows, and a loss may divide by them.
    if not len(rows):
        return [loss.largest] * len(errors)
    # A failed fit has no errors, and its score is not read.
    scores = [
        loss.largest if failed else calls.score_from_errors(loss, n, len(rows))
        for n, failed in zip(errors, has_failed, strict=True)
    ]
    if None not in scores:
        return cast(list[float], scores)  # no row is predicted twice
    by_candidate = fitted_group.test_predictions(split.number, part_number)
    if by_candidate is None:
        by_candidate = predict_labeled_rows(labeled, fitted_group, split.number, rows)
    # All candidates share one object, since `Rows.memo` keeps what depends on the rows
    # only.
    tested = Rows(labeled.X[rows], labeled.y[rows])
    return [
        loss.largest if failed else calls.score_rows(loss, tested, predictions)
        for predictions, failed in zip(by_candidate, has_failed, strict=True)
    ]


def count_statistics(
    context: JobContext,
    split: Split[int],
    fitted_group: FittedGroup,
    result: FitResult | None = None,
) -> tuple[Counts, ...]:
    """Return the counts of each statistic for one candidate on a split's test rows.

    `result` is that of its fit, if it is known. Of a failed fit no row is predicted,
    also if there is a model, such as one that mixes rows.
    """
    labeled, rows = context.labeled, split.test_rows
    statistics = context.losses.statistics
    has_failed = result is not None and result.status is FitStatus.FAILED
    # Errors were counted when the model was fitted.
    counts = [
        None
        if result is None or has_failed
        else calls.counts_from_errors(statistic, result.errors[0])
        for statistic in statistics
    ]
    if any(ready is None for ready in counts):
        baseline = None if context.baseline is None else context.baseline.codes[rows]
        tested = Rows(labeled.X[rows], labeled.y[rows], baseline)
        by_model = fitted_group.test_predictions(split.number, 0)
        if has_failed:
            by_model = no_predictions((1, len(rows)), labeled.y.dtype)
        elif by_model is None:
            by_model = predict_labeled_rows(labeled, fitted_group, split.number, rows)
        [predictions] = by_model
    return tuple(
        calls.count_rows(statistic, tested, predictions) if ready is None else ready
        for statistic, ready in zip(statistics, counts, strict=True)
    )


def predict_labeled_rows(
    labeled: LabeledRows,
    fitted_group: FittedGroup,
    split_number: int,
    row_numbers: Integers,
) -> NDArray[Any]:
    """Return predictions for labeled rows, (n_candidates, n_rows).

    If `predict` raises, or there is no model, the result is that of `no_predictions`.
    """
    # If `predict` raises, every row counts as an error, which any loss can count.
    shape = (len(fitted_group.candidate_numbers), len(row_numbers))
    predictions = no_predictions(shape, labeled.y.dtype)
    if len(row_numbers):
        with suppress(Exception):  # the exception is recorded in the counts
            predictions = fitted_group.predict(
                labeled.X[row_numbers], [np.array(split_number)]
            )[0]
    return predictions


def model_tokens(
    fitted_group: FittedGroup, fits: Iterable[FitId[Number]]
) -> dict[FitId[Number], str]:
    """Return the token of each model; fits that failed have none."""
    tokens = dict[FitId[Number], str]()
    for fit in fits:
        with suppress(KeyError):
            tokens[fit] = fitted_group.token(*fit)
    return tokens


def mark_row_mixers_failed(
    fitted_group: FittedGroup, split: Split[int], X: Features
) -> None:
    """Mark models as failed that predict a row differently alone than among others.

    The check predicts training rows, so that no choice depends on test rows. A single
    difference in eight rows may be a tie, which rounding decides, and is ignored.
    """
    fit_counts = fitted_group.fit_counts
    rows = split.train_rows[:TOGETHER_ROWS]
    column = fitted_group.split_numbers.index(split.number)
    splits = [np.array(split.number)]
    done = np.flatnonzero(~fit_counts.has_failed[:, column])
    if not len(done):
        return

    def predict(row_numbers: Integers) -> Any:
        return fitted_group.predict(X[row_numbers], splits)[0][done]

    try:
        together = predict(rows)
    except Exception:  # rows that `predict` refuses are counted as errors
        return
    # A model that mixes rows often predicts one class for every single row.
    # Four rows of the rarest class and four of the commonest reveal it.
    _, codes, class_sizes = np.unique(
        together[0], return_inverse=True, return_counts=True
    )
    order = np.argsort(class_sizes[codes], kind="stable")
    checked = np.unique(np.r_[order[:4], order[-4:]])
    advice = (
        "so its errors depend on which rows come together. Compute means, ranks and "
        "codes of columns in the `fit` of a transformer, not in a FunctionTransformer."
    )

    def fail(position: int, what: str) -> None:
        fit_counts.record_failure(
            (position, column),
            FitId(fitted_group.candidate_numbers[position], split.number),
            f"`predict` {what}, {advice}",
        )

    try:
        alone = np.concatenate([predict(rows[[row]]) for row in checked], axis=1)
    except Exception as error:
        # All candidates of the group predict in one call, so no row was compared.
        cause = f"{type(error).__name__}: {error}"
        for i in done.tolist():
            fail(i, f"raises on a row alone, and not among other rows ({cause})")
        return
    differs = alone != together[:, checked]
    if alone.dtype.kind == "f":  # matrix products round by the number of rows
        differs = ~np.isclose(alone, together[:, checked], rtol=1e-5, equal_nan=True)
    n_differing_rows = np.sum(differs, axis=1).tolist()
    for i, n_differing in zip(done.tolist(), n_differing_rows, strict=True):
        if n_differing > 1:
            of_rows = f"{n_differing} of {len(checked)} rows"
            fail(i, f"treats {of_rows} otherwise alone than among other rows")
