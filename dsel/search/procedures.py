"""Functions that select a model, as classifiers that a search can fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted


class SelectionProcedure(ClassifierMixin, BaseEstimator):
    """A function of features and labels as a classifier: `fit` calls it."""

    def __init__(self, procedure: Callable[[Any, Any], Any]) -> None:
        self.procedure = procedure

    def fit(self, X: Any, y: NDArray[Any]) -> "SelectionProcedure":
        """Call the function; raise where what it returns is no fitted classifier."""
        model = self.procedure(X, y)
        if not callable(getattr(model, "predict", None)):
            raise TypeError(
                f"`procedure` must return a fitted classifier, got {model!r}, which "
                f"has no `predict`."
            )
        if isinstance(model, BaseEstimator):
            check_is_fitted(
                model,
                msg="`procedure` must return a fitted classifier, but its %(name)s is "
                "not fitted; call `fit` before it is returned.",
            )
        self.model_ = model
        self.classes_ = np.unique(y)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return tags by which missing values reach a function, which may fill them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels that the model gives."""
        return np.asarray(self.model_.predict(X))


def returned_model(model: Any) -> Any:
    """Return the model that a procedure returned; any other model as it is."""
    return model.model_ if isinstance(model, SelectionProcedure) else model
