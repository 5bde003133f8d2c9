"""Supervised fits moved so that they match the moments of labeled rows and pool."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.models.discriminant import (
    DiscriminantClassifier,
    read_labeled,
    read_pool,
    store_classes,
    supervised_fit,
)
from dsel.models.gaussian import GaussianClasses
from dsel.models.moments import ClassMoments, Moments
from dsel.models.nearest_mean_contrast import nearest_mean_classes
from dsel.models.pool_passes import read_moments


class MomentConstrainedLDA(DiscriminantClassifier):
    r"""LDA after an affine map of the labeled rows to the moments of all rows.

    With mean and covariance :math:`(m_l, T_l)` of the labeled rows and
    :math:`(m, T)` of labeled rows and pool together, each labeled row becomes
    :math:`T^{1/2} T_l^{-1/2} (x - m_l) + m`, and LDA is fitted to these. The priors
    stay. It carries no guarantee: the likelihood on all rows may be below the
    supervised one.

    Parameters
    ----------
    ridge
        Added to the diagonal of every scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).

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
        MomentConstrainedLDA
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, the supervised covariance is singular, or
            the pool has other columns or values that are not finite.
        """
        labeled = read_labeled(self, X, y).moments
        classes = supervised_fit(labeled, ridge=self.ridge, shared=True)
        opened = read_pool(self, pool)
        if opened is not None:
            classes = moved_classes(
                classes, labeled, read_moments(opened), ridge=self.ridge
            )
        store_classes(self, classes)
        return self


class MomentConstrainedNearestMean(DiscriminantClassifier):
    """Nearest mean with all means shifted so that they average to that of all rows.

    Every mean moves by the mean of labeled rows and pool less that of the labeled
    rows, which is also the constrained maximum of the likelihood.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier.

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
        MomentConstrainedNearestMean
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, or the pool has other columns or values
            that are not finite.
        """
        labeled = read_labeled(self, X, y).moments
        means = labeled.means
        opened = read_pool(self, pool)
        if opened is not None:
            total = labeled.total.merged(read_moments(opened))
            means = means + (total.mean - labeled.total.mean)
        store_classes(self, nearest_mean_classes(means))
        return self


def moved_classes(
    classes: GaussianClasses, labeled: ClassMoments, pool: Moments, *, ridge: float
) -> GaussianClasses:
    """Return LDA classes after the affine map to the moments of all rows.

    Parameters
    ----------
    classes
        Supervised classes with one covariance, which is regular.
    labeled
        Moments of the labeled rows.
    pool
        Moments of the unlabeled rows.
    ridge
        Added to the diagonal of both total scatters.
    """
    here = labeled.total
    everywhere = here.merged(pool)
    root = _symmetric_power(_covariance(everywhere, ridge), 0.5)
    mapping = root @ _symmetric_power(_covariance(here, ridge), -0.5)
    return GaussianClasses(
        classes.priors,
        (classes.means - here.mean) @ mapping.T + everywhere.mean,
        mapping @ classes.covariances @ mapping.T,
    )


def _covariance(moments: Moments, ridge: float) -> NDArray[np.float64]:
    scatter = moments.scatter + ridge * np.eye(len(moments.mean))
    return np.asarray(scatter / moments.count)


def _symmetric_power(matrix: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * values**power) @ vectors.T)
