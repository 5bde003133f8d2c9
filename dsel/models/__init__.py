"""Estimators over solvers, with the families that some of them have.

`families` says what a family is. `least_squares/` and `mcpl/` have one each;
`baselines/` has other methods, for experiments and comparisons.

To add an estimator: one file, and its line in `_ESTIMATORS`; it is imported when it is
first used.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dsel.models.baselines.alternating_gradient import AlternatingGradientLDA
    from dsel.models.baselines.density_ratio import DensityRatioLDA
    from dsel.models.baselines.implicitly_constrained import ImplicitlyConstrainedLDA
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
    from dsel.models.mcpl.naive_bayes import SemiSupervisedNaiveBayes

__all__ = [
    "AlternatingGradientLDA",
    "DensityRatioLDA",
    "ExpectationMaximizationLDA",
    "ImplicitlyConstrainedLDA",
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
    "SemiSupervisedNaiveBayes",
    "SemiSupervisedNearestMean",
    "SemiSupervisedQDA",
    "kmeans_centers",
    "random_centers",
]

_ESTIMATORS: Final = {
    "AlternatingGradientLDA": "baselines.alternating_gradient",
    "DensityRatioLDA": "baselines.density_ratio",
    "ExpectationMaximizationLDA": "baselines.self_training",
    "ImplicitlyConstrainedLDA": "baselines.implicitly_constrained",
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
    "SemiSupervisedNaiveBayes": "mcpl.naive_bayes",
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
