"""Estimators over solvers, and the families by which a grid's candidates are fitted.

A `Family` (see `family.py`) says which candidates share work, fits them together on any
named sets of rows, and packs fitted ones so that they predict in as few matrix products
as can be. The seam knows nothing of folds: cross-validation, halvings and single splits
all hand it trainings. `assign_families` picks the member for each candidate: `svm/`,
`least_squares/` and `mcpl/` have one each, `generic.py` takes any other classifier.
`baselines/` are rivals for experiments and comparisons.

Vocabulary: a *candidate* is one model of the grid; a *training* names training and test
rows; a *group* is candidates that share work; a *fitted group* predicts class codes.

To add a family: one file with a frozen dataclass that satisfies `Family`, and its place
in `assignment.py`. To add an estimator: one file, and its line in `_ESTIMATORS`; it is
imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from dsel.models.family import Candidate, Family, FitCounts, FittedGroup

if TYPE_CHECKING:
    from dsel.models.baselines.alternating_gradient import AlternatingGradientLDA
    from dsel.models.baselines.moment_constrained import (
        MomentConstrainedLDA,
        MomentConstrainedNearestMean,
    )
    from dsel.models.baselines.self_training import (
        ExpectationMaximizationLDA,
        SelfLearningLDA,
    )
    from dsel.models.baselines.supervised import (
        MaximumLikelihoodLDA,
        MaximumLikelihoodNearestMean,
        MaximumLikelihoodQDA,
        OracleLDA,
    )
    from dsel.models.least_squares.coefficients import kmeans_centers, random_centers
    from dsel.models.least_squares.estimators import (
        KernelLeastSquares,
        KernelLeastSquaresClassifier,
    )
    from dsel.models.mcpl.estimators import (
        SemiSupervisedLDA,
        SemiSupervisedNearestMean,
        SemiSupervisedQDA,
    )

__all__ = [
    "AlternatingGradientLDA",
    "Candidate",
    "ExpectationMaximizationLDA",
    "Family",
    "FitCounts",
    "FittedGroup",
    "KernelLeastSquares",
    "KernelLeastSquaresClassifier",
    "MaximumLikelihoodLDA",
    "MaximumLikelihoodNearestMean",
    "MaximumLikelihoodQDA",
    "MomentConstrainedLDA",
    "MomentConstrainedNearestMean",
    "OracleLDA",
    "SelfLearningLDA",
    "SemiSupervisedLDA",
    "SemiSupervisedNearestMean",
    "SemiSupervisedQDA",
    "kmeans_centers",
    "random_centers",
]

_ESTIMATORS: Final = {
    "AlternatingGradientLDA": "baselines.alternating_gradient",
    "ExpectationMaximizationLDA": "baselines.self_training",
    "KernelLeastSquares": "least_squares.estimators",
    "KernelLeastSquaresClassifier": "least_squares.estimators",
    "MaximumLikelihoodLDA": "baselines.supervised",
    "MaximumLikelihoodNearestMean": "baselines.supervised",
    "MaximumLikelihoodQDA": "baselines.supervised",
    "MomentConstrainedLDA": "baselines.moment_constrained",
    "MomentConstrainedNearestMean": "baselines.moment_constrained",
    "OracleLDA": "baselines.supervised",
    "SelfLearningLDA": "baselines.self_training",
    "SemiSupervisedLDA": "mcpl.estimators",
    "SemiSupervisedNearestMean": "mcpl.estimators",
    "SemiSupervisedQDA": "mcpl.estimators",
    "kmeans_centers": "least_squares.coefficients",
    "random_centers": "least_squares.coefficients",
}


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first used: scikit-learn is slow to load."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ESTIMATORS[name]}"), name)
