"""Single models of a plan, fitted anew: what a finished run does not keep."""

from typing import TYPE_CHECKING, Any

from dsel.checks import check_integer
from dsel.models.base import FIT_DONE, FittedGroup
from dsel.runtime.threads import single_threaded
from dsel.searches.engine.fit_task import FitJob, Work, fit_jobs

if TYPE_CHECKING:
    from dsel.searches.plan import Plan


def refit(work: Work, candidate: int, training: int) -> FittedGroup:
    """Fit a candidate on one training as a run does: the model that it has counted."""
    job = FitJob(work.group_of(candidate).number, (candidate,), training)
    with single_threaded():
        _, fitted = fit_jobs(work, (), [job])
    return fitted[job]


def fit_model(plan: "Plan", candidate: int, fold: int | None) -> Any:
    """Fit one model of a plan and return the estimator; see `Plan.model`."""
    number = check_integer(
        candidate, "candidate", at_least=0, at_most=plan.n_candidates - 1
    )
    training = _training(plan, fold)
    fitted = refit(plan.work, number, training)
    if fitted.counts.status[fitted.candidates.index(number), 0] != FIT_DONE:
        message = fitted.counts.messages[number, training]
        raise RuntimeError(
            f"candidate {number} ({plan.axes.params(number)}) cannot be fitted on "
            f"{plan.work.trainings[training].name}: {message}"
        )
    return fitted.model(number, training)


def _training(plan: "Plan", fold: int | None) -> int:
    """Return the number of the training that leaves out a fold, or nothing."""
    if fold is not None:
        last = plan.scheme.n_folds - 1
        return check_integer(fold, "fold", at_least=0, at_most=last)
    if plan.scheme.full is None:
        raise ValueError(
            f"`fold` must be given: {plan.certificate.name!r} trains nothing on all "
            f"labeled rows; its model is that of fold 0."
        )
    return plan.scheme.full
