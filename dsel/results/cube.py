"""The results cube: its axes, its construction, and the counts that criteria read.

Texts are objects and counts are floats (exact to 2^53), types that numpy promotes, so
that any xarray operation on a whole Dataset works on a cube. A fold that was not
counted is NaN, so that no mean or minimum takes it for a count.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from math import prod
from typing import Any, Final, NamedTuple, Protocol, TypeGuard, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from dsel import names
from dsel.arrays import ArrayLike, Bools, Floats, Integers, as_plain
from dsel.checks import describe_type, show
from dsel.results.assumptions import Assumption, full_list
from dsel.results.records import check_version
from dsel.results.values import UNSET, coordinate_of, value_text
from dsel.runtime.versions import installed_versions
from dsel.typing import AnyArray, Options, ResultsLike

SCHEMA_VERSION: Final = 3
"""Version of the schema, which is raised whenever an old reader could misread a
cube."""
OPTIONAL_VARIABLES: Final = {
    names.LABEL_TERM,
    names.DISAGREEMENT_TERM,
    names.CANDIDATE_DELTA,
    names.DELTA,
    names.FIT_PROBLEM,
} | {
    variable.name
    for variable in names.VARIABLES
    if variable.kind in ("text", "seconds")
}
"""Variables that are left out of a cube if they are empty, since texts break `mean`."""


class GridAxes(NamedTuple):
    """The candidates of a grid, numbered in scikit-learn's ``ParameterGrid`` order."""

    sizes: Mapping[str, int]
    """One dimension per parameter, sorted by parameter, or ``candidate`` alone."""
    coords: Mapping[str, tuple[str, NDArray[Any], Mapping[str, Any]]]
    """Dimension, values and attributes of each coordinate; see `coordinate_of`."""
    candidates: tuple[Mapping[str, Any], ...] = ()
    """Parameters of each candidate; numbers are Python's own."""

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return prod(self.sizes.values())


def grid_axes(grid: Any) -> GridAxes:
    """Return the numbered candidates of a grid, with the axes that a cube has for them.

    A dict of lists has one dimension for each parameter; it is called ``param_<name>``
    if the cube has that name already. A list of such dicts, or of unfitted estimators,
    has the one dimension ``candidate``, with the parameters as coordinates along it
    (NaN or "" if a candidate does not set one).

    Examples
    --------
    >>> axes = grid_axes({"gamma": [0.1, 1.0], "C": [1, 10, 100]})
    >>> axes.sizes, axes.candidates[3]
    ({'C': 3, 'gamma': 2}, {'C': 10, 'gamma': 1.0})
    """
    are_estimators = (
        is_list(grid)
        and len(grid)
        and all(
            hasattr(entry, "get_params") and not isinstance(entry, type)
            for entry in grid
        )
    )
    grids = product_grids(
        [{"estimator": [e]} for e in grid] if are_estimators else grid
    )
    parameters = sorted({parameter for axes in grids for parameter in axes})
    dims = {p: f"param_{p}" if p in names.RESERVED else p for p in parameters}
    if len(set(dims.values())) < len(dims):
        raise ValueError(
            f"`param_grid` has two parameters that want one dimension: "
            f"{tuple(dims.values())}."
        )
    candidates = tuple(
        {name: as_plain(value) for name, value in params.items()}
        for params in ParameterGrid(list(grids))
    )
    if len(grids) == 1 and parameters and not are_estimators:
        sizes = {dim: len(grids[0][p]) for p, dim in dims.items()}
        coords = {
            dim: (dim, *coordinate_of(grids[0][p], is_axis=True))
            for p, dim in dims.items()
        }
        return GridAxes(sizes, coords, candidates)
    columns: dict[str, Sequence[Any]] = {names.CANDIDATE: range(len(candidates))}
    for parameter, dim in dims.items():
        columns[dim] = [candidate.get(parameter, UNSET) for candidate in candidates]
    along = {
        name: (names.CANDIDATE, *coordinate_of(values, is_axis=False))
        for name, values in columns.items()
    }
    if are_estimators and len(candidates) == 1:
        candidates = ({},)  # a single estimator sets no parameter
    return GridAxes({names.CANDIDATE: len(candidates)}, along, candidates)


