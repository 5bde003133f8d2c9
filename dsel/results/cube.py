"""The results cube: make it, read evidence from it, add what a criterion says."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import prod
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.results import schema
from dsel.results.grid import GridAxes, SplitAxes
from dsel.results.ledger import Assumption, full_ledger, with_assumptions
from dsel.runtime.versions import installed_versions

ROWS_OF: Final = {
    names.FOLD_ERRORS: names.FOLD_ROWS,
    names.TRAIN_ERRORS: names.TRAIN_ROWS,
    names.FULL_TRAIN_ERRORS: names.N_LABELED,
    names.DISAGREEMENTS: names.POOL_ROWS,
    names.BEST_FOLD_DISAGREEMENTS: names.N_UNLABELED,
    names.INNER_ERRORS: names.FOLD_ROWS,
    names.OUTER_ERRORS: names.FOLD_ROWS,
    names.OUTER_CANDIDATE: names.N_CANDIDATES,
    names.OUTER_DISAGREEMENTS: names.N_UNLABELED,
    names.VOTE_DISAGREEMENTS: names.N_UNLABELED,
}
"""In how many rows something was counted."""


def make_cube(
    axes: GridAxes,
    splits: SplitAxes,
    values: Mapping[str, ArrayLike],
    *,
    assumptions: Iterable[Assumption] = (),
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
        (in co-validation: repeats and halves) into the next; scalars have shape ().
        Counts are integers, -1 where nothing was counted. What is left out stands as
        NaN or ``missing``; ``n_candidates`` is that of the grid unless given.
    assumptions
        Entries of the ledger; those not given stand as declared.
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
    """
    unknown = sorted(set(values) - set(schema.BY_NAME) - {names.STAGE_ROWS})
    if unknown:
        raise ValueError(f"`values` holds names that no cube has: {unknown}.")
    parts, sizes = _layout(axes, splits)
    given = {names.N_CANDIDATES: axes.n_candidates} | dict(values)
    wanted = [
        each for each in schema.VARIABLES if each.name in given or not each.is_optional
    ]
    data = {
        each.name: _variable(each, given.get(each.name), parts, sizes)
        for each in wanted
    }
    coords: dict[str, Any] = dict(axes.coords)
    for dim, size in zip(splits.dims, splits.shape, strict=True):
        coords[dim] = (dim, np.arange(size), {names.N_SPLITS: size})
    if names.INNER_ERRORS in values:
        coords[names.INNER_FOLD] = (names.INNER_FOLD, np.arange(splits.shape[0]))
    cube = xr.Dataset(data, coords=coords, attrs=provenance(attributes or {}))
    if names.STAGE_ROWS in values:
        rows = np.asarray(values[names.STAGE_ROWS]).tolist()
        cube.attrs[names.STAGE_ROWS] = json.dumps(rows)
    return with_assumptions(cube, full_ledger(assumptions))


