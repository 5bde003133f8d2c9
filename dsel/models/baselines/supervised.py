"""Fits to the labeled rows alone, and to the pool with its labels as well."""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dsel.families.arrays import Integers
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    GaussianClassifier,
    Labeled,
    encode,
    read_labeled,
    read_pool,
    store_classes,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import (
    ClassMoments,
    GaussianClasses,
    Moments,
    dense_blocks,
    empty_moments,
    moments_of,
    stack_moments,
)
from dsel.models.mcpl.linear_contrasts import nearest_mean_classes


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

    See Also
    --------
    SemiSupervisedLDA : Uses a pool, and is never less likely.

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
        """Return the supervised fit; the pool is not used."""
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

    See Also
    --------
    SemiSupervisedQDA : Uses a pool, and is never less likely.

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
        """Return the supervised fit; the pool is not used."""
        return supervised_fit(
            labeled.moments, ridge=self.ridge, shared=False, labels=self.classes_
        )


class MaximumLikelihoodNearestMean(DiscriminantClassifier):
    """The nearest mean classifier: equal priors, identity covariance.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier.

    See Also
    --------
    SemiSupervisedNearestMean : Uses a pool.

    Examples
    --------
    >>> model = MaximumLikelihoodNearestMean().fit([[0.0], [2.0], [5.0]], [0, 0, 1])
    >>> model.predict([[2.9], [3.1]]).tolist()
    [0, 1]
    """

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the supervised fit; the pool is not used."""
        return nearest_mean_classes(labeled.moments.means)


class OracleLDA(GaussianClassifier):
    """LDA on the labeled rows and the pool with its true labels.

    No semi-supervised fit has a higher likelihood on these rows; improvements over the
    supervised fit are measured against it.

    Parameters
    ----------
    ridge
        Added to the diagonal of the scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).

    See Also
    --------
    MaximumLikelihoodLDA : The fit without the pool's labels.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = OracleLDA().fit(X, y, pool=[[4.0], [9.0]], pool_labels=[0, 1])
    >>> model.means_.ravel()
    array([2., 7.])
    """

    def __init__(self, *, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        pool: Any = None,
        pool_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit to labeled rows and the pool with its labels.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Rows with the same columns: whatever ``dsel.open_pool`` takes.
        pool_labels
            Labels of the pool by global row number; all of them occur in `y`.

        Returns
        -------
        OracleLDA
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a pool comes without labels or with another number of them, a label
            of it is not in `y`, or the covariance is singular.
        """
        moments = read_labeled(self, X, y).moments
        opened = read_pool(self, pool)
        if opened is not None:
            if pool_labels is None:
                raise ValueError("`pool_labels` must be given where there is a `pool`.")
            labels = np.asarray(pool_labels)
            n_stored = int(opened.boundaries[-1])
            if labels.shape != (n_stored,):
                raise ValueError(
                    f"`pool_labels` must have one label for each of the {n_stored} "
                    f"rows of `pool`, got shape {labels.shape}."
                )
            codes = encode(labels, self.classes_, "pool_labels")
            count = partial(_chunk_classes, codes=codes, n_classes=len(self.classes_))
            moments = _merge(moments, opened.reduce(count, _merge))
        store_classes(self, supervised_fit(moments, ridge=self.ridge, shared=True))
        return self


def _chunk_classes(
    X: Any, rows: Integers, *, codes: Integers, n_classes: int
) -> ClassMoments:
    parts = [empty_moments(X.shape[1])] * n_classes
    first = 0
    for block in dense_blocks(X):
        here = codes[rows[first : first + len(block)]]
        first += len(block)
        for code in np.unique(here):
            parts[code] = parts[code].merged(moments_of(block[here == code]))
    return stack_moments(parts)


def _merge(one: ClassMoments, other: ClassMoments) -> ClassMoments:
    pairs = zip(_unstack(one), _unstack(other), strict=True)
    return stack_moments([left.merged(right) for left, right in pairs])


def _unstack(moments: ClassMoments) -> list[Moments]:
    parts = zip(moments.counts, moments.means, moments.scatters, strict=True)
    return [Moments(*part) for part in parts]