def product_grids(grid: Any) -> tuple[Mapping[str, Sequence[Any]], ...]:
    """Return the products that a grid consists of; raise if it is no grid."""
    grids = [grid] if isinstance(grid, Mapping) else grid
    if not is_list(grids) or not all(isinstance(axes, Mapping) for axes in grids):
        raise TypeError(
            f"`param_grid` must be a dict of parameter values, a list of such dicts or "
            f"a list of estimators, got {value_text(grid):.60}."
        )
    if not len(grids):
        raise ValueError("`param_grid` is empty; give at least one candidate.")
    for axes in grids:
        for parameter, values in axes.items():
            if not is_list(values):
                is_one = isinstance(values, str | Mapping) or not isinstance(
                    values, Iterable
                )
                way = f"write [{show(values)}] for a single one"
                if not is_one:
                    way = "write list(...) around values, or [...] around a single one"
                raise TypeError(
                    f"`param_grid` must give {parameter!r} a list of values, got "
                    f"{show(values)} ({type(values).__name__}); {way}."
                )
            if len(values) == 0:
                raise ValueError(
                    f"`param_grid` gives {parameter!r} no values; give at least one."
                )
    return tuple(grids)


def is_list(values: object) -> TypeGuard[Sequence[Any] | AnyArray]:
    """Return whether this is a list of values of a parameter, and not one value."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    return isinstance(values, Sequence) and not isinstance(values, str)


def make_cube(
    axes: GridAxes,
    split_sizes: Mapping[str, int],
    values: Mapping[str, ArrayLike],
    *,
    assumptions: Iterable[Assumption] | None = None,
    attributes: Options | None = None,
) -> xr.Dataset:
    """Make a results cube from flat arrays.

    `values` are variables by name, candidates flattened into the first axis and
    `split_sizes` into the next; counts are integers, -1 where nothing was counted. An
    empty one of `OPTIONAL_VARIABLES` is left out. `attributes` are provenance.
    """
    flat = {
        names.STATUS: np.full(axes.n_candidates, names.STATUS_MISSING),
        # There is one value for each candidate, so that cubes of two runs can be joined
        # along them.
        names.N_CANDIDATES: np.full(axes.n_candidates, axes.n_candidates),
        **values,
    }
    data = _variables(flat, axes.sizes, split_sizes)
    coords: dict[str, Any] = dict(axes.coords)
    for dim, size in split_sizes.items():
        coords[dim] = (dim, np.arange(size), {names.N_SPLITS: size})
    listed = full_list() if assumptions is None else assumptions
    records = [asdict(assumption) for assumption in listed]
    attrs = {**(attributes or {}), names.ASSUMPTIONS: records}
    return xr.Dataset(data, coords, _provenance(attrs))


def make_pair_cube(
    axes: GridAxes,
    pairs: Sequence[tuple[int, int]],
    counted: Mapping[str, ArrayLike],
    rows: ArrayLike,
    fit_seconds: ArrayLike,
) -> xr.Dataset:
    """Make the Dataset of counts from fits without two folds.

    `counted` has counts by name, such as errors, of shape (n_candidates, n_pairs, 2):
    those of the fit of each candidate on the `rows` of the first and the second fold of
    each pair. The coordinate ``fold`` has the numbers of both folds.
    """
    pair, side = {names.PAIR: len(pairs)}, {names.SIDE: 2}
    counts = {**counted, names.FOLD_ROWS: rows}
    data = _variables(counts, axes.sizes, pair | side)
    data |= _variables({names.FIT_SECONDS: fit_seconds}, axes.sizes, pair)
    coords = {
        **axes.coords,
        names.PAIR: np.arange(len(pairs)),
        names.SIDE: np.arange(2),
        names.FOLD: (tuple(pair | side), np.array(pairs, np.int64).reshape(-1, 2)),
    }
    return xr.Dataset(data, coords, _provenance({}))


class CriterionTerms(Protocol):
    """Values of a criterion, (n_candidates,) each; NaN where not computed."""

    @property
    def value(self) -> ArrayLike:
        """Value by which candidates are compared: a bound, or an estimate."""

    @property
    def label_term(self) -> ArrayLike:
        """Part of the value that comes from labeled rows."""

    @property
    def disagreement_term(self) -> ArrayLike:
        """Part of the value that comes from the pool."""


def with_criteria(
    cube: xr.Dataset,
    terms: Mapping[str, CriterionTerms],
    *,
    candidate_deltas: Mapping[str, ArrayLike],
    delta: float,
) -> xr.Dataset:
    """Return the cube with the values that criteria give every candidate.

    `terms` have the values of every criterion, by its name; `candidate_deltas` of a
    criterion divide `delta` among the candidates that it bounds. An estimate has
    neither: they are NaN, and a cube of estimates alone lacks both variables.
    """
    n = len(terms)
    status = cube[names.STATUS]
    values = {
        names.LABEL_TERM: np.array([term.label_term for term in terms.values()]),
        names.DISAGREEMENT_TERM: np.array(
            [term.disagreement_term for term in terms.values()]
        ),
    }
    deltas = np.array(
        [
            np.broadcast_to(candidate_deltas.get(name, np.nan), status.size)
            for name in terms
        ]
    )
    # Nothing can fail of an estimate; the attribute `delta` has that of the run.
    of_criteria = [delta if name in candidate_deltas else np.nan for name in terms]
    values |= {names.CANDIDATE_DELTA: deltas, names.DELTA: np.array(of_criteria)}
    variables = _variables(values, status.sizes, {names.CRITERION: n})
    by_name = {name: term.value for name, term in terms.items()}
    return with_criterion_values(cube, by_name).assign(variables)


def with_criterion_values(
    cube: xr.Dataset, values: Mapping[str, ArrayLike]
) -> xr.Dataset:
    """Return the cube with the values of criteria, which are bounds or estimates.

    Each has shape (n_candidates,), and is infinite where a candidate failed.
    """
    n = len(values)
    sizes = cube[names.STATUS].sizes
    flat = {
        names.CRITERION_VALUE: np.array(
            [np.ravel(of_candidates) for of_candidates in values.values()]
        )
    }
    coords = {names.CRITERION: np.array(list(values), dtype=object)}
    variables = _variables(flat, sizes, {names.CRITERION: n})
    return cube.assign_coords(coords).assign(variables)


def cube_of(results: ResultsLike) -> xr.Dataset:
    """Return the cube of a fitted search or an outcome, or a cube itself; or raise."""
    if isinstance(results, BaseEstimator):
        check_is_fitted(results)
        results = getattr(results, "results_", results)
    cube = getattr(results, "results", results)
    read_counts(cube)  # raises where it is no cube
    return cast(xr.Dataset, cube)


def check_cube(cube: Any) -> None:
    """Raise if `cube` is no results cube, which has a status for each candidate."""
    if not isinstance(cube, xr.Dataset):
        way = "a part of a run, and its print, have no counts: pass the whole outcome"
        if isinstance(cube, (str, os.PathLike)):
            way = f"open it, as by dsel.open_outcome({show(os.fspath(cube))})"
        raise TypeError(
            f"`results` must be an outcome, a fitted search, or an xarray.Dataset from "
            f"a run or `open_results`, got {describe_type(cube)}; {way}."
        )
    if names.STATUS not in cube.data_vars:
        raise ValueError(
            f"`results` is no results cube: it lacks {names.STATUS}; pass what a run "
            f"or `open_results` returned, with all its variables."
        )


def check_dataset(dataset: Any, name: str, maker: str, *variables: str) -> None:
    """Raise if an argument is no Dataset, or lacks variables of its maker."""
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"`{name}` must be an xarray.Dataset from {maker}, got "
            f"{type(dataset).__name__}."
        )
    if lacks := [
        variable for variable in variables if variable not in dataset.variables
    ]:
        raise ValueError(
            f"`{name}` must be a Dataset from {maker}, but lacks {', '.join(lacks)}."
        )


def read_counts(cube: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a cube that criteria read, by name; raise if it is no cube.

    Counts and status are int64, -1 where nothing was counted. Candidates are flattened
    into the first axis; the other dimensions have the order that `make_cube` gave them.
    """
    check_cube(cube)
    cube = restore_dims(cube)
    candidates = candidate_dims(cube)
    n = cube[names.STATUS].size
    if not candidates or not n:
        raise ValueError(
            "`results` has no dimension of candidates, or none along it; select whole "
            "candidates as lists, such as results.isel(C=[0])."
        )
    halves = (names.REPEAT, names.HALF)
    split_dims = halves if names.REPEAT in cube.dims else (names.FOLD,)
    arrays: dict[str, NDArray[Any]] = {}
    for spec in names.VARIABLES:
        if spec.name not in cube.data_vars:
            continue
        array = cube[spec.name]
        expected = _dims(spec, candidates, split_dims)
        if spec.name == names.N_CANDIDATES and not array.dims:  # of older cubes
            array = array.broadcast_like(cube[names.STATUS])
        if array.dims != expected:
            raise ValueError(
                f"`results` has {spec.name} over {array.dims}, expected {expected}; "
                f"select whole candidates only, or `results.sel(run=...)` of joined "
                f"runs."
            )
        if (spec.kind != "text") != (array.dtype.kind in "iuf"):
            raise ValueError(
                f"`results` has {spec.name} of type {array.dtype}, expected "
                f"{'texts' if spec.kind == 'text' else 'numbers'}."
            )
        if spec.kind in ("text", "seconds") or names.CRITERION in spec.dims:
            continue
        counts = array.values if spec.kind == "number" else _read_integers(spec, array)
        if names.CANDIDATES in spec.dims:
            counts = counts.reshape(n, *counts.shape[len(candidates) :])
        arrays[spec.name] = counts
    if names.N_CANDIDATES in arrays:
        # Delta is divided among all candidates: those of both runs if cubes were
        # joined, and those of the whole run if only some of them were selected.
        most = max(int(arrays[names.N_CANDIDATES].max()), n)
        arrays[names.N_CANDIDATES] = np.array(most, np.int64)
    return arrays


