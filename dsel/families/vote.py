"""The plurality vote of several classifiers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from dsel.data.labeled import codes_of
from dsel.families.arrays import Integers


def plurality(codes: Integers, n_classes: int) -> Integers:
    """Return the class with most votes; of several, that of the smallest code.

    `codes` has one model in each row; a code that is none of the classes is no vote.

    Examples
    --------
    >>> plurality(np.array([[2, 1], [0, 1], [2, 0], [0, -1]]), 3)
    array([0, 1])
    """
    votes = np.stack([np.sum(codes == c, axis=0) for c in range(n_classes)])
    return np.asarray(np.argmax(votes, axis=0))


class FoldVote(ClassifierMixin, BaseEstimator):
    """Fitted classifiers that answer together, by the plurality of their labels.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted; of labels with equally many votes the first one wins.
    """

    def __init__(self, models: list[Any], classes: NDArray[Any]) -> None:
        self.models = models
        self.classes = classes

    def __sklearn_is_fitted__(self) -> bool:
        """Return True: its models are."""
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels, sorted."""
        return np.asarray(self.classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label that most models give."""
        codes = [codes_of(model.predict(X), self.classes_) for model in self.models]
        return np.asarray(self.classes_[plurality(np.stack(codes), len(self.classes_))])
