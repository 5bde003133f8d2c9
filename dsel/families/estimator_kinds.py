"""Kinds of estimators: classifiers, regressors, searches and the learners in them."""

from typing import Any, Final

from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import Estimator
from dsel.checks import attribute_error

PASS_LABELS_ON: Final = (
    "sklearn.calibration",
    "sklearn.ensemble._weight_boosting",
    "sklearn.model_selection",
)
"""Modules whose classes fit their `estimator` to the labels as they are; others, such
as votes and bags, code labels before."""


def is_regressor(estimator: Estimator) -> bool:
    """Return whether an estimator, fitted or not, predicts numbers.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> is_regressor(GridSearchCV(Ridge(), {}))
    True
    """
    return _is_kind(estimator, "regressor", RegressorMixin)


def is_classifier(estimator: Estimator) -> bool:
    """Return whether an estimator, fitted or not, predicts labels.

    Unlike scikit-learn's function this also holds for ``class X(BaseEstimator,
    ClassifierMixin)``, the order of bases in most code, in which the tags of
    `BaseEstimator` hide those of the mixin.

    Examples
    --------
    >>> import sklearn.base
    >>> class Own(sklearn.base.BaseEstimator, ClassifierMixin):
    ...     pass
    >>> sklearn.base.is_classifier(Own()), is_classifier(Own())
    (False, True)
    """
    return _is_kind(estimator, "classifier", ClassifierMixin)


def is_fitted(estimator: Estimator) -> bool:
    """Return whether an estimator was fitted, and another fit would change it.

    Examples
    --------
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import Ridge
    >>> fitted = Ridge().fit([[0], [1]], [0, 1])
    >>> is_fitted(Ridge()), is_fitted(fitted), is_fitted(FrozenEstimator(fitted))
    (False, True, False)
    """
    if isinstance(estimator, FrozenEstimator):
        return False
    try:
        if not get_tags(estimator).requires_fit:
            return False
        check_is_fitted(estimator)
    except Exception:  # classes of other libraries may have errors of their own
        return False
    return True


def refuse_unfitted_model(model: Estimator, message: str | None = None) -> None:
    """Raise NotFittedError, with the message, for a model that is not fitted.

    scikit-learn wants names with a trailing underscore for what a fit has learned.
    Estimators of people may use other names, so any attribute that an unfitted copy
    lacks counts. One without `fit` has nothing to learn.
    """
    if not hasattr(model, "fit"):
        return
    try:
        check_is_fitted(model, msg=message)
    except NotFittedError:
        if set(vars(model)) <= set(vars(clone(model))):
            raise


class FittedAttributes:
    """Mixin for estimators: an attribute of `fit` that is read too early says so.

    The error is scikit-learn's NotFittedError, which `hasattr` and `getattr` with a
    default take for a missing attribute.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> class Mean(FittedAttributes, BaseEstimator):
    ...     pass
    >>> hasattr(Mean(), "mean_")
    False
    >>> Mean().mean_  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sklearn.exceptions.NotFittedError: this Mean is not fitted yet, so it has no ...
    """

    def __getattr__(self, name: str) -> Any:
        # Copies and pickles look for private names of objects without any attribute.
        if is_name_of_fit(name) and not any(map(is_name_of_fit, vars(self))):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet, so it has no `{name}`; "
                f"call `fit(X, y)` before."
            )
        # Properties, and methods that the estimator inside lacks, raise errors of their
        # own, after which Python calls this method.
        if name in dir(type(self)):
            return object.__getattribute__(self, name)
        owner = f"a {type(self).__name__}"
        known = [*dir(type(self)), *vars(self)]
        raise attribute_error(owner, name, known, self._why_not(name))

    def _why_not(self, name: str) -> str:
        """Return the end of the message about an attribute; "" for the nearest one."""
        return ""


def is_name_of_fit(name: str) -> bool:
    """Return whether an attribute of this name is set by `fit`, as scikit-learn has it.

    Examples
    --------
    >>> is_name_of_fit("coef_"), is_name_of_fit("_coef"), is_name_of_fit("__dict__")
    (True, False, False)
    """
    return name.endswith("_") and not name.startswith("_")


def last_step(estimator: Any) -> Any:
    """Return the estimator at the end of a pipeline, or of pipelines in pipelines.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> last_step(make_pipeline(make_pipeline(Ridge()))), last_step(Ridge())
    (Ridge(), Ridge())
    """
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator


def name_search(estimator: Estimator) -> str:
    """Return the class of an estimator whose fits are searches; "" for others.

    A search has an `estimator`, of which it fits many clones, and an option `refit`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> name_search(GridSearchCV(Ridge(), {"alpha": [1, 2]})), name_search(Ridge())
    ('GridSearchCV', '')
    """
    last = last_step(estimator)
    is_search = hasattr(last, "estimator") and hasattr(last, "refit")
    return type(last).__name__ if is_search else ""


def name_learner(estimator: Estimator) -> str:
    """Return the class of the model inside of searches, with the steps of a pipeline.

    Only searches for parameters count, not one for a threshold: the model that a
    `TunedThresholdClassifierCV` returns has that class itself.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> name_learner(make_pipeline(StandardScaler(), SVC()))
    'Pipeline (StandardScaler, SVC)'
    """
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps]
        # "passthrough" and None do nothing.
        texts = [name_learner(s) for s in steps if not isinstance(s, str | None)]
        return texts[0] if len(texts) == 1 else f"{name} ({', '.join(texts)})"
    inner = None
    if name.endswith("SearchCV"):  # scikit-learn's, and those of other packages
        inner = getattr(estimator, "estimator", None)
    return name if inner is None else name_learner(inner)


def reader_of_labels(estimator: Any) -> Any:
    """Return the learner in an estimator that is fitted to unchanged labels.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> reader_of_labels(GridSearchCV(LogisticRegression(), {}))
    LogisticRegression()
    """
    last = last_step(estimator)
    passes_on = type(last).__module__.startswith(PASS_LABELS_ON)
    return reader_of_labels(last.estimator) if passes_on else last


def reads_marks(estimator: Estimator) -> bool:
    """Return whether an estimator takes the label -1 as that of an unlabeled row."""
    kind = type(reader_of_labels(estimator))
    return kind.__module__.startswith("sklearn.semi_supervised.")


def _is_kind(estimator: Any, wanted: str, mixin: type) -> bool:
    """Return whether an estimator is a `wanted` one: "classifier" or "regressor"."""
    if isinstance(estimator, mixin):
        return True
    kind = getattr(estimator, "_estimator_type", None)
    if hasattr(estimator, "__sklearn_tags__"):
        kind = get_tags(estimator).estimator_type or kind
    if kind is not None:
        return bool(kind == wanted)
    # A pipeline is of the kind of its last step, a search of that of its estimator.
    if hasattr(estimator, "steps"):
        return _is_kind(estimator.steps[-1][1], wanted, mixin)
    inner = getattr(estimator, "estimator", None)
    has_inner = inner is not None and hasattr(estimator, "predict")
    return has_inner and _is_kind(inner, wanted, mixin)
