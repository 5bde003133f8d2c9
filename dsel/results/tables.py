"""Candidates as people read them: parameters, labels, and tables with one row each."""

import json
from hashlib import blake2b
from math import nan
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import rankdata

from dsel import names
from dsel.arrays import Floats
from dsel.results.cube import GridAxes, candidate_dims, evidence, in_order
from dsel.results.values import UNSET, read_coordinate

CV_ERROR: Final = "cv_error"
"""Column of the mean error on held-out folds, and the criterion that is the same."""


def class_rows(cube: xr.Dataset) -> dict[str, int]:
    """Return the labeled rows of each class; empty of numbers, and where not known."""
    kept = (json.loads(cube.attrs.get(n, "[]")) for n in ("classes", "class_rows"))
    return dict(zip(*kept, strict=False))


def largest_class(cube: xr.Dataset) -> dict[str, Any]:
    """Return the largest class and the error of always predicting it, as `Choice` does.

    Nothing where `class_rows` knows no classes.
    """
    rows = class_rows(cube)
    if not rows:
        return {}
    name = max(rows, key=lambda each: rows[each])
    wrong = 1.0 - rows[name] / sum(rows.values())
    return {"largest_class": name, "largest_class_error": wrong}


def parameters(cube: xr.Dataset) -> pd.DataFrame:
    """Return what each candidate sets, in the types that the grid gave: a column each.

    A parameter of which one value was selected, as `isel` leaves it, is one, too. NaN
    stands where a candidate of a list does not set one.
    """
    columns = {}
    for name, values in _values_by_column(cube).items():
        shown = [nan if value is UNSET else value for value in values]
        column = pd.Series(shown, dtype=object)
        # Of 1 and 1.0 pandas would make two floats.
        is_one_type = len({type(value) for value in values if value is not UNSET}) <= 1
        columns[name] = column.infer_objects() if is_one_type else column
    index = pd.RangeIndex(cube[names.STATUS].size, name=names.CANDIDATE)
    return pd.DataFrame(columns, index=index)


def all_params(cube: xr.Dataset) -> list[dict[str, Any]]:
    """Return the parameters of every candidate, in order, as the grid gave them.

    Numbers, strings, None and what else Python can read come back as they were, other
    values, such as estimators, as their text.
    """
    columns = _values_by_column(cube)
    bare = {name: name.removeprefix("param_") for name in columns}
    given = {
        bare[name] if bare[name] in names.RESERVED else name: values
        for name, values in columns.items()
    }
    return [
        {name: given[name][n] for name in sorted(given) if given[name][n] is not UNSET}
        for n in range(cube[names.STATUS].size)
    ]


def _values_by_column(cube: xr.Dataset) -> dict[str, list[Any]]:
    """Return the values of each parameter, one for each candidate."""
    dims, status = candidate_dims(cube), cube[names.STATUS]
    may_lack = names.CANDIDATE in cube.coords
    shown = (set(map(str, status.coords)) - names.RESERVED) | set(dims)
    columns = {}
    for name in sorted(shown - {names.CANDIDATE}):
        coordinate = cube[name]
        values = read_coordinate(coordinate, may_lack=may_lack)
        flat = np.fromiter(values, dtype=object, count=len(values))
        shown_along = xr.DataArray(flat.reshape(coordinate.shape), dims=coordinate.dims)
        whole = shown_along.broadcast_like(status.drop_vars(status.coords))
        columns[name] = whole.transpose(*dims).values.ravel().tolist()
    return columns