def evidence(cube: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return what criteria read of a cube, by the names of its variables.

    Returns
    -------
    dict
        Counts (int64, -1 where nothing was counted), losses, status and scalars,
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
    >>> evidence(make_cube(axes, fold_axes(5), {}))["fold_errors"].shape
    (6, 5)
    """
    n_candidates, n_dims = cube[names.STATUS].size, cube[names.STATUS].ndim
    found = {}
    for name in (name for name in schema.EVIDENCE if name in cube.variables):
        spec, values = schema.BY_NAME[name], cube[name].values
        if schema.CANDIDATES in spec.dims:
            values = values.reshape(n_candidates, *values.shape[n_dims:])
        is_count = spec.kind == schema.COUNT
        found[name] = _whole_numbers(name, values) if is_count else values
    for name, limit in ROWS_OF.items():
        if name in found and ((found[name] > found[limit]) & (found[limit] >= 0)).any():
            raise ValueError(
                f"`results` has more {name} than {limit}; its counts were changed "
                f"after they were taken."
            )
    if names.STAGE_ROWS in cube.attrs:
        found[names.STAGE_ROWS] = np.array(json.loads(cube.attrs[names.STAGE_ROWS]))
    return found


def _whole_numbers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    counted = values[~np.isnan(values)]
    wrong = counted[~np.isfinite(counted) | (counted != np.rint(counted))]
    if wrong.size or (counted < 0).any():
        first = wrong[0] if wrong.size else counted.min()
        raise ValueError(
            f"`results` has {name} = {first:g}; a count is a whole number, never "
            f"negative, and NaN where nothing was counted."
        )
    return np.where(np.isnan(values), names.UNCOUNTED, values).astype(np.int64)


def check_cube(results: Any) -> None:
    """Raise unless `results` is a results cube; values are not read.

    Raises
    ------
    TypeError
        Where it is no Dataset.
    ValueError
        Where a variable is missing, or has the wrong dimensions or type.
    """
    if not isinstance(results, xr.Dataset):
        raise TypeError(
            f"`results` must be an xarray.Dataset from a run or `open_results`, got "
            f"{type(results).__name__}."
        )
    needed = (each.name for each in schema.VARIABLES if not each.is_optional)
    if missing := [name for name in needed if name not in results.data_vars]:
        raise ValueError(
            f"`results` is no results cube: it lacks {', '.join(missing)}; pass what "
            f"a run or `open_results` returned, with all its variables."
        )
    candidates = candidate_dims(results)
    compared = results[names.DISAGREEMENTS].dims
    parts = {
        schema.CANDIDATES: candidates,
        schema.SPLITS: tuple(str(dim) for dim in results[names.FOLD_ROWS].dims),
        schema.COMPARED: tuple(str(dim) for dim in compared if dim not in candidates),
    }
    for each in schema.VARIABLES:
        if each.name in results.data_vars:
            _check_variable(results[each.name], each, parts)


def _check_variable(
    array: xr.DataArray, spec: schema.Variable, parts: Mapping[str, tuple[str, ...]]
) -> None:
    dims = tuple(schema.expand(spec.dims, parts))
    if array.dims != dims:
        raise ValueError(
            f"`results` has {spec.name} over {array.dims}, expected {dims}; transpose "
            f"or select whole candidates only."
        )
    wanted = schema.DTYPES[spec.kind]
    is_text = spec.kind == schema.TEXT
    if (is_text and array.dtype.kind not in "TUO") or (
        not is_text and np.dtype(array.dtype) != wanted
    ):
        raise ValueError(
            f"`results` has {spec.name} of type {array.dtype}, expected {wanted}."
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
    judgement: Any,
    *,
    delta_shares: ArrayLike,
    delta: float,
    label_share: float,
) -> xr.Dataset:
    """Return the cube with what one criterion says; the same name is replaced.

    Parameters
    ----------
    cube
        A cube made by `make_cube`.
    name
        Coordinate along ``criterion``.
    judgement
        Its `Terms`: ``estimate``, ``label_term`` and ``disagreement_term``,
        (n_candidates,) each.
    delta_shares
        Share of `delta` of each candidate, (n_candidates,).
    delta, label_share
        The probability that the bounds may fail, and the label term's part of it.
    """
    shape = (1, *candidate_shape(cube))
    dims = (names.CRITERION, *candidate_dims(cube))
    columns = {
        names.ESTIMATE: judgement.estimate,
        names.LABEL_TERM: judgement.label_term,
        names.DISAGREEMENT_TERM: judgement.disagreement_term,
        names.DELTA_SHARE: delta_shares,
    }
    added: dict[str, Any] = {
        key: (dims, np.array(values, dtype=float).reshape(shape), _attrs(key))
        for key, values in columns.items()
    }
    for key, value in {names.DELTA: delta, names.LABEL_SHARE: label_share}.items():
        added[key] = ((names.CRITERION,), np.array([float(value)]), _attrs(key))
    label = np.array([name], dtype=schema.DTYPES[schema.TEXT])
    entry = xr.Dataset(added, coords={names.CRITERION: label})
    if names.CRITERION not in cube.dims:
        return cube.assign(entry.variables)
    return _extend(cube, entry, name)


def provenance(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return root attributes: the given ones as scalars, strings or JSON."""
    own = {
        "dsel_schema_version": schema.SCHEMA_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "creation_library": "dsel",
        "creation_library_version": installed_versions(("dsel",))["dsel"] or "unknown",
    }
    return own | {key: _attribute(value) for key, value in attributes.items()}


def _layout(
    axes: GridAxes, splits: SplitAxes
) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
    parts = {
        schema.CANDIDATES: axes.dims,
        schema.SPLITS: splits.dims,
        schema.COMPARED: splits.compared,
    }
    sizes = dict(zip(axes.dims, axes.shape, strict=True))
    sizes |= {names.INNER_FOLD: splits.shape[0]}  # as many as folds
    return parts, sizes | dict(zip(splits.dims, splits.shape, strict=True))


def _variable(
    spec: schema.Variable,
    values: ArrayLike | None,
    parts: Mapping[str, tuple[str, ...]],
    sizes: Mapping[str, int],
) -> tuple[tuple[str, ...], NDArray[Any], dict[str, Any]]:
    dims = tuple(schema.expand(spec.dims, parts))
    shape = tuple(sizes[dim] for dim in dims)
    dtype = schema.DTYPES[spec.kind]
    if values is None:
        return dims, np.full(shape, schema.EMPTY[spec.kind], dtype=dtype), spec.attrs
    array = np.asarray(values)
    if spec.kind in (schema.COUNT, schema.FLAG) and array.dtype.kind not in "iu":
        raise TypeError(
            f"`values[{spec.name!r}]` must hold integers, got {array.dtype}."
        )
    is_flat = schema.CANDIDATES in spec.dims
    n_candidates = prod(sizes[dim] for dim in parts[schema.CANDIDATES])
    if array.size != prod(shape) or (is_flat and len(array) != n_candidates):
        raise ValueError(
            f"`values[{spec.name!r}]` must have {prod(shape)} elements for "
            f"{dict(zip(dims, shape, strict=True))}, got shape {array.shape}."
        )
    if spec.kind == schema.COUNT:
        array = np.where(array == names.UNCOUNTED, np.nan, array)
    return dims, array.reshape(shape).astype(dtype), spec.attrs


def _extend(cube: xr.Dataset, entry: xr.Dataset, name: str) -> xr.Dataset:
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
