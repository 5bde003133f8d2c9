"""Supervised discriminant analysis by maximum likelihood: the yardstick."""

from typing import Any

from dsel.models.discriminant import DiscriminantClassifier, Labeled, supervised_fit
from dsel.models.gaussian import GaussianClasses
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

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the supervised fit; the pool is not looked at."""
        return supervised_fit(labeled.moments, ridge=self.ridge, shared=True)


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

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the supervised fit; the pool is not looked at."""
        return supervised_fit(
            labeled.moments, ridge=self.ridge, shared=False, labels=self.classes_
        )


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

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the supervised fit; the pool is not looked at."""
        return nearest_mean_classes(labeled.moments.means)