def content_token(cube: xr.Dataset) -> str:
    """Return a hash of the candidates in their order and of all that was counted.

    A cube that was cut, sorted or changed has another one than its attribute says.
    """
    digest = blake2b(repr(all_params(cube)).encode(), digest_size=16)
    for name, values in sorted(evidence(cube).items()):
        digest.update(f"{name} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def candidate_table(cube: xr.Dataset) -> pd.DataFrame:
    """Return one row for each candidate; see `results.dsel.table`."""
    evidence(cube)  # raises where it is no cube
    cube = in_order(cube)
    return parameters(cube).assign(**_judge_candidates(cube))


def cv_results(
    cube: xr.Dataset,
    axes: GridAxes,
    pairs: xr.Dataset | None = None,
    *,
    variances: Floats | None = None,
) -> dict[str, Any]:
    """Return what scikit-learn calls ``cv_results_``, made from the counts of a cube.

    Scores are accuracies, or R^2 where `variances` of the targets of each fold are
    given; ranks are then those of the mean squared error. NaN and the last rank where a
    fold was not counted. Then the columns of `candidate_table`. Seconds are those of
    the fits that were made, of a nested search without each of the `pairs` of folds;
    NaN where none was timed.
    """
    found: dict[str, Any] = {}
    n, given = axes.n_candidates, axes.candidates
    for name, variable in (("fit", names.FIT_SECONDS), ("score", names.SCORE_SECONDS)):
        timed = cube if pairs is None or variable in cube else pairs
        seconds = timed[variable].values if variable in timed else np.full(n, np.nan)
        made = np.ma.masked_invalid(seconds.reshape(n, -1))  # a pruned one lacks some
        found[f"mean_{name}_time"] = np.ma.filled(made.mean(axis=1), np.nan)
        found[f"std_{name}_time"] = np.ma.filled(made.std(axis=1), np.nan)
    for name in sorted({name for each in given for name in each}):
        values = [each.get(name) for each in given]
        # One type of numbers: an array of 1 and 1.0 would make them equal.
        is_plain = len({*map(type, values)}) == 1 and isinstance(values[0], Real)
        kind = np.array(values).dtype if is_plain else object
        # Masked where a candidate does not set it.
        found[f"param_{name}"] = np.ma.masked_array(
            np.fromiter(values, kind), [name not in each for each in given]
        )
    found["params"] = list(given)
    if variances is None:
        scores = 1.0 - _fold_rates(cube)
        ranked = scores.mean(axis=1)
    else:
        squares = cube[names.FOLD_LOSS_MEAN].values.reshape(n, -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = 1.0 - squares / variances
        ranked = -squares.mean(axis=1)
    found |= {f"split{k}_test_score": fold for k, fold in enumerate(scores.T)}
    mean = scores.mean(axis=1)
    found["mean_test_score"], found["std_test_score"] = mean, scores.std(axis=1)
    ranks = rankdata(-np.nan_to_num(ranked, nan=-np.inf), method="min")
    return found | {"rank_test_score": ranks.astype(np.int32)} | _judge_candidates(cube)


def _fold_rates(cube: xr.Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return errors by answers, of which a nested search has several for a row."""
    n_answers = names.FOLD_ANSWERS if names.FOLD_ANSWERS in cube else names.FOLD_ROWS
    rates = cube[names.FOLD_ERRORS] / cube[n_answers]
    return np.asarray(rates.values.reshape(cube[names.STATUS].size, -1))


def _judge_candidates(cube: xr.Dataset) -> dict[str, Any]:
    """Return what happened to each candidate, and what each criterion says of it."""
    status = evidence(cube[[names.STATUS]])[names.STATUS].ravel()
    table: dict[str, Any] = {names.STATUS: np.array(names.STATES, dtype=object)[status]}
    if names.FOLD_ERRORS in cube and names.FOLD_ROWS in cube:
        table[CV_ERROR] = _fold_rates(cube).mean(axis=1)
    for name in cube[names.CRITERION].values if names.CRITERION in cube.dims else ():
        judged = cube.sel({names.CRITERION: name})
        columns = {names.ESTIMATE: str(name)}
        terms = [t for t in (names.LABEL_TERM, names.DISAGREEMENT_TERM) if t in judged]
        if len(terms) == 2 and judged[terms[1]].notnull().any():
            columns |= {term: f"{name}_{term}" for term in terms}
        for variable, column in columns.items():
            if variable in judged:
                table[column] = judged[variable].values.ravel()
    return table
