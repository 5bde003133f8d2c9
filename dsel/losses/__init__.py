"""Losses that a search ranks by and bounds: errors, missed rows, costs, tolerances.

A loss is fixed before the run, with the classes that it names. It ranks the candidates
of every inner search, and it is what the certificate bounds:

>>> import dsel
>>> dsel.losses.recall("fraud")
recall('fraud')

Vocabulary: a *statistic* defines counts, such as a table of true class and prediction;
a *loss* computes bounds from counts; *shares* are parts of delta for limits.

To add a loss, write a class with the members of `base.Loss`, and one with those of
`base.Statistic` if it needs other counts; `check_loss` reports what is missing. See
"Add a loss" on the page for contributors.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from dsel.arrays import as_plain
from dsel.checks import (
    as_array,
    check_nonnegative,
    check_positive,
    check_probability,
    did_you_mean,
    explain_public,
    show,
)
from dsel.losses.base import Loss
from dsel.losses.by_class import Balanced, Cost, Precision, Recall
from dsel.losses.checking import check_loss
from dsel.losses.declared import as_labels
from dsel.losses.error_rate import ERROR
from dsel.losses.regression import Beyond, ErrorQuantile

__all__ = [
    "balanced",
    "beyond",
    "check_loss",
    "cost",
    "error_quantile",
    "precision",
    "recall",
]


def recall(label: object) -> Recall:
    """Return the loss that counts the missed rows of one class.

    Parameters
    ----------
    label
        The class, as in `y`.

    Returns
    -------
    Recall
        For ``loss=`` of a nested search: the certificate bounds the share of the class
        that is missed.

    Examples
    --------
    >>> recall("fraud").label
    "Misses of 'fraud'"
    """
    return Recall((as_plain(label),))


def precision(label: object) -> Precision:
    """Return the loss that counts the wrong predictions of one class.

    Like :func:`recall`, but the certificate bounds the share of the predictions `label`
    that are wrong.

    Examples
    --------
    >>> precision("fraud").label
    "False among answers 'fraud'"
    """
    return Precision((as_plain(label),))


def balanced(classes: Sequence[object] = ()) -> Balanced:
    """Return the loss that is the mean, over classes, of the share that is missed.

    Parameters
    ----------
    classes
        The classes, as in `y`, that were known before the labels were inspected. By
        default all classes of `y`.

    Returns
    -------
    Balanced
        For ``loss=`` of a nested search.

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
        predictions as columns; or a square matrix in the order of `classes`. By default
        a correct prediction costs 0.
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
        if list(frame.index) != list(frame.columns):
            frame = frame.reindex(columns=frame.index)
        classes, costs = list(frame.index), frame.to_numpy()
    if isinstance(costs, Mapping):
        pairs = [pair for pair in costs if isinstance(pair, tuple) and len(pair) == 2]
        if not pairs or len(pairs) < len(costs):
            raise ValueError(
                f"`costs` must have pairs of true class and answer as keys, got "
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
        for answer, value in zip(names, row, strict=True):
            if value is None or pd.isna(value):
                raise ValueError(
                    f"`costs` lacks the cost of answer {show(answer)} where "
                    f"{show(true)} is "
                    f"true; give a cost for every pair of classes."
                )
            check_nonnegative(value, f"costs[{show(true)}, {show(answer)}]")
        matrix.append(tuple(np.asarray(row, np.float64).tolist()))
    if not max(max(row) for row in matrix) > 0:
        raise ValueError("`costs` must have a cost above 0; all are 0.")
    return Cost(tuple(names), matrix=tuple(matrix))


def error_quantile(share: float = 0.9) -> ErrorQuantile:
    """Return the loss of regressors that bounds the distance to the target.

    Parameters
    ----------
    share
        Share of the predictions that keep the tolerance, in ``(0, 1)``.

    Returns
    -------
    ErrorQuantile
        For ``loss=`` of a search of regressors, which uses 0.9 by default: the
        certificate bounds the distance, in the units of `y`, that this share of the
        predictions keeps. Candidates are ranked by the mean squared error.

    Examples
    --------
    >>> error_quantile(0.9).label
    '90% of predictions are off by'
    """
    return ErrorQuantile(check_probability(share, "share"))


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

    Examples
    --------
    >>> beyond(2.0).label
    'Share of predictions off by more than 2'
    """
    return Beyond(check_positive(tolerance, "tolerance"))


def __getattr__(name: str) -> NoReturn:
    end = "." if name.startswith("_") else did_you_mean(name, __all__)
    raise AttributeError(f"module 'dsel.losses' has no attribute {name!r}{end}")


def loss_of_text(text: str) -> Loss | None:
    """Return the loss with this `repr`, which certificates and stores have, or None.

    Nothing is evaluated: names are those of this module, arguments are literals.

    Examples
    --------
    >>> loss_of_text("recall('fraud')"), loss_of_text("error"), loss_of_text("Mine(3)")
    (recall('fraud'), error, None)
    """
    makers: dict[str, Callable[..., Any]] = {
        "recall": recall,
        "precision": precision,
        "balanced": balanced,
        "cost": cost,
        "error_quantile": error_quantile,
        "beyond": beyond,
    }
    if text == repr(ERROR):
        return ERROR
    try:
        call = ast.parse(text, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            return None
        loss: Loss = makers[call.func.id](*map(ast.literal_eval, call.args))
    except (KeyError, SyntaxError, TypeError, ValueError):
        return None
    return loss if repr(loss) == text else None


explain_public(globals())
