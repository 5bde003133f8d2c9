"""Self-learning and expectation maximisation: LDA refitted to labels of its own."""

from typing import Any

import numpy as np

from dsel.checks import check_integer, check_positive
from dsel.families.arrays import Floats
from dsel.models.baselines.implicitly_constrained import (
    ConstrainedLikelihood,
    constrained_likelihood,
    labeled_by,
)
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import GaussianClasses, Moments
from dsel.models.mcpl.pool_passes import read_moments, read_posteriors
from dsel.models.mcpl.whitening import log_density_scores


class SelfLearningLDA(DiscriminantClassifier):
    """LDA refitted to its own labeling of the pool until the labels repeat.

    It carries no guarantee: likelihood and error may be worse than those of the
    supervised fit.

    Parameters
    ----------
    ridge
        Added to the diagonal of every scatter matrix, >= 0.
    max_passes
        Relabelings of the pool at most, >= 1.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    n_passes_
        Reads of the pool.
    converged_
        Whether the labels repeated. Where they alternate between two states the
        earlier one is kept, and this is True.

    See Also
    --------
    SemiSupervisedLDA : Never less likely than the supervised fit.
    ExpectationMaximizationLDA : With soft labels.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = SelfLearningLDA().fit(X, y, pool=[[1.0], [2.0], [6.0], [6.0]])
    >>> model.means_.ravel(), model.converged_
    (array([1.25, 6.  ]), True)
    """

    n_passes_: int
    converged_: bool

    def __init__(self, *, ridge: float = 0.0, max_passes: int = 1000) -> None:
        self.ridge = ridge
        self.max_passes = max_passes

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the fit to its own labeling of the pool."""
        limit = check_integer(self.max_passes, "max_passes", at_least=1)
        classes = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        self.n_passes_, self.converged_ = 0, True
        if pool is None:
            return classes
        moments = read_moments(pool)
        steps = constrained_likelihood(labeled.moments, moments, ridge=self.ridge)
        classes, n_labelings, self.converged_ = _relabel(steps, classes, pool, limit)
        self.n_passes_ = n_labelings + 1
        return classes


def _relabel(
    steps: ConstrainedLikelihood, classes: GaussianClasses, pool: Any, limit: int
) -> tuple[GaussianClasses, int, bool]:
    """Return the last fit, the number of labelings, and whether one repeated."""
    last_two: list[Floats] = []
    for n_labelings in range(1, limit + 1):
        sums = labeled_by(pool, log_density_scores(classes, steps.origin), steps.origin)
        # Equal sums give equal fits: the labels need not be kept to see a repeat.
        if any(np.array_equal(sums, each) for each in last_two):
            return steps.fit(sums), n_labelings, True
        last_two = [*last_two[-1:], sums]
        classes = steps.fit(sums)
    return classes, limit, False


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

    See Also
    --------
    SelfLearningLDA : With hard labels.
    SemiSupervisedLDA : Never less likely than the supervised fit.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = ExpectationMaximizationLDA().fit(X, y, pool=[[1.0], [2.0], [6.5]])
    >>> bool((np.diff(model.observed_log_likelihoods_) >= 0).all())
    True
    """

    n_passes_: int
    converged_: bool
    observed_log_likelihoods_: Floats

    def __init__(
        self, *, ridge: float = 0.0, tol: float = 1e-9, max_passes: int = 1000
    ) -> None:
        self.ridge = ridge
        self.tol = tol
        self.max_passes = max_passes

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the fit at which the likelihood changes by less than `tol`."""
        tol = check_positive(self.tol, "tol")
        limit = check_integer(self.max_passes, "max_passes", at_least=1)
        classes = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        path: list[float] = []
        self.n_passes_, self.converged_ = 0, True
        if pool is not None:
            moments = read_moments(pool)
            steps = constrained_likelihood(labeled.moments, moments, ridge=self.ridge)
            self.converged_ = False
            while len(path) < limit and not self.converged_:
                scores = log_density_scores(classes, steps.origin)
                sums, evidence = read_posteriors(pool, scores, steps.origin)
                shared = _shared_part(classes, labeled, moments, self.ridge)
                path.append(evidence + shared)
                change = abs(path[-1] - path[-2]) if len(path) > 1 else np.inf
                self.converged_ = bool(change <= tol * abs(path[-1]))
                classes = steps.fit(sums)
            self.n_passes_ = len(path) + 1
        self.observed_log_likelihoods_ = np.array(path)
        return classes


def _shared_part(
    classes: GaussianClasses, labeled: Labeled, pool: Moments, ridge: float
) -> float:
    """Return the log-likelihood but for the pool's sum of log-summed scores."""
    precision = np.linalg.inv(classes.covariances[0])
    log_det = np.linalg.slogdet(classes.covariances[0])[1]
    constant = -0.5 * (log_det + len(pool.mean) * np.log(2.0 * np.pi))
    unlabeled = pool.count * constant - 0.5 * np.sum(precision * pool.scatter)
    joint = classes.log_joint(labeled.X)
    chosen = joint[np.arange(len(joint)), labeled.codes].sum()
    return float(unlabeled + chosen - 0.5 * ridge * np.trace(precision))
