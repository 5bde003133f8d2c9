"""LDA refitted again and again to labeled rows and a labeling of the pool."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel.models.affine_frame import log_density_scores
from dsel.models.gaussian import GaussianClasses
from dsel.models.lda_contrast import LDAContrast, lda_contrast
from dsel.models.moments import ClassMoments, Moments
from dsel.models.pool_passes import ClassScores, ClassSums, Labeling


@dataclass(frozen=True)
class LDASteps:
    """From class sums of the pool to a fit, and from a fit to scores of its rows."""

    contrast: LDAContrast
    """Knows the labeled rows, and the moments of all."""
    origin: NDArray[np.float64]
    """Subtracted from the pool's rows, shape (d,)."""

    def classes(self, sums: ClassSums) -> GaussianClasses:
        """Return the maximum likelihood fit to labeled rows and labeled pool."""
        here = self.contrast.frame.whiten_sums(sums, self.origin)
        return self.contrast.classes(self.contrast.point(here))

    def scores(self, classes: GaussianClasses) -> ClassScores:
        """Return ln p(x, k) of ``x - origin``, without what all classes share."""
        return log_density_scores(classes, self.origin)

    def labeling(self, classes: GaussianClasses) -> Labeling:
        """Return how a fit labels rows."""
        return Labeling((self.scores(classes).negated,), self.origin)


def lda_steps(labeled: ClassMoments, pool: Moments, *, ridge: float) -> LDASteps:
    """Return the steps for labeled rows and the moments of a pool.

    Parameters
    ----------
    labeled
        Moments of the labeled rows; their pooled covariance is regular.
    pool
        Moments of the unlabeled rows.
    ridge
        Added to the diagonal of every scatter.
    """
    return LDASteps(lda_contrast(labeled, pool, ridge=ridge), pool.mean)
