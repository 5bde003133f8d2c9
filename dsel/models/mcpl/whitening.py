"""Affine coordinates in which the covariance of all rows is the identity."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsel.families.arrays import Floats
from dsel.models.mcpl.gaussian import GaussianClasses, Moments
from dsel.models.mcpl.pool_passes import ClassScores, sums_of


@dataclass(frozen=True)
class Whitening:
    """Coordinates z with ``x = shift + factor z``."""

    shift: Floats
    """Shape (d,)."""
    factor: Floats
    """Lower triangular L, shape (d, d)."""

    def whiten(self, steps: Floats) -> Floats:
        """Return L^-1 times each row: differences of rows, shape (r, d)."""
        return np.asarray(solve_triangular(self.factor, steps.T, lower=True).T)

    def whiten_matrix(self, matrices: Floats) -> Floats:
        """Return L^-1 A L^-T for each matrix of shape (..., d, d)."""
        inverse = self.whiten(np.eye(len(self.shift))).T
        return np.asarray(inverse @ matrices @ inverse.T)

    def whiten_sums(self, sums: Floats, origin: Floats) -> Floats:
        """Return sums of ``x - origin`` as sums of z, shape (K, 1 + d [+ d^2])."""
        # x - shift = (x - origin) + step: sums about one point from sums about another.
        step, n_features = origin - self.shift, len(origin)
        masses, of_rows = sums[:, :1], sums[:, 1 : 1 + n_features]
        moved = self.whiten(of_rows + masses * step)
        if sums.shape[1] == 1 + n_features:
            return sums_of(masses[:, 0], moved)
        products = sums[:, 1 + n_features :].reshape(-1, n_features, n_features)
        cross = of_rows[:, :, None] * step
        within = masses[:, :, None] * np.outer(step, step)
        products = products + cross + np.swapaxes(cross, 1, 2) + within
        return sums_of(masses[:, 0], moved, self.whiten_matrix(products))

    def scores_about(self, scores: ClassScores, origin: Floats) -> ClassScores:
        """Return functions of z as functions of ``x - origin``."""
        # z = L^-1 (x - origin) + start is put into the functions of z.
        start = self.whiten((origin - self.shift)[None])[0]
        constants = scores.constants + scores.linear @ start
        linear = scores.linear
        quadratic = None
        if scores.quadratic is not None:
            # (u + s)'A(u + s) = u'Au + 2 (As)'u + s'As.
            bent = scores.quadratic @ start
            constants = constants + bent @ start
            linear = linear + 2.0 * bent
            back = self.whiten(np.eye(len(self.shift))).T
            quadratic = back.T @ scores.quadratic @ back
        mapped = solve_triangular(self.factor, linear.T, lower=True, trans="T").T
        return ClassScores(constants, np.asarray(mapped), quadratic)

    def unwhiten(self, classes: GaussianClasses) -> GaussianClasses:
        """Return Gaussian classes given in z in the original coordinates."""
        return GaussianClasses(
            classes.priors,
            self.shift + classes.means @ self.factor.T,
            self.factor @ classes.covariances @ self.factor.T,
        )


def log_density_scores(classes: GaussianClasses, origin: Floats) -> ClassScores:
    """Return ln p(x, k) of ``x - origin``, without what all classes share.

    With one covariance the scores are linear, with one for each class quadratic.
    """
    means = classes.means - origin
    # ln p(x, k) = ln pi - ln det S / 2 - (x - m)'S^-1 (x - m) / 2, by powers of x.
    precisions = np.asarray(np.linalg.inv(classes.covariances))
    linear = np.einsum("...de,...e->...d", precisions, means)
    constants = np.log(classes.priors) - 0.5 * np.einsum("kd,kd->k", linear, means)
    if len(precisions) == 1:
        # With one covariance x'S^-1 x and the determinant are the same for all classes.
        return ClassScores(constants, linear)
    log_dets = np.linalg.slogdet(classes.covariances)[1]
    return ClassScores(constants - 0.5 * log_dets, linear, -0.5 * precisions)


def whitening_of(total: Moments, *, ridge: float) -> Whitening:
    """Return coordinates in which (scatter + ridge I) / count is the identity."""
    covariance = (total.scatter + ridge * np.eye(len(total.mean))) / total.count
    return Whitening(total.mean, np.asarray(np.linalg.cholesky(covariance)))
