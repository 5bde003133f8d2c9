"""Classes as least-squares targets, and scores back as classes."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def class_targets(codes: NDArray[np.int64], n_classes: int) -> Floats:
    """Return -1 and +1 in one column for two classes, else a 0/1 column per class.

    Parameters
    ----------
    codes
        Class codes 0..n_classes-1, shape (n,).
    n_classes
        Number of classes; a single one gives a column of -1.

    Returns
    -------
    ndarray
        Shape (n, 1) or (n, n_classes).
    """
    if n_classes <= 2:
        return np.asarray(np.where(codes == 1, 1.0, -1.0)[:, np.newaxis])
    return np.asarray(codes[:, np.newaxis] == np.arange(n_classes), np.float64)


def decide(scores: Floats, tolerance: Floats) -> NDArray[np.int64]:
    """Return the class code of each row of scores.

    A difference that rounding can make counts as a tie, which goes to the lowest
    code; for one column of scores, a zero score means code 0.

    Parameters
    ----------
    scores
        Shape (..., 1) or (..., n_classes); -inf for classes never predicted.
    tolerance
        What rounding may do to each score, broadcast against `scores`.

    Returns
    -------
    ndarray
        Shape (...).
    """
    if scores.shape[-1] == 1:
        return (scores > tolerance)[..., 0].astype(np.int64)
    best = scores.max(axis=-1, keepdims=True)
    slack = 2.0 * np.max(tolerance, axis=-1, keepdims=True)
    return np.asarray(np.argmax(scores >= best - slack, axis=-1), np.int64)
