"""Maximum contrastive pessimistic likelihood: the saddle point and its certificate.

For soft labels q of the pool, g(q) is the best log-likelihood of all rows minus that
of the supervised fit. It is convex in q, and its minimum is the value of the saddle
point. Since g depends on q only through class sums, it is minimized over these. The gap
is the exact duality gap: ``g - gap`` is a lower limit of the contrast of the estimate
under every labeling of the pool.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any, Final

import numpy as np
from scipy.linalg import solve_triangular

from dsel.arrays import Floats
from dsel.mcpl.frank_wolfe import CONVERGED, Hull, Minimum, minimize_over_polytope
from dsel.mcpl.gaussian import (
    GaussianClasses,
    Moments,
    chunk_class_sums,
    fit_labeled_rows,
    moments_of,
    read_summary,
    whiten,
)

_SAMPLE_TOL: Final = 1e-5
_N_PARTS: Final = 8
"""Parts of the pool whose labelings have weights of their own. More parts need fewer
passes and more work between them: 8 take about half the passes of 1 for the same
work."""


def fit_contrast(
    labeled: Moments,
    pool: Any,
    *,
    ridge: float,
    tol: float,
    max_passes: int,
    start_rows: int,
) -> tuple[GaussianClasses, float, float, int, str]:
    """Fit to labeled rows and an opened pool; `pool` is None for a pool without rows.

    Returns the estimate and, as attributes of `SemiSupervisedLDA`, the duality gap and
    the lower limit of the contrast per row, the number of passes, and the status of the
    solver. A subsample of `start_rows` is solved first (0: none), unless the pool has
    less than twice as many. Raises ValueError where the labeled rows have no supervised
    fit.
    """
    supervised = fit_labeled_rows(labeled, ridge=ridge)
    # The supervised fit maximizes the likelihood, so there is nothing to gain.
    if pool is None:
        return supervised, 0.0, 0.0, 0, CONVERGED
    origin = labeled.total.means[0]
    # Rows go to the class with the smallest value, so scores change their sign.
    functions = [-supervised.scores_about(origin)]
    parts = np.arange(_N_PARTS)
    start = Hull(np.empty((_N_PARTS, 0)), parts, 0 * parts, np.ones(_N_PARTS))
    # A subsample pays only where it is much smaller than the pool.
    n_sampled = start_rows if pool.n_rows > 2 * start_rows else 0
    moments, sample = read_summary(pool, n_sampled=n_sampled)
    contrast_with = partial(lda_contrast, labeled, supervised, ridge=ridge)
    n_rows = len(sample)
    if n_rows:
        # A sampled row stands for several pool rows, so that labeled rows keep their
        # weight relative to the pool.
        weight, sampled = moments.count / n_rows, moments_of(sample)
        weighted = Moments(
            weight * sampled.counts, sampled.means, weight * sampled.scatter
        )
        # The solution of the sample is only a starting point: a loose `tol` is enough.
        start = _solve(
            contrast_with(weighted),
            functions,
            start,
            origin,
            n_rows,
            lambda count: weight * count(sample, np.arange(n_rows)),
            tol=max(tol, _SAMPLE_TOL),
            max_passes=max_passes,
        ).hull
    contrast = contrast_with(moments)
    minimum = _solve(
        contrast,
        functions,
        start,
        origin,
        int(pool.boundaries[-1]),
        partial(pool.reduce, combine=add, keep=True, name="responsibilities"),
        tol=tol,
        max_passes=max_passes,
    )
    # Two passes precede those of the solver: moments, and the labelings to start from.
    n_passes = minimum.n_passes + 2
    # Without a certified gain return the supervised estimate, whose contrast is 0 by
    # definition.
    if minimum.lower < 0.0:
        return supervised, 0.0, 0.0, n_passes, minimum.status
    gap, lower = minimum.gap / contrast.n_rows, minimum.lower / contrast.n_rows
    return contrast.classes(minimum.hull.point), gap, lower, n_passes, minimum.status


def _solve(
    contrast: "LDAContrast",
    functions: list[Floats],
    start: Hull,
    origin: Floats,
    n_rows: int,
    read: Callable[[Any], Floats],
    *,
    tol: float,
    max_passes: int,
) -> Minimum:
    """Minimize the contrast over all soft labelings of some rows.

    `read` takes a function of a chunk and its row numbers, below `n_rows`, and adds up
    its results over all chunks. The vertices of `start` are computed anew for these
    rows: their pass numbers, and those of the returned minimum, are positions in
    `functions`, by which rows are labeled.
    """
    # Only functions whose vertices have positive weight are evaluated on these rows.
    pass_numbers, positions = np.unique(start.pass_numbers, return_inverse=True)
    functions[:] = [functions[n] for n in pass_numbers]
    # Parts are runs of consecutive rows of equal length.
    cuts = [n_rows * part // _N_PARTS for part in range(1, _N_PARTS)]

    def vertices(wanted: list[Floats]) -> Floats:
        sums = read(
            partial(chunk_class_sums, functions=wanted, origin=origin, cuts=cuts)
        )
        return contrast.whiten_sums(sums, origin).reshape(len(wanted), _N_PARTS, -1)

    def lowest(gradient: Floats) -> Floats:
        # The gradient is linear in sums over rows, so the lowest class of each row
        # minimizes it over all labelings: the vertex that Frank-Wolfe needs.
        functions.append(contrast.scores_about(gradient, origin))
        return np.asarray(vertices(functions[-1:])[0])

    known = vertices(functions)[positions, start.parts]
    return minimize_over_polytope(
        contrast,
        Hull(known, start.parts, positions, start.weights),
        lowest,
        tol=tol * contrast.n_rows,
        max_passes=max_passes,
    )


@dataclass(frozen=True)
class LDAContrast:
    r"""The contrast with the supervised fit, maximized over models, by class sums.

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
    """Number of labeled and pool rows together."""
    supervised: Floats
    """Supervised log-density of z without the term that all classes share: a row
    (constant, slopes) for each class, shape (K, 1 + d)."""
    offset: float
    """The shared term, averaged over all rows."""

    def expand(self, point: Floats) -> "LDAExpansion":
        """Return the contrast around a point."""
        rows = point.reshape(len(self.masses), -1)
        return LDAExpansion(self, self.masses + rows[:, 0], self.sums + rows[:, 1:])

    def whiten_sums(self, sums: Floats, origin: Floats) -> Floats:
        """Return class sums of ``x - origin`` as those of z, shape (..., 1 + d)."""
        rows = sums.reshape(-1, sums.shape[-1])
        # x - shift = (x - origin) + (origin - shift): sums about another point.
        steps = rows[:, 1:] + rows[:, :1] * (origin - self.shift)
        moved = np.column_stack([rows[:, 0], whiten(self.factor, steps)])
        return moved.reshape(sums.shape)

    def scores_about(self, gradient: Floats, origin: Floats) -> Floats:
        """Return the gain of a row in each class, as functions of x - origin."""
        rows = gradient.reshape(len(self.masses), -1)
        # z = L^-1 (x - origin) + start is put into the functions of z.
        start = whiten(self.factor, (origin - self.shift)[None])[0]
        mapped = solve_triangular(self.factor, rows[:, 1:].T, lower=True, trans="T")
        return np.column_stack([rows[:, 0] + rows[:, 1:] @ start, mapped.T])

    def classes(self, point: Floats) -> GaussianClasses:
        """Return the maximum likelihood estimate, in the original coordinates."""
        here, factor = self.expand(point), self.factor
        covariance = np.eye(len(factor)) - here.spread.T @ here.spread
        return GaussianClasses(
            here.priors,
            self.shift + here.means @ factor.T,
            factor @ covariance @ factor.T,
        )


