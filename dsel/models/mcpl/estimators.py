"""Classifiers fitted by maximum contrastive pessimistic likelihood (MCPL)."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dsel.checks import check_integer, check_positive
from dsel.errors import GuaranteeWarning, warn
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import ClassMoments, GaussianClasses, Moments
from dsel.models.mcpl.linear_contrasts import (
    lda_contrast,
    nearest_mean_classes,
    nearest_mean_contrast,
)
from dsel.models.mcpl.quadratic_contrast import qda_contrast
from dsel.models.mcpl.saddle_point import (
    Contrast,
    ContrastFit,
    ContrastProblem,
    fit_contrasts,
)
from dsel.solvers.frank_wolfe import CONVERGED

Parts = tuple[GaussianClasses, Callable[[ClassMoments, Moments], Contrast]]

_NOT_REGULAR = (
    "`X` must give a covariance that is regular to rounding; label more rows, remove "
    "features that depend on others, or set `ridge` above 0."
)


class MCPLClassifier(DiscriminantClassifier):
    """Fit by maximum contrastive pessimistic likelihood; members say which contrast.

    `SemiSupervisedLDA` describes the parameters and the attributes.
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
        try:
            fit = fit_contrasts([problem], pool, start_rows=start_rows)[0]
        except np.linalg.LinAlgError as error:
            raise ValueError(_NOT_REGULAR) from error
        report_fit(self, fit)
        classes: GaussianClasses = fit.classes
        return classes

    def problem(self, labeled: ClassMoments) -> ContrastProblem:
        """Return what is to be solved on the pool for these labeled rows."""
        return ContrastProblem(
            labeled,
            *self._parts(labeled),
            check_positive(self.tol, "tol"),
            check_integer(self.max_passes, "max_passes", at_least=1),
        )

    @abstractmethod
    def _parts(self, labeled: ClassMoments) -> Parts:
        """Return the supervised estimate, and what makes the contrast with it."""


