"""What searches pass on to the `fit` of their estimators: scikit-learn's routing."""

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)


class RoutedFit:
    """A search whose `fit` passes metadata on to its estimator, or to all of a list.

    It has the parameters `estimator`, None where `param_grid` lists estimators.
    """

    estimator: Any
    param_grid: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how `fit` passes metadata on to the estimator, or to all of a list."""
        router = MetadataRouter(owner=type(self).__name__)
        router.add_self_request(self)
        listed = [self.estimator] if self.estimator is not None else self.param_grid
        for number, estimator in enumerate(listed):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            name = f"param_grid[{number}]" if self.estimator is None else "estimator"
            router.add(method_mapping=mapping, **{name: estimator})
        return router

    def routed_fit_params(self, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the fits get; all of it where no routing is enabled."""
        if not (fit_params and get_config()["enable_metadata_routing"]):
            return dict(fit_params)
        routed = process_routing(self, "fit", **fit_params)
        first, *others = (each.fit for each in routed.values())
        for name in fit_params:
            if any((name in first) != (name in other) for other in others):
                raise ValueError(
                    f"`{name}` must be requested by all estimators of `param_grid` or "
                    f"by none, since a search fits all in one way; call "
                    f"set_fit_request({name}=True) on each."
                )
        return dict(first)
