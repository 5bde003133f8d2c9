"""What the three MCPL estimators share: limits, certificate, and warnings."""

from typing import Any, Protocol, TypeVar

import numpy as np

from dsel.checks import check_integer, check_positive
from dsel.errors import GuaranteeWarning, warn
from dsel.models.contrast import (
    ContrastFit,
    ContrastLimits,
    ContrastProblem,
    fit_contrasts,
)
from dsel.models.discriminant import store_classes
from dsel.solvers.frank_wolfe import CONVERGED


class ContrastiveEstimator(Protocol):
    """Parameters and fitted attributes of the MCPL estimators."""

    tol: float
    max_passes: int
    start_rows: int
    duality_gap_: float
    contrast_lower_: float
    n_passes_: int
    solver_status_: str


Estimator = TypeVar("Estimator", bound=Any)


def contrast_limits(estimator: ContrastiveEstimator) -> ContrastLimits:
    """Return the checked limits of an estimator."""
    return ContrastLimits(
        check_positive(estimator.tol, "tol"),
        check_integer(estimator.max_passes, "max_passes", at_least=1),
        check_integer(estimator.start_rows, "start_rows", at_least=0),
    )


def fit_contrastive(
    estimator: Estimator, problem: ContrastProblem, pool: Any
) -> Estimator:
    """Solve the problem, and set the estimate with its certificate.

    Raises
    ------
    ValueError
        Where the covariances are too close to singular to be factorised.
    """
    limits = contrast_limits(estimator)
    if pool is None:
        fit = ContrastFit(problem.supervised, 0.0, 0.0, 0, CONVERGED)
    else:
        try:
            fit = fit_contrasts([problem], pool, limits)[0]
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "`X` must give a covariance that is regular to rounding; label more "
                "rows, remove features that depend on others, or set `ridge` above 0."
            ) from error
    store_fit(estimator, fit, limits)
    return estimator


def store_fit(estimator: Any, fit: ContrastFit, limits: ContrastLimits) -> None:
    """Set the estimate with its certificate; warn where the gap is too large."""
    store_classes(estimator, fit.classes)
    estimator.duality_gap_ = fit.duality_gap
    estimator.contrast_lower_ = fit.contrast_lower
    estimator.n_passes_ = fit.n_passes
    estimator.solver_status_ = fit.status
    if fit.status != CONVERGED:
        warn(
            f"the duality gap is {fit.duality_gap:.3g} per row where `tol` is "
            f"{limits.tol:.3g} ({fit.status} after {fit.n_passes} reads of the pool). "
            f"The estimate is no worse than the supervised one all the same "
            f"(contrast_lower_ = {fit.contrast_lower:.3g}); raise `max_passes` or "
            f"`tol`.",
            GuaranteeWarning,
        )
