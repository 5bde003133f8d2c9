"""What one fitted classifier answers: class codes, errors, scores of all classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from dsel.arrays import Floats, Integers
from dsel.data.frames import unchangeable
from dsel.data.labeled import codes_of
from dsel.data.splits import Split


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
    tests: Sequence[Any] = (),
) -> tuple[list[int], Exception | None]:
    """Return the model's errors on each part of the split's test rows.

    Where `predict` raises, all rows of the part are errors, and what it raised is
    returned, too. Else the rows of one part would decide whether a model is counted on
    another one: then what is chosen without a fold depends on this fold.

    `tests` are the parts as the last step of a pipeline sees them, None where it cannot
    be known.
    """
    counted, failure = [], None
    for part, rows in enumerate(split.tests):
        is_known = part < len(tests) and tests[part] is not None
        try:
            if not len(rows):
                codes = rows
            elif is_known:
                codes = predict_codes(model[-1], tests[part], classes)
            else:
                codes = predict_codes(model, X[rows], classes)
            counted.append(int(np.sum(codes != y[rows])))
        except Exception as error:
            counted.append(len(rows))
            failure = error
    return counted, failure


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