def _read_integers(spec: names.Variable, array: xr.DataArray) -> Integers:
    """Return counts or flags of a cube, which has NaN where nothing was counted."""
    unset, most = names.UNCOUNTED, np.inf
    if spec.kind == "flag":  # the last status is "missing"
        most = len(spec.meanings) - 1
        unset = most if spec.name == names.STATUS else 0
    is_unset = np.isnan(array.values)
    counts = np.where(is_unset, 0, array.values)
    is_wrong = (counts < 0) | (counts > most) | (counts != np.rint(counts))
    if is_wrong.any():
        raise ValueError(
            f"`results` has {spec.name} = {counts[is_wrong][0]:g}; it is a whole "
            f"number in [0, {most:g}], and NaN where nothing was counted."
        )
    return np.where(is_unset, unset, counts).astype(np.int64)


def error_rates(errors: Integers, n_predictions: Integers) -> Floats:
    """Return error rates on folds, in the shape of `errors`; NaN where none is known.

    `n_predictions` are the numbers of predictions: the rows of each fold, or numbers
    for each candidate, since several models of a nested search predict a row.
    """
    is_known = (errors >= 0) & (n_predictions > 0)
    return np.where(is_known, errors / np.maximum(n_predictions, 1), np.nan)


def fold_error_rates(counts: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the error rates of the counts of a cube, as `error_rates` does."""
    n_predictions = counts.get(names.FOLD_PREDICTIONS, counts[names.FOLD_ROWS])
    return error_rates(counts[names.FOLD_ERRORS], n_predictions)


def has_fewer_predictions(counts: Mapping[str, NDArray[Any]]) -> Bools:
    """Return which done candidates have fewer predictions than another one.

    Each search without a fold drops candidates early by itself. A candidate is done if
    one of them has kept it, so the errors of two of these may be counted on different
    rows, and the smaller mean may be that of the easier rows.
    """
    is_done = counts[names.STATUS] == names.STATUS_DONE
    if names.FOLD_PREDICTIONS not in counts:
        return np.zeros_like(is_done)
    n = len(is_done)
    n_predictions = counts[names.FOLD_PREDICTIONS].reshape(n, -1).sum(axis=1)
    most = n_predictions.max(where=is_done, initial=0)
    return np.asarray(is_done & (n_predictions < most))


def cv_error(counts: Mapping[str, NDArray[Any]], candidate: int) -> float:
    """Return a candidate's mean error on held-out rows; NaN if some are missing."""
    if names.FOLD_ERRORS not in counts:
        return np.nan
    return float(fold_error_rates(counts)[candidate].mean())


def check_schema(cube: xr.Dataset) -> None:
    """Raise `NewerRecordError` if a newer dsel wrote a cube."""
    version = cube.attrs.get("dsel_schema_version")
    if version is not None:  # xarray drops attributes on the way
        check_version(version, SCHEMA_VERSION, "the cube")


def candidate_dims(cube: xr.Dataset) -> tuple[str, ...]:
    """Return the dimensions that number the candidates, in the order of the run.

    They are sorted by parameter, as in `grid_axes`; the regularization comes first.
    """
    dims = map(str, cube[names.STATUS].dims)
    by_name = sorted(dims, key=parameter_name)
    return tuple(sorted(by_name, key=lambda dim: dim == names.REGULARIZATION))


def parameter_name(dim: str) -> str:
    """Return the parameter of a dimension, which has another name if that was taken."""
    bare = dim.removeprefix("param_")
    return bare if bare in names.RESERVED else dim


def restore_dims(cube: xr.Dataset) -> xr.Dataset:
    """Return a cube in its original dimensions, if it was transposed or joined.

    xarray joins runs along candidates by adding this dimension to all variables: a
    variable that is constant along it loses it again. The results without each fold,
    which belong to no candidate, are dropped if the runs differ in them.
    """
    if names.STATUS not in getattr(cube, "data_vars", ()):
        return cube
    candidates = candidate_dims(cube)
    changed = dict[str, xr.Variable]()
    dropped = []
    halves = (names.REPEAT, names.HALF)
    split_dims = halves if names.REPEAT in cube.dims else (names.FOLD,)
    for spec in names.VARIABLES:
        if spec.name not in cube.data_vars:
            continue
        array = cube[spec.name].variable
        expected = _dims(spec, candidates, split_dims)
        joined = [dim for dim in array.dims if dim not in expected]
        if joined and names.CANDIDATES not in spec.dims and {*joined} <= {*candidates}:
            first = array.isel(dict.fromkeys(joined, 0))
            if bool(((array == first) | (array.isnull() & first.isnull())).all()):
                array = first
            elif spec.dims == names.OUTER:
                dropped.append(spec.name)
        if {*array.dims} == {*expected} and array.dims != expected:
            array = array.transpose(*expected)
        if array is not cube[spec.name].variable:
            changed[spec.name] = array
    return cube.assign(changed).drop_vars(dropped) if changed or dropped else cube


def _provenance(attributes: Options) -> dict[str, Any]:
    """Return root attributes: version, date, and `attributes` as scalars or JSON."""
    attrs: dict[str, Any] = {
        "dsel_schema_version": SCHEMA_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "creation_library": "dsel",
        "creation_library_version": installed_versions()["dsel"] or "unknown",
    }
    for name, value in attributes.items():
        plain = "" if value is None else as_plain(value)
        if isinstance(plain, bool):
            plain = int(plain)  # netCDF has no booleans
        elif not isinstance(plain, int | float | str):
            plain = json.dumps(plain, sort_keys=True, default=str)
        attrs[name] = plain
    return attrs


def _dims(
    spec: names.Variable, candidates: Iterable[str], split_dims: Iterable[str]
) -> tuple[str, ...]:
    """Return a variable's dimensions in a cube with these candidates and splits."""
    parts = {
        names.CANDIDATES: tuple(candidates),
        names.SPLITS: tuple(split_dims),
        names.COMPARED: tuple(dim for dim in split_dims if dim != names.HALF),
    }
    return tuple(name for dim in spec.dims for name in parts.get(dim, (dim,)))


def _variables(
    flat: Mapping[str, ArrayLike],
    candidates: Mapping[Any, int],
    split_sizes: Mapping[str, int],
) -> dict[str, xr.Variable]:
    """Return flat arrays as variables in their types and shapes, with attributes."""
    sizes = {**candidates, **split_sizes}
    variables = {}
    for spec in names.VARIABLES:
        if spec.name not in flat:
            continue
        dims = _dims(spec, candidates, split_sizes)
        array = np.reshape(flat[spec.name], [sizes[dim] for dim in dims])
        attrs: dict[str, Any] = {"long_name": spec.long_name}
        if spec.kind != "text":
            attrs["units"] = "s" if spec.kind == "seconds" else "1"
        if spec.kind == "flag":
            attrs["flag_values"] = list(range(len(spec.meanings)))
            attrs["flag_meanings"] = " ".join(spec.meanings)
        if spec.kind == "count":
            array = np.where(array == names.UNCOUNTED, np.nan, array)
        kind = {"text": object, "flag": np.int8}.get(spec.kind, np.float64)
        nothing = {"text": "", "flag": 0}
        is_empty = (
            array == nothing[spec.kind] if spec.kind in nothing else np.isnan(array)
        )
        if spec.name not in OPTIONAL_VARIABLES or not is_empty.all():
            variables[spec.name] = xr.Variable(dims, array.astype(kind), attrs)
    return variables
