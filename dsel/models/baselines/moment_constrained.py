"""Supervised fits moved so that they match the moments of labeled rows and pool."""

from typing import Any

import numpy as np

from dsel.families.arrays import Floats
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import GaussianClasses, Moments
from dsel.models.mcpl.linear_contrasts import nearest_mean_classes
from dsel.models.mcpl.pool_passes import read_moments


class MomentConstrainedLDA(DiscriminantClassifier):
    r"""LDA after an affine map of the labeled rows to the moments of all rows.

    With mean and covariance :math:`(m_l, T_l)` of the labeled rows and
    :math:`(m, T)` of labeled rows and pool together, each labeled row becomes
    :math:`(T T_l^{-1})^{1/2} (x - m_l) + m`, and LDA is fitted to these. The priors
    stay. Like LDA it does not change under affine maps of the features. It carries no
    guarantee: the likelihood on all rows may be below the supervised one.

    Parameters
    ----------
    ridge
        Added to the diagonal of every scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).

    See Also
    --------
    SemiSupervisedLDA : Uses more than the pool's moments.

    References
    ----------
    .. [1] M. Loog, "Semi-supervised linear discriminant analysis through
       moment-constraint parameter estimation", Pattern Recognition Letters 37, 2014.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = MomentConstrainedLDA().fit(X, y, pool=[[4.0], [6.0], [9.0], [11.0]])
    >>> float(model.priors_ @ model.means_[:, 0])
    5.5
    """

    def __init__(self, *, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the supervised fit, moved to the moments of all rows."""
        moments = labeled.moments
        classes = supervised_fit(moments, ridge=self.ridge, shared=True)
        if pool is None:
            return classes
        here, everywhere = moments.total, moments.total.merged(read_moments(pool))
        mapping = root_of_ratio(
            _covariance(everywhere, self.ridge), _covariance(here, self.ridge)
        )
        return GaussianClasses(
            classes.priors,
            (classes.means - here.mean) @ mapping.T + everywhere.mean,
            mapping @ classes.covariances @ mapping.T,
        )


class MomentConstrainedNearestMean(DiscriminantClassifier):
    """Nearest mean with all means shifted so that they average to that of all rows.

    Every mean moves by the mean of labeled rows and pool less that of the labeled
    rows, which is also the constrained maximum of the likelihood.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier.

    See Also
    --------
    SemiSupervisedNearestMean : Uses more than the pool's mean.

    References
    ----------
    .. [1] M. Loog, "Constrained parameter estimation for semi-supervised learning:
       the case of the nearest mean classifier", ECML PKDD 2010.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [4.0]], [0, 0, 1]
    >>> model = MomentConstrainedNearestMean().fit(X, y, pool=[[3.0], [4.0], [5.0]])
    >>> model.means_.ravel()
    array([2., 5.])
    """

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the supervised means, shifted."""
        here, means = labeled.moments.total, labeled.moments.means
        if pool is not None:
            means = means + (here.merged(read_moments(pool)).mean - here.mean)
        return nearest_mean_classes(means)


def root_of_ratio(above: Floats, below: Floats) -> Floats:
    """Return the root A of ``above below^-1`` with positive eigenvalues.

    ``A below A'`` is `above`. Both are symmetric, (d, d), and `below` is regular: in
    coordinates in which `below` is the identity, A is the symmetric root of `above`.
    """
    lower = np.linalg.cholesky(below)
    half = np.linalg.solve(lower, above)
    values, vectors = np.linalg.eigh(np.linalg.solve(lower, half.T))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(np.linalg.solve(lower.T, (lower @ root).T).T)


def _covariance(moments: Moments, ridge: float) -> Floats:
    scatter = moments.scatter + ridge * np.eye(len(moments.mean))
    return np.asarray(scatter / moments.count)
