"""Tables of candidates: parameters, status and numbers, with one row each."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from math import nan
from numbers import Real
from typing import Any, Final, TypedDict

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import rankdata

from dsel import names
from dsel.arrays import Floats
from dsel.losses.calls import ConstantPrediction
from dsel.losses.protocols import Loss
from dsel.results.cube import (
    GridAxes,
    candidate_dims,
    has_fewer_predictions,
    parameter_name,
    read_counts,
    restore_dims,
)
from dsel.results.values import UNSET, read_coordinate

PARTLY_PRUNED: Final = "partly pruned"
"""Status in tables of a candidate that only some of the searches have dropped."""
CV_ERROR: Final = "cv_error"
"""Column of the mean error on held-out folds; also the name of that criterion."""


def class_rows(cube: xr.Dataset, attribute: str = names.CLASS_ROWS) -> dict[str, int]:
    """Return the number of labeled rows of each class; empty for numeric targets.

    With the attribute `CLASS_GROUPS` it is that of groups; empty without groups.
    """
    stored = (json.loads(cube.attrs.get(n, "[]")) for n in ("classes", attribute))
    return dict(zip(*stored, strict=False))


class LargestClass(TypedDict, total=False):
    """Fields of a `Choice` about its largest class."""

    largest_class: str
    largest_class_error: float


class ConstantFields(TypedDict, total=False):
    """Fields of a `Choice` about the best constant prediction: a class or a median."""

    constant: str
    constant_loss: float
    median: float
    median_loss: float


def largest_class(rows: Mapping[str, int]) -> LargestClass:
    """Return the largest class and the error of always predicting it, for `Choice`.

    `rows` are the labeled rows of each class, with groups one of each; without any the
    result is empty.
    """
    if not rows:
        return {}
    name = max(rows, key=lambda label: rows[label])
    wrong = 1.0 - rows[name] / sum(rows.values())
    return {"largest_class": name, "largest_class_error": wrong}


def constant_fields(constant: ConstantPrediction | None) -> ConstantFields:
    """Return a constant prediction, a class or a number, and its loss, for `Choice`."""
    if constant is None:
        return {}
    if isinstance(constant.prediction, str):
        return {"constant": constant.prediction, "constant_loss": constant.loss}
    return {"median": constant.prediction, "median_loss": constant.loss}


def parameters(cube: xr.Dataset) -> pd.DataFrame:
    """Return the parameters of each candidate, one column each, in the grid's types.

    A parameter of which `isel` selected one value has a column, too. NaN stands for a
    parameter that a candidate does not set.
    """
    columns = {}
    for name, values in _values_by_column(cube).items():
        shown = [nan if value is UNSET else value for value in values]
        column = pd.Series(shown, dtype=object)
        # pandas would turn 1 and 1.0 into two floats.
        is_one_type = len({type(value) for value in values if value is not UNSET}) <= 1
        columns[name] = column.infer_objects() if is_one_type else column
    index = pd.RangeIndex(cube[names.STATUS].size, name=names.CANDIDATE)
    return pd.DataFrame(columns, index=index)


def all_params(cube: xr.Dataset) -> list[dict[str, Any]]:
    """Return the parameters of every candidate, in order, as in the grid.

    Numbers, strings, None and other Python literals are as they were; other values,
    such as estimators, are texts.
    """
    columns = _values_by_column(cube)
    values_of = {parameter_name(name): values for name, values in columns.items()}
    return [
        {
            name: values[n]
            for name, values in sorted(values_of.items())
            if values[n] is not UNSET
        }
        for n in range(cube[names.STATUS].size)
    ]


def _values_by_column(cube: xr.Dataset) -> dict[str, list[Any]]:
    """Return the values of each parameter, one for each candidate."""
    dims = candidate_dims(cube)
    status = cube[names.STATUS]
    may_lack = names.CANDIDATE in cube.coords
    shown = (set(map(str, status.coords)) - names.RESERVED) | set(dims)
    columns = {}
    for name in sorted(shown - {names.CANDIDATE}):
        coordinate = cube[name]
        values = read_coordinate(coordinate, may_lack=may_lack)
        # Positions are selected, not values: xarray would turn a value None into NaN.
        places = np.arange(len(values)).reshape(coordinate.shape)
        along = xr.DataArray(places, dims=coordinate.dims)
        whole = along.broadcast_like(status.drop_vars(status.coords))
        ordered = whole.transpose(*dims).values.ravel().tolist()
        columns[name] = [values[place] for place in ordered]
    return columns


def content_token(cube: xr.Dataset) -> str:
    """Return a hash of the candidates, in their order, and of all counts.

    If a cube was cut, sorted or changed, the hash differs from its stored attribute.
    """
    return _hash_contents(cube, all_params(cube))


def matches_token(cube: xr.Dataset, stored_token: object) -> bool:
    """Return whether the contents of a cube are those of its stored content token."""
    params = all_params(cube)
    if str(stored_token) == _hash_contents(cube, params):
        return True
    # Up to version 0.3.0, None among strings was hashed as NaN with pandas 3.
    texts = [
        name
        for name, values in _values_by_column(cube).items()
        if None in values and all(v is None or type(v) is str for v in values)
    ]
    if not texts:
        return False
    old = [
        {name: nan if v is None and name in texts else v for name, v in values.items()}
        for values in params
    ]
    return str(stored_token) == _hash_contents(cube, old)


def _hash_contents(cube: xr.Dataset, params: list[dict[str, Any]]) -> str:
    digest = blake2b(repr(params).encode(), digest_size=16)
    for name, values in sorted(read_counts(cube).items()):
        digest.update(f"{name} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def candidate_table(cube: xr.Dataset) -> pd.DataFrame:
    """Return one row for each candidate; see `results.dsel.table`."""
    read_counts(cube)  # raises if it is no cube
    cube = restore_dims(cube)
    return parameters(cube).assign(**_outcome_columns(cube))


def cv_results(
    cube: xr.Dataset,
    axes: GridAxes,
    pairs: xr.Dataset | None = None,
    *,
    loss: Loss | None = None,
    variances: Floats | None = None,
) -> dict[str, Any]:
    """Return the ``cv_results_`` of scikit-learn, computed from the counts of a cube.

    Scores are of the `loss` that ranks, larger is better: one minus a rate, such as
    accuracy or recall, minus a cost; without it they are accuracies. With `variances`
    of the targets of each fold they are R^2, and ranks are by mean squared error. A
    candidate with a fold that was not counted has NaN and the last rank. Those counted
    on fewer predictions rank after those counted on more, since the means are then over
    different rows. The columns of `candidate_table` follow, here with the means also
    of candidates that were pruned. Times are those of the fits of the search, in a
    nested search those without each of the `pairs` of folds; NaN if none was timed.
    """
    columns: dict[str, Any] = {}
    n, candidates = axes.n_candidates, axes.candidates
    for name, variable in (("fit", names.FIT_SECONDS), ("score", names.SCORE_SECONDS)):
        timed = cube if pairs is None or variable in cube else pairs
        seconds = timed[variable].values if variable in timed else np.full(n, np.nan)
        # The seconds are masked, since a pruned candidate was not fitted without some
        # folds.
        known_seconds = np.ma.masked_invalid(seconds.reshape(n, -1))
        columns[f"mean_{name}_time"] = np.ma.filled(known_seconds.mean(axis=1), np.nan)
        columns[f"std_{name}_time"] = np.ma.filled(known_seconds.std(axis=1), np.nan)
    for name in sorted({name for params in candidates for name in params}):
        values = [params.get(name) for params in candidates]
        # The values must have one type of numbers: an array of 1 and 1.0 would make
        # them equal.
        is_numeric = len({*map(type, values)}) == 1 and isinstance(values[0], Real)
        kind = np.array(values).dtype if is_numeric else object
        # A parameter is masked where a candidate does not set it, as in scikit-learn.
        columns[f"param_{name}"] = np.ma.masked_array(
            np.fromiter(values, kind), [name not in params for params in candidates]
        )
    columns["params"] = list(candidates)
    has_losses = names.FOLD_LOSS_MEAN in cube
    means = {CV_ERROR: _fold_rates(cube)} if names.FOLD_ERRORS in cube else {}
    if loss is not None and has_losses:
        means[loss.criterion] = cube[names.FOLD_LOSS_MEAN].values.reshape(n, -1)
    fold_losses = [*means.values()][-1]
    ranked = -fold_losses.mean(axis=1)
    is_rate = loss is None or (loss.largest == 1.0 and not loss.is_cost)
    with np.errstate(divide="ignore", invalid="ignore"):
        if variances is not None:
            scores = 1.0 - fold_losses / variances
        else:
            scores = 1.0 - fold_losses if is_rate else -fold_losses
    columns |= {f"split{k}_test_score": fold for k, fold in enumerate(scores.T)}
    mean = scores.mean(axis=1)
    columns["mean_test_score"], columns["std_test_score"] = mean, scores.std(axis=1)
    is_known = ~np.isnan(ranked)
    n_predictions = np.zeros(n)
    if names.FOLD_PREDICTIONS in cube:
        n_predictions = cube[names.FOLD_PREDICTIONS].values.reshape(n, -1).sum(axis=1)
    keys = np.where(is_known, [-n_predictions, -ranked], np.inf)
    # The columns are sorted by the number of predictions, then by the score.
    _, places = np.unique(keys, axis=1, return_inverse=True)
    ranks = rankdata(places, method="min")
    columns["rank_test_score"] = ranks.astype(np.int32)
    by_criterion = {name: rates.mean(axis=1) for name, rates in means.items()}
    return columns | _outcome_columns(cube) | by_criterion


def _fold_rates(cube: xr.Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return error rates on each fold: errors by predictions.

    A nested search has several predictions for a row.
    """
    divisor = (
        names.FOLD_PREDICTIONS if names.FOLD_PREDICTIONS in cube else names.FOLD_ROWS
    )
    rates = cube[names.FOLD_ERRORS] / cube[divisor]
    return np.asarray(rates.values.reshape(cube[names.STATUS].size, -1))


