"""Models of a plan, fitted again: any one, or that which a certificate is about."""

import time
from functools import partial
from hashlib import blake2b
from operator import add
from textwrap import shorten
from typing import Any, Final

import numpy as np

from dsel.checks import check_integer
from dsel.criteria.certificates import SELECT_THEN_CERTIFY
from dsel.data.cache import ByteCache, process_cache
from dsel.families.family import FIT_DONE, FittedGroup
from dsel.families.vote import FoldVote
from dsel.results import Choice, fold_axes, make_cube
from dsel.results.choice import params_of
from dsel.runtime.threads import single_threaded
from dsel.searches.engine.fit_task import FitJob, Work, fit_jobs
from dsel.searches.pool_checks import as_counted
from dsel.searches.spec import SearchSpec

COMPARED_ROWS: Final = 2**12
"""Rows of the pool, at most, that two fits of what is handed over must answer alike."""
ANSWERED_ROWS: Final = 2**10
MOST_FITS: Final = 7
FIT_SECONDS: Final = 0.3
"""After which what is handed over is not fitted again."""


def refit(
    work: Work, candidate: int, split: int, cache: ByteCache | None = None
) -> FittedGroup:
    """Fit a candidate on one split: the same model as the one that a run counted."""
    job = FitJob(work.group_of(candidate).number, (candidate,), split)
    with single_threaded():
        _, fitted = fit_jobs(work, (), [job], cache=cache)
    return fitted[job]


def fit_model(plan: SearchSpec, candidate: int, fold: int | None) -> Any:
    """Fit one model of a plan and return the estimator; see `Plan.model`."""
    number = check_integer(
        candidate, "candidate", at_least=0, at_most=plan.n_candidates - 1
    )
    split = split_of(plan, fold)
    return fitted_again(_with_its_pool(plan), number, split).model(number, split)


def _with_its_pool(plan: SearchSpec) -> SearchSpec:
    """Return the plan whose learners see the pool that those of its run saw."""
    return plan if plan.work.fitting_pool is None else as_counted(plan)


def fitted_again(plan: SearchSpec, number: int, split: int) -> FittedGroup:
    """Fit one candidate on one split; raise RuntimeError where that fails."""
    fitted = refit(plan.work, number, split)
    if fitted.counts.status[fitted.candidates.index(number), 0] != FIT_DONE:
        message = fitted.counts.messages[number, split]
        raise RuntimeError(
            f"candidate {number} ({plan.axes.params(number)}) cannot be fitted on "
            f"{plan.work.splits[split].name}: {message}"
        )
    return fitted


def fit_deployed(plan: SearchSpec, choice: Choice) -> Any:
    """Fit the model that a certificate is about; see `Plan.deployed`."""
    if not choice.voters:
        candidates = make_cube(plan.axes, fold_axes(1), {})
        known = choice.candidate < plan.n_candidates
        own = params_of(candidates, choice.candidate) if known else {}
        if repr(own) != repr(choice.params):  # NaN is not itself, but its text is
            raise ValueError(
                f"`choice` must be of all results of this plan in their order, but its "
                f"candidate {choice.candidate} is {choice.params}, and that of the "
                f"plan {own}; fit the one that you mean by `plan.model(number, fold)`."
            )
    name = choice.certificate.criterion
    if name == SELECT_THEN_CERTIFY.name != plan.certificate.name:
        raise ValueError(
            f"`choice` was certified by labeled rows that this plan does not have: "
            f"{name!r} is about the model of all of them, the `best_estimator_` of the "
            f"search with `certify_rows`."
        )
    plan = _with_its_pool(plan)
    wanted: list[tuple[int, int | None]]
    wanted = [(n, fold) for fold, n in enumerate(choice.voters)]
    models = []
    for number, fold in wanted or [(choice.candidate, choice.fold)]:
        split, before = split_of(plan, fold), _numpy_state()
        fitted = fitted_again(plan, number, split)
        if choice.certificate.certified:
            _check_errors(plan, fitted, number, choice.errors)
            _check_repeatable(plan, fitted, number, split, before)
        models.append(fitted.model(number, split))
    return FoldVote(models, plan.classes) if choice.voters else models[0]


