"""Where the kernels of a model with fewer centres than rows stand."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from dsel.checks import check_integer


def random_centers(X: Any, n_centers: int, *, random_state: Any = None) -> Any:
    """Draw rows without replacement to serve as centres.

    Parameters
    ----------
    X
        Rows to draw from, dense or CSR, shape (n_rows, n_columns). Rows of the
        unlabeled pool keep the models independent of the labeled rows.
    n_centers
        Number of centres, in ``[1, n_rows]``.
    random_state
        Seed or generator, as in scikit-learn.

    Returns
    -------
    ndarray or CSR
        Shape (n_centers, n_columns), in the order of the rows.

    Raises
    ------
    ValueError
        Where there are fewer rows than centres.

    Examples
    --------
    >>> random_centers(np.arange(10.0)[:, np.newaxis], 3, random_state=0).shape
    (3, 1)
    """
    n_centers = check_integer(n_centers, "n_centers", at_least=1, at_most=X.shape[0])
    generator = check_random_state(random_state)
    return X[np.sort(generator.permutation(X.shape[0])[:n_centers])]


def kmeans_centers(
    X: Any, n_centers: int, *, random_state: Any = None
) -> NDArray[np.float64]:
    """Cluster rows and return the cluster means to serve as centres.

    Parameters
    ----------
    X
        Rows to cluster, dense or CSR, shape (n_rows, n_columns); a sample of some
        ten thousand rows is enough for a large table.
    n_centers
        Number of centres, in ``[1, n_rows]``.
    random_state
        Seed or generator, as in scikit-learn.

    Returns
    -------
    ndarray
        Shape (n_centers, n_columns).

    Raises
    ------
    ValueError
        Where there are fewer rows than centres.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2]])
    >>> sorted(kmeans_centers(X, 2, random_state=0).ravel().round(3).tolist())
    [0.1, 5.1]
    """
    n_centers = check_integer(n_centers, "n_centers", at_least=1, at_most=X.shape[0])
    from sklearn.cluster import KMeans  # takes a while to import

    clustering = KMeans(n_centers, n_init=1, random_state=random_state).fit(X)
    return np.asarray(clustering.cluster_centers_, np.float64)
