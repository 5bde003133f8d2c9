"""Estimators over solvers, with the families that some of them have.

`families` says what a family is. `baselines/` has rivals of
`dsel.mcpl`, for experiments, and `mcpl/` what they share.

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

__all__ = [
    "AlternatingGradientLDA",
    "DensityRatioLDA",
    "ExpectationMaximizationLDA",
    "ImplicitlyConstrainedLDA",
    "MomentConstrainedLDA",
    "MomentConstrainedNearestMean",
    "SelfLearningLDA",
]

_ESTIMATORS: Final = {
    "AlternatingGradientLDA": "baselines.alternating_gradient",
    "DensityRatioLDA": "baselines.density_ratio",
    "ExpectationMaximizationLDA": "baselines.self_training",
    "ImplicitlyConstrainedLDA": "baselines.implicitly_constrained",
    "MomentConstrainedLDA": "baselines.moment_constrained",
    "MomentConstrainedNearestMean": "baselines.moment_constrained",
    "SelfLearningLDA": "baselines.self_training",
}


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first used: scikit-learn is slow to load."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ESTIMATORS[name]}"), name)
