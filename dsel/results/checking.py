"""Checks that a Dataset is a results cube."""

from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.results import schema


def check_cube(results: Any) -> None:
    """Raise unless `results` is a results cube; values are not read.

    Parameters
    ----------
    results
        What ought to be one.

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
    missing = [
        each.name
        for each in schema.VARIABLES
        if not each.is_optional and each.name not in results.data_vars
    ]
    if missing:
        raise ValueError(
            f"`results` is no results cube: it lacks {', '.join(missing)}; pass what "
            f"a run or `open_results` returned, with all its variables."
        )
    parts = cube_parts(results)
    for each in schema.VARIABLES:
        if each.name in results.data_vars:
            _check_variable(results[each.name], each, parts)


def cube_parts(results: xr.Dataset) -> dict[str, tuple[str, ...]]:
    """Return the cube's own dimensions for those that the schema leaves open."""
    candidates = tuple(str(dim) for dim in results[names.STATUS].dims)
    return {
        schema.CANDIDATES: candidates,
        schema.TRAININGS: tuple(str(dim) for dim in results[names.FOLD_ROWS].dims),
        schema.COMPARED: tuple(
            str(dim)
            for dim in results[names.DISAGREEMENTS].dims
            if dim not in candidates
        ),
    }


def check_counts(results: xr.Dataset) -> None:
    """Raise ValueError where a count cannot be: below -1, or above its rows."""
    for name in schema.EVIDENCE:
        spec = schema.BY_NAME[name]
        if spec.kind != schema.COUNT or name not in results:
            continue
        if int(results[name].min()) < names.UNCOUNTED:
            raise ValueError(
                f"`results` has {name} = {int(results[name].min())}; a count is never "
                f"negative, and -1 where nothing was counted."
            )
    limits = {
        names.FOLD_ERRORS: names.FOLD_ROWS,
        names.TRAIN_ERRORS: names.TRAIN_ROWS,
        names.FULL_TRAIN_ERRORS: names.N_LABELED,
        names.DISAGREEMENTS: names.POOL_ROWS,
        names.BEST_FOLD_DISAGREEMENTS: names.N_UNLABELED,
    }
    for name, limit in limits.items():
        if bool((results[name] > results[limit]).any()):
            raise ValueError(
                f"`results` has more {name} than {limit}; its counts were changed "
                f"after they were taken."
            )


def _check_variable(
    array: xr.DataArray, spec: schema.Variable, parts: dict[str, tuple[str, ...]]
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
