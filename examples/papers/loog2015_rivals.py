"""The paper's rival of MCPL, which uses a pool otherwise and carries no guarantee.

Rows are in memory, class codes all occur, and `ridge` is added to the diagonal of every
scatter matrix.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

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
        centre = self.means.mean(axis=0)  # squares of far rows would cost digits
        factor = np.linalg.cholesky(self.covariance)
        rows, means = (
            solve_triangular(factor, (each - centre).T, lower=True).T
            for each in (X, self.means)
        )
        scores = rows @ means.T - 0.5 * (means**2).sum(axis=1)
        scores -= 0.5 * (rows**2).sum(axis=1)[:, np.newaxis]
        constant = np.log(np.diag(factor)).sum() + 0.5 * X.shape[1] * np.log(2 * np.pi)
        return scores + np.log(self.priors) - constant


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


def moment_constrained(X: Floats, y: Floats, pool: Floats, ridge: float) -> Lda:
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
    root = root_of_ratio(everywhere, here)
    means = (fit.means - X.mean(axis=0)) @ root.T + everything.mean(axis=0)
    return Lda(fit.priors, means, root @ fit.covariance @ root.T)


def root_of_ratio(above: Floats, below: Floats) -> Floats:
    """Return the root A of ``above below^-1`` with positive eigenvalues.

    ``A below A'`` is `above`: in coordinates in which `below` is the identity, A is the
    symmetric root of `above`. It does not depend on coordinates.
    """
    lower = np.linalg.cholesky(below)
    half = np.linalg.solve(lower, above)
    values, vectors = np.linalg.eigh(np.linalg.solve(lower, half.T))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.linalg.solve(lower.T, (lower @ root).T).T
