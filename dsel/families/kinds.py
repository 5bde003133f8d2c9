"""What an estimator is, however its class was written."""

from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.utils import get_tags


def is_classifier(estimator: Any) -> bool:
    """Return whether an estimator, fitted or not, predicts labels.

    scikit-learn asks its tags, which ``class X(BaseEstimator, ClassifierMixin)``, the
    order of bases in most code, does not set: `BaseEstimator` answers first.

    Examples
    --------
    >>> import sklearn.base
    >>> class Own(sklearn.base.BaseEstimator, ClassifierMixin):
    ...     pass
    >>> sklearn.base.is_classifier(Own()), is_classifier(Own())
    (False, True)
    """
    if isinstance(estimator, ClassifierMixin):
        return True
    kind = getattr(estimator, "_estimator_type", None)
    if hasattr(estimator, "__sklearn_tags__"):
        kind = get_tags(estimator).estimator_type or kind
    if kind is not None:
        return bool(kind == "classifier")
    # A pipeline is what its last step is, a search what it searches.
    if hasattr(estimator, "steps"):
        return is_classifier(estimator.steps[-1][1])
    inner = getattr(estimator, "estimator", None)
    return inner is not None and hasattr(estimator, "predict") and is_classifier(inner)