def report_fit(model: Any, fit: ContrastFit) -> None:
    """Set what is known of a model's fit; warn where the gap is too large."""
    model.duality_gap_ = fit.duality_gap
    model.contrast_lower_ = fit.contrast_lower
    model.n_passes_ = fit.n_passes
    model.solver_status_ = fit.status
    if fit.status != CONVERGED:
        warn(
            f"{_found(fit, model.tol)} ({fit.status} after {fit.n_passes} reads of "
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


class _RidgedClassifier(MCPLClassifier):
    """MCPL for classes whose covariance is fitted, with a ridge on it."""

    def __init__(
        self,
        *,
        tol: float = 1e-6,
        ridge: float = 0.0,
        max_passes: int = 1000,
        start_rows: int = 20_000,
    ) -> None:
        self.tol = tol
        self.ridge = ridge
        self.max_passes = max_passes
        self.start_rows = start_rows


class SemiSupervisedLDA(_RidgedClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for LDA.

    The parameters :math:`\theta` maximise the gain in log-likelihood over the
    supervised estimate :math:`\theta_s`, under the soft labeling q of the pool U for
    which this gain is smallest:

    .. math:: \max_\theta \min_q \; L(\theta; X, y, U, q) - L(\theta_s; X, y, U, q).

    A gain of 0 is always possible (:math:`\theta = \theta_s`), so on the labeled
    rows and the pool together the likelihood is never below the supervised one,
    whatever the true labels are. This concerns the likelihood, on the training rows.
    **A better likelihood is not always a lower error rate**: of the sixteen sets in
    [1]_ the error got worse on test rows of one (spectf), and on training rows of
    two (low, spectf).

    Parameters
    ----------
    tol
        Duality gap per row at which to stop, > 0; 1e-10 is attainable.
    ridge
        Added to the diagonal of every scatter matrix, >= 0. If positive, every
        statement is about the likelihood with the penalty
        ``-ridge/2 tr(inverse covariance)``.
    max_passes
        Reads of the pool at most, >= 1.
    start_rows
        Rows of the pool on which the problem is solved first, to save reads of the
        whole; 0 for none. It changes no result beyond `tol`.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
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

    See Also
    --------
    MaximumLikelihoodLDA : The supervised fit.
    SelfLearningLDA : Labels the pool by its own answers.
    SemiSupervisedQDA : A covariance for each class.
    SemiSupervisedNearestMean : Class means only.

    Notes
    -----
    The optimum is found by the fully corrective Frank-Wolfe method in the space of
    class masses and class sums. The pool is divided into eight parts, whose labelings
    get weights of their own; a read of the pool returns K (d + 1) numbers for each
    part, and soft labels are never stored. Where no positive gain can be certified, for
    example because the pool has the same statistics as the labeled rows, the supervised
    estimate is returned, with a gain of 0. Log-likelihoods can only be compared between
    fits on the same features.

    References
    ----------
    .. [1] M. Loog, "Contrastive pessimistic likelihood estimation for
       semi-supervised classification", IEEE TPAMI 38(3), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(12) % 2
    >>> X = rng.normal(size=(12, 3)) + 2 * y[:, None]
    >>> pool = np.vstack([rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + 2])
    >>> model = SemiSupervisedLDA().fit(X, y, pool=pool)
    >>> bool(model.contrast_lower_ > 0), bool(model.duality_gap_ <= 1e-6)
    (True, True)
    """

    predicts_by_coefficients = True

    def _parts(self, labeled: ClassMoments) -> Parts:
        supervised = supervised_fit(labeled, ridge=self.ridge, shared=True)
        return supervised, partial(lda_contrast, ridge=self.ridge)


class SemiSupervisedQDA(_RidgedClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for QDA.

    Each class has a covariance of its own, which needs d + 1 labeled rows or more
    in each class, or a ridge. Otherwise as `SemiSupervisedLDA`: on the labeled rows
    and the pool together the likelihood is never below the supervised one, whatever
    the true labels are. **A better likelihood is not always a lower error rate.**

    Parameters
    ----------
    tol, max_passes, start_rows
        As in `SemiSupervisedLDA`.
    ridge
        Added to the diagonal of every class's scatter matrix, >= 0. If positive,
        every statement is about the likelihood with the penalty
        ``-ridge/2 sum_k tr(inverse covariance_k)``.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; ``covariance_`` is (K, d, d).
    duality_gap_, contrast_lower_, n_passes_, solver_status_
        As in `SemiSupervisedLDA`.

    See Also
    --------
    SemiSupervisedLDA : One covariance for all classes.
    MaximumLikelihoodQDA : The supervised fit.

    Notes
    -----
    A read of the pool returns K (1 + d + d^2) numbers and costs a matrix product
    with d columns for each class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(20) % 2
    >>> X = rng.normal(size=(20, 2)) * (1 + y[:, None]) + 2 * y[:, None]
    >>> pool = rng.normal(size=(500, 2)) * 1.5 + 1
    >>> model = SemiSupervisedQDA().fit(X, y, pool=pool)
    >>> bool(model.contrast_lower_ > 0), model.covariance_.shape
    (True, (2, 2, 2))
    """

    def _parts(self, labeled: ClassMoments) -> Parts:
        supervised = supervised_fit(
            labeled, ridge=self.ridge, shared=False, labels=self.classes_
        )
        return supervised, partial(qda_contrast, ridge=self.ridge)


class SemiSupervisedNearestMean(MCPLClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for the nearest mean.

    Classes are normal with identity covariance and equal priors, so the result
    depends on the features' scales: standardise them first. Otherwise as
    `SemiSupervisedLDA`: on the labeled rows and the pool together the likelihood is
    never below the supervised one, whatever the true labels are. **A better
    likelihood is not always a lower error rate.**

    Parameters
    ----------
    tol, max_passes, start_rows
        As in `SemiSupervisedLDA`.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; equal priors, identity covariance.
    duality_gap_, contrast_lower_, n_passes_, solver_status_
        As in `SemiSupervisedLDA`.

    See Also
    --------
    SemiSupervisedLDA : With a covariance.
    MaximumLikelihoodNearestMean : The supervised fit.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [4.0]]), np.array(["a", "a", "b"])
    >>> model = SemiSupervisedNearestMean().fit(X, y, pool=[[1.0], [2.0], [5.0]])
    >>> bool(model.contrast_lower_ > 0), model.predict([[0.0], [9.0]]).tolist()
    (True, ['a', 'b'])
    """

    predicts_by_coefficients = True

    def __init__(
        self, *, tol: float = 1e-6, max_passes: int = 1000, start_rows: int = 20_000
    ) -> None:
        self.tol = tol
        self.max_passes = max_passes
        self.start_rows = start_rows

    def _parts(self, labeled: ClassMoments) -> Parts:
        return nearest_mean_classes(labeled.means), nearest_mean_contrast
