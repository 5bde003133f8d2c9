"""Expectation maximisation for LDA with an unlabeled pool."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.checks import check_integer, check_positive
from dsel.models.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.gaussian import GaussianClasses
from dsel.models.lda_steps import LDASteps, lda_steps
from dsel.models.moments import Moments
from dsel.models.pool_passes import read_moments, read_posteriors


class ExpectationMaximizationLDA(DiscriminantClassifier):
    """LDA by EM: the labels of the pool are missing data.

    The likelihood of what was observed (rows and labels of the labeled part, rows of
    the pool) never falls from step to step. Nothing is guaranteed against the
    supervised fit: likelihood of the true labels, and error, may be worse.

    Parameters
    ----------
    ridge
        Added to the diagonal of every scatter matrix, >= 0; the likelihood is then
        penalised by ``-ridge/2 tr(inverse covariance)``.
    tol
        Relative change of the log-likelihood at which to stop, > 0.
    max_passes
        Steps at most, >= 1.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    n_passes_
        Reads of the pool.
    observed_log_likelihoods_
        Log-likelihood before each step, in nats; nondecreasing.
    converged_
        Whether the change fell below `tol`.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = ExpectationMaximizationLDA().fit(X, y, pool=[[1.0], [2.0], [6.5]])
    >>> bool((np.diff(model.observed_log_likelihoods_) >= 0).all())
    True
    """

    n_passes_: int
    converged_: bool
    observed_log_likelihoods_: NDArray[np.float64]

    def __init__(
        self, *, ridge: float = 0.0, tol: float = 1e-9, max_passes: int = 1000
    ) -> None:
        self.ridge = ridge
        self.tol = tol
        self.max_passes = max_passes

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the fit at which the likelihood has settled."""
        tol = check_positive(self.tol, "tol")
        limit = check_integer(self.max_passes, "max_passes", at_least=1)
        classes = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        path: list[float] = []
        self.n_passes_, self.converged_ = 0, True
        if pool is not None:
            moments = read_moments(pool)
            steps = lda_steps(labeled.moments, moments, ridge=self.ridge)
            self.converged_ = False
            while len(path) < limit and not self.converged_:
                found = read_posteriors(pool, steps.scores(classes), steps.origin)
                shared = _shared_part(steps, classes, labeled, moments, self.ridge)
                path.append(found.log_evidence + shared)
                self.converged_ = len(path) > 1 and _is_settled(path, tol)
                classes = steps.classes(found.sums)
            self.n_passes_ = len(path) + 1
        self.observed_log_likelihoods_ = np.array(path)
        return classes


def _is_settled(path: list[float], tol: float) -> bool:
    return abs(path[-1] - path[-2]) <= tol * abs(path[-1])


def _shared_part(
    steps: LDASteps,
    classes: GaussianClasses,
    labeled: Labeled,
    pool: Moments,
    ridge: float,
) -> float:
    """Return the log-likelihood but for the pool's sum of log-summed scores."""
    precision = np.linalg.inv(classes.covariances[0])
    log_det = np.linalg.slogdet(classes.covariances[0])[1]
    constant = -0.5 * (log_det + len(pool.mean) * np.log(2.0 * np.pi))
    unlabeled = pool.count * constant - 0.5 * np.sum(precision * pool.scatter)
    joint = classes.log_joint(labeled.X)
    chosen = joint[np.arange(len(joint)), labeled.codes].sum()
    return float(unlabeled + chosen - 0.5 * ridge * np.trace(precision))
