"""Base of the MCPL estimators: limits, certificate, and warnings."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dsel.checks import check_integer, check_positive
from dsel.errors import GuaranteeWarning, warn
from dsel.models.contrast import (
    Contrast,
    ContrastFit,
    ContrastProblem,
    fit_contrasts,
)
from dsel.models.discriminant import (
    DiscriminantClassifier,
    read_pool,
    store_classes,
)
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

    def fit(self, X: ArrayLike, y: ArrayLike, pool: Any = None) -> Self:
        """Fit to labeled rows and the unlabeled pool.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Unlabeled rows with the same columns: whatever ``dsel.open_pool`` takes.
            None or no rows give the supervised fit.

        Returns
        -------
        ContrastiveClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, a supervised covariance is singular, or
            the pool has other columns or values that are not finite.
        """
        problem = self.problem(X, y)
        start_rows = check_integer(self.start_rows, "start_rows", at_least=0)
        opened = read_pool(self, pool)
        if opened is None:
            self.store(ContrastFit(problem.supervised, 0.0, 0.0, 0, CONVERGED))
            return self
        try:
            found = fit_contrasts([problem], opened, start_rows=start_rows)
        except np.linalg.LinAlgError as error:
            raise ValueError(_NOT_REGULAR) from error
        self.store(found[0])
        return self

    @abstractmethod
    def problem(self, X: ArrayLike, y: ArrayLike) -> ContrastProblem:
        """Check labeled rows, and return what is to be solved on the pool."""

    def store(self, fit: ContrastFit) -> None:
        """Set the estimate with its certificate; warn where the gap is too large."""
        store_classes(self, fit.classes)
        self.duality_gap_ = fit.duality_gap
        self.contrast_lower_ = fit.contrast_lower
        self.n_passes_ = fit.n_passes
        self.solver_status_ = fit.status
        if fit.status != CONVERGED:
            warn(
                f"the duality gap is {fit.duality_gap:.3g} per row where `tol` is "
                f"{self.tol:.3g} ({fit.status} after {fit.n_passes} reads of the "
                f"pool). The estimate is no worse than the supervised one all the "
                f"same (contrast_lower_ = {fit.contrast_lower:.3g}); raise "
                f"`max_passes` or `tol`.",
                GuaranteeWarning,
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
