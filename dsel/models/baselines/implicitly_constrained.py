"""LDA that some labeling of the pool would give, and that suits labeled rows best."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from dsel.checks import check_integer, check_positive
from dsel.families.arrays import Floats
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import ClassMoments, GaussianClasses, Moments
from dsel.models.mcpl.pool_passes import (
    ClassScores,
    Labeling,
    read_lowest,
    read_moments,
)
from dsel.models.mcpl.whitening import log_density_scores


@dataclass(frozen=True)
class ConstrainedLikelihood:
    """Likelihood of the labeled rows under the fit to some labeling of the pool.

    With soft labels q of the pool the maximum likelihood fit depends on the masses and
    sums of its classes alone, and so does the likelihood that it gives labeled rows.
    All is about the pool's mean, but for `fit`.
    """

    origin: Floats
    """The pool's mean, shape (d,)."""
    labeled: ClassMoments
    """About the pool's mean."""
    products: Floats
    """Sum of xx' over labeled rows and pool, and the ridge, (d, d)."""
    n_rows: float
    """Labeled rows and pool."""

    def classes(self, sums: Floats) -> GaussianClasses:
        """Return the maximum likelihood fit."""
        counts = self.labeled.counts + sums[:, 0]
        totals = self.labeled.counts[:, np.newaxis] * self.labeled.means + sums[:, 1:]
        means = totals / counts[:, np.newaxis]
        covariance = (self.products - means.T @ totals) / self.n_rows
        return GaussianClasses(counts / self.n_rows, means, covariance[np.newaxis])

    def fit(self, sums: Floats) -> GaussianClasses:
        """Return the same in the coordinates of the rows."""
        found = self.classes(sums)
        return GaussianClasses(
            found.priors, found.means + self.origin, found.covariances
        )

    def value(self, sums: Floats) -> float:
        """Return the log-likelihood of the labeled rows, but for a constant."""
        fit, counts = self.classes(sums), self.labeled.counts
        sign, logdet = np.linalg.slogdet(fit.covariances[0])
        if sign <= 0:
            return -np.inf
        spread = np.linalg.solve(fit.covariances[0], self._spread(fit))
        return float(
            counts @ np.log(fit.priors)
            - 0.5 * (counts.sum() * logdet + np.trace(spread))
        )

    def gradient(self, sums: Floats) -> ClassScores:
        """Return what a row adds to it by going to each class, to first order."""
        fit, counts = self.classes(sums), self.labeled.counts
        inverse = np.linalg.inv(fit.covariances[0])
        steps = (self.labeled.means - fit.means) @ inverse * counts[:, np.newaxis]
        # Half of what the covariance's entries move the likelihood by.
        turn = 0.5 * (inverse @ self._spread(fit) @ inverse - counts.sum() * inverse)
        masses = fit.priors * self.n_rows
        bent = fit.means @ turn
        linear = steps / masses[:, np.newaxis] - 2.0 / self.n_rows * bent
        constants = (counts - (steps * fit.means).sum(axis=1)) / masses
        constants += (bent * fit.means).sum(axis=1) / self.n_rows
        return ClassScores(constants, linear)

    def _spread(self, fit: GaussianClasses) -> Floats:
        """Return the scatter of the labeled rows about the means of a fit."""
        steps = self.labeled.means - fit.means
        return np.asarray(
            self.labeled.within + (self.labeled.counts[:, np.newaxis] * steps).T @ steps
        )


def constrained_likelihood(
    labeled: ClassMoments, pool: Moments, *, ridge: float
) -> ConstrainedLikelihood:
    """Return the objective for labeled rows and the moments of a pool."""
    means = labeled.means - pool.mean
    about = ClassMoments(labeled.counts, means, labeled.scatters)
    products = labeled.within + (labeled.counts[:, np.newaxis] * means).T @ means
    products = products + pool.scatter + ridge * np.eye(len(pool.mean))
    n_rows = float(labeled.counts.sum() + pool.count)
    return ConstrainedLikelihood(pool.mean, about, products, n_rows)


class ImplicitlyConstrainedLDA(DiscriminantClassifier):
    """LDA fitted to labeled rows and softly labeled pool, best on the labeled rows.

    Each soft labeling of the pool gives a fit to labeled rows and pool. Of all these
    fits, the one with the highest likelihood on the labeled rows is wanted: the pool
    only restricts the fits. The problem is not concave. Conditional gradient steps from
    the labeling by the supervised fit lead to a local maximum. No guarantee.

    Parameters
    ----------
    ridge
        Added to the diagonal of the scatter matrix, >= 0.
    tol
        Climbing ends where a step adds less to the mean log-likelihood, > 0.
    max_passes
        Steps at most, one pass over the pool each, >= 1.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    n_passes_
        Reads of the pool.

    References
    ----------
    .. [1] J. Krijthe and M. Loog, "Implicitly constrained semi-supervised linear
       discriminant analysis", ICPR 2014.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = ImplicitlyConstrainedLDA().fit(X, y, pool=[[1.0], [2.0], [6.0], [6.0]])
    >>> model.means_.ravel().round(2)
    array([1.23, 5.82])
    """

    n_passes_: int

    def __init__(
        self, *, ridge: float = 0.0, tol: float = 1e-6, max_passes: int = 200
    ) -> None:
        self.ridge = ridge
        self.tol = tol
        self.max_passes = max_passes

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the constrained fit; without a pool the supervised one."""
        limit = check_integer(self.max_passes, "max_passes", at_least=1)
        tol = check_positive(self.tol, "tol")
        fit = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        self.n_passes_ = 0
        if pool is None:
            return fit
        moments = read_moments(pool)
        target = constrained_likelihood(labeled.moments, moments, ridge=self.ridge)
        towards = log_density_scores(fit, moments.mean)
        sums = labeled_by(pool, towards, moments.mean)
        best, enough = target.value(sums), tol * labeled.moments.counts.sum()
        for step in range(1, limit + 1):
            self.n_passes_ = step + 2
            vertex = labeled_by(pool, target.gradient(sums), moments.mean)
            sums, value = _climb(target, sums, vertex, best)
            if value - best < enough:
                break
            best = value
        return target.fit(sums)


def labeled_by(pool: Any, scores: ClassScores, origin: Floats) -> Floats:
    """Return the class sums where each row goes to the class of highest score."""
    return read_lowest(pool, [Labeling((scores.negated,), origin)])[0][0]


def _climb(
    target: ConstrainedLikelihood, sums: Floats, vertex: Floats, best: float
) -> tuple[Floats, float]:
    """Return the best point between two, or the first, and its likelihood."""

    def between(share: float) -> Floats:
        return (1.0 - share) * sums + share * vertex

    found = minimize_scalar(
        lambda share: -target.value(between(share)), bounds=(0.0, 1.0), method="bounded"
    )
    ends = {share: target.value(between(share)) for share in (float(found.x), 1.0)}
    share = max(ends, key=lambda each: ends[each])
    return (between(share), ends[share]) if ends[share] > best else (sums, best)
