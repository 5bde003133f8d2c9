"""The choice that a criterion makes among the candidates of a cube, and their table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from math import isnan, nan
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import rankdata

from dsel import names
from dsel.results import schema
from dsel.results.certificate import ALL_ROWS, Certificate
from dsel.results.cube import candidate_dims, evidence
from dsel.results.grid import ESTIMATOR, GridAxes, parameter_name
from dsel.results.text import as_html, as_lines, in_percent

CV_ERROR: Final = "cv_error"
"""Column of the mean error on held-out folds, and the criterion that is the same."""


@dataclass(frozen=True, repr=False, eq=False)
class Choice:
    """The candidate that a criterion chose, and how wrong its model can be.

    Examples
    --------
    >>> share = "four fifths of the labels"
    >>> certificates = {
    ...     "one_fold": Certificate(0.1507, 0.05, "nested", "one_fold", share=share),
    ...     "all_rows": Certificate(0.1777, 0.05, "nested", "all_rows"),
    ... }
    >>> print(Choice(3, {"C": 8.0}, "cv_error", 0.11, certificates, "one_fold", 0.1635))
    Chosen: C=8
    Error at most 15.1 % (95 % sure): the model of four fifths of the labels
    at most 17.8 %: the model of all labels, likely the better one
    A held-out fifth would give about 16.4 %
    """

    candidate: int
    params: Mapping[str, Any]
    """What the grid sets for it."""
    criterion: str
    """Name of the criterion that chose it."""
    estimate: float
    """The criterion's number for it, unclipped."""
    certificates: Mapping[str, Certificate]
    """The bounds of the run by deployment; those of a nested search hold at once."""
    deploy: str
    """Which of them is about the model that is handed over."""
    held_out_fifth: float = nan
    """Expected limit of a held-out fifth on as many errors; NaN where none is told."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know, such as fits that failed."""
    candidates: Mapping[str, int] = field(default_factory=dict)
    """The candidate of each deployment; that of a fold may be another."""

    @property
    def certificate(self) -> Certificate:
        """The certificate of the model that is handed over."""
        return self.certificates[self.deploy]

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
        """Fold that the model was trained without; None for that of all rows."""
        return self.certificate.fold

    def facts(self) -> list[tuple[str, str]]:
        """Return names and texts, which all renderings show; most have no name."""
        lines = [f"Chosen: {self._params()}", self.certificate.headline()]
        lines += [
            self._beside(certificate)
            for deploy, certificate in self.certificates.items()
            if deploy != self.deploy
        ]
        if not isnan(self.held_out_fifth):
            lines.append(self._held_out())
        return [
            *(("", line) for line in lines),
            *(("But", reason) for reason in self.certificate.reasons[1:]),
            *(("Note", remark) for remark in self.remarks),
        ]

    def _beside(self, certificate: Certificate) -> str:
        """Return the line of the model that is not handed over."""
        if not certificate.certified:
            return certificate.headline()
        other = self.candidates.get(certificate.deploy, self.candidate)
        which = "" if other == self.candidate else f" (candidate {other})"
        better = ", likely the better one" if certificate.deploy == ALL_ROWS else ""
        bound = in_percent(certificate.bound)
        return f"at most {bound}: {certificate.model}{which}{better}"

    def _held_out(self) -> str:
        line = f"A held-out fifth would give about {in_percent(self.held_out_fifth)}"
        if self.held_out_fifth >= min(
            each.bound for each in self.certificates.values()
        ):
            return line
        return f"{line}. That is the smallest number: here a held-out part does as well"

    def _params(self) -> str:
        shown = ", ".join(f"{name}={_show(v)}" for name, v in self.params.items())
        return shown or "the only candidate"

    def to_json(self) -> str:
        """Return what `from_json` takes, with all digits."""
        fields = vars(self) | {
            "params": dict(self.params),
            "certificates": {
                deploy: json.loads(each.to_json())
                for deploy, each in self.certificates.items()
            },
            "candidates": dict(self.candidates),
        }
        return json.dumps(fields, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> "Choice":
        """Return the choice that `to_json` wrote."""
        fields = json.loads(text)
        fields["remarks"] = tuple(fields["remarks"])
        fields["certificates"] = {
            deploy: Certificate.from_json(json.dumps(each))
            for deploy, each in fields["certificates"].items()
        }
        return cls(**fields)

    # As of certificates, parts that are NaN are equal.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __str__(self) -> str:
        return as_lines(self.facts())

    def _repr_html_(self) -> str:
        return as_html(f"Choice by {self.criterion}", self.facts())

    def __repr__(self) -> str:
        return (
            f"Choice(candidate {self.candidate}: {self._params()}; "
            f"{self.certificate!r})"
        )


def params_of(cube: xr.Dataset, number: int) -> dict[str, Any]:
    """Return the parameters of a candidate as the cube shows them.

    Numbers, strings and booleans come back as they were, other values as their text.

    Examples
    --------
    >>> from dsel.results.cube import make_cube
    >>> from dsel.results.grid import fold_axes, grid_axes
    >>> axes = grid_axes({"C": [1, 10], "kernel": ["linear", "rbf"]})
    >>> params_of(make_cube(axes, fold_axes(5), {}), 2)
    {'C': 10, 'kernel': 'linear'}
    """
    keep_unset = names.CANDIDATE not in cube.coords
    found = {name: column[number] for name, column in sorted(_columns(cube).items())}
    return {
        parameter_name(name): value
        for name, value in found.items()
        if keep_unset or _is_set(value)
    }


def candidate_labels(cube: xr.Dataset) -> list[str]:
    """Return a text for every candidate that names its parameters, in order.

    Examples
    --------
    >>> from dsel.results.cube import make_cube
    >>> from dsel.results.grid import fold_axes, grid_axes
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


def content_token(cube: xr.Dataset) -> str:
    """Return a hash of the candidates in their order and of all that was counted.

    A cube that was cut, sorted or changed has another one than its attribute says.
    """
    digest = blake2b("\n".join(candidate_labels(cube)).encode(), digest_size=16)
    for name, values in sorted(evidence(cube).items()):
        digest.update(f"{name} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


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
    >>> from dsel.results.cube import make_cube
    >>> from dsel.results.grid import fold_axes, grid_axes
    >>> axes = grid_axes({"C": [1, 10]})
    >>> errors = {"fold_errors": [[1, 0], [2, 2]], "fold_rows": [10, 10]}
    >>> found = cv_results(make_cube(axes, fold_axes(2), errors), axes)
    >>> found["params"], found["mean_test_score"].tolist()
    ([{'C': 1}, {'C': 10}], [0.95, 0.8])
    """
    found: dict[str, Any] = {}
    n, params = axes.n_candidates, list(axes)
    for name, variable in (("fit", names.FIT_SECONDS), ("score", names.SCORE_SECONDS)):
        if variable in cube:
            seconds = cube[variable].values.reshape(n, -1)
            found[f"mean_{name}_time"] = seconds.mean(axis=1)
            found[f"std_{name}_time"] = seconds.std(axis=1)
    given = [{ESTIMATOR: each} for each in axes.estimators] or params
    for name in sorted({name for each in given for name in each}):
        found[f"param_{name}"] = _masked(name, given)
    found["params"] = params
    scores = 1.0 - _fold_rates(cube).values.reshape(n, -1)
    found |= {f"split{k}_test_score": fold for k, fold in enumerate(scores.T)}
    mean = scores.mean(axis=1)
    found["mean_test_score"], found["std_test_score"] = mean, scores.std(axis=1)
    ranks = rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min")
    return found | {"rank_test_score": ranks.astype(np.int32)} | _judged(cube)


def _fold_rates(cube: xr.Dataset) -> xr.DataArray:
    """Return errors by answers, of which a nested search has several for a row."""
    n_answers = names.FOLD_ANSWERS if names.FOLD_ANSWERS in cube else names.FOLD_ROWS
    return cube[names.FOLD_ERRORS] / cube[n_answers]


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
    counted = evidence(cube[[names.STATUS]])[names.STATUS]
    table: dict[str, Any] = {
        names.STATUS: np.array(schema.STATES, dtype=object)[counted]
    }
    if names.FOLD_ERRORS in cube:
        rates = _fold_rates(cube).values.reshape(len(counted), -1)
        table[CV_ERROR] = rates.mean(axis=1)
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
    # Parameters of which one value was selected, as `isel` leaves them.
    scalars = (str(name) for name in cube.coords if cube.coords[name].ndim == 0)
    fixed = {
        name: [cube[name].item()] * n for name in scalars if name not in names.RESERVED
    }
    if names.CANDIDATE in dims:
        along = sorted(str(name) for name in cube.coords if cube[name].dims == dims)
        own = {n: cube[n].values.tolist() for n in along if n != names.CANDIDATE}
        return own | dict(sorted(fixed.items()))
    rows = list(product(*(cube[dim].values.tolist() for dim in dims)))
    own = {dim: [row[place] for row in rows] for place, dim in enumerate(dims)}
    return dict(sorted((own | fixed).items()))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _is_set(value: Any) -> bool:
    return bool(value != "" and value == value)  # NaN is not itself


def _show(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:g}" if isinstance(value, float) else repr(value)
