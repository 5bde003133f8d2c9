"""A selection procedure as a classifier; each of its calls has a copy of its own."""

import pickle
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

_RETURNED: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()
"""What procedures have returned in this process, by identity."""
_RETURNING: Final = Lock()
Procedure = Callable[[Any, Any], Any]
"""Takes features and labels, returns a fitted classifier."""


class SelectionProcedure(ClassifierMixin, BaseEstimator):
    """A selection procedure as a classifier: `fit` runs it."""

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure

    def fit(self, X: Any, y: NDArray[Any]) -> "SelectionProcedure":
        """Run the procedure; raise where what it returns is no fitted classifier.

        Each call has a copy of its own: what one keeps in a closure or an object, no
        other sees.
        """
        procedure = self.procedure
        with suppress(Exception):  # whatever they raise that cannot be pickled
            procedure = _copied(self.procedure)
        model = procedure(X, y)
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
        _check_new(model)
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


class _Copier(cloudpickle.Pickler):
    """Writes what a procedure holds, but of classes only which they are."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.classes: dict[int, type] = {}

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a class; None for what is to be copied."""
        if not isinstance(value, type):
            return None
        self.classes[id(value)] = value
        return id(value)


def _copied(procedure: Procedure) -> Any:
    """Return a copy with closures, attributes and globals of its own.

    Classes stay what they are: cloudpickle would write copies of the methods into those
    of ``__main__``, which then see no later change of a global.
    """
    file = BytesIO()
    copier = _Copier(file)
    copier.dump(procedure)
    file.seek(0)
    reader = pickle.Unpickler(file)
    reader.persistent_load = copier.classes.__getitem__  # type: ignore[method-assign]
    return reader.load()


def _check_new(model: Any) -> None:
    """Raise TypeError where an earlier call, in this process, returned the same."""
    with _RETURNING:
        is_known = _RETURNED.get(id(model)) is model
        with suppress(TypeError):  # there are types without weak references
            _RETURNED[id(model)] = model
    if is_known:
        raise TypeError(
            f"`procedure` must return a new model in each call, but it returned the "
            f"same {type(model).__name__} again, fitted to other rows; clone it inside "
            f"the function before it is fitted."
        )
