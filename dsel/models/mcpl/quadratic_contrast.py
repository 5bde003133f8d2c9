"""Contrast of quadratic discriminant analysis as a function of the pool's sums."""

from dataclasses import dataclass

import numpy as np

from dsel.families.arrays import Floats
from dsel.models.mcpl.gaussian import (
    ClassMoments,
    GaussianClasses,
    Moments,
    maximum_likelihood,
)
from dsel.models.mcpl.pool_passes import sums_of
from dsel.models.mcpl.whitening import Whitening, whitening_of


@dataclass(frozen=True)
class QDAContrast:
    r"""The best contrast with the supervised fit that sums of the pool allow.

    With :math:`Q_k` the sum of xx' over class k, soft labels of the pool included,
    and :math:`\Sigma_k = Q_k / n_k - \mu_k \mu_k'`,

    .. math:: g = \sum_k n_k \ln \pi_k
       - \tfrac12 \sum_k n_k (\ln\det\Sigma_k + d) - L_s,

    where the supervised log-likelihood :math:`L_s` is linear in the sums. It is
    convex. A point holds one row ``(nu_k, S_k, Q_k)`` for each class, flattened.
    """

    whitening: Whitening
    """Coordinates in which the covariance of all rows is the identity."""
    labeled: Floats
    """The same rows for the labeled data, a ridge included, shape (K, 1 + d + d d)."""
    n_rows: float
    supervised: Floats
    """Supervised log-density as a linear function of such rows, less its mean over
    the classes, same shape."""
    offset: float
    """That mean, summed over all rows."""

    def expand(self, point: Floats) -> "QDAExpansion":
        """Return the contrast around a point."""
        return QDAExpansion(self, self.labeled + point.reshape(self.labeled.shape))

    def classes(self, point: Floats) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""
        here = self.expand(point)
        return self.whitening.unwhiten(
            GaussianClasses(here.priors, here.means, here.covariances)
        )


class QDAExpansion:
    """The contrast of QDA and its two derivatives around one point."""

    def __init__(self, contrast: QDAContrast, rows: Floats) -> None:
        self._contrast = contrast
        self._rows = rows
        self._masses, sums, products = _split(rows)
        self._moments = products / self._masses[:, None, None]
        self.priors = self._masses / contrast.n_rows
        self.means = sums / self._masses[:, None]
        # Whitened, so that second moments and squared means are of one order.
        self.covariances = self._moments - _outer(self.means, self.means)
        factors = np.linalg.cholesky(self.covariances)
        diagonals = np.diagonal(factors, axis1=1, axis2=2)
        self._log_dets = 2.0 * np.log(diagonals).sum(axis=1)
        self._precisions = np.asarray(np.linalg.inv(self.covariances))

    @property
    def value(self) -> float:
        """Contrast g at the point, in nats."""
        n_features = self.means.shape[1]
        each = np.log(self.priors) - 0.5 * (self._log_dets + n_features)
        reference = np.sum(self._rows * self._contrast.supervised)
        return float(self._masses @ each - reference - self._contrast.offset)

    @property
    def gradient(self) -> Floats:
        """Derivatives with respect to masses, sums and products, flattened."""
        rows = log_density_rows(
            np.log(self.priors) - 0.5 * self._log_dets, self.means, self._precisions
        )
        return (rows - self._contrast.supervised).ravel()

    def curvature(self, directions: Floats) -> Floats:
        """Return the Hessian times each row of `directions`, same shape."""
        shape = self._rows.shape
        products = [self._product(row.reshape(shape)) for row in directions]
        return np.array([product.ravel() for product in products])

    def _product(self, row: Floats) -> Floats:
        d_mass, d_sum, d_products = _split(row)
        masses = self._masses[:, None]
        d_mean = (d_sum - d_mass[:, None] * self.means) / masses
        d_moment = (d_products - d_mass[:, None, None] * self._moments) / masses[
            :, :, None
        ]
        cross = _outer(d_mean, self.means)
        d_covariance = d_moment - cross - np.swapaxes(cross, 1, 2)
        # d(S^-1) = -S^-1 dS S^-1.
        d_precision = -self._precisions @ d_covariance @ self._precisions
        linear = np.einsum("kde,ke->kd", self._precisions, self.means)
        bent = np.einsum("kde,ke->kd", d_precision, self.means)
        d_linear = bent + np.einsum("kde,ke->kd", self._precisions, d_mean)
        d_constant = (
            d_mass / self._masses
            - 0.5 * np.einsum("kde,ked->k", self._precisions, d_covariance)
            - np.einsum("kd,kd->k", linear, d_mean)
            - 0.5 * np.einsum("kd,kd->k", bent, self.means)
        )
        return sums_of(d_constant, d_linear, -0.5 * d_precision)


def qda_contrast(labeled: ClassMoments, pool: Moments, *, ridge: float) -> QDAContrast:
    """Return the contrast of QDA for labeled rows, each class regular, and a pool.

    The ridge is added to the diagonal of every class's scatter; the likelihoods on both
    sides are then penalised by ``-ridge/2 sum_k tr(inverse covariance_k)``.
    """
    total = labeled.total.merged(pool)
    whitening = whitening_of(total, ridge=ridge)
    counts, means = labeled.counts, whitening.whiten(labeled.means - whitening.shift)
    floor = ridge * whitening.whiten_matrix(np.eye(len(total.mean)))
    scatters = whitening.whiten_matrix(labeled.scatters) + floor
    # The ridge is added to the scatter of the labeled rows of every class.
    products = scatters + counts[:, None, None] * _outer(means, means)
    fit = maximum_likelihood(labeled, ridge=ridge, shared=False)
    covariances = whitening.whiten_matrix(fit.covariances)
    log_dets = np.linalg.slogdet(covariances)[1]
    rows = sums_of(counts, counts[:, None] * means, products)
    reference = log_density_rows(
        np.log(fit.priors) - 0.5 * log_dets,
        means,
        np.asarray(np.linalg.inv(covariances)),
    )
    # What the classes share may be larger by many orders: it goes to the offset. In
    # whitened coordinates the rows add up to 0, and their squares with one ridge to a
    # multiple of the identity.
    shared = reference.mean(axis=0)
    constant, _, quadratic = _split(shared[None])
    squares = total.count * np.eye(len(total.mean)) + (len(counts) - 1) * floor
    offset = total.count * constant[0] + np.sum(quadratic[0] * squares)
    return QDAContrast(whitening, rows, total.count, reference - shared, float(offset))


def log_density_rows(offsets: Floats, means: Floats, precisions: Floats) -> Floats:
    """Return Gaussian log-densities as rows linear in (1, x, xx').

    `offsets` are those of each class at its mean, `precisions` inverse covariances.
    """
    linear = np.einsum("kde,ke->kd", precisions, means)
    constants = offsets - 0.5 * np.einsum("kd,kd->k", linear, means)
    return sums_of(constants, linear, -0.5 * precisions)


def _outer(left: Floats, right: Floats) -> Floats:
    return np.asarray(left[:, :, None] * right[:, None, :])


def _split(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the columns of masses, of sums, and of products as matrices."""
    n_features = int(np.sqrt(rows.shape[1] - 1))
    products = rows[:, 1 + n_features :].reshape(len(rows), n_features, n_features)
    return rows[:, 0], rows[:, 1 : 1 + n_features], products
