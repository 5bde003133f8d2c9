"""What one fitted classifier answers: class codes, errors, scores of all classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from dsel.data.frames import unchangeable
from dsel.data.labeled import codes_of
from dsel.data.splits import Split
from dsel.families.arrays import Floats, Integers


def predict_codes(model: Any, X: Any, classes: NDArray[Any]) -> Integers:
    """Predict, one label a row, and turn labels into class codes; see `codes_of`."""
    answers = column_or_1d(model.predict(unchangeable(X)))
    if len(answers) != X.shape[0]:
        raise ValueError(
            f"`predict` of {type(model).__name__} must answer each row with one label, "
            f"got {len(answers)} labels for {X.shape[0]} rows."
        )
    return codes_of(answers, classes)


def count_errors(
    model: Any,
    X: Any,
    y: Integers,
    split: Split,
    classes: NDArray[Any],
    test: Any = None,
) -> tuple[int, int]:
    """Return the model's errors on the split's test rows and on its other rows.

    The latter are -1 where the split does not count them. `test` are the test rows as
    the last step of a pipeline sees them, where they are known.
    """

    def errors(rows: Integers) -> int:
        if not len(rows):
            return 0
        return int(np.sum(predict_codes(model, X[rows], classes) != y[rows]))

    others = errors(split.other_rows) if split.counts_others else -1
    if test is None:
        return errors(split.test_rows), others
    found = predict_codes(model[-1], test, classes)
    return int(np.sum(found != y[split.test_rows])), others


def class_scores(model: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Return one score per class: the margin where there is one, else probability.

    Raises
    ------
    TypeError
        Where the model has neither `decision_function` nor `predict_proba`.
    """
    X = unchangeable(X)
    if hasattr(model, "decision_function"):
        seen = np.asarray(model.decision_function(X), dtype=np.float64)
        if seen.ndim == 1:
            seen = np.column_stack((-seen, seen))
    elif hasattr(model, "predict_proba"):
        seen = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        raise TypeError(
            f"{type(model).__name__} has no real-valued scores; choose an estimator "
            f"with `decision_function` or `predict_proba`."
        )
    scores = np.full((X.shape[0], len(classes)), -np.inf)
    scores[:, places_of_classes(model, classes)] = seen
    return scores


def places_of_classes(model: Any, classes: NDArray[Any]) -> Integers:
    """Return the places of a model's `classes_` among the classes."""
    places = codes_of(np.asarray(model.classes_), classes)
    if (places < 0).any():
        own = model.classes_[int(np.argmax(places < 0))]
        raise ValueError(
            f"`classes_` of {type(model).__name__} must be labels that it was fitted "
            f"to, got {own!r}; its scores belong to no class."
        )
    return places
