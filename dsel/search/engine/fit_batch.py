"""Code of workers: fits of candidates on splits, and their losses."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import LastUse, process_cache
from dsel.data.splits import Split, SplitKind
from dsel.families.batches import has_function, refuse_batches
from dsel.families.ensemble_sizes import pickle_model
from dsel.families.family import (
    Cache,
    FitCounts,
    FitKey,
    FittedGroup,
)
from dsel.families.leave_one_out import leave_one_out_counts
from dsel.losses import calls
from dsel.losses.base import Counts, Rows, no_predictions
from dsel.runtime.tasks import Inputs, Output
from dsel.search.engine.jobs import (
    CandidateGroup,
    FitJob,
    FitResult,
    FitStatus,
    FittedJob,
    JobContext,
    Keep,
    Kept,
    KeptModels,
)


@dataclass(frozen=True)
class FitBatch:
    """Fits that are one task."""

    jobs: tuple[FitJob, ...]
    keep: Keep = Keep.NOWHERE
    last_of: frozenset[int] = frozenset()
    """Groups without a later task, unless one is retried."""

    def run(self, context: JobContext, inputs: Inputs) -> Output[list[FittedJob]]:
        """Fit; the result is a `FittedJob` for each job."""
        cache = process_cache()
        ending = LastUse(cache)
        fitted: list[FittedJob] = []
        kept: Kept = {}
        calls: dict[Any, list[FitJob]] = {}  # splits of one group share work
        for job in self.jobs:
            # Leave-one-out makes a model for each row in one call of its own.
            is_alone = _split_of(context, job).kind is SplitKind.LEAVE_ONE_OUT
            same = job.candidate_group, job.candidates, job.is_chosen
            key = job if is_alone else same
            calls.setdefault(key, []).append(job)
        for together in calls.values():
            first = together[0]
            if _split_of(context, first).kind is SplitKind.LEAVE_ONE_OUT:
                fitted.append(_leave_one_out(context, first))
                continue
            # Data without another reader must not push shared data out of the cache.
            budget = ending if first.candidate_group in self.last_of else cache
            models = fit_splits(
                context,
                context.candidate_groups[first.candidate_group],
                first.candidates,
                [_split_of(context, job) for job in together],
                budget,
            )
            tokens: dict[FitKey, str] = {}
            if self.keep is not Keep.NOWHERE:
                keys = [
                    FitKey(n, job.split) for job in together for n in job.candidates
                ]
                tokens = {key: model_token(models, key) for key in keys}
            # Models of one call are kept together: each of its jobs counts its share.
            # To measure them may take a pickle.
            is_kept = self.keep is Keep.ON_WORKER
            nbytes = models.nbytes // len(together) if is_kept else 0
            for job in together:
                results = fit_results(context, job, models, tokens)
                if self.keep is not Keep.IN_RESULT:
                    fitted.append(FittedJob(job, results, nbytes))
                    continue
                [errors] = models.counts.errors[:, models.splits.index(job.split), 0]
                split = _split_of(context, job)
                counts = count_rows(context, split, models, int(errors))
                fitted.append(FittedJob(job, results, 0, models, counts))
            # They have been counted, and would be pickled with a kept model.
            models.forget_test_predictions()
            kept[first] = KeptModels(models, tokens)
        cache.forget(ending.own_keys)
        return Output(fitted, kept if self.keep is Keep.ON_WORKER else None)


def _split_of(context: JobContext, job: FitJob) -> Split:
    splits = context.splits_of_chosen if job.is_chosen else context.splits
    split = splits[job.split]
    return split if job.is_tested else split.without_tests()


def _leave_one_out(context: JobContext, job: FitJob) -> FittedJob:
    group, split = (
        context.candidate_groups[job.candidate_group],
        _split_of(context, job),
    )
    counts = leave_one_out_counts(
        group.family,
        group.select(job.candidates),
        context.labeled.X,
        context.labeled.y,
        split,
        pool=context.fitting_pool,
    )
    results = (
        fit_result(counts, (row, 0), FitKey(number, job.split))
        for row, number in enumerate(job.candidates)
    )
    return FittedJob(job, tuple(results))


def fit_results(
    context: JobContext,
    job: FitJob,
    fitted: FittedGroup,
    tokens: Mapping[FitKey, str],
) -> tuple[FitResult, ...]:
    """Return the counts of a job's fits, with the losses of their models."""
    split, column = _split_of(context, job), fitted.splits.index(job.split)
    scores = zip(
        *(
            score_models(context, fitted, split, part)
            for part in range(len(split.test_parts))
        ),
        strict=True,
    )
    keys = [FitKey(number, job.split) for number in job.candidates]
    return tuple(
        fit_result(fitted.counts, (row, column), key, tokens.get(key, ""), each)
        for row, (key, each) in enumerate(zip(keys, scores, strict=True))
    )


