"""Contrasts of LDA and of the nearest mean as functions of the pool's class sums."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dsel.families.arrays import Floats
from dsel.models.mcpl.gaussian import (
    ClassMoments,
    GaussianClasses,
    Moments,
    maximum_likelihood,
)
from dsel.models.mcpl.pool_passes import ClassScores
from dsel.models.mcpl.whitening import Whitening, whitening_of


@dataclass(frozen=True)
class LDAContrast:
    r"""The best contrast with the supervised fit that class sums of the pool allow.

    In coordinates where the covariance of all n rows is the identity, with
    :math:`n_k = N_k + \nu_k`, :math:`T_k` the sum of the labeled rows of class k
    plus :math:`S_k`, and :math:`\Sigma = I - \sum_k \pi_k \mu_k \mu_k'`,

    .. math:: g = \sum_k n_k \ln \pi_k - \tfrac n2 (\ln\det\Sigma + d)
       - \sum_k [n_k \beta_k + \alpha_k' T_k]
       + \tfrac n2 (\ln\det\Sigma_s + \mathrm{tr}\,\Sigma_s^{-1}).

    It is convex in :math:`(\nu, S)`. A point holds one row ``(nu_k, S_k)`` for each
    class, flattened. A ridge is part of the whitening and changes no formula.
    """

    whitening: Whitening
    masses: Floats
    """Labeled rows of each class, shape (K,)."""
    sums: Floats
    """Sums of the labeled rows of each class, shape (K, d)."""
    n_rows: float
    supervised: ClassScores
    """Supervised log-density, about the labeled mean, less what all classes share."""
    offset: float
    """What all classes share of the supervised log-density, mean over all rows."""

    def expand(self, point: Floats) -> "LDAExpansion":
        """Return the contrast around a point."""
        rows = point.reshape(len(self.masses), -1)
        return LDAExpansion(self, self.masses + rows[:, 0], self.sums + rows[:, 1:])

    def classes(self, point: Floats) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""
        here = self.expand(point)
        return self.whitening.unwhiten(
            GaussianClasses(here.priors, here.means, here.covariance[None])
        )


class LDAExpansion:
    """The contrast of LDA and its two derivatives around one point.

    The covariance is the identity less a matrix of rank K - 1, so its determinant
    and inverse are had from K x K matrices.
    """

    def __init__(
        self,
        contrast: LDAContrast,
        masses: Floats,
        sums: Floats,
    ) -> None:
        self._contrast = contrast
        self._masses = masses
        # Maximum likelihood at soft labels: priors n_k / n and means T_k / n_k.
        self.priors = masses / contrast.n_rows
        self.means = sums / masses[:, None]
        roots = np.sqrt(self.priors)
        self._spread = roots[:, None] * self.means
        # Sylvester: det(I_d - A'A) = det(I_K - AA') with A = sqrt(pi) mu, K x d.
        core = np.eye(len(masses)) - self._spread @ self._spread.T
        self._factor = np.linalg.cholesky(core)
        self._inner = np.linalg.inv(core)
        self._sums = sums
        # Woodbury: (I - A'A)^-1 mu_k from the inverse of the K x K matrix.
        self._linear = (self._inner @ self._spread) / roots[:, None]

    @property
    def covariance(self) -> Floats:
        """Shared covariance, shape (d, d)."""
        return np.asarray(np.eye(self.means.shape[1]) - self._spread.T @ self._spread)

    @property
    def value(self) -> float:
        """Contrast g at the point, in nats."""
        contrast = self._contrast
        log_det = 2.0 * np.log(np.diag(self._factor)).sum()
        fitted = self._masses @ np.log(self.priors) - 0.5 * contrast.n_rows * (
            log_det + self.means.shape[1]
        )
        scores = contrast.supervised
        reference = self._masses @ scores.constants + np.sum(self._sums * scores.linear)
        return float(fitted - reference - contrast.n_rows * contrast.offset)

    @property
    def gradient(self) -> Floats:
        """Derivatives with respect to the masses and sums, shape (K (1 + d),)."""
        scores = self._contrast.supervised
        # Envelope theorem: the derivative of the maximum is that of the log-densities
        # at the fitted parameters.
        squares = np.einsum("kd,kd->k", self._linear, self.means)
        constants = np.log(self.priors) - 0.5 * squares - scores.constants
        return np.column_stack([constants, self._linear - scores.linear]).ravel()

    def curvature(self, directions: Floats) -> Floats:
        """Return the Hessian times each row of `directions`, same shape."""
        n_classes, n_features = self.means.shape
        rows = directions.reshape(-1, n_classes, 1 + n_features)
        d_mass, d_sum = rows[:, :, 0], rows[:, :, 1:]
        d_mean = (d_sum - d_mass[:, :, None] * self.means) / self._masses[:, None]
        # d(S^-1 mu) = S^-1 (d mu - dS S^-1 mu): the change of the inverse is never
        # formed.
        turned = self._d_covariance_times_linear(d_mass, d_mean)
        steps = (d_mean - turned).reshape(-1, n_features)
        # S^-1 times the steps, by Woodbury again.
        across = (steps @ self._spread.T) @ self._inner
        d_linear = (steps + across @ self._spread).reshape(d_mean.shape)
        d_constant = d_mass / self._masses + np.einsum(
            "kd,rkd->rk", self._linear, 0.5 * turned - d_mean
        )
        products = np.concatenate([d_constant[:, :, None], d_linear], axis=2)
        return np.asarray(products.reshape(directions.shape))

    def _d_covariance_times_linear(self, d_mass: Floats, d_mean: Floats) -> Floats:
        """Return the change of the covariance, times each class's linear part.

        The change has low rank: it is never formed.
        """
        n_classes, n_features = self.means.shape
        # dS = -(1/n) sum_k [n_k (dmu_k mu_k' + mu_k dmu_k') + dn_k mu_k mu_k'], applied
        # to the K linear parts at once.
        inner = self.means @ self._linear.T
        d_inner = (d_mean.reshape(-1, n_features) @ self._linear.T).reshape(
            -1, n_classes, n_classes
        )
        moved = self._masses[:, None] * d_mean
        along = inner.T @ moved
        weights = self._masses[:, None] * d_inner + d_mass[:, :, None] * inner
        across = np.swapaxes(weights, 1, 2) @ self.means
        return np.asarray(-(along + across) / self._contrast.n_rows)


def lda_contrast(labeled: ClassMoments, pool: Moments, *, ridge: float) -> LDAContrast:
    """Return the contrast of LDA for labeled rows, of regular covariance, and a pool.

    The ridge is added to the diagonal of every scatter; the likelihoods on both sides
    of the contrast are then penalised by ``-ridge/2 tr(inverse covariance)``.
    """
    total = labeled.total.merged(pool)
    whitening = whitening_of(total, ridge=ridge)
    fit = maximum_likelihood(labeled, ridge=ridge, shared=True)
    centre = labeled.total.mean
    # Relative to the labeled mean, so that no difference of large values is taken.
    steps = whitening.whiten(fit.means - centre)
    start = whitening.whiten((centre - whitening.shift)[None])[0]
    factor = cho_factor(whitening.whiten_matrix(fit.covariances[0]), lower=True)
    linear = cho_solve(factor, steps.T).T
    squares = np.einsum("kd,kd->k", linear, steps)
    # What the classes share may be larger by many orders: it goes to the offset.
    constants = np.log(fit.priors) - 0.5 * squares - linear @ start
    log_det = 2.0 * np.log(np.diag(factor[0])).sum()
    # Mean over all rows of z'S_s^-1 z, z taken from the labeled mean: there the rows
    # have mean -start and covariance I.
    shared = np.trace(cho_solve(factor, np.eye(len(start))))
    shared += start @ cho_solve(factor, start)
    return LDAContrast(
        whitening,
        labeled.counts,
        labeled.counts[:, None] * (steps + start),
        total.count,
        ClassScores(constants, linear),
        float(-0.5 * (log_det + shared)),
    )


@dataclass(frozen=True)
class NearestMeanContrast:
    r"""The best contrast with the supervised means that class sums allow.

    Classes are normal with identity covariance and equal priors, so

    .. math:: g = \tfrac12 \sum_k \|S_k - \nu_k m_k\|^2 / n_k

    for supervised means m. A point holds ``(nu_k, S_k)`` per class, flattened.
    """

    whitening: Whitening
    """Coordinates shifted to the mean of all rows."""
    masses: Floats
    means: Floats
    """Supervised means in these coordinates, shape (K, d)."""
    n_rows: float

    def expand(self, point: Floats) -> "NearestMeanExpansion":
        """Return the contrast around a point."""
        return NearestMeanExpansion(self, point.reshape(len(self.masses), -1))

    def classes(self, point: Floats) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""
        means = self.means + self.expand(point).shifts
        return self.whitening.unwhiten(nearest_mean_classes(means))


class NearestMeanExpansion:
    """The contrast of the nearest mean and its two derivatives around one point."""

    def __init__(self, contrast: NearestMeanContrast, rows: Floats) -> None:
        self._means = contrast.means
        self._masses = contrast.masses + rows[:, 0]
        # S_k - nu_k m_k: how far the sum of class k is from that of as many rows at
        # m_k.
        surplus = rows[:, 1:] - rows[:, :1] * contrast.means
        self.shifts = surplus / self._masses[:, None]

    @property
    def value(self) -> float:
        """Contrast g at the point, in nats."""
        return float(0.5 * self._masses @ np.einsum("kd,kd->k", *(self.shifts,) * 2))

    @property
    def gradient(self) -> Floats:
        """Derivatives with respect to the masses and sums, flattened."""
        # ||x - m - s||^2 - ||x - m||^2 = -2 s'(x - m - s / 2), linear in x.
        middles = self._means + 0.5 * self.shifts
        constants = -np.einsum("kd,kd->k", self.shifts, middles)
        return np.column_stack([constants, self.shifts]).ravel()

    def curvature(self, directions: Floats) -> Floats:
        """Return the Hessian times each row of `directions`, same shape."""
        rows = directions.reshape(-1, *self._means.shape[:1], self._means.shape[1] + 1)
        d_mass = rows[:, :, :1]
        fitted = self._means + self.shifts
        d_shift = (rows[:, :, 1:] - d_mass * fitted) / self._masses[:, None]
        d_constant = -np.einsum("rkd,kd->rk", d_shift, fitted)
        products = np.concatenate([d_constant[:, :, None], d_shift], axis=2)
        return np.asarray(products.reshape(directions.shape))


def nearest_mean_classes(means: Floats) -> GaussianClasses:
    """Return classes of equal priors and identity covariance about `means`."""
    n_classes, n_features = means.shape
    return GaussianClasses(
        np.full(n_classes, 1.0 / n_classes), means, np.eye(n_features)[None]
    )


def nearest_mean_contrast(labeled: ClassMoments, pool: Moments) -> NearestMeanContrast:
    """Return the contrast of the nearest mean for labeled rows and a pool's moments."""
    total = labeled.total.merged(pool)
    return NearestMeanContrast(
        Whitening(total.mean, np.eye(len(total.mean))),
        labeled.counts,
        labeled.means - total.mean,
        total.count,
    )
