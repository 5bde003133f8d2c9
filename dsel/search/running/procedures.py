"""Wrappers of functions that select a model, as estimators for a search."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import Pipeline

from dsel.arrays import ArrayLike, Estimator
from dsel.checks import show
from dsel.families.estimator_kinds import refuse_unfitted_model
from dsel.losses.protocols import Loss
from dsel.losses.texts import LOSSES, name_of_text
from dsel.typing import AnyArray, GroupsLike, LabelsLike, Model, Procedure


class FunctionEstimator(BaseEstimator):
    """An estimator whose `fit` calls a function of features and labels."""

    kind: ClassVar[str]
    """Kind of the model that the function must return."""

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure

    def fit(self, X: ArrayLike, y: AnyArray, groups: GroupsLike = None) -> Self:
        """Call the function; raise if it returns no fitted model.

        The function gets the groups of the rows if it has a parameter `groups`.
        """
        options = {}
        with suppress(ValueError):  # some callables have no signature
            if "groups" in inspect.signature(self.procedure).parameters:
                options = {"groups": groups}
        model = self.procedure(X, y, **options)
        if isinstance(model, type) or not callable(getattr(model, "predict", None)):
            lacks = "is a class" if isinstance(model, type) else "has no `predict`"
            raise TypeError(
                f"the function passed as `model` must return a fitted {self.kind}, got "
                f"{show(model)}, which {lacks}."
            )
        if isinstance(model, BaseEstimator):
            refuse_unfitted_model(
                model,
                f"the function passed as `model` must return a fitted {self.kind}, "
                "but its %(name)s is not fitted; call `fit` before it is returned.",
            )
        self.model_: Any = model
        return self

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow missing values, which the function may fill."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predictions of the model."""
        return np.asanyarray(self.model_.predict(X))  # masks are refused later


class SelectionProcedure(ClassifierMixin, FunctionEstimator):
    """A function that returns a classifier."""

    kind = "classifier"

    def fit(self, X: ArrayLike, y: AnyArray, groups: GroupsLike = None) -> Self:
        """Call the function."""
        super().fit(X, y, groups)
        self.classes_ = np.unique(y)
        return self


class RegressionProcedure(RegressorMixin, FunctionEstimator):
    """A function that returns a regressor."""

    kind = "regressor"


def as_estimator(
    procedure: Procedure, y: LabelsLike, loss: Loss | str | None
) -> FunctionEstimator:
    """Return a function as an estimator: a regressor or a classifier.

    The kind of its model is not known before a call. It is a regressor if the loss is
    for regressors, or if targets have fractions, which labels do not have.
    """
    is_regression = getattr(loss, "is_regression", False)
    named = LOSSES.get(name_of_text(loss)) if isinstance(loss, str) else None
    if named is not None and named.is_regression:
        is_regression = True
    elif loss is None or isinstance(loss, str):
        with suppress(TypeError, ValueError):
            targets = np.asarray(y)
            if targets.dtype.kind == "f":
                is_regression = bool((targets != np.rint(targets)).any())
                is_regression &= bool(np.isfinite(targets).all())
    return (RegressionProcedure if is_regression else SelectionProcedure)(procedure)


def unwrap_model(model: Estimator | Model) -> Any:
    """Return the model that a procedure returned; other models stay as they are."""
    return model.model_ if isinstance(model, FunctionEstimator) else model


def name_procedure(model: Estimator | Model) -> str:
    """Return the name of a procedure, from the only search in its model."""
    searches = [search for _, search in find_searches(unwrap_model(model))]
    return type(searches[0] if len(searches) == 1 else unwrap_model(model)).__name__


def find_searches(model: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fitted searches in a model, with the names of the steps they are in.

    A search may be a step of a pipeline, or an attribute of another model, such as the
    `regressor_` of a TransformedTargetRegressor; ensembles have several.
    """
    if isinstance(getattr(model, "best_params_", None), Mapping):
        yield path, model
        return  # a search in the estimator of a search is part of its choice
    if isinstance(model, Pipeline):
        attributes: dict[str, Any] = dict(model.steps)
    elif isinstance(model, BaseEstimator):  # attributes that `fit` sets end with "_"
        attributes = {
            name[:-1]: v
            for name, v in vars(model).items()
            if name[-1] == "_" != name[0]
        }
    else:  # a helper class of scikit-learn keeps an estimator as `estimator`
        is_known = type(model).__module__.startswith("sklearn.")
        attributes = vars(model) if is_known else {}
    for name, attribute in attributes.items():
        is_list = isinstance(attribute, list | tuple)
        for index, estimator in enumerate(attribute if is_list else [attribute]):
            # Some members of ensembles have no `fit`.
            if hasattr(estimator, "fit") or hasattr(estimator, "predict_proba"):
                step_name = f"{name}{index}" if is_list else name
                yield from find_searches(estimator, f"{path}{step_name}__")


def best_params(model: Estimator | Model) -> Mapping[str, Any]:
    """Return the best parameters of the searches in a model; empty without any.

    If there are several searches, the names of parameters begin with those of steps.
    """
    searches = list(find_searches(unwrap_model(model)))
    if len(searches) == 1:
        return dict(searches[0][1].best_params_)
    return {
        f"{path}{name}": value
        for path, search in searches
        for name, value in search.best_params_.items()
    }
