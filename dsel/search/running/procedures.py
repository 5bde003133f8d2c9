"""Wrappers of functions that select a model, as estimators for a search."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import Estimator
from dsel.checks import show
from dsel.losses.texts import OF_NUMBERS
from dsel.results import Choice
from dsel.typing import Model


class FunctionEstimator(BaseEstimator):
    """A function of features and labels as an estimator: `fit` calls it."""

    kind: ClassVar[str]
    """Kind of the model that the function must return."""

    def __init__(self, procedure: Callable[..., Any]) -> None:
        self.procedure = procedure

    def fit(self, X: ArrayLike, y: NDArray[np.generic], groups: Any = None) -> Self:
        """Call the function; raise if it returns no fitted model.

        It gets the groups of its rows if it has a parameter `groups`.
        """
        options = {}
        with suppress(ValueError):  # of what has no signature
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
            check_is_fitted(
                model,
                msg=f"the function passed as `model` must return a fitted {self.kind}, "
                "but its %(name)s is not fitted; call `fit` before it is returned.",
            )
        self.model_ = model
        return self

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow missing values, which the function may fill."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predictions of the model."""
        return np.asarray(self.model_.predict(X))


class SelectionProcedure(ClassifierMixin, FunctionEstimator):
    """A function that returns a classifier."""

    kind = "classifier"

    def fit(self, X: ArrayLike, y: NDArray[np.generic], groups: Any = None) -> Self:
        """Call the function."""
        super().fit(X, y, groups)
        self.classes_ = np.unique(y)
        return self


class RegressionProcedure(RegressorMixin, FunctionEstimator):
    """A function that returns a regressor."""

    kind = "regressor"


def as_estimator(procedure: Callable[..., Any], y: Any, loss: Any) -> FunctionEstimator:
    """Return a function as an estimator: a regressor or a classifier.

    The kind of its model is not known before a call. It is a regressor if the loss is
    for regressors, or if targets have fractions, which labels do not have.
    """
    is_regression = getattr(loss, "is_regression", False)
    if isinstance(loss, str) and loss.partition("=")[0] in OF_NUMBERS:
        is_regression = True
    elif loss is None or isinstance(loss, str):
        with suppress(TypeError, ValueError):
            values = np.asarray(y)
            if values.dtype.kind == "f":
                is_regression = bool((values != np.rint(values)).any())
                is_regression &= bool(np.isfinite(values).all())
    return (RegressionProcedure if is_regression else SelectionProcedure)(procedure)


def returned_model(model: Estimator | Model) -> Any:
    """Return the model that a procedure returned; another model is returned itself."""
    return model.model_ if isinstance(model, FunctionEstimator) else model


def name_procedure(
    choice: Choice, models: Mapping[str, Model], fold_models: Mapping[int, Model]
) -> Choice:
    """Return the choice with the parameters that the procedure itself has chosen.

    A search that is a single candidate sets no parameter of the grid; its models have
    the chosen parameters in `best_params_`.
    """
    return replace(
        choice,
        procedure=type(returned_model(models[choice.deploy])).__name__,
        bounded_models={
            name: replace(model, params=_best_params(models[name]))
            for name, model in choice.bounded_models.items()
        },
        fold_params=tuple(_best_params(model) for model in fold_models.values()),
    )


def _best_params(model: Estimator | Model) -> Mapping[str, Any]:
    """Return the `best_params_` of a model or of its last step; empty without any."""
    params = getattr(returned_model(model), "best_params_", None)
    return dict(params) if isinstance(params, Mapping) else {}
