"""Base of the MCPL estimators: limits, certificate, and warnings."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from dsel.checks import check_integer, check_positive
from dsel.errors import GuaranteeWarning, warn
from dsel.models.contrast import (
    Contrast,
    ContrastFit,
    ContrastProblem,
    fit_contrasts,
)
from dsel.models.discriminant import DiscriminantClassifier, Labeled
from dsel.models.gaussian import GaussianClasses
from dsel.models.moments import ClassMoments, Moments
from dsel.solvers.frank_wolfe import CONVERGED

_NOT_REGULAR = (
    "`X` must give a covariance that is regular to rounding; label more rows, remove "
    "features that depend on others, or set `ridge` above 0."
)


class ContrastiveClassifier(DiscriminantClassifier):
    """Fit by maximum contrastive pessimistic likelihood; members say which contrast.

    Attributes
    ----------
    duality_gap_
        Per row of labeled data and pool: the estimate's least gain is within this
        of the best possible.
    contrast_lower_
        Certificate, per row: under every labeling of the pool the log-likelihood is
        above the supervised one by this or more. Never negative.
    n_passes_
        Reads of the pool.
    solver_status_
        ``"converged"``, or why the gap is larger than `tol`.
    """

    tol: float
    max_passes: int
    start_rows: int
    duality_gap_: float
    contrast_lower_: float
    n_passes_: int
    solver_status_: str

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the estimate, certified, and say how it was found."""
        problem = self.problem(labeled.moments)
        start_rows = check_integer(self.start_rows, "start_rows", at_least=0)
        if pool is None:
            fit = ContrastFit(problem.supervised, 0.0, 0.0, 0, CONVERGED)
        else:
            try:
                fit = fit_contrasts([problem], pool, start_rows=start_rows)[0]
            except np.linalg.LinAlgError as error:
                raise ValueError(_NOT_REGULAR) from error
        self.report(fit)
        return fit.classes

    @abstractmethod
    def problem(self, labeled: ClassMoments) -> ContrastProblem:
        """Return what is to be solved on the pool for these labeled rows."""

    def report(self, fit: ContrastFit) -> None:
        """Set what is known of a fit; warn where the gap is too large."""
        self.duality_gap_ = fit.duality_gap
        self.contrast_lower_ = fit.contrast_lower
        self.n_passes_ = fit.n_passes
        self.solver_status_ = fit.status
        if fit.status != CONVERGED:
            warn(
                f"{_found(fit, self.tol)} ({fit.status} after {fit.n_passes} reads of "
                f"the pool); raise `max_passes` or `tol`.",
                GuaranteeWarning,
            )


def _found(fit: ContrastFit, tol: float) -> str:
    if fit.contrast_lower == 0.0:
        return (
            "no gain over the supervised estimate could be certified, which is what "
            "the fit returned"
        )
    return (
        f"the duality gap is {fit.duality_gap:.3g} per row where `tol` is {tol:.3g}. "
        "The estimate is no worse than the supervised one all the same "
        f"(contrast_lower_ = {fit.contrast_lower:.3g})"
    )


def make_problem(
    estimator: ContrastiveClassifier,
    labeled: ClassMoments,
    supervised: GaussianClasses,
    contrast: Callable[[ClassMoments, Moments], Contrast],
) -> ContrastProblem:
    """Return a problem with the estimator's limits, checked."""
    return ContrastProblem(
        labeled,
        supervised,
        contrast,
        check_positive(estimator.tol, "tol"),
        check_integer(estimator.max_passes, "max_passes", at_least=1),
    )
