"""Self-learning: label the pool by the fit, refit, and so on."""

from typing import Any

import numpy as np

from dsel.checks import check_integer
from dsel.models.discriminant import (
    DiscriminantClassifier,
    Labeled,
    supervised_fit,
)
from dsel.models.gaussian import GaussianClasses
from dsel.models.lda_steps import LDASteps, lda_steps
from dsel.models.pool_passes import ClassSums, read_lowest, read_moments


class SelfLearningLDA(DiscriminantClassifier):
    """LDA refitted to its own labeling of the pool until the labels repeat.

    It carries no guarantee: likelihood and error may be worse than supervised.

    Parameters
    ----------
    ridge
        Added to the diagonal of every scatter matrix, >= 0.
    max_passes
        Relabelings of the pool at most, >= 1.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    n_passes_
        Reads of the pool.
    converged_
        Whether the labels repeated. Where they alternate between two states the
        earlier one is kept, and this is True.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = SelfLearningLDA().fit(X, y, pool=[[1.0], [2.0], [6.0], [6.0]])
    >>> model.means_.ravel(), model.converged_
    (array([1.25, 6.  ]), True)
    """

    n_passes_: int
    converged_: bool

    def __init__(self, *, ridge: float = 0.0, max_passes: int = 1000) -> None:
        self.ridge = ridge
        self.max_passes = max_passes

    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the fit to its own labeling of the pool."""
        limit = check_integer(self.max_passes, "max_passes", at_least=1)
        classes = supervised_fit(labeled.moments, ridge=self.ridge, shared=True)
        self.n_passes_, self.converged_ = 0, True
        if pool is None:
            return classes
        steps = lda_steps(labeled.moments, read_moments(pool), ridge=self.ridge)
        classes, n_labelings, self.converged_ = _relabel(steps, classes, pool, limit)
        self.n_passes_ = n_labelings + 1
        return classes


def _relabel(
    steps: LDASteps, classes: GaussianClasses, pool: Any, limit: int
) -> tuple[GaussianClasses, int, bool]:
    """Return the last state, how often the pool was labeled, whether it settled."""
    earlier: ClassSums | None = None
    latest: ClassSums | None = None
    for n_labelings in range(1, limit + 1):
        sums = read_lowest(pool, [steps.labeling(classes)])[0][0]
        # Equal sums give equal fits: the labels need not be kept to see a repeat.
        if _is_same(sums, latest) or _is_same(sums, earlier):
            return steps.classes(sums), n_labelings, True
        earlier, latest = latest, sums
        classes = steps.classes(sums)
    return classes, limit, False


def _is_same(one: ClassSums, other: ClassSums | None) -> bool:
    return other is not None and (
        np.array_equal(one.masses, other.masses)
        and np.array_equal(one.sums, other.sums)
    )
