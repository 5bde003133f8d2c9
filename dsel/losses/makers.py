"""The public functions that make losses, with their checks."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import pandas as pd

from dsel.arrays import as_plain
from dsel.checks import (
    as_array,
    check_nonnegative,
    check_positive,
    check_probability,
    is_single,
    show,
)
from dsel.losses.by_class import Balanced, Cost, Precision, Recall
from dsel.losses.regression import Beyond, ErrorQuantile

MOST_CLASSES: Final = 100
"""Most classes of counts by true class and prediction."""


def recall(label: object) -> Recall:
    """Return the loss that counts the missed rows of one class.

    Parameters
    ----------
    label
        The class, as in `y`.

    Returns
    -------
    Recall
        For ``loss=`` of a nested search: the certificate bounds the fraction of the
        class that is missed.

    Examples
    --------
    >>> recall("fraud").title
    "Misses of 'fraud'"
    """
    return Recall((as_plain(label),))


def precision(label: object) -> Precision:
    """Return the loss that counts the wrong predictions of one class.

    Like :func:`recall`, but the certificate bounds the fraction of the predictions
    `label` that are wrong.

    Examples
    --------
    >>> precision("fraud").title
    "False among predictions 'fraud'"
    """
    return Precision((as_plain(label),))


def balanced(classes: Sequence[object] = ()) -> Balanced:
    """Return the loss that is the mean, over classes, of the fraction that is missed.

    Parameters
    ----------
    classes
        The classes, as in `y`, that were known before the labels were inspected. All
        classes of `y` by default.

    Returns
    -------
    Balanced
        For ``loss=`` of a nested search.

    Raises
    ------
    TypeError
        If `classes` is no list.
    ValueError
        If it names more than 100 classes.

    Examples
    --------
    >>> balanced(["ham", "spam"])
    balanced(['ham', 'spam'])
    """
    return Balanced(as_labels("classes", classes))


def cost(costs: Any, classes: Sequence[object] | None = None) -> Cost:
    """Return the loss that is the mean cost of predictions.

    Parameters
    ----------
    costs
        Mapping of (true class, prediction) to a cost of 0 or more, with an entry for
        every pair of different classes; a frame with true classes as index and
        predictions as columns; or a square matrix in the order of `classes`. A correct
        prediction costs 0 by default.
    classes
        The classes of a matrix. Rows and predictions of other classes cost the most.

    Returns
    -------
    Cost
        For ``loss=`` of a nested search.

    Raises
    ------
    ValueError
        If a cost is negative or missing, or all are 0.

    Examples
    --------
    >>> cost({("fraud", "ok"): 50, ("ok", "fraud"): 1}).largest
    50.0
    """
    if isinstance(costs, pd.DataFrame):
        frame = costs
        # Columns in another order would give every cost to another pair of classes.
        if list(frame.index) != list(frame.columns):
            frame = frame.reindex(columns=frame.index)
        classes = list(frame.index)
        costs = frame.to_numpy()
    if isinstance(costs, Mapping):
        pairs = [pair for pair in costs if isinstance(pair, tuple) and len(pair) == 2]
        if not pairs or len(pairs) < len(costs):
            raise ValueError(
                f"`costs` must have pairs of true class and prediction as keys, got "
                f"{show(next(iter(costs), None))}; write "
                f'cost({{("fraud", "ok"): 50, ("ok", "fraud"): 1}}).'
            )
        costs = {(as_plain(y), as_plain(z)): value for (y, z), value in costs.items()}
        names = list(dict.fromkeys(label for pair in costs for label in pair))
        default = {(label, label): 0.0 for label in names}
        table = [[(default | costs).get((y, z)) for z in names] for y in names]
    else:
        names = list(as_labels("classes", () if classes is None else classes))
        square = as_array(costs, "costs", object)
        if square.shape != (len(names), len(names)) or not names:
            raise ValueError(
                f"`costs` must be a square matrix in the order of `classes`, got shape "
                f"{square.shape} for {len(names)} classes; or write "
                f'cost({{("fraud", "ok"): 50, ("ok", "fraud"): 1}}).'
            )
        table = square.tolist()
    matrix: list[tuple[float, ...]] = []
    for true, row in zip(names, table, strict=True):
        values = list[float]()
        for prediction, value in zip(names, row, strict=True):
            # If it were taken as 0, a forgotten pair would make an error free of cost.
            if value is None or pd.isna(value):
                raise ValueError(
                    f"`costs` lacks the cost of prediction {show(prediction)} where "
                    f"{show(true)} is "
                    f"true; give a cost for every pair of classes."
                )
            name = f"costs[{show(true)}, {show(prediction)}]"
            values.append(check_nonnegative(value, name))
        matrix.append(tuple(values))
    if not max(max(row) for row in matrix) > 0:
        raise ValueError("`costs` must have a cost above 0; all are 0.")
    return Cost(tuple(names), matrix=tuple(matrix))


def error_quantile(fraction: float = 0.9) -> ErrorQuantile:
    """Return the loss of regressors that bounds the distance to the target.

    Parameters
    ----------
    fraction
        Fraction of the predictions that keep the tolerance, in ``(0, 1)``.

    Returns
    -------
    ErrorQuantile
        For ``loss=`` of a search of regressors, which uses 0.9 by default: the
        certificate bounds the distance, in the units of `y`, that this fraction of
        the predictions keeps. Candidates are ranked by the mean squared error.

    Raises
    ------
    TypeError
        If `fraction` is no number.
    ValueError
        If it is outside ``(0, 1)``.

    Examples
    --------
    >>> error_quantile(0.9).title
    '90% of predictions are off by'
    """
    return ErrorQuantile(check_probability(fraction, "fraction"))


def beyond(tolerance: float) -> Beyond:
    """Return the loss of regressors that counts predictions which are too far off.

    Parameters
    ----------
    tolerance
        In the units of `y`, > 0. It must be fixed before the labels are inspected.

    Returns
    -------
    Beyond
        For ``loss=`` of a search of regressors: the certificate bounds the share of the
        predictions that are off by more. Candidates are ranked by the mean squared
        error.

    Raises
    ------
    TypeError
        If `tolerance` is no number.
    ValueError
        If it is not above 0.

    Examples
    --------
    >>> beyond(2.0).title
    'Share of bad predictions (off by more than 2)'
    """
    return Beyond(check_positive(tolerance, "tolerance"))


def as_labels(argument: str, value: Any) -> tuple[Any, ...]:
    """Return a list of classes as a tuple of plain values; none for None and False."""
    if value is None or value is False:
        return ()
    if is_single(value) or not isinstance(value, Iterable):
        raise TypeError(
            f"`{argument}` must be a list of classes, as they stand in `y`, got "
            f"{show(value)}; write [{show(value)}]."
        )
    try:
        labels = tuple(as_plain(label) for label in islice(value, MOST_CLASSES + 1))
    except Exception as error:  # objects of other libraries have errors of their own
        raise TypeError(
            f"`{argument}` must be a list of classes, as they stand in `y`, got "
            f"{show(value)}, which cannot be read: {' '.join(str(error).split()):.200}"
        ) from error
    if len(labels) > MOST_CLASSES:  # some never end, such as a generator
        raise ValueError(
            f"`{argument}` must name at most {MOST_CLASSES} different classes, got "
            f"more in {show(value)}; name those that matter."
        )
    for label in labels:
        if not isinstance(label, Hashable):  # rows of a matrix, for example
            raise TypeError(
                f"`{argument}` must be a list of classes, as they stand in `y`; an "
                f"entry is {show(label)}. Name each class by its label."
            )
    return labels
