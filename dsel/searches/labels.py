"""From a user's table and labels to rows and class codes, the scikit-learn way."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data


def encode_labels(
    estimator: Any, X: ArrayLike, y: ArrayLike
) -> tuple[Any, NDArray[np.int64]]:
    """Check X and y, set `classes_` of the estimator, return rows and class codes.

    Raises
    ------
    ValueError
        Where the labels are no classes, or all alike.
    """
    X, y = validate_data(estimator, X, y, accept_sparse="csr")
    check_classification_targets(y)
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"`y` must hold at least two classes, got one class: "
            f"{estimator.classes_.tolist()[0]!r}."
        )
    return X, codes.astype(np.int64, copy=False)
