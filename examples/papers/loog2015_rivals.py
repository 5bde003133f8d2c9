"""Linear discriminant analyses that use a pool otherwise than MCPL does.

`moment_constrained` is the paper's own rival; `density_ratio` and
`implicitly_constrained` it does not run. None carries a guarantee. All take labeled
rows, class codes that all occur, a pool in memory, and what is added to the diagonal
of every scatter matrix.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize_scalar

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


def fit_lda(X: Floats, y: Floats, ridge: float, weights: Floats | None = None) -> Lda:
    """Return the maximum likelihood fit to weighted rows.

    Raises numpy's LinAlgError where the covariance is singular to rounding.
    """
    weights = np.ones(len(y)) if weights is None else weights
    sides = (y[:, np.newaxis] == np.arange(y.max() + 1)) * weights[:, np.newaxis]
    masses = sides.sum(axis=0)
    means = (sides.T @ X) / masses[:, np.newaxis]
    steps = X - means[y]
    scatter = (weights[:, np.newaxis] * steps).T @ steps + ridge * np.eye(X.shape[1])
    scale = np.sqrt(np.diag(scatter))
    if np.linalg.eigvalsh(scatter / np.outer(scale, scale))[0] < LEAST_VARIANCE:
        raise np.linalg.LinAlgError("singular covariance")
    return Lda(masses / masses.sum(), means, scatter / masses.sum())


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


def density_ratio(X: Floats, y: Floats, pool: Floats, ridge: float) -> Lda:
    """Return the fit to labeled rows of weights p(x | pool) / p(x | labeled).

    Both densities are Gaussian with one covariance. M. Kawakita and J. Takeuchi, Neural
    Networks 53, 2014.
    """
    fit_lda(X, y, ridge)  # raises where the supervised fit is singular, too
    here, there = X.mean(axis=0), pool.mean(axis=0)
    steps = np.vstack([X - here, pool - there])
    covariance = (steps.T @ steps + ridge * np.eye(X.shape[1])) / len(steps)
    logits = (X - (here + there) / 2.0) @ np.linalg.solve(covariance, there - here)
    weights = np.exp(logits - logits.max())
    # No class may vanish: its mean would be 0 / 0.
    return fit_lda(X, y, ridge, np.maximum(weights / weights.mean(), 1e-12))


def implicitly_constrained(
    X: Floats, y: Floats, pool: Floats, ridge: float, tol: float = 1e-6
) -> Lda:
    """Return the fit to labeled rows and a soft labeling, best on labeled rows.

    Each soft labeling of the pool gives a fit to labeled rows and pool; of all these
    fits that of the highest likelihood on the labeled rows is wanted. It is not
    concave: conditional gradient steps from the labeling by the supervised fit lead to
    a local maximum. J. Krijthe and M. Loog, ICPR 2014.
    """
    origin = pool.mean(axis=0)
    about, rows = X - origin, pool - origin
    start = fit_lda(about, y, ridge)
    target = _Target(
        np.bincount(y).astype(float),
        start.means,
        start.covariance * len(y) - ridge * np.eye(X.shape[1]),
        about.T @ about + rows.T @ rows + ridge * np.eye(X.shape[1]),
        float(len(X) + len(pool)),
    )
    linear = np.linalg.solve(start.covariance, start.means.T).T
    constants = np.log(start.priors) - 0.5 * (linear * start.means).sum(axis=1)
    sums = _labeled_by(rows, constants, linear)
    best = target.value(sums)
    for _ in range(200):
        vertex = _labeled_by(rows, *target.gradient(sums))
        found = minimize_scalar(
            lambda share, sums=sums, vertex=vertex: (
                -target.value((1.0 - share) * sums + share * vertex)
            ),
            bounds=(0.0, 1.0),
            method="bounded",
        )
        points = [(1.0 - s) * sums + s * vertex for s in (float(found.x), 1.0)]
        values = [target.value(point) for point in points]
        value, gain = max(values), max(values) - best
        if gain > 0.0:
            sums, best = points[int(np.argmax(values))], value
        if gain < tol * len(y):
            break
    fit = target.fit(sums)
    return Lda(fit.priors, fit.means + origin, fit.covariance)


def _labeled_by(rows: Floats, constants: Floats, linear: Floats) -> Floats:
    """Return mass and sum of each class where rows go to the class of highest score."""
    codes = (rows @ linear.T + constants).argmax(axis=1)
    sides = codes[:, np.newaxis] == np.arange(len(constants))
    return np.column_stack([sides.sum(axis=0), sides.T @ rows])


@dataclass(frozen=True)
class _Target:
    """Likelihood of the labeled rows under the fit to some labeling of the pool.

    It depends on the labeling through the masses and sums of its classes alone, which
    are `sums`, shape (K, d + 1). All is about the pool's mean.
    """

    counts: Floats
    means: Floats
    within: Floats
    """Scatter of the labeled rows about the means of their classes."""
    products: Floats
    """Sum of xx' over labeled rows and pool, and the ridge."""
    n_rows: float

    def fit(self, sums: Floats) -> Lda:
        """Return the maximum likelihood fit."""
        masses = self.counts + sums[:, 0]
        totals = self.counts[:, np.newaxis] * self.means + sums[:, 1:]
        means = totals / masses[:, np.newaxis]
        covariance = (self.products - means.T @ totals) / self.n_rows
        return Lda(masses / self.n_rows, means, covariance)

    def value(self, sums: Floats) -> float:
        """Return the log-likelihood of the labeled rows, but for a constant."""
        fit = self.fit(sums)
        sign, logdet = np.linalg.slogdet(fit.covariance)
        if sign <= 0:
            return -np.inf
        spread = np.trace(np.linalg.solve(fit.covariance, self._spread(fit)))
        linear = self.counts @ np.log(fit.priors)
        return float(linear - 0.5 * (self.counts.sum() * logdet + spread))

    def gradient(self, sums: Floats) -> tuple[Any, Any]:
        """Return what a row adds to it by going to each class: constants, slopes."""
        fit = self.fit(sums)
        inverse = np.linalg.inv(fit.covariance)
        steps = (self.means - fit.means) @ inverse * self.counts[:, np.newaxis]
        # Half of what the covariance's entries move the likelihood by.
        turn = inverse @ self._spread(fit) @ inverse - self.counts.sum() * inverse
        bent, masses = fit.means @ turn / 2.0, fit.priors * self.n_rows
        linear = steps / masses[:, np.newaxis] - 2.0 / self.n_rows * bent
        constants = (self.counts - (steps * fit.means).sum(axis=1)) / masses
        constants += (bent * fit.means).sum(axis=1) / self.n_rows
        return constants, linear

    def _spread(self, fit: Lda) -> Floats:
        """Return the scatter of the labeled rows about the means of a fit."""
        steps = self.means - fit.means
        return self.within + (self.counts[:, np.newaxis] * steps).T @ steps
