"""The paper's rival of MCPL, which uses a pool otherwise and carries no guarantee.

Rows are in memory, class codes all occur, and `ridge` is added to the diagonal of every
scatter matrix.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import sqrtm
from scipy.stats import Covariance, multivariate_normal

Floats = np.ndarray
LEAST_VARIANCE = 1e-14
"""Of a direction, as a share of the features' own: below it, rounding decides."""


class Lda(NamedTuple):
    """Priors, means and the shared covariance of Gaussian classes."""

    priors: Floats
    means: Floats
    covariance: Floats

    def log_joint(self, X: Floats) -> Floats:
        """Return ln p(x, k), shape (n_rows, K)."""
        shared = Covariance.from_cholesky(np.linalg.cholesky(self.covariance))
        found = [multivariate_normal(mean, shared).logpdf(X) for mean in self.means]
        return np.transpose(found) + np.log(self.priors)


def fit_lda(X: Floats, y: Floats, ridge: float) -> Lda:
    """Return the maximum likelihood fit.

    Raises numpy's LinAlgError where the covariance is singular to rounding.
    """
    counts = np.bincount(y)
    means = (y == np.arange(len(counts))[:, np.newaxis]) @ X / counts[:, np.newaxis]
    steps = X - means[y]
    scatter = steps.T @ steps + ridge * np.eye(X.shape[1])
    scale = np.sqrt(np.diag(scatter))
    if np.linalg.eigvalsh(scatter / np.outer(scale, scale))[0] < LEAST_VARIANCE:
        raise np.linalg.LinAlgError("singular covariance")
    return Lda(counts / len(y), means, scatter / len(y))


def fit_moment_constrained(X: Floats, y: Floats, pool: Floats, ridge: float) -> Lda:
    """Return the fit after an affine map of labeled rows to the moments of all rows.

    With the mean and covariance (m, T) of labeled rows and pool, and (m_l, T_l) of the
    labeled rows, a row becomes (T T_l^-1)^1/2 (x - m_l) + m; the priors stay. M. Loog,
    Pattern Recognition Letters 37, 2014.
    """
    fit, everything = fit_lda(X, y, ridge), np.vstack([X, pool])
    here, everywhere = (
        np.cov(rows.T, bias=True).reshape(X.shape[1], -1)
        + ridge * np.eye(X.shape[1]) / len(rows)
        for rows in (X, everything)
    )
    # Eigenvalues of such a product are positive.
    root = sqrtm(np.linalg.solve(here, everywhere).T).real
    means = (fit.means - X.mean(axis=0)) @ root.T + everything.mean(axis=0)
    return Lda(fit.priors, means, root @ fit.covariance @ root.T)
