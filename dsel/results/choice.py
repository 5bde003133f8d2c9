"""The choice that a criterion makes among the candidates of a cube."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import rankdata

from dsel import names
from dsel.results import schema
from dsel.results.certificate import Certificate, percent
from dsel.results.cube import candidate_dims
from dsel.results.grid import ESTIMATOR, GridAxes, parameter_name
from dsel.results.notebook import as_html
from dsel.results.rounding import at_most

CV_ERROR: Final = "cv_error"
"""Column of the mean error on held-out folds, and the criterion that is the same."""
ORDER: Final = "candidate_order"
"""Attribute of a search's cube: a hash of its candidates in their order."""


@dataclass(frozen=True)
class Deployment:
    """A model that a nested search can hand over."""

    certificate: str
    """The certificate that is about it."""
    model: str
    """What it is, in words."""
    bound: float
    """Its bound, unclipped."""
    observed: float | None
    """Its error on the pool rows of known label; None where there are none."""


@dataclass(frozen=True, repr=False)
class Choice:
    """The candidate that a criterion chose, and how wrong it can be."""

    candidate: int
    params: Mapping[str, Any]
    """What the grid sets for it."""
    criterion: str
    """Name of the criterion that chose it."""
    estimate: float
    """The criterion's number for it, unclipped."""
    certificate: Certificate
    """The bound on its error."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know, such as fits that failed, or that models differ
    more often on the pool than the error of cross-validation allows."""
    voters: tuple[int, ...] = ()
    """Where models vote: the candidate that was chosen without each fold."""
    errors: int | None = None
    """Held-out rows on which the model that the certificate is about erred, where it is
    that of a fold."""
    deployments: tuple[Deployment, ...] = ()
    """Of a nested search: what it can hand over, each with its bound at this delta.
    Only that of `certificate` is a guarantee, unless the others were declared, too."""

    @property
    def bound(self) -> float:
        """The certificate's bound, at most 1."""
        return self.certificate.bound

    @property
    def delta(self) -> float:
        """Probability with which the bound may fail."""
        return self.certificate.delta

    @property
    def fold(self) -> int | None:
        """What `Plan.model` takes for the model that the certificate is about."""
        return self.certificate.fold

    def summary(self) -> str:
        """Return what was chosen, how wrong it can be, why, and what would help.

        Each remark has a line of its own behind these four, and so have the models that
        a nested search can hand over.

        Examples
        --------
        >>> certificate = Certificate(0.1799, 0.05, "nested", label_term=0.141,
        ...                           disagreement_term=0.0389, estimate=0.1132)
        >>> print(Choice(3, {"C": 8.0}, "cv_error", 0.11, certificate).summary())
        Chosen   C=8
        Error    at most 18.0 % (95 % sure); cross-validation says 11.3 %
        Why      14.1 % from errors on labeled rows, 3.9 % from the pool, by nested
        Smaller  with more labeled rows, or nested_fold_model for another model
        """
        return "\n".join(f"{name:8} {text}" for name, text in self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts, as `summary` shows them."""
        params = ", ".join(f"{name}={_show(v)}" for name, v in self.params.items())
        return [
            ("Chosen", params or "the only candidate"),
            *self.certificate.facts(),
            *self._models(),
            *(("But", remark) for remark in self.remarks),
        ]

    def _models(self) -> list[tuple[str, str]]:
        """Return bound and observed error of each model that can be handed over."""
        found = []
        for each in self.deployments:
            seen = each.observed
            observed = "" if seen is None else f" (observed {100 * seen:.1f} %)"
            found.append(f"{each.model} {percent(min(1.0, each.bound))}{observed}")
        if not found:
            return []
        only = "a guarantee for the one that was named before the run"
        return [("Models", f"{', '.join(found)}; {only}")]

    def _repr_html_(self) -> str:
        return as_html(f"Choice by {self.criterion}", self.facts())

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={_show(v)}" for name, v in self.params.items())
        certificate = self.certificate
        model = f", model trained without fold {self.fold}"
        sign = "<=" if certificate.certified else "~"
        return (
            f"Choice(candidate {self.candidate}: {params or 'no parameters'}; "
            f"error {sign} {at_most(self.bound)}, delta={self.delta:g}, "
            f"criterion={self.criterion!r}, certificate={certificate.criterion!r}, "
            f"certified={certificate.certified}"
            f"{'' if self.fold is None else model})"
        )


def params_of(cube: xr.Dataset, candidate: int) -> dict[str, Any]:
    """Return the parameters of a candidate as the cube shows them.

    Numbers, strings and booleans come back as they were, other values as their text.

    Examples
    --------
    >>> from dsel.results import fold_axes, grid_axes, make_cube
    >>> axes = grid_axes({"C": [1, 10], "kernel": ["linear", "rbf"]})
    >>> params_of(make_cube(axes, fold_axes(5), {}), 2)
    {'C': 10, 'kernel': 'linear'}
    """
    keep_unset = names.CANDIDATE not in cube.coords
    found = {n: column[candidate] for n, column in sorted(_columns(cube).items())}
    return {
        parameter_name(name): value
        for name, value in found.items()
        if keep_unset or _is_set(value)
    }


def _fixed(cube: xr.Dataset) -> list[str]:
    """Return the parameters of which a cube holds one value, as `isel` leaves them."""
    own = (str(name) for name in cube.coords if cube.coords[name].ndim == 0)
    return sorted(name for name in own if name not in names.RESERVED)


def candidate_order(cube: xr.Dataset) -> str:
    """Return a hash of the candidates in their order."""
    text = "\n".join(candidate_labels(cube))
    return blake2b(text.encode(), digest_size=12).hexdigest()


def candidate_labels(cube: xr.Dataset) -> list[str]:
    """Return a text for every candidate that names its parameters, in order.

    Examples
    --------
    >>> from dsel.results import fold_axes, grid_axes, make_cube
    >>> axes = grid_axes({"C": [1, 10], "kernel": ["linear", "rbf"]})
    >>> candidate_labels(make_cube(axes, fold_axes(5), {}))[:2]
    ['C=1, kernel=linear', 'C=1, kernel=rbf']
    """
    keep_unset = names.CANDIDATE not in cube.coords
    columns, n = _columns(cube), cube[names.STATUS].size
    return [
        ", ".join(
            f"{parameter_name(name)}={value}"
            for name, value in zip(columns, row, strict=True)
            if keep_unset or _is_set(value)
        )
        for row in (zip(*columns.values(), strict=True) if columns else [()] * n)
    ]


def candidate_table(cube: xr.Dataset) -> pd.DataFrame:
    """Return one row for each candidate; see `results.dsel.table`."""
    table = {**_columns(cube), **_judged(cube)}
    index = pd.RangeIndex(cube[names.STATUS].size, name=names.CANDIDATE)
    return pd.DataFrame(table, index=index)


def cv_results(cube: xr.Dataset, axes: GridAxes) -> dict[str, Any]:
    """Return what scikit-learn calls ``cv_results_``, made from the counts of a cube.

    Arrays of one value per candidate, and ``params``, a list with the parameters as
    they were given, from the axes. Scores are accuracies; NaN and the last rank where a
    fold was not counted. Then the columns of `candidate_table`: ``status``,
    ``cv_error`` and the criteria.

    Examples
    --------
    >>> from dsel.results import fold_axes, grid_axes, make_cube
    >>> axes = grid_axes({"C": [1, 10]})
    >>> errors = {"fold_errors": [[1, 0], [2, 2]], "fold_rows": [10, 10]}
    >>> found = cv_results(make_cube(axes, fold_axes(2), errors), axes)
    >>> found["params"], found["mean_test_score"].tolist()
    ([{'C': 1}, {'C': 10}], [0.95, 0.8])
    """
    found: dict[str, Any] = {}
    n = axes.n_candidates
    for name, variable in (("fit", names.FIT_SECONDS), ("score", names.SCORE_SECONDS)):
        seconds = cube[variable].values.reshape(n, -1)
        found[f"mean_{name}_time"] = seconds.mean(axis=1)
        found[f"std_{name}_time"] = seconds.std(axis=1)
    params = list(axes)
    given = [{ESTIMATOR: each} for each in axes.estimators] or params
    for name in sorted({name for each in given for name in each}):
        found[f"param_{name}"] = _masked(name, given)
    found["params"] = params
    rates = cube[names.FOLD_ERRORS] / cube[names.FOLD_ROWS]
    scores = 1.0 - rates.values.reshape(n, -1)
    found |= {f"split{k}_test_score": fold for k, fold in enumerate(scores.T)}
    mean = scores.mean(axis=1)
    found["mean_test_score"], found["std_test_score"] = mean, scores.std(axis=1)
    ranks = rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min")
    return found | {"rank_test_score": ranks.astype(np.int32)} | _judged(cube)


def _masked(name: str, given: Sequence[Mapping[str, Any]]) -> Any:
    """Return the values of a parameter, masked where a candidate does not set it."""
    unset = np.array([name not in each for each in given])
    values = [each[name] for each in given if name in each]
    is_plain = all(isinstance(value, Real) for value in values)
    kind = np.array(values).dtype if is_plain else np.dtype(object)
    column = np.zeros(len(given), dtype=kind)
    for place, value in zip(np.flatnonzero(~unset), values, strict=True):
        column[place] = value
    return np.ma.masked_array(column, mask=unset)


def _judged(cube: xr.Dataset) -> dict[str, Any]:
    """Return what happened to each candidate, and what each criterion says of it."""
    status = cube[names.STATUS].values.ravel()
    table = {names.STATUS: np.array(schema.STATES, dtype=object)[status]}
    errors, rows = cube[names.FOLD_ERRORS], cube[names.FOLD_ROWS]
    table[CV_ERROR] = (errors / rows).mean(rows.dims, skipna=False).values.ravel()
    criteria = cube[names.CRITERION].values if names.CRITERION in cube.dims else ()
    for number, name in enumerate(criteria):
        judged = cube.isel({names.CRITERION: number})
        table[str(name)] = judged[names.ESTIMATE].values.ravel()
        if judged[names.DISAGREEMENT_TERM].isnull().all():  # not made of two terms
            continue
        for term in (names.LABEL_TERM, names.DISAGREEMENT_TERM):
            table[f"{name}_{term}"] = judged[term].values.ravel()
    return table


def _columns(cube: xr.Dataset) -> dict[str, list[Any]]:
    """Return the values of each parameter, candidate by candidate."""
    dims, n = candidate_dims(cube), cube[names.STATUS].size
    fixed = {name: [cube[name].item()] * n for name in _fixed(cube)}
    if names.CANDIDATE in dims:
        along = sorted(str(name) for name in cube.coords if cube[name].dims == dims)
        own = {n: cube[n].values.tolist() for n in along if n != names.CANDIDATE}
        return own | fixed
    rows = list(product(*(cube[dim].values.tolist() for dim in dims)))
    own = {dim: [row[place] for row in rows] for place, dim in enumerate(dims)}
    return dict(sorted((own | fixed).items()))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_set(value: Any) -> bool:
    return bool(value != "" and value == value)  # NaN is not itself


def _show(value: Any) -> str:
    number = isinstance(value, (float, np.floating))
    return f"{value:g}" if number else repr(_plain(value))
