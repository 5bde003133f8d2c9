"""Supervised discriminant analysis by maximum likelihood: the yardstick."""

from typing import Any, Self

from numpy.typing import ArrayLike

from dsel.models.discriminant import (
    DiscriminantClassifier,
    read_labeled,
    store_classes,
    supervised_fit,
)
from dsel.models.nearest_mean_contrast import nearest_mean_classes


class MaximumLikelihoodLDA(DiscriminantClassifier):
    """Linear discriminant analysis; the shared covariance has divisor N.

    Parameters
    ----------
    ridge
        Added to the diagonal of the scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [2.0], [5.0], [7.0]]), [0, 0, 1, 1]
    >>> MaximumLikelihoodLDA().fit(X, y).covariance_
    array([[1.]])
    """

    def __init__(self, *, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def fit(self, X: ArrayLike, y: ArrayLike, pool: Any = None) -> Self:
        """Fit to labeled rows; the pool is not looked at.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Ignored.

        Returns
        -------
        MaximumLikelihoodLDA
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, or the covariance is singular.
        """
        labeled = read_labeled(self, X, y).moments
        store_classes(self, supervised_fit(labeled, ridge=self.ridge, shared=True))
        return self


class MaximumLikelihoodQDA(DiscriminantClassifier):
    """Quadratic discriminant analysis; each covariance has its class's N as divisor.

    Parameters
    ----------
    ridge
        Added to the diagonal of every class's scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; ``covariance_`` is (K, d, d).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [2.0], [5.0], [9.0]]), [0, 0, 1, 1]
    >>> MaximumLikelihoodQDA().fit(X, y).covariance_.ravel()
    array([1., 4.])
    """

    def __init__(self, *, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def fit(self, X: ArrayLike, y: ArrayLike, pool: Any = None) -> Self:
        """Fit to labeled rows; the pool is not looked at.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Ignored.

        Returns
        -------
        MaximumLikelihoodQDA
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, or a class's covariance is singular.
        """
        labeled = read_labeled(self, X, y).moments
        store_classes(self, supervised_fit(labeled, ridge=self.ridge, shared=False))
        return self


class MaximumLikelihoodNearestMean(DiscriminantClassifier):
    """The nearest mean classifier: equal priors, identity covariance.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier.

    Examples
    --------
    >>> model = MaximumLikelihoodNearestMean().fit([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> model.predict([[2.9], [3.1]]).tolist()
    [0, 1]
    """

    def fit(self, X: ArrayLike, y: ArrayLike, pool: Any = None) -> Self:
        """Fit to labeled rows; the pool is not looked at.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Ignored.

        Returns
        -------
        MaximumLikelihoodNearestMean
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only.
        """
        labeled = read_labeled(self, X, y).moments
        store_classes(self, nearest_mean_classes(labeled.means))
        return self