def _outcome_columns(cube: xr.Dataset) -> dict[str, Any]:
    """Return columns with the status of each candidate and its number by criterion."""
    counted = [n for n in (names.STATUS, names.FOLD_PREDICTIONS) if n in cube]
    counts = read_counts(cube[counted])
    texts = np.array(names.STATES, dtype=object)[counts[names.STATUS]]
    texts[has_fewer_predictions(counts)] = PARTLY_PRUNED
    table: dict[str, Any] = {names.STATUS: texts}
    if names.FOLD_ERRORS in cube and names.FOLD_ROWS in cube:
        table[CV_ERROR] = _fold_rates(cube).mean(axis=1)
    for name in cube[names.CRITERION].values if names.CRITERION in cube.dims else ():
        judged = cube.sel({names.CRITERION: name})
        columns = {names.CRITERION_VALUE: str(name)}
        terms = [t for t in (names.LABEL_TERM, names.DISAGREEMENT_TERM) if t in judged]
        if len(terms) == 2 and judged[terms[1]].notnull().any():
            columns |= {term: f"{name}_{term}" for term in terms}
        for variable, column in columns.items():
            if variable not in judged:
                continue
            numbers = judged[variable].values.ravel()
            if column in table:  # folds may have been cut off since it was stored
                numbers = np.where(np.isnan(numbers), np.nan, table[column])
            table[column] = numbers
    return table
