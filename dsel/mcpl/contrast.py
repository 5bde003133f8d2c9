"""The contrast of LDA as a function of the pool's class sums, with two derivatives."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsel.arrays import Floats
from dsel.mcpl.gaussian import GaussianClasses, Moments, whiten


@dataclass(frozen=True)
class LDAContrast:
    r"""The best contrast with the supervised fit that class sums of the pool allow.

    In coordinates where the covariance of all n rows is the identity, with
    :math:`n_k = N_k + \nu_k`, :math:`T_k` the sum of the labeled rows of class k
    plus :math:`S_k`, and :math:`\Sigma = I - \sum_k \pi_k \mu_k \mu_k'`,

    .. math:: g = \sum_k n_k \ln \pi_k - \tfrac n2 (\ln\det\Sigma + d)
       - \sum_k [n_k \beta_k + \alpha_k' T_k]
       + \tfrac n2 (\ln\det\Sigma_s + \mathrm{tr}\,\Sigma_s^{-1}).

    It is convex in :math:`(\nu, S)`. A *point* holds one row ``(nu_k, S_k)`` for each
    class, flattened. A ridge is part of the whitening and changes no formula.
    """

    shift: Floats
    """The coordinates are z with ``x = shift + factor z``, shape (d,)."""
    factor: Floats
    """Lower triangular L, shape (d, d)."""
    masses: Floats
    """Labeled rows of each class, shape (K,)."""
    sums: Floats
    """Sums of the labeled rows of each class, shape (K, d)."""
    n_rows: float
    """Labeled rows and pool."""
    supervised: Floats
    """Supervised log-density of z, less what all classes share: a row (constant,
    slopes) for each class, shape (K, 1 + d)."""
    offset: float
    """What all classes share of it, mean over all rows."""

    def expand(self, point: Floats) -> "LDAExpansion":
        """Return the contrast around a point."""
        rows = point.reshape(len(self.masses), -1)
        return LDAExpansion(self, self.masses + rows[:, 0], self.sums + rows[:, 1:])

    def whiten_sums(self, sums: Floats, origin: Floats) -> Floats:
        """Return class sums of ``x - origin`` as those of z, shape (..., 1 + d)."""
        rows = sums.reshape(-1, sums.shape[-1])
        # x - shift = (x - origin) + step: sums about one point from sums about another.
        steps = rows[:, 1:] + rows[:, :1] * (origin - self.shift)
        moved = np.column_stack([rows[:, 0], whiten(self.factor, steps)])
        return moved.reshape(sums.shape)

    def scores_about(self, gradient: Floats, origin: Floats) -> Floats:
        """Return what a row adds by going to each class, as functions of x - origin."""
        rows = gradient.reshape(len(self.masses), -1)
        # z = L^-1 (x - origin) + start is put into the functions of z.
        start = whiten(self.factor, (origin - self.shift)[None])[0]
        mapped = solve_triangular(self.factor, rows[:, 1:].T, lower=True, trans="T")
        return np.column_stack([rows[:, 0] + rows[:, 1:] @ start, mapped.T])

    def classes(self, point: Floats) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""
        here, factor = self.expand(point), self.factor
        return GaussianClasses(
            here.priors,
            self.shift + here.means @ factor.T,
            factor @ here.covariance @ factor.T,
        )


class LDAExpansion:
    """The contrast and its two derivatives around one point.

    The covariance is the identity less a matrix of rank K - 1, so its determinant
    and inverse are had from K x K matrices.
    """

    def __init__(self, contrast: LDAContrast, masses: Floats, sums: Floats) -> None:
        self._contrast, self._masses, self._sums = contrast, masses, sums
        # Maximum likelihood at soft labels: priors n_k / n and means T_k / n_k.
        self.priors = masses / contrast.n_rows
        self.means = sums / masses[:, None]
        roots = np.sqrt(self.priors)
        self._spread = roots[:, None] * self.means
        # Sylvester: det(I_d - A'A) = det(I_K - AA') with A = sqrt(pi) mu, K x d.
        core = np.eye(len(masses)) - self._spread @ self._spread.T
        self._factor = np.linalg.cholesky(core)
        # Woodbury: (I - A'A)^-1 mu_k from the inverse of the K x K matrix.
        self._inner = np.linalg.inv(core)
        self._linear = (self._inner @ self._spread) / roots[:, None]

    @property
    def covariance(self) -> Floats:
        """Covariance of the classes, shape (d, d)."""
        return np.asarray(np.eye(self.means.shape[1]) - self._spread.T @ self._spread)

    @property
    def value(self) -> float:
        """Contrast g at the point, in nats."""
        contrast = self._contrast
        log_det = 2.0 * np.log(np.diag(self._factor)).sum()
        fitted = self._masses @ np.log(self.priors) - 0.5 * contrast.n_rows * (
            log_det + self.means.shape[1]
        )
        constants, slopes = contrast.supervised[:, 0], contrast.supervised[:, 1:]
        reference = self._masses @ constants + np.sum(self._sums * slopes)
        return float(fitted - reference - contrast.n_rows * contrast.offset)

    @property
    def gradient(self) -> Floats:
        """Derivatives with respect to the masses and sums, shape (K (1 + d),)."""
        # Envelope theorem: the derivative of the maximum is that of the log-densities
        # at the fitted parameters.
        squares = np.einsum("kd,kd->k", self._linear, self.means)
        scores = np.column_stack([np.log(self.priors) - 0.5 * squares, self._linear])
        return np.asarray(scores - self._contrast.supervised).ravel()

    def curvature(self, directions: Floats) -> Floats:
        """Return the Hessian times each row of `directions`, same shape."""
        n_classes, n_features = self.means.shape
        rows = directions.reshape(-1, n_classes, 1 + n_features)
        d_mass, d_sum = rows[:, :, 0], rows[:, :, 1:]
        d_mean = (d_sum - d_mass[:, :, None] * self.means) / self._masses[:, None]
        # dS = -(1/n) sum_k [n_k (dmu_k mu_k' + mu_k dmu_k') + dn_k mu_k mu_k'], of low
        # rank and never formed, applied to the K linear parts at once.
        inner = self.means @ self._linear.T
        d_inner = d_mean.reshape(-1, n_features) @ self._linear.T
        d_inner = d_inner.reshape(-1, n_classes, n_classes)
        weights = self._masses[:, None] * d_inner + d_mass[:, :, None] * inner
        turned = inner.T @ (self._masses[:, None] * d_mean)
        turned += np.swapaxes(weights, 1, 2) @ self.means
        turned /= -self._contrast.n_rows
        # d(S^-1 mu) = S^-1 (d mu - dS S^-1 mu).
        steps = (d_mean - turned).reshape(-1, n_features)
        # S^-1 times the steps, by Woodbury again.
        across = (steps @ self._spread.T) @ self._inner
        d_linear = (steps + across @ self._spread).reshape(d_mean.shape)
        d_constant = d_mass / self._masses + np.einsum(
            "kd,rkd->rk", self._linear, 0.5 * turned - d_mean
        )
        products = np.concatenate([d_constant[:, :, None], d_linear], axis=2)
        return np.asarray(products.reshape(directions.shape))


def lda_contrast(
    labeled: Moments, supervised: GaussianClasses, pool: Moments, *, ridge: float
) -> LDAContrast:
    """Return the contrast for labeled rows, the fit to them, and a pool's moments.

    The ridge is added to the diagonal of every scatter; the likelihoods on both sides
    of the contrast are then penalised by ``-ridge/2 tr(inverse covariance)``.
    """
    centre = labeled.total.means[0]
    everything = labeled.total.merged(pool)
    scatter = everything.scatter + ridge * np.eye(len(centre))
    factor = np.asarray(np.linalg.cholesky(scatter / everything.count))
    shift = everything.means[0]
    # Relative to the labeled mean, so that no difference of large values is taken.
    steps = whiten(factor, supervised.means - centre)
    start = whiten(factor, (centre - shift)[None])[0]
    # L^-1 S L^-T, by a triangular solve from each side.
    covariance = whiten(factor, whiten(factor, supervised.covariance).T)
    scores = GaussianClasses(supervised.priors, steps, covariance).scores_about(
        np.zeros_like(start)
    )
    # What the classes share may be larger by many orders: it goes to the offset.
    scores[:, 0] -= scores[:, 1:] @ start
    # Mean over all rows of z'S_s^-1 z, z taken from the labeled mean: there the rows
    # have mean -start and covariance I.
    precision = np.linalg.inv(covariance)
    shared = np.trace(precision) + start @ precision @ start
    return LDAContrast(
        shift=shift,
        factor=factor,
        masses=labeled.counts,
        sums=labeled.counts[:, None] * (steps + start),
        n_rows=everything.count,
        supervised=scores,
        offset=float(-0.5 * (np.linalg.slogdet(covariance).logabsdet + shared)),
    )