class LDAExpansion:
    """The contrast and its two derivatives around one point.

    The covariance is the identity minus a matrix of rank K - 1, so its determinant and
    inverse follow from K x K matrices.
    """

    def __init__(self, contrast: LDAContrast, masses: Floats, sums: Floats) -> None:
        self._contrast, self._masses, self._sums = contrast, masses, sums
        # The maximum likelihood estimates at soft labels are priors n_k / n and means
        # T_k / n_k.
        self.priors = masses / contrast.n_rows
        self.means = sums / masses[:, None]
        roots = np.sqrt(self.priors)
        self.spread = roots[:, None] * self.means
        # Sylvester: det(I_d - A'A) = det(I_K - AA') with A = sqrt(pi) mu, K x d.
        core = np.eye(len(masses)) - self.spread @ self.spread.T
        self._factor = np.linalg.cholesky(core)
        # Woodbury: (I - A'A)^-1 mu_k from the inverse of the K x K matrix.
        self._inner = np.linalg.inv(core)
        self._linear = (self._inner @ self.spread) / roots[:, None]

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
        # By the envelope theorem the derivative of the maximum is that of the
        # log-densities at the fitted parameters.
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
        products = inner.T @ (self._masses[:, None] * d_mean)
        products += np.swapaxes(weights, 1, 2) @ self.means
        products /= -self._contrast.n_rows  # dS S^-1 mu_k for each class k
        # d(S^-1 mu) = S^-1 (d mu - dS S^-1 mu).
        steps = (d_mean - products).reshape(-1, n_features)
        # Multiply S^-1 by the steps, by the Woodbury identity again.
        across = (steps @ self.spread.T) @ self._inner
        d_linear = (steps + across @ self.spread).reshape(d_mean.shape)
        d_constant = d_mass / self._masses + np.einsum(
            "kd,rkd->rk", self._linear, 0.5 * products - d_mean
        )
        results = np.concatenate([d_constant[:, :, None], d_linear], axis=2)
        return np.asarray(results.reshape(directions.shape))


def lda_contrast(
    labeled: Moments, supervised: GaussianClasses, pool: Moments, *, ridge: float
) -> LDAContrast:
    """Return the contrast for labeled rows, the fit to them, and a pool's moments.

    The ridge is added to the diagonal of every scatter; the likelihoods on both sides
    of the contrast are then penalized by ``-ridge/2 tr(inverse covariance)``.
    """
    center = labeled.total.means[0]
    all_moments = labeled.total.merge(pool)
    scatter = all_moments.scatter + ridge * np.eye(len(center))
    factor = np.asarray(np.linalg.cholesky(scatter / all_moments.count))
    shift = all_moments.means[0]
    # Values are relative to the labeled mean, so that large values are not subtracted.
    steps = whiten(factor, supervised.means - center)
    start = whiten(factor, (center - shift)[None])[0]
    # L^-1 S L^-T, by a triangular solve from each side.
    covariance = whiten(factor, whiten(factor, supervised.covariance).T)
    scores = GaussianClasses(supervised.priors, steps, covariance).scores_about(
        np.zeros_like(start)
    )
    # The term that the classes share may be larger by many orders of magnitude, so it
    # is kept apart as the offset.
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
        n_rows=all_moments.count,
        supervised=scores,
        offset=float(-0.5 * (np.linalg.slogdet(covariance).logabsdet + shared)),
    )
