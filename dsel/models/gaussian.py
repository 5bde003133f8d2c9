"""Gaussian classes: their parameters, log-densities, and maximum likelihood."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dsel.models.moments import ClassMoments

_SINGULAR = 1e-14
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class GaussianClasses:
    """Prior, mean and covariance of each class."""

    priors: NDArray[np.float64]
    """Shape (K,); they sum to 1."""
    means: NDArray[np.float64]
    """Shape (K, d)."""
    covariances: NDArray[np.float64]
    """Shape (1, d, d) where the classes share one, else (K, d, d)."""

    def log_joint(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln p(x, k), shape (n_rows, K)."""
        centre = self.means.mean(axis=0)
        steps, means = X - centre, self.means - centre
        scores = np.empty((len(X), len(self.priors)))
        # One factor serves all columns, or each its own.
        for code, factor in enumerate(np.linalg.cholesky(self.covariances)):
            columns = slice(None) if len(self.covariances) == 1 else [code]
            rows, centres = _whiten(factor, steps), _whiten(factor, means[columns])
            offset = -np.log(np.diag(factor)).sum() - 0.5 * X.shape[1] * _LOG_2PI
            squares = np.einsum("ij,ij->i", centres, centres)
            scores[:, columns] = rows @ centres.T + (offset - 0.5 * squares)
            scores[:, columns] -= 0.5 * np.einsum("ij,ij->i", rows, rows)[:, None]
        return scores + np.log(self.priors)


def _whiten(factor: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(solve_triangular(factor, X.T, lower=True).T)


def maximum_likelihood(
    labeled: ClassMoments, *, ridge: float, shared: bool
) -> GaussianClasses:
    """Return the estimate with divisor N; covariances are (scatter + ridge I) / N.

    Parameters
    ----------
    labeled
        Moments of the classes.
    ridge
        Added to the diagonal of each scatter, >= 0.
    shared
        Whether all classes have one covariance (LDA) or each its own (QDA).
    """
    scatters = labeled.within[None] if shared else labeled.scatters
    counts = labeled.counts.sum(keepdims=True) if shared else labeled.counts
    floor = ridge * np.eye(scatters.shape[-1])
    return GaussianClasses(
        labeled.counts / labeled.counts.sum(),
        labeled.means,
        (scatters + floor) / counts[:, None, None],
    )


def is_singular(
    covariance: NDArray[np.float64], variances: NDArray[np.float64]
) -> bool:
    """Whether a covariance is singular to rounding, whatever the features' units.

    Parameters
    ----------
    covariance
        Shape (d, d).
    variances
        Variance of each feature over all rows, the yardstick, shape (d,).
    """
    if not (variances > 0.0).all():
        return True
    scale = np.sqrt(variances)
    eigenvalues = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    return bool(eigenvalues[0] <= _SINGULAR * eigenvalues[-1])
