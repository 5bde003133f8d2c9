"""LDA on labeled rows weighted by how much likelier they are in the pool."""

from typing import Any

import numpy as np

from dsel.families.arrays import Floats
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import ClassMoments, GaussianClasses
from dsel.models.mcpl.pool_passes import read_moments


class DensityRatioLDA(DiscriminantClassifier):
    """LDA whose labeled rows have the weights p(x | pool) / p(x | labeled).

    A weighted likelihood is meant for labeled rows that were drawn from another
    distribution than the pool; where both are the same, it can still lower the
    variance. Both densities are Gaussian with one covariance, so the logarithm of the
    ratio is linear and one pass for the pool's moments is enough. It carries no
    guarantee.

    Parameters
    ----------
    ridge
        Added to the diagonal of the scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    weights_
        Of the labeled rows, with a mean of 1.

    References
    ----------
    .. [1] M. Kawakita and J. Takeuchi, "Safe semi-supervised learning based on weighted
       likelihood", Neural Networks 53, 2014.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = DensityRatioLDA().fit(X, y, pool=[[4.0], [5.0], [6.0], [7.0]])
    >>> bool(model.weights_[3] > model.weights_[0]), bool(model.priors_[1] > 0.5)
    (True, True)
    """

    weights_: Floats

    def __init__(self, *, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the weighted fit; without a pool the supervised one."""
        fit = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        self.weights_ = np.ones(len(labeled.codes))
        if pool is None:
            return fit
        here, there = labeled.moments.total, read_moments(pool)
        # Each about its own mean: the covariance that both samples share.
        scatter = here.scatter + there.scatter + self.ridge * np.eye(len(here.mean))
        covariance = scatter / (here.count + there.count)
        slope = np.linalg.solve(covariance, there.mean - here.mean)
        logits = (labeled.X - (here.mean + there.mean) / 2.0) @ slope
        weights = np.exp(logits - logits.max())
        self.weights_ = weights / weights.mean()
        return supervised_fit(
            weighted_moments(labeled, self.weights_), ridge=self.ridge, shared=True
        )


def weighted_moments(labeled: Labeled, weights: Floats) -> ClassMoments:
    """Return the moments of the classes, each row counted by its weight."""
    counts, means, scatters = [], [], []
    for code in range(len(labeled.moments.counts)):
        rows, own = labeled.X[labeled.codes == code], weights[labeled.codes == code]
        # No class may vanish: its mean would be 0 / 0.
        own = np.maximum(own, 1e-12)
        mean = own @ rows / own.sum()
        steps = rows - mean
        counts.append(own.sum())
        means.append(mean)
        scatters.append((own[:, np.newaxis] * steps).T @ steps)
    return ClassMoments(np.array(counts), np.array(means), np.array(scatters))
