"""Contrast of the nearest mean classifier as a function of the pool's class sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel.models.affine_frame import AffineFrame, plain_frame
from dsel.models.gaussian import GaussianClasses
from dsel.models.moments import ClassMoments, Moments
from dsel.models.pool_passes import ClassScores, ClassSums


@dataclass(frozen=True)
class NearestMeanContrast:
    r"""The best contrast with the supervised means that class sums allow.

    Classes are normal with identity covariance and equal priors, so

    .. math:: g = \tfrac12 \sum_k \|S_k - \nu_k m_k\|^2 / n_k

    for supervised means m. A point holds ``(nu_k, S_k)`` per class, flattened.
    """

    frame: AffineFrame
    """Coordinates shifted to the mean of all rows."""
    masses: NDArray[np.float64]
    """Labeled rows of each class, shape (K,)."""
    means: NDArray[np.float64]
    """Supervised means in the frame, shape (K, d)."""
    n_rows: float
    """Rows in all, labeled and not."""

    def expand(self, point: NDArray[np.float64]) -> "NearestMeanExpansion":
        """Return the contrast around a point."""
        return NearestMeanExpansion(self, point.reshape(len(self.masses), -1))

    def scores(self, gradient: NDArray[np.float64]) -> ClassScores:
        """Return what a row adds to the contrast by going to each class."""
        rows = gradient.reshape(len(self.masses), -1)
        return ClassScores(rows[:, 0], rows[:, 1:])

    def point(self, sums: ClassSums) -> NDArray[np.float64]:
        """Return class sums, given in the frame, as a point."""
        return np.column_stack([sums.masses, sums.sums]).ravel()

    def classes(self, point: NDArray[np.float64]) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""
        means = self.means + self.expand(point).shifts
        return self.frame.unwhiten(nearest_mean_classes(means))


class NearestMeanExpansion:
    """The contrast of the nearest mean and its two derivatives around one point."""

    def __init__(
        self, contrast: NearestMeanContrast, rows: NDArray[np.float64]
    ) -> None:
        self._means = contrast.means
        self._masses = contrast.masses + rows[:, 0]
        surplus = rows[:, 1:] - rows[:, :1] * contrast.means
        self.shifts = surplus / self._masses[:, None]

    @property
    def value(self) -> float:
        """Contrast g at the point, in nats."""
        return float(0.5 * self._masses @ np.einsum("kd,kd->k", *(self.shifts,) * 2))

    @property
    def gradient(self) -> NDArray[np.float64]:
        """Derivatives with respect to the masses and sums, flattened."""
        middles = self._means + 0.5 * self.shifts
        constants = -np.einsum("kd,kd->k", self.shifts, middles)
        return np.column_stack([constants, self.shifts]).ravel()

    def curvature(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Hessian times each row of `directions`, same shape."""
        rows = directions.reshape(-1, *self._means.shape[:1], self._means.shape[1] + 1)
        d_mass = rows[:, :, :1]
        fitted = self._means + self.shifts
        d_shift = (rows[:, :, 1:] - d_mass * fitted) / self._masses[:, None]
        d_constant = -np.einsum("rkd,kd->rk", d_shift, fitted)
        products = np.concatenate([d_constant[:, :, None], d_shift], axis=2)
        return np.asarray(products.reshape(directions.shape))


def nearest_mean_classes(means: NDArray[np.float64]) -> GaussianClasses:
    """Return classes of equal priors and identity covariance about `means`."""
    n_classes, n_features = means.shape
    return GaussianClasses(
        np.full(n_classes, 1.0 / n_classes), means, np.eye(n_features)[None]
    )


def nearest_mean_contrast(labeled: ClassMoments, pool: Moments) -> NearestMeanContrast:
    """Return the contrast of the nearest mean for labeled rows and a pool's moments."""
    total = labeled.total.merged(pool)
    frame = plain_frame(total)
    return NearestMeanContrast(
        frame, labeled.counts, labeled.means - frame.shift, total.count
    )
