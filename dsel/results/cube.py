"""The results cube: make it, read evidence from it, add what a criterion says."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import prod
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.results import schema
from dsel.results.assumptions import Assumption, full_list, with_assumptions
from dsel.results.grid import GridAxes, SplitAxes
from dsel.runtime.versions import installed_versions

ROWS_OF: Final = {
    names.FOLD_ERRORS: (names.FOLD_ANSWERS, names.FOLD_ROWS),
    names.TRAIN_ERRORS: (names.TRAIN_ROWS,),
    names.DISAGREEMENTS: (names.POOL_ROWS,),
    names.BEST_FOLD_DISAGREEMENTS: (names.N_UNLABELED,),
    names.LOO_ERRORS: (names.N_LABELED,),
    names.OUTER_CANDIDATE: (names.N_CANDIDATES,),
    names.OUTER_ERRORS: (names.FOLD_ROWS,),
    names.OUTER_DISAGREEMENTS: (names.N_UNLABELED,),
}
"""In how many rows something was counted: the first of these that a cube has."""


def make_cube(
    axes: GridAxes,
    splits: SplitAxes,
    values: Mapping[str, ArrayLike],
    *,
    assumptions: Iterable[Assumption] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Make a results cube from flat arrays.

    Parameters
    ----------
    axes
        The candidates, from `grid_axes`.
    splits
        The splits, from `fold_axes` or `half_axes`.
    values
        Variables by name, candidates flattened into the first axis and splits
        (in co-validation: repeats and halves) into the next; scalars have shape ();
        classes may follow as last axes. Counts are integers, -1 where nothing was
        counted. The cube has these variables and no other, but ``status``
        (``missing`` unless given), ``message``, and ``n_candidates`` (that of the grid
        unless given).
    assumptions
        What the numbers assume; by default `full_list()`.
    attributes
        Provenance; dicts and lists become JSON.

    Returns
    -------
    xarray.Dataset
        The cube of the package's documentation, without a criterion.

    Raises
    ------
    ValueError
        Where a name is not in the schema or an array does not have its shape.
    TypeError
        Where counts are no integers.

    Examples
    --------
    >>> from dsel.results.grid import fold_axes, grid_axes
    >>> axes = grid_axes({"C": [1, 10]})
    >>> cube = make_cube(axes, fold_axes(2), {"fold_errors": [[1, 0], [2, -1]]})
    >>> cube.fold_errors.values.tolist()
    [[1.0, 0.0], [2.0, nan]]
    """
    if unknown := sorted(set(values) - set(schema.BY_NAME)):
        raise ValueError(f"`values` holds names that no cube has: {unknown}.")
    given = {
        names.STATUS: np.full(axes.n_candidates, names.STATUS_MISSING),
        names.MESSAGE: np.full(axes.n_candidates, "", dtype=object),
        names.N_CANDIDATES: axes.n_candidates,
        **values,
    }
    parts = {
        schema.CANDIDATES: axes.dims,
        schema.SPLITS: splits.dims,
        schema.COMPARED: splits.compared,
    }
    sizes = dict(
        zip((*axes.dims, *splits.dims), (*axes.shape, *splits.shape), strict=True)
    )
    data = {
        each.name: _variable(each, given[each.name], parts, sizes)
        for each in schema.VARIABLES
        if each.name in given
    }
    coords: dict[str, Any] = dict(axes.coords)
    for dim, size in zip(splits.dims, splits.shape, strict=True):
        coords[dim] = (dim, np.arange(size), {names.N_SPLITS: size})
    cube = xr.Dataset(data, coords=coords, attrs=provenance(attributes or {}))
    return with_assumptions(cube, full_list() if assumptions is None else assumptions)


def make_pair_cube(
    axes: GridAxes,
    pairs: Sequence[tuple[int, int]],
    errors: ArrayLike,
    rows: ArrayLike,
    fit_seconds: ArrayLike,
) -> xr.Dataset:
    """Make the Dataset of what the fits without two folds counted.

    Parameters
    ----------
    axes
        The candidates, from `grid_axes`.
    pairs
        The two folds that each fit has not seen.
    errors
        Errors of each candidate's fit on the rows of the first and of the second fold
        of each pair, (n_candidates, n_pairs, 2); -1 where nothing was counted.
    rows
        Rows of these folds, (n_pairs, 2).
    fit_seconds
        (n_candidates, n_pairs), NaN where nothing was fitted.

    Returns
    -------
    xarray.Dataset
        ``fold_errors`` over candidates, ``pair`` and ``side``, ``fold_rows`` and
        ``fit_seconds``. The coordinate ``fold`` over ``pair`` and ``side`` is the fold
        that the errors are on.

    Examples
    --------
    >>> from dsel.results.grid import grid_axes
    >>> errors = [[[3, 1], [2, 2], [0, 4]]]
    >>> pairs = make_pair_cube(grid_axes({"C": [1]}), [(0, 1), (0, 2), (1, 2)],
    ...                        errors, [[5, 5]] * 3, [[0.1, 0.1, 0.2]])
    >>> pairs.fold_errors.where(pairs.fold == 2).sum().item()  # on the rows of fold 2
    6.0
    """
    sides = (names.PAIR, names.SIDE)
    counted = np.asarray(errors)
    counted = np.where(counted == names.UNCOUNTED, np.nan, counted)
    data = {
        names.FOLD_ERRORS: ((*axes.dims, *sides), counted),
        names.FOLD_ROWS: (sides, np.asarray(rows, dtype=float)),
        names.FIT_SECONDS: ((*axes.dims, names.PAIR), np.asarray(fit_seconds)),
    }
    sizes = {names.PAIR: len(pairs), names.SIDE: 2}
    sizes |= dict(zip(axes.dims, axes.shape, strict=True))
    coords = {
        **axes.coords,
        names.PAIR: np.arange(len(pairs)),
        names.SIDE: np.arange(2),
        names.FOLD: (sides, np.array(pairs, dtype=np.int64).reshape(-1, 2)),
    }
    variables = {
        name: (dims, array.reshape([sizes[dim] for dim in dims]), _attrs(name))
        for name, (dims, array) in data.items()
    }
    return xr.Dataset(variables, coords=coords, attrs=provenance({}))