def fit_result(
    counts: FitCounts,
    index: tuple[int, int],
    key: FitKey,
    token: str = "",
    scores: Sequence[float] = (),
) -> FitResult:
    """Return the result of one fit, at `index` of the arrays."""
    seconds = round(float(counts.seconds[index]), 6)
    message = counts.messages.get(key)
    if counts.has_failed[index]:
        return FitResult(FitStatus.FAILED, seconds, message=message)
    errors = tuple(counts.errors[index].tolist())
    return FitResult(FitStatus.DONE, seconds, errors, tuple(scores), message, token)


def fit_splits(
    context: JobContext,
    group: CandidateGroup,
    candidates: Collection[int],
    splits: Sequence[Split],
    budget: Cache | None = None,
) -> FittedGroup:
    """Fit candidates of a group on some splits, and count their errors."""
    fitted = group.family.fit(
        group.select(candidates),
        context.labeled.X,
        context.labeled.y,
        splits,
        pool=context.fitting_pool,
        budget=budget or process_cache(),
    )
    # A transformer that reads a batch, such as one that ranks rows among each other,
    # breaks the assumption that `predict` answers each row by itself.
    if any(has_function(each) for each in group.select(candidates)):
        for split in splits:
            refuse_batches(fitted, split, context.labeled.X)
    return fitted


def score_models(
    context: JobContext, fitted: FittedGroup, split: Split, part: int
) -> list[float]:
    """Return the loss of each candidate on one part of a split's test rows."""
    loss, rows = context.losses.main, split.test_parts[part]
    counts, column = fitted.counts, fitted.splits.index(split.number)
    errors = counts.errors[:, column, part]
    if not len(rows):  # as where all rows are trained on; a loss may divide by them
        return [loss.largest] * len(errors)
    known = [calls.score_errors(loss, n, len(rows)) for n in errors.tolist()]
    if None not in known:
        return cast(list[float], known)  # no row is predicted twice
    predictions = fitted.test_predictions(split.number, part)
    if predictions is None:
        predictions = predict_labeled_rows(context, fitted, split.number, rows)
    # One object for all candidates: `Rows.memo` keeps what depends on the rows only.
    labeled = Rows(context.labeled.X[rows], context.labeled.y[rows])
    return [calls.score_rows(loss, labeled, each) for each in predictions]


def count_rows(
    context: JobContext, split: Split, fitted: FittedGroup, n_errors: int = -1
) -> tuple[Counts, ...]:
    """Return the counts of each statistic for one candidate on a split's test rows.

    `n_errors` are the errors of its fit; -1 if they are not known.
    """
    rows, statistics = split.test_rows, context.losses.statistics
    # Errors were counted when the model was fitted; one that failed has none.
    counts = [
        calls.count_errors(statistic, n_errors) if n_errors >= 0 else None
        for statistic in statistics
    ]
    if any(known is None for known in counts):
        baseline = None if context.baseline is None else context.baseline[rows]
        labeled = Rows(context.labeled.X[rows], context.labeled.y[rows], baseline)
        kept = fitted.test_predictions(split.number, 0)
        if kept is None:
            kept = predict_labeled_rows(context, fitted, split.number, rows)
        [predictions] = kept
    return tuple(
        calls.count_rows(statistic, labeled, predictions) if known is None else known
        for statistic, known in zip(statistics, counts, strict=True)
    )


def predict_labeled_rows(
    context: JobContext, fitted: FittedGroup, split: int, rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return predictions for labeled rows, (n_candidates, n_rows).

    If `predict` raises, or there is no model, they are those of `no_predictions`.
    """
    # An error of `predict` is an error on each row, which any loss can count.
    codes = no_predictions((len(fitted.candidates), len(rows)), context.labeled.y.dtype)
    if len(rows):
        with suppress(Exception):  # what it raised is in the counts
            codes = fitted.predict(context.labeled.X[rows], [np.array(split)])[0]
    return codes


def model_token(fitted: FittedGroup, key: FitKey) -> str:
    """Return a token that identifies a model; "" if fits repeat exactly.

    Families of dsel make the same model for the same rows and seed. For other learners
    a hash of the pickle reveals draws without a seed.
    """
    models = getattr(fitted, "models", None)
    if models is None or key not in models:
        return ""
    # Where the model was fitted: one that has moved may be written otherwise.
    try:
        content = pickle_model(models[key])
    except Exception:  # what cannot be pickled stays in this process
        return f"object-{id(models[key])}"
    return blake2b(content, digest_size=12).hexdigest()
