"""Metadata that searches pass to the `fit` of estimators, as scikit-learn does."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

from sklearn import get_config
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from dsel.arrays import Estimator
from dsel.checks import show
from dsel.typing import SplitsLike

GROUPS: Final = "groups"
SEARCHES: Final = GridSearchCV.__bases__
"""Base class of scikit-learn's searches, which is not exported. Without metadata
routing their `fit` passes groups to the splitter, which its signature does not show."""


def groups_arguments(estimator: Any) -> list[str]:
    """Return the argument names by which an estimator's `fit` takes groups.

    An example is a search whose inner splitter keeps groups together. Where metadata
    routing is enabled, its requests decide.
    """
    if get_config()["enable_metadata_routing"]:
        routing = get_routing_for_object(estimator)
        return [GROUPS] if routing.consumes("fit", [GROUPS]) else []
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return [f"{name}__{argument}" for argument in groups_arguments(last)]
    if isinstance(estimator, SEARCHES):
        return [GROUPS] if _splits_by_groups(estimator.cv) else []
    return [GROUPS] if GROUPS in inspect.signature(estimator.fit).parameters else []


def check_groups_reach(estimator: Estimator) -> None:
    """Raise ValueError where an inner splitter needs groups that do not reach it.

    Without metadata routing groups reach only a search, or one that ends a pipeline.
    """
    reached = {f"{name.removesuffix(GROUPS)}cv" for name in groups_arguments(estimator)}
    is_routed = get_config()["enable_metadata_routing"]
    params = estimator.get_params(deep=True)
    for name, value in params.items():
        if name.rpartition("__")[2] != "cv" or not _splits_by_groups(value):
            continue
        if name not in reached and not (is_routed and reached):
            way = f"give {name!r} as a number"
            if not is_routed:
                way += ", or call sklearn.set_config(enable_metadata_routing=True)"
            raise ValueError(
                f"`groups` do not reach {name}={show(value)} of "
                f"{type(estimator).__name__}; {way}."
            )


def _splits_by_groups(cv: SplitsLike) -> bool:
    """Return whether a splitter takes groups.

    scikit-learn's splitters that ignore groups warn when they get some.
    """
    if not hasattr(cv, "split"):
        return False
    if not hasattr(cv, "get_metadata_routing"):
        return True  # a class of another library; `split` of any splitter takes groups
    return bool(get_routing_for_object(cv).consumes("split", [GROUPS]))


class RoutedFit:
    """Mixin of searches whose `fit` passes metadata on to the estimators.

    `estimator` is None where `param_grid` is a list of estimators.
    """

    estimator: Any
    param_grid: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of `fit` to the estimator, or to each of a list."""
        router = MetadataRouter(owner=type(self).__name__)
        router.add_self_request(self)
        estimators = [self.estimator] if self.estimator is not None else self.param_grid
        for number, estimator in enumerate(estimators):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            name = f"param_grid[{number}]" if self.estimator is None else "estimator"
            router.add(method_mapping=mapping, **{name: estimator})
        return router

    def routed_fit_params(self, fit_params: Mapping[str, object]) -> dict[str, Any]:
        """Return the metadata for the fits; all of it where routing is disabled."""
        if not (fit_params and get_config()["enable_metadata_routing"]):
            return dict(fit_params)
        routed = process_routing(self, "fit", **fit_params)
        first, *rest = (methods.fit for methods in routed.values())
        for name in fit_params:
            if any((name in first) != (name in names) for names in rest):
                raise ValueError(
                    f"`{name}` must be requested by all estimators of `param_grid` or "
                    f"by none, since a search fits all in one way; call "
                    f"set_fit_request({name}=True) on each."
                )
        return dict(first)
