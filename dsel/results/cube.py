"""The results cube: make it, read evidence from it, add what a criterion says."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import prod
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.results import schema
from dsel.results.assumptions import Assumption, full_ledger
from dsel.results.grid import GridAxes
from dsel.results.trainings import TrainingAxes


class Evaluation(Protocol):
    """What a criterion says of every candidate: `dsel.criteria.base.Terms`."""

    @property
    def estimate(self) -> NDArray[np.float64]:
        """Numbers, unclipped; smaller is better."""

    @property
    def label_term(self) -> NDArray[np.float64]:
        """Part that comes from labeled rows."""

    @property
    def disagreement_term(self) -> NDArray[np.float64]:
        """Part that comes from the pool."""


def make_cube(
    axes: GridAxes,
    trainings: TrainingAxes,
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
    trainings
        The trainings, from `fold_axes` or `half_axes`.
    values
        Variables by name, candidates flattened into the first axis and trainings
        (in co-validation: repeats and halves) into the next; scalars have shape ().
        What is left out stands as not counted (-1), not computed (NaN) or
        ``missing``; ``n_candidates`` is that of the grid unless given.
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
    unknown = sorted(set(values) - set(schema.BY_NAME))
    if unknown:
        raise ValueError(f"`values` holds names that no cube has: {unknown}.")
    parts, sizes = _layout(axes, trainings)
    sizes[names.LOOK] = np.size(values.get(names.LOOK_ROWS, ()))
    given = {names.N_CANDIDATES: axes.n_candidates} | dict(values)
    wanted = [
        each
        for each in schema.VARIABLES
        if each.name in given or not each.is_optional
        if names.ASSUMPTION not in each.dims
    ]
    data = {
        each.name: _variable(each, given.get(each.name), parts, sizes)
        for each in wanted
    }
    coords: dict[str, Any] = dict(axes.coords)
    for dim, size in zip(trainings.dims, trainings.shape, strict=True):
        coords[dim] = (dim, np.arange(size))
    cube = xr.Dataset(data, coords=coords, attrs=provenance(attributes or {}))
    return with_assumptions(cube, full_ledger(assumptions))


def evidence(cube: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Return what criteria read: arrays with the candidates in the first axis.

    Parameters
    ----------
    cube
        A results cube.

    Returns
    -------
    dict
        Variables by name: counts, losses, status and scalars, (n_candidates, ...)
        where they have candidates, the other dimensions behind as they are.

    Examples
    --------
    >>> from dsel.results.grid import grid_axes
    >>> from dsel.results.trainings import fold_axes
    >>> axes = grid_axes({"C": [1, 10], "gamma": [0.1, 1.0, 10.0]})
    >>> evidence(make_cube(axes, fold_axes(5), {}))["fold_errors"].shape
    (6, 5)
    """
    dims = candidate_dims(cube)
    found = [name for name in schema.EVIDENCE if name in cube.variables]
    return {name: _flatten(cube[name], dims) for name in found}


def candidate_dims(cube: xr.Dataset) -> tuple[str, ...]:
    """Return the dimensions that number the candidates."""
    return tuple(str(dim) for dim in cube[names.STATUS].dims)


def candidate_shape(cube: xr.Dataset) -> tuple[int, ...]:
    """Return the length of each dimension that numbers the candidates."""
    return tuple(cube.sizes[dim] for dim in candidate_dims(cube))


def add_criterion(
    cube: xr.Dataset,
    name: str,
    judgement: Evaluation,
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
        ``estimate``, ``label_term`` and ``disagreement_term``, (n_candidates,) each.
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
    entry = xr.Dataset(added, coords={names.CRITERION: _strings([name])})
    if names.CRITERION not in cube.dims:
        return cube.assign(entry.variables)
    return _extend(cube, entry, name)


def with_assumptions(cube: xr.Dataset, ledger: Iterable[Assumption]) -> xr.Dataset:
    """Return the cube with this ledger in the place of its own."""
    entries = list(ledger)
    states = [schema.ASSUMPTION_STATES.index(each.state) for each in entries]
    reasons = [each.reason for each in entries]
    flags = (names.ASSUMPTION, np.array(states, dtype=np.int8))
    return cube.drop_dims(names.ASSUMPTION, errors="ignore").assign(
        {
            names.ASSUMPTION: _strings([each.name for each in entries]),
            names.ASSUMPTIONS: (*flags, _attrs(names.ASSUMPTIONS)),
            names.REASON: (names.ASSUMPTION, _strings(reasons), _attrs(names.REASON)),
        }
    )


def assumptions_of(cube: xr.Dataset) -> tuple[Assumption, ...]:
    """Return the ledger that stands in the cube."""
    return tuple(
        Assumption(str(name), schema.ASSUMPTION_STATES[int(state)], str(reason))
        for name, state, reason in zip(
            cube[names.ASSUMPTION].values,
            cube[names.ASSUMPTIONS].values,
            cube[names.REASON].values,
            strict=True,
        )
    )


def provenance(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return root attributes: the given ones as scalars, strings or JSON."""
    own = {
        "dsel_schema_version": schema.SCHEMA_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "creation_library": "dsel",
        "creation_library_version": library_version(),
    }
    return own | {key: _attribute(value) for key, value in attributes.items()}


def library_version() -> str:
    """Return the installed version of dsel."""
    try:
        return version("dsel")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


def _layout(
    axes: GridAxes, trainings: TrainingAxes
) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
    parts = {
        schema.CANDIDATES: axes.dims,
        schema.TRAININGS: trainings.dims,
        schema.COMPARED: trainings.compared,
    }
    sizes = dict(zip(axes.dims, axes.shape, strict=True))
    return parts, sizes | dict(zip(trainings.dims, trainings.shape, strict=True))


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
    return dims, array.reshape(shape).astype(dtype), spec.attrs


def _flatten(array: xr.DataArray, dims: tuple[str, ...]) -> NDArray[Any]:
    values = np.asarray(array.values)
    if not dims or array.dims[: len(dims)] != dims:
        return values
    return values.reshape(-1, *values.shape[len(dims) :])


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


def _strings(values: Iterable[str]) -> NDArray[Any]:
    return np.array(list(values), dtype=schema.DTYPES[schema.TEXT])


def _attribute(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (int, float, str)):
        return "" if value is None else value
    return json.dumps(value, sort_keys=True, default=str)
