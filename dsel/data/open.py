"""Opening a pool from whatever holds its rows."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
from fsspec.core import strip_protocol
from scipy import sparse

from dsel.checks import check_url
from dsel.data.blocks import summed
from dsel.data.collection import Collection
from dsel.data.columns import check_number_of_names
from dsel.data.frames import has_named_columns, is_frame, pandas_of, renamed
from dsel.data.memory_rows import (
    from_dask,
    from_dask_frame,
    from_file,
    from_frame,
    from_memory,
    with_checked_names,
)
from dsel.data.parquet_rows import from_parquet, has_parquet
from dsel.data.pool import Pool
from dsel.data.sparse_zarr import check_parts, from_parts
from dsel.data.tables import PARQUET, UNREADABLE
from dsel.data.zarr_rows import (
    check_chunks,
    from_zarr,
    guarded,
    place_of,
    stored_columns,
)
from dsel.errors import reaching
from dsel.stores import BAD_HEADER, POOL, check_array

COMPLETE: Final = "complete"
"""Attribute of a zarr pool that dsel wrote: whether every row is there."""

NUMERIC: Final = "buif"


def open_pool(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Pool:
    """Open unlabeled rows as a pool; rows are read when they are used.

    Parameters
    ----------
    source
        A numpy array or memory map, a data frame of pandas, polars or Arrow, a scipy
        sparse matrix, a Dask array or data frame, a zarr array, a DataArray, the path
        or URL of a zarr pool, of a Parquet file or of a folder of them (partitioned
        ones too), the path of an ``.npy`` file, or a pool, which is returned as it is.
        Two-dimensional; columns of data frames may have any type, all else is numeric.
        A Dask collection whose chunk lengths are unknown is read once to count them.
        Each of its chunks is computed by itself: what all chunks depend on, such as
        means of columns, is computed again for each of them, so persist it first.
    columns
        Names of the columns, where the source has none; of Parquet files, the columns
        to read.
    storage_options
        For fsspec, where the source is a URL; else unused.

    Returns
    -------
    Pool
        The rows with their global row numbers.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    TypeError
        Where the source is of no such kind, an array that is not numeric, or files
        that differ in their types.
    ModuleNotFoundError
        Where a URL needs a package that is not installed.
    ValueError
        Where it is no pool, not two-dimensional, or was not written to the end.

    See Also
    --------
    write_pool : Converts rows to zarr, chunk by chunk.

    Examples
    --------
    >>> open_pool(np.zeros((3, 2)), columns=["a", "b"])
    <Pool: 3 rows x 2 columns, float64, 1 chunks, 0.0 MiB>
    """
    if isinstance(source, Pool):
        return source
    names = None if columns is None else tuple(map(str, columns))
    if isinstance(source, (str, Path)):
        rows = _open_location(str(source), names, dict(storage_options or {}))
    else:
        rows = _open_object(source, names)
    if rows.columns is not None:
        check_number_of_names(rows.columns, int(rows.array.shape[1]))
    return Pool(rows)


def _open_object(source: Any, names: tuple[str, ...] | None) -> Collection:
    if sparse.issparse(source):
        return _from_sparse(source, names)
    if hasattr(source, "to_dask_array"):
        return _from_dask_frame(source, names)
    if is_frame(source):
        return _from_frame(source, names)
    if isinstance(source, zarr.Array):
        _check_array(source)
        place, options = place_of(source)
        source = guarded(source) if POOL in source.attrs else source
        columns = names or stored_columns(source.attrs)
        return from_zarr(source, columns, place, options)
    if hasattr(source, "dims") and hasattr(source, "coords"):
        names = names or _coordinate_names(source)
        source = source.data
    if hasattr(source, "dask"):
        _check_array(source)
        return from_dask(source, names)
    if isinstance(source, np.memmap) and source.flags.c_contiguous:
        _check_array(source)
        return from_file(source, names)
    if isinstance(source, (np.ndarray, list, tuple)):
        array = np.asarray(source)
        _check_array(array)
        return from_memory(array, names)
    raise TypeError(
        "`pool` must be an array, a data frame, a sparse matrix, a Dask or zarr array, "
        f"or the path of a pool, got {type(source).__name__}."
    )


def _from_sparse(source: Any, names: tuple[str, ...] | None) -> Collection:
    _check_array(source)
    return from_memory(summed(sparse.csr_matrix(source)), names)


def _from_frame(source: Any, names: tuple[str, ...] | None) -> Collection:
    """Return rows of numbers as an array, which blocks are cut from without a copy."""
    if not has_named_columns(source):
        return from_memory(_frame_values(source), names or _texts(source.columns))
    if names is not None:
        source = renamed(source, names)
    frames = from_frame(source)
    if not frames.array.schema.is_numeric:
        return frames
    values = _frame_values(source if hasattr(source, "iloc") else pandas_of(source))
    return replace(from_memory(values, frames.columns), frames=lambda: frames)


def _from_dask_frame(source: Any, names: tuple[str, ...] | None) -> Collection:
    if names is not None:
        source = source.rename(columns=dict(zip(source.columns, names, strict=True)))
    source = with_checked_names(source)
    if any(getattr(dtype, "kind", "O") not in NUMERIC for dtype in source.dtypes):
        return from_dask_frame(source)
    rows = from_dask(source.to_dask_array(), _texts(source.columns))
    lengths = rows.array.chunks[0]
    return replace(rows, frames=partial(from_dask_frame, source, lengths))


def _texts(names: Any) -> tuple[str, ...]:
    return tuple(map(str, names))


def _frame_values(frame: Any) -> Any:
    """Return a frame's numbers; of types that have none in common, as float64."""
    values = frame.to_numpy()
    if values.dtype.kind in NUMERIC:
        return values
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _coordinate_names(source: Any) -> tuple[str, ...] | None:
    if source.ndim != 2 or source.dims[1] not in source.coords:
        return None
    return tuple(str(name) for name in source.coords[source.dims[1]].values)


