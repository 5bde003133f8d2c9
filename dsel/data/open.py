"""Opening a pool from whatever holds its rows."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
from fsspec.core import strip_protocol
from scipy import sparse

from dsel.checks import check_url
from dsel.data.arrays import ArrayStorage, MemmapStorage, SparseStorage
from dsel.data.base import Storage
from dsel.data.lost_rows import check_chunks, check_parts, guarded
from dsel.data.pool import Pool
from dsel.data.streams import UNREADABLE
from dsel.data.zarr_rows import ZarrStorage, place_of
from dsel.data.zarr_sparse import ZarrSparseStorage, is_sparse_group
from dsel.errors import reaching
from dsel.stores import BAD_HEADER, check_array

COLUMNS: Final = "columns"
"""Attribute of a zarr pool: names of its columns."""
FORMAT: Final = "dsel_pool"
"""Attribute of a zarr pool that dsel wrote: ``dense`` or ``csr``."""
COMPLETE: Final = "complete"
"""Attribute of a zarr pool that dsel wrote: whether every row is there."""

NUMERIC: Final = "buif"


def open_pool(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Pool:
    """Open unlabeled rows as a pool; nothing is read that can wait.

    Parameters
    ----------
    source
        A numpy array or memory map, a data frame, a scipy sparse matrix, a Dask
        array or data frame, a zarr array, a DataArray, the path or URL of a zarr pool
        or of an ``.npy`` file, or a pool, which is returned as it is. Two-dimensional
        and numeric. A Dask collection of unknown chunk lengths is passed over once.
    columns
        Names of the columns, where the source has none.
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
        Where the source is of no such kind, or not numeric.
    ModuleNotFoundError
        Where a URL needs a package that is not installed.
    ValueError
        Where it is no pool, not two-dimensional, or was not written to the end.

    Examples
    --------
    >>> open_pool(np.zeros((3, 2)), columns=["a", "b"])
    <Pool: 3 rows x 2 columns, float64, 1 chunks, 0.0 MiB>
    """
    if isinstance(source, Pool):
        return source
    names = None if columns is None else tuple(map(str, columns))
    if isinstance(source, (str, Path)):
        storage = _open_location(str(source), names, dict(storage_options or {}))
    else:
        storage = _open_object(source, names)
    _check_names(storage)
    return Pool(storage)


def _open_object(source: Any, names: tuple[str, ...] | None) -> Storage:
    if sparse.issparse(source):
        return _sparse_storage(source, names)
    if hasattr(source, "iloc") and hasattr(source, "dtypes"):
        _check_columns(source)
        names = names or tuple(map(str, source.columns))
        if hasattr(source, "to_dask_array"):
            return _dask_storage(source.to_dask_array(), names)
        return ArrayStorage(_frame_values(source), names)
    if isinstance(source, zarr.Array):
        _check_array(source)
        place, options = place_of(source)
        source = guarded(source) if FORMAT in source.attrs else source
        columns = names or stored_columns(source.attrs)
        return ZarrStorage(source, columns, place, options)
    if hasattr(source, "dims") and hasattr(source, "coords"):
        names = names or _coordinate_names(source)
        source = source.data
    if hasattr(source, "dask"):
        return _dask_storage(source, names)
    if isinstance(source, np.memmap) and source.flags.c_contiguous:
        _check_array(source)
        return MemmapStorage(source, names)
    if isinstance(source, (np.ndarray, list, tuple)):
        array = np.asarray(source)
        _check_array(array)
        return ArrayStorage(array, names)
    raise TypeError(
        "`pool` must be an array, a data frame, a sparse matrix, a Dask or zarr array, "
        f"or the path of a pool, got {type(source).__name__}."
    )


def _sparse_storage(source: Any, names: tuple[str, ...] | None) -> SparseStorage:
    _check_array(source)
    matrix = sparse.csr_matrix(source)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return SparseStorage(matrix, names)


def _check_columns(source: Any) -> None:
    for name, dtype in source.dtypes.items():
        if getattr(dtype, "kind", "O") not in NUMERIC:
            raise TypeError(
                f"`pool` must be numeric, but column {name!r} holds {dtype}; encode it "
                "as numbers, or leave it out."
            )


def _frame_values(frame: Any) -> Any:
    """Return a frame's numbers; of types that have none in common, as float64."""
    values = frame.to_numpy()
    if values.dtype.kind in NUMERIC:
        return values
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _dask_storage(source: Any, names: tuple[str, ...] | None) -> Storage:
    # Only here: a pool that is no Dask array needs no dask.array.
    from dsel.data.dask_rows import DaskStorage, with_known_chunks

    _check_array(source)
    return DaskStorage(with_known_chunks(source), names)


def _coordinate_names(source: Any) -> tuple[str, ...] | None:
    if source.ndim != 2 or source.dims[1] not in source.coords:
        return None
    return tuple(str(name) for name in source.coords[source.dims[1]].values)


def _open_location(
    location: str, names: tuple[str, ...] | None, options: dict[str, Any]
) -> Storage:
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
    node = _open_zarr(place, location, options)
    if node.attrs.get(COMPLETE) is False:
        raise ValueError(
            f"`pool` {location!r} was not written to the end; run the same "
            "`write_pool` again, it goes on where it stopped."
        )
    node = guarded(node) if FORMAT in node.attrs else node
    if is_sparse_group(node, FORMAT):
        columns = names or stored_columns(node.attrs)
        parts = ZarrSparseStorage(node, columns, place, options)
        check_parts(node, parts.layout, location)
        return parts
    array = node if isinstance(node, zarr.Array) else _only_array(node, location)
    _check_array(array)
    url = f"{place.rstrip('/')}/{array.path}".rstrip("/")
    dense = ZarrStorage(array, names or stored_columns(array.attrs), url, options)
    check_chunks(array, dense.layout, location)
    return dense


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


def stored_columns(attributes: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the column names in the attributes of a zarr pool, if there are any."""
    names = attributes.get(COLUMNS)
    return tuple(map(str, names)) if isinstance(names, list) else None


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


def _check_names(storage: Storage) -> None:
    names, n_columns = storage.layout.columns, storage.layout.n_columns
    if names is not None and len(names) != n_columns:
        raise ValueError(
            f"`columns` must name each of the {n_columns} columns, got {len(names)} "
            "names."
        )
