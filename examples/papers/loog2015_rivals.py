"""Linear discriminant analyses that use a pool otherwise than MCPL does.

`moment_constrained` is the paper's own rival; `density_ratio` and
`implicitly_constrained` it does not run. None carries a guarantee. All take labeled
rows, class codes that all occur, a pool in memory, and what is added to the diagonal
of every scatter matrix.
"""

from typing import NamedTuple

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


def labeled_by(rows: Floats, constants: Floats, linear: Floats) -> Floats:
    """Return mass and sum of each class where rows go to the class of highest score."""
    codes = (rows @ linear.T + constants).argmax(axis=1)
    sides = codes[:, np.newaxis] == np.arange(len(constants))
    return np.column_stack([sides.sum(axis=0), sides.T @ rows])


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
    counts, n_rows = np.bincount(y).astype(float), float(len(X) + len(pool))
    loads = ridge * np.eye(X.shape[1])
    products = about.T @ about + rows.T @ rows + loads

    # The likelihood depends on the labeling through masses and sums of its classes
    # alone, which are `sums`, shape (K, d + 1).
    def fit_to(sums: Floats) -> tuple[Lda, Floats]:
        """Return the fit, and the scatter of the labeled rows about its means."""
        masses = counts + sums[:, 0]
        totals = counts[:, np.newaxis] * start.means + sums[:, 1:]
        means = totals / masses[:, np.newaxis]
        fit = Lda(masses / n_rows, means, (products - means.T @ totals) / n_rows)
        steps = start.means - means
        within = start.covariance * len(y) - loads
        return fit, within + (counts[:, np.newaxis] * steps).T @ steps

    def value(sums: Floats) -> float:
        """Return the log-likelihood of the labeled rows, but for a constant."""
        fit, scatter = fit_to(sums)
        sign, logdet = np.linalg.slogdet(fit.covariance)
        if sign <= 0:
            return -np.inf
        spread = np.trace(np.linalg.solve(fit.covariance, scatter))
        return float(counts @ np.log(fit.priors) - (len(y) * logdet + spread) / 2)

    def best_vertex(sums: Floats) -> Floats:
        """Return the sums of the hard labeling along the gradient."""
        fit, scatter = fit_to(sums)
        inverse, masses = np.linalg.inv(fit.covariance), fit.priors * n_rows
        steps = (start.means - fit.means) @ inverse * counts[:, np.newaxis]
        # Half of what the covariance's entries move the likelihood by.
        bent = fit.means @ (inverse @ scatter @ inverse - len(y) * inverse) / 2.0
        linear = steps / masses[:, np.newaxis] - 2.0 / n_rows * bent
        constants = (counts - (steps * fit.means).sum(axis=1)) / masses
        constants += (bent * fit.means).sum(axis=1) / n_rows
        return labeled_by(rows, constants, linear)

    linear = np.linalg.solve(start.covariance, start.means.T).T
    constants = np.log(start.priors) - 0.5 * (linear * start.means).sum(axis=1)
    sums = labeled_by(rows, constants, linear)
    best = value(sums)
    for _ in range(200):
        step = best_vertex(sums) - sums
        found = minimize_scalar(
            lambda share, sums=sums, step=step: -value(sums + share * step),
            bounds=(0.0, 1.0),
            method="bounded",
        )
        points = [sums + share * step for share in (float(found.x), 1.0)]
        values = [value(point) for point in points]
        gain = max(values) - best
        if gain > 0.0:
            sums, best = points[int(np.argmax(values))], max(values)
        if gain < tol * len(y):
            break
    fit, _ = fit_to(sums)
    return Lda(fit.priors, fit.means + origin, fit.covariance)