def _open_location(
    location: str, names: tuple[str, ...] | None, options: dict[str, Any]
) -> Collection:
    if "://" in location:
        check_url(location, "pool")
    elif not os.path.exists(location):
        raise FileNotFoundError(
            f"`pool` must be a pool that exists, but there is nothing at {location!r}."
        )
    if location.endswith(".npy"):
        return _open_object(_mapped(location), names)
    place = rooted(location)
    options = options if "://" in place else {}
    if location.lower().rstrip("/").endswith(PARQUET):
        return from_parquet(place, names, options)
    try:
        node = _open_zarr(place, location, options)
    except ValueError:
        if has_parquet(place, options):
            return from_parquet(place, names, options)
        raise
    if node.attrs.get(COMPLETE) is False:
        raise ValueError(
            f"`pool` {location!r} was not written to the end; run the same "
            "`write_pool` or `dsel pool build` again, it goes on where it stopped."
        )
    node = guarded(node) if POOL in node.attrs else node
    if isinstance(node, zarr.Group) and node.attrs.get(POOL) == "csr":
        check_parts(node, location)
        return from_parts(node, names or stored_columns(node.attrs), place, options)
    array = node if isinstance(node, zarr.Array) else _only_array(node, location)
    _check_array(array)
    url = f"{place.rstrip('/')}/{array.path}".rstrip("/")
    check_chunks(array, location)
    return from_zarr(array, names or stored_columns(array.attrs), url, options)


def _mapped(path: str) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise ValueError(
            f"`pool` {path!r} is no pool: {str(error).rstrip('.')}. Save a numeric "
            f"array."
        ) from error


def rooted(location: str) -> str:
    """Return a path from the root on, for tasks that run elsewhere; a URL as it is.

    A URL of a local place becomes its path: fsspec makes no folders there.
    """
    if location.startswith(("file://", "local://")):
        return str(strip_protocol(location))
    return location if "://" in location else os.path.abspath(location)


def _open_zarr(place: str, location: str, options: dict[str, Any]) -> Any:
    try:
        with reaching(f"`pool` {location!r}"):
            return zarr.open(place, mode="r", storage_options=options or None)
    except FileNotFoundError as error:
        raise ValueError(
            f"`pool` {location!r} is no pool: no zarr array is there. Convert tables "
            "with `write_pool` or `dsel pool build`."
        ) from error
    except BAD_HEADER as error:
        raise ValueError(
            f"`pool` {location!r} is no pool: its zarr.json cannot be read ({error}); "
            "write the pool again."
        ) from error


def _only_array(group: Any, location: str) -> Any:
    arrays = {name: array for name, array in group.arrays() if array.ndim == 2}
    if len(arrays) != 1:
        found = ", ".join(sorted(arrays)) or "none"
        raise ValueError(
            f"`pool` {location!r} must hold exactly one two-dimensional array, found "
            f"{found}; name one as {location.rstrip('/')}/NAME."
        )
    return next(iter(arrays.values()))


def _check_array(array: Any) -> None:
    if len(array.shape) != 2:
        raise ValueError(
            "`pool` must be two-dimensional, rows by columns, "
            f"got shape {tuple(array.shape)}."
        )
    if np.dtype(array.dtype).kind not in NUMERIC:
        raise TypeError(f"`pool` must be numeric, got values of type {array.dtype}.")
    if isinstance(array, zarr.Array):
        check_array(array)
        _check_unpacked(array)


def _check_unpacked(array: Any) -> None:
    """Raise ValueError where values stand for others, by attributes of xarray."""
    packed = array.attrs.get("scale_factor", 1), array.attrs.get("add_offset", 0)
    if packed != (1, 0):
        raise ValueError(
            f"`pool` at {array.store} holds packed numbers (scale_factor {packed[0]}, "
            f"add_offset {packed[1]}); open it by xarray.open_zarr, and pass the "
            f"DataArray."
        )