def evidence(cube: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return what criteria read of a cube, by the names of its variables.

    Returns
    -------
    dict
        Counts and status (int64, -1 where nothing was counted), losses and scalars,
        (n_candidates, ...) where they have candidates, the other dimensions behind as
        they are.

    Raises
    ------
    ValueError
        Where a count is no whole number, is negative, or larger than its rows.

    Examples
    --------
    >>> from dsel.results.grid import fold_axes, grid_axes
    >>> axes = grid_axes({"C": [1, 10], "gamma": [0.1, 1.0, 10.0]})
    >>> cube = make_cube(axes, fold_axes(5), {"fold_errors": np.zeros((6, 5), int)})
    >>> evidence(cube)["fold_errors"].shape
    (6, 5)
    """
    n_candidates, n_dims = cube[names.STATUS].size, cube[names.STATUS].ndim
    found: dict[str, NDArray[Any]] = {}
    for name in (name for name in schema.EVIDENCE if name in cube.data_vars):
        spec, values = schema.BY_NAME[name], cube[name].values
        if schema.CANDIDATES in spec.dims:
            values = values.reshape(n_candidates, *values.shape[n_dims:])
        found[name] = values
        if spec.kind != schema.NUMBER:
            empty = names.STATUS_MISSING if spec.kind == schema.FLAG else -1
            found[name] = _whole_numbers(name, values, empty)
    for name, limits in ROWS_OF.items():
        limit = next((each for each in limits if each in found), None)
        if name in found and limit is not None:
            _check_rows(name, found[name], limit, found[limit])
    return found


def _whole_numbers(name: str, values: NDArray[Any], empty: int) -> NDArray[np.int64]:
    counted = values[~np.isnan(values)]
    wrong = counted[(counted < 0) | (counted != np.rint(counted)) | np.isinf(counted)]
    if wrong.size:
        raise ValueError(
            f"`results` has {name} = {wrong[0]:g}; a count is a whole number, never "
            f"negative, and NaN where nothing was counted."
        )
    return np.where(np.isnan(values), empty, values).astype(np.int64)


def _check_rows(
    name: str, counts: NDArray[np.int64], limit: str, rows: NDArray[np.int64]
) -> None:
    # Counts by class are of all rows, right answers included.
    trailing = tuple(range(-len(schema.BY_NAME[name].trailing), 0))
    if counts.ndim >= rows.ndim + 2 and trailing:
        counts = np.maximum(counts, 0).sum(axis=trailing)
    if ((counts > rows) & (rows >= 0)).any():
        raise ValueError(
            f"`results` has more {name} than {limit}; its counts were changed after "
            f"they were taken."
        )


def check_cube(results: Any) -> None:
    """Raise unless `results` is a results cube; values are not read.

    Raises
    ------
    TypeError
        Where it is no Dataset.
    ValueError
        Where ``status`` is missing, or a variable has the wrong dimensions or type.
    """
    if not isinstance(results, xr.Dataset):
        raise TypeError(
            f"`results` must be an xarray.Dataset from a run or `open_results`, got "
            f"{type(results).__name__}."
        )
    if names.STATUS not in results.data_vars:
        raise ValueError(
            f"`results` is no results cube: it lacks {names.STATUS}; pass what a run "
            f"or `open_results` returned, with all its variables."
        )
    halves = (names.REPEAT, names.HALF)
    splits = halves if names.REPEAT in results.dims else (names.FOLD,)
    parts = {
        schema.CANDIDATES: candidate_dims(results),
        schema.SPLITS: splits,
        schema.COMPARED: tuple(dim for dim in splits if dim != names.HALF),
    }
    for name, array in results.data_vars.items():
        spec = schema.BY_NAME.get(str(name))
        if spec is None:
            continue
        dims = tuple(schema.expand(spec.dims, parts))
        if array.dims not in (dims, (*dims, *spec.trailing)):
            raise ValueError(
                f"`results` has {name} over {array.dims}, expected {dims}; transpose "
                f"or select whole candidates only."
            )
        if (spec.kind != schema.TEXT) != (array.dtype.kind in "iuf"):
            raise ValueError(
                f"`results` has {name} of type {array.dtype}, expected "
                f"{schema.DTYPES[spec.kind]}."
            )


def candidate_dims(cube: xr.Dataset) -> tuple[str, ...]:
    """Return the dimensions that number the candidates."""
    return tuple(str(dim) for dim in cube[names.STATUS].dims)


def candidate_shape(cube: xr.Dataset) -> tuple[int, ...]:
    """Return the length of each dimension that numbers the candidates."""
    return tuple(cube.sizes[dim] for dim in candidate_dims(cube))


def add_criterion(
    cube: xr.Dataset,
    name: str,
    terms: Any,
    *,
    delta_shares: ArrayLike,
    delta: float,
) -> xr.Dataset:
    """Return the cube with what one criterion says; the same name is replaced.

    Parameters
    ----------
    cube
        A cube made by `make_cube`.
    name
        Coordinate along ``criterion``.
    terms
        Its ``estimate``, ``label_term`` and ``disagreement_term``, (n_candidates,)
        each.
    delta_shares
        Share of `delta` of each candidate, (n_candidates,).
    delta
        The probability that the bounds may fail.
    """
    shape = (1, *candidate_shape(cube))
    dims = (names.CRITERION, *candidate_dims(cube))
    columns = {
        names.ESTIMATE: terms.estimate,
        names.LABEL_TERM: terms.label_term,
        names.DISAGREEMENT_TERM: terms.disagreement_term,
        names.DELTA_SHARE: np.broadcast_to(delta_shares, cube[names.STATUS].size),
    }
    added: dict[str, Any] = {
        key: (dims, np.array(values, dtype=float).reshape(shape), _attrs(key))
        for key, values in columns.items()
    }
    added[names.DELTA] = (names.CRITERION, [float(delta)], _attrs(names.DELTA))
    entry = xr.Dataset(added, coords={names.CRITERION: np.array([name], dtype=object)})
    if names.CRITERION not in cube.dims:
        return cube.assign(entry.variables)
    present = [str(each) for each in cube[names.CRITERION].values]
    order = present if name in present else [*present, name]
    kept = cube[list(entry.data_vars)].isel(
        {names.CRITERION: [n for n, each in enumerate(present) if each != name]}
    )
    # The entry has no candidate coordinates; the cube's are taken.
    joined = xr.concat(
        [kept, entry],
        names.CRITERION,
        join="exact",
        coords="minimal",
        compat="override",
    ).sel({names.CRITERION: order})
    return cube.drop_dims(names.CRITERION).assign(joined.variables)


def provenance(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return root attributes: the given ones as scalars, strings or JSON."""
    own = {
        "dsel_schema_version": schema.SCHEMA_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "creation_library": "dsel",
        "creation_library_version": installed_versions(("dsel",))["dsel"] or "unknown",
    }
    return own | {key: _attribute(value) for key, value in attributes.items()}


def _variable(
    spec: schema.Variable,
    values: ArrayLike,
    parts: Mapping[str, tuple[str, ...]],
    sizes: Mapping[str, int],
) -> tuple[tuple[str, ...], NDArray[Any], dict[str, Any]]:
    """Return dimensions, values in their shape and type, and attributes."""
    dims = tuple(schema.expand(spec.dims, parts))
    shape = tuple(sizes[dim] for dim in dims)
    array = np.asarray(values)
    if spec.kind in (schema.COUNT, schema.FLAG) and array.dtype.kind not in "iu":
        raise TypeError(
            f"`values[{spec.name!r}]` must hold integers, got {array.dtype}."
        )
    has_classes = bool(spec.trailing) and array.size != prod(shape)
    classes = array.shape[-len(spec.trailing) :] if has_classes else ()
    n_candidates = prod(sizes[dim] for dim in parts[schema.CANDIDATES])
    is_flat = schema.CANDIDATES in spec.dims
    if array.size != prod(shape + classes) or (is_flat and len(array) != n_candidates):
        raise ValueError(
            f"`values[{spec.name!r}]` must have {prod(shape)} elements for "
            f"{dict(zip(dims, shape, strict=True))}, got shape {array.shape}."
        )
    if spec.kind == schema.COUNT:
        array = np.where(array == names.UNCOUNTED, np.nan, array)
    array = array.reshape(shape + classes).astype(schema.DTYPES[spec.kind])
    return (*dims, *(spec.trailing if classes else ())), array, spec.attrs


def _attrs(name: str) -> dict[str, Any]:
    return schema.BY_NAME[name].attrs


def _attribute(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (int, float, str)):
        return "" if value is None else value
    return json.dumps(value, sort_keys=True, default=str)