def _check_errors(
    plan: SearchSpec, fitted: FittedGroup, number: int, counted: int | None
) -> None:
    """Raise RuntimeError where a fold's model errs otherwise than it was counted."""
    errors = int(fitted.counts.test_errors[fitted.candidates.index(number), 0])
    if counted is not None and errors != counted:
        learner = shorten(repr(plan.candidate(number).estimator), 80)
        raise RuntimeError(
            f"`choice` is of {learner}, which gave another model when it was fitted "
            f"again: {errors} errors on its fold where {counted} were counted. Give it "
            f"a fixed seed (`random_state`) and search again."
        )


def _check_repeatable(
    plan: SearchSpec, fitted: FittedGroup, number: int, split: int, before: str
) -> None:
    """Raise RuntimeError where fitting again gives, or may give, another model.

    Labeled rows alone do not show it: a learner may know all of them by heart. Nor do
    two models, where chance has few to choose from, so quick fits are made several
    times, and numpy's own generator, which all share who name no other, must be where
    it was `before`.
    """
    work, place = plan.work, fitted.candidates.index(number)
    rows, part = work.rows_for(work.group_of(number).family), None
    if plan.pool is not None and (spans := plan.pool.spans(1)):
        stop = min(spans[0].stop, spans[0].start + COMPARED_ROWS)
        part = plan.pool.between(spans[0].start, stop)
    n, began = 0, time.monotonic()
    for _ in range(MOST_FITS):
        # With a cache of its own: what stands before a classifier is fitted, too.
        again = refit(plan.work, number, split, ByteCache(process_cache().limit))
        differ = partial(_n_differing, (fitted, again), split, place)
        n = differ(rows, None)
        if part is not None and part.n_rows:
            n += part.reduce(differ, add, allow_nan=work.allow_nan)
        if n or time.monotonic() - began > FIT_SECONDS:
            break
    if not n and _numpy_state() == before:
        return
    how = f"answer {n:,} of the rows that both were asked differently"
    drawn = "may differ: it draws from numpy's generator for all, `numpy.random`"
    learner = shorten(repr(plan.candidate(number).estimator), 80)
    raise RuntimeError(
        f"`choice` is of {learner}, which was fitted again to the same rows, and its "
        f"models {how if n else drawn}. So the certificate may be about another one. "
        f"Give it a fixed seed (`random_state`) and search again; "
        f"`plan.model(number, fold)` fits one anew without a certificate."
    )


def _n_differing(
    models: tuple[FittedGroup, FittedGroup], split: int, place: int, X: Any, _: Any
) -> int:
    """Count the rows of a block that two fits of a candidate answer differently."""
    n = 0
    for start in range(0, X.shape[0], ANSWERED_ROWS):
        part = X[start : start + ANSWERED_ROWS]
        one, other = (m.predict(part, [np.array(split)])[0][place] for m in models)
        n += int(np.count_nonzero(one != other))
    return n


def _numpy_state() -> str:
    """Return where numpy's generator for all is."""
    _, words, *place = np.random.get_state(legacy=True)  # noqa: NPY002
    return blake2b(np.asarray(words).tobytes() + repr(place).encode()).hexdigest()


def split_of(plan: SearchSpec, fold: int | None) -> int:
    """Return the number of the split that leaves out a fold, or nothing."""
    if fold is not None:
        last = plan.scheme.n_folds - 1
        return check_integer(fold, "fold", at_least=0, at_most=last)
    if plan.scheme.full is None:
        raise ValueError(
            f"`fold` must be given: {plan.certificate.name!r} trains nothing on all "
            f"labeled rows; its model is that of `choice.fold`."
        )
    return plan.scheme.full
