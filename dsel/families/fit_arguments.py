"""Arguments of `fit` in addition to rows and labels: parameters, groups, the pool."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, Final

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from dsel.arrays import Estimator, fill_masked_values
from dsel.checks import did_you_mean, show, suggest_argument
from dsel.errors import RowError
from dsel.typing import Options, SplitsLike


def check_fit_params(
    fit_params: Mapping[str, object] | None, n_rows: int
) -> dict[str, Any]:
    """Return fit parameters with masked values filled; raise where one is invalid.

    A value that is a Dask collection is computed.
    """
    is_dict = fit_params is None or hasattr(fit_params, "items")
    if not is_dict or not all(isinstance(name, str) for name in fit_params or ()):
        raise TypeError(
            f"`fit_params` must be a dict of arguments of `fit` by their names, such "
            f"as {{'sample_weight': weights}}, got {show(fit_params)}."
        )
    given: dict[str, Any] = dict(fit_params or {})
    params = {
        name: fill_masked_values(
            value.compute() if hasattr(value, "dask") else value, f"`{name}`"
        )
        for name, value in given.items()
    }
    for name, value in params.items():
        is_weight = name.rpartition("__")[2] == "sample_weight" and value is not None
        if is_weight and np.shape(value) != (n_rows,):
            raise ValueError(
                f"`{name}` must hold one weight for each of the {n_rows} labeled rows, "
                f"got shape {np.shape(value)}."
            )
        if is_weight and np.asarray(value).dtype.kind not in "biuf":
            raise TypeError(
                f"`{name}` must hold numbers, got {np.asarray(value).dtype}, such as "
                f"{np.asarray(value)[0]!r}."
            )
        if is_weight and not np.isfinite(weights := np.asarray(value, float)).all():
            row = int(np.argmin(np.isfinite(weights)))
            raise RowError(
                f"`{name}` must hold finite numbers, but that of ",
                row,
                f" is {weights[row]}; give such a row the weight 0, or leave it out.",
            )
    return params


def check_fit_names(
    fit_params: Iterable[str], fit: Callable[..., Any], estimator: Estimator | None
) -> None:
    """Raise TypeError where a fit parameter is a misspelled argument of `fit`.

    Names that the `fit` of the estimator has, or may have, are accepted.
    """
    own_parameters = inspect.signature(fit).parameters
    # An object that is no estimator passes here, since the plan refuses it with a
    # better message.
    estimator_fit = getattr(estimator, "fit", None)
    parameters: Mapping[str, inspect.Parameter] = {}
    if callable(estimator_fit) and not isinstance(estimator, type):
        parameters = inspect.signature(estimator_fit).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in fit_params:
        if "__" in name or name in parameters:
            continue
        other_names = (n for n in own_parameters if n not in ("X", "y", "fit_params"))
        end = suggest_argument(name, other_names)
        if end != "." and not (takes_any and not isinstance(estimator, Pipeline)):
            raise TypeError(f"`fit` has no argument `{name}`{end}")


def check_fit_takes(fit_params: Iterable[str], estimators: Iterable[Estimator]) -> None:
    """Raise TypeError where the `fit` of an estimator lacks a fit parameter.

    Without metadata routing the parameters of a pipeline begin with the name of a step.
    """
    is_routed = get_config()["enable_metadata_routing"]
    for name, learner in product(fit_params, estimators):
        # The plan has an argument of this name, and its error names it.
        if name == GROUPS:
            continue
        owner: Any = learner
        argument = name
        while isinstance(owner, Pipeline) and not is_routed:
            steps, last = dict(owner.steps), owner.steps[-1][0]
            step, _, argument = argument.partition("__")
            if step not in steps or not argument:
                raise TypeError(
                    f"`fit` of {type(owner).__name__} has no argument `{name}`; those "
                    f"of its steps begin with their names, such as "
                    f"`{last}__sample_weight`."
                )
            # Steps before the last one may take it in other methods than `fit`.
            owner = steps[step] if step == last else None
        if owner is None:
            continue
        known = inspect.signature(owner.fit).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
        if argument not in known and not takes_any:
            raise TypeError(
                f"`fit` of {type(owner).__name__} has no argument `{argument}`"
                f"{did_you_mean(argument, known)}"
            )


def takes_pool(estimator: Any) -> bool:
    """Return whether the estimator's `fit` takes the unlabeled rows as `pool`."""
    return "pool" in inspect.signature(estimator.fit).parameters


def check_pool_learners(estimators: Iterable[Estimator]) -> None:
    """Raise if a learner that needs the pool is inside an estimator that takes none.

    A pipeline, for example, passes no `pool` on to the `fit` of its steps.
    """
    for estimator in estimators:
        is_one = takes_pool(estimator) or isinstance(estimator, FrozenEstimator)
        inner_by_name = {} if is_one else estimator.get_params(deep=True)
        frozen = tuple(
            f"{name}__"
            for name, inner in inner_by_name.items()
            if isinstance(inner, FrozenEstimator)
        )
        for name, inner in inner_by_name.items():
            is_fitted = not isinstance(inner, type) and hasattr(inner, "fit")
            if not is_fitted or name.startswith(frozen) or not takes_pool(inner):
                continue
            learner, outer = type(inner).__name__, type(estimator).__name__
            raise ValueError(
                f"`estimator` must be the {learner} itself, whose `fit` wants the "
                f"pool: a {outer} around it passes none on. Search the {learner} alone "
                f"(labeled rows and pool may be scaled alike before, by numbers that "
                f"neither gave), or give the {outer} a `fit` that takes `pool`."
            )


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
        for index, estimator in enumerate(estimators):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            name = f"param_grid[{index}]" if self.estimator is None else "estimator"
            router.add(method_mapping=mapping, **{name: estimator})
        return router

    def route_fit_params(self, fit_params: Options) -> dict[str, Any]:
        """Return the metadata for the fits; all of it where routing is disabled."""
        if not (fit_params and get_config()["enable_metadata_routing"]):
            return dict(fit_params)
        routed = process_routing(self, "fit", **fit_params)
        first, *other_methods = (methods.fit for methods in routed.values())
        for name in fit_params:
            if any((name in first) != (name in names) for names in other_methods):
                raise ValueError(
                    f"`{name}` must be requested by all estimators of `param_grid` or "
                    f"by none, since a search fits all in one way; call "
                    f"set_fit_request({name}=True) on each."
                )
        return dict(first)
