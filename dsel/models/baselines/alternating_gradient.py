"""MCPL as the paper solves it: a fit and a projected gradient step in turn."""

import operator
from typing import Any

import numpy as np

from dsel.checks import check_integer, check_positive
from dsel.errors import GuaranteeWarning, warn
from dsel.families.arrays import Floats, Integers
from dsel.models.mcpl.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.mcpl.gaussian import GaussianClasses, dense_blocks
from dsel.models.mcpl.linear_contrasts import LDAContrast, lda_contrast
from dsel.models.mcpl.pool_passes import ClassScores, read_moments
from dsel.solvers.simplex import project_to_simplex

_LOWEST = -1000.0


class AlternatingGradientLDA(DiscriminantClassifier):
    """MCPL for LDA by the scheme of Loog's paper, kept for comparison.

    A step fits LDA to soft labels, then moves the soft labels of every row against
    the gradient of the contrast by ``step / t`` and projects them on the simplex. It
    has no proof of convergence, depends on the features' scales, and often stops far
    from the saddle point; `SemiSupervisedLDA` solves the same problem exactly. The
    certificate here is that of the state in which the scheme stopped, and may fail.

    Soft labels are stored, so the pool must fit into memory.

    Parameters
    ----------
    step
        Step length of the first step, > 0.
    tol
        Change of the contrast per row at which to stop, > 0.
    max_iter
        Steps at most, >= 1.
    ridge
        Added to the diagonal of every scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    duality_gap_
        Per row: how far the least gain may be below the best possible.
    contrast_lower_
        Least gain in log-likelihood over the supervised fit under any labeling of
        the pool, per row. Negative where nothing is certified; then fitting warns.
    n_iter_
        Steps made; each reads the whole pool.

    See Also
    --------
    SemiSupervisedLDA : The exact solution of the same problem.

    Notes
    -----
    The paper's text gives neither the first soft labels nor the constants: the first
    labels are the projection of the supervised log-densities, clipped below at
    -1000. Gradients leave out what all classes share, which a projection ignores.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(12) % 2
    >>> X = rng.normal(size=(12, 3)) + 2 * y[:, None]
    >>> pool = rng.normal(size=(500, 3)) + 1
    >>> model = AlternatingGradientLDA(step=0.1).fit(X, y, pool=pool)
    >>> bool(model.contrast_lower_ > 0)
    True
    """

    duality_gap_: float
    contrast_lower_: float
    n_iter_: int

    def __init__(
        self,
        *,
        step: float = 1e-3,
        tol: float = 1e-6,
        max_iter: int = 1000,
        ridge: float = 0.0,
    ) -> None:
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.ridge = ridge

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the fit at which the scheme stopped; warn where it proves nothing."""
        step, tol = check_positive(self.step, "step"), check_positive(self.tol, "tol")
        max_iter = check_integer(self.max_iter, "max_iter", at_least=1)
        classes = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        self.duality_gap_, self.contrast_lower_, self.n_iter_ = 0.0, 0.0, 1
        if pool is None:
            return classes
        contrast = lda_contrast(labeled.moments, read_moments(pool), ridge=self.ridge)
        rows = np.vstack(pool.reduce(_chunk_rows, operator.add))
        point, value, gap, self.n_iter_ = _alternate(
            contrast, classes, rows, step=step, tol=tol, max_iter=max_iter
        )
        self.duality_gap_ = gap / contrast.n_rows
        self.contrast_lower_ = (value - gap) / contrast.n_rows
        if self.contrast_lower_ < 0.0:
            warn(
                "the alternating scheme stopped where nothing is certified "
                f"(contrast_lower_ = {self.contrast_lower_:.3g}): the fit may be "
                "worse than the supervised one; use SemiSupervisedLDA.",
                GuaranteeWarning,
            )
        return contrast.classes(point)


def _chunk_rows(X: Any, rows: Integers) -> list[Floats]:
    return list(dense_blocks(X))


def _alternate(
    contrast: LDAContrast,
    supervised: GaussianClasses,
    rows: Floats,
    *,
    step: float,
    tol: float,
    max_iter: int,
) -> tuple[Floats, float, float, int]:
    """Return the point where the scheme stopped, its contrast, its gap, the steps."""
    first = np.maximum(supervised.log_joint(rows), _LOWEST)
    soft = project_to_simplex(first)
    whitened = contrast.whitening.whiten(rows - contrast.whitening.shift)
    before = np.inf
    for t in range(1, max_iter + 1):
        sums = np.column_stack([soft.sum(axis=0), soft.T @ whitened])
        here = contrast.expand(sums.ravel())
        scores = ClassScores.from_flat(here.gradient, *contrast.sums.shape)
        gains = whitened @ scores.linear.T + scores.constants
        value = here.value
        if abs(value - before) / contrast.n_rows < tol:
            break
        if t < max_iter:
            before = value
            moved = soft - step / t * gains
            soft = project_to_simplex(np.maximum(moved, _LOWEST))
    gap = float(np.sum(soft * gains) - gains.min(axis=1).sum())
    return sums.ravel(), value, gap, t
