"""Rows in zarr arrays on disk or in object storage."""

import uuid
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any, Final

import fsspec
import numpy as np
import xarray as xr
import zarr
from dask.base import tokenize
from xarray.backends.zarr import FillValueCoder
from zarr.storage import FsspecStore, LocalStore

from dsel.checks import show
from dsel.data.frames import NUMERIC
from dsel.data.pool import Pool, pool_of_slices
from dsel.data.pool_parts import Origin
from dsel.errors import explain_store_errors
from dsel.zarr_stores import BAD_HEADER, POOL, WholeStore, check_array

COLUMNS: Final = "columns"
"""Attribute of a zarr pool with the names of its columns."""
COMPLETE: Final = "complete"
"""Attribute of dsel's zarr pools that is True once every row is written."""

FILL_VALUE: Final = "_FillValue"
DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
"""Attribute with the dimension names in arrays that xarray wrote in zarr format 2."""
MEANINGS: Final = (
    FILL_VALUE,
    "missing_value",
    "scale_factor",
    "add_offset",
    "_Unsigned",
    "dtype",
    "units",
    "calendar",
)
"""Attributes by which xarray decodes stored numbers, as in netCDF."""
_STAMPS: Final = (
    "ETag",
    "etag",
    "md5Hash",
    "mtime",
    "LastModified",
    "last_modified",
    "modified",
    "created",
)
"""Names that file systems use for a stamp that changes with each write, best first."""


def from_zarr(
    array: Any,
    url: str | None,
    options: Mapping[str, object],
    *,
    is_whole: bool = False,
) -> Pool:
    """Return the rows of a zarr array, with its `url` if known.

    Options for fsspec may hold credentials, so they do not become part of a graph.
    """
    where = f"`pool` at {array.store}"
    if POOL in array.attrs:  # in dsel's pools a lost chunk is an error, not zeros
        array = zarr.open(WholeStore(array.store), path=array.path, mode="r")
    check_array(array)
    # An array at an unknown location gets an identity that no other array has.
    origin = Origin(f"zarr-{uuid.uuid4().hex}", is_content=False)
    if url:
        origin = origin_of(url, options)
        if is_whole and array.size:
            _check_chunks(array, set(origin.stamps), where)
    read: Any = partial(getitem, array)
    if meanings := meanings_of(array):
        read = partial(read_and_decode, array, meanings)
    return pool_of_slices(
        read,
        read(slice(0, 0)),
        array.shape[0],
        replace(origin, location=where),
        chunk_rows=array.chunks[0],
        columns=stored_columns(array.attrs, where),
    )


def meanings_of(array: Any) -> dict[str, Any]:
    """Return the attributes by which xarray decodes stored numbers (scale, fill value).

    In format 2 the fill value of an array of xarray is a gap, in format 3 it is a
    value. Arrays that plain zarr wrote have no such attributes, and their fill value is
    a value.
    """
    meanings = {name: array.attrs[name] for name in MEANINGS if name in array.attrs}
    fill = meanings.get(FILL_VALUE)
    if array.metadata.zarr_format == 2 and DIMENSIONS in array.attrs:
        if array.fill_value is not None:
            meanings[FILL_VALUE] = array.fill_value
    elif isinstance(fill, str):  # encoded floats, as JSON has no NaN
        try:
            meanings[FILL_VALUE] = FillValueCoder.decode(fill, array.dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the array at {array.store} of {array.dtype} has the attribute "
                f"{FILL_VALUE} {show(fill)}, which xarray cannot decode either "
                f"({error}); write it by xarray, or as a number."
            ) from error
    if POOL in array.attrs:  # dsel's pools hold plain numbers
        return {}
    if " since " not in str(meanings.get("units", "")) and "dtype" not in meanings:
        meanings.pop("units", None)  # the unit of a measurement, not of a time
    return meanings


def read_and_decode(array: Any, meanings: Mapping[str, Any], rows: Any) -> Any:
    """Return some rows of a zarr array as xarray decodes them."""
    values = np.asarray(array[rows])
    dims = [f"dim_{axis}" for axis in range(values.ndim)]
    stored = xr.Dataset({"rows": (dims, values, dict(meanings))})
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            decoded = xr.decode_cf(stored)["rows"].to_numpy()
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"the array at {array.store} has attributes that xarray cannot decode "
            f"({dict(meanings)}: {' '.join(str(error).split())}); write it again."
        ) from error
    if decoded.dtype.kind not in NUMERIC:
        raise TypeError(
            f"the array at {array.store} holds {decoded.dtype} by its attributes "
            f"{dict(meanings)}; pass numbers, or times as columns of a table."
        )
    return decoded


def _check_chunks(array: Any, stored: set[str], where: str) -> None:
    """Raise ValueError where all chunks of some rows are lost, or were never written.

    Chunks of some columns may be missing: zarr leaves out chunks of zeros.
    """
    lengths, key_of = array.shards or array.chunks, array.metadata.encode_chunk_key
    n_rows, n_columns = (-(-n // m) for n, m in zip(array.shape, lengths, strict=True))
    # `stored` is empty for file systems that cannot list their files.
    for chunk_number in range(n_rows if stored else 0):
        if stored.isdisjoint(key_of((chunk_number, j)) for j in range(n_columns)):
            first = chunk_number * lengths[0]
            last = min(first + lengths[0], array.shape[0]) - 1
            raise ValueError(
                f"{where} is damaged, or was not written to the end: "
                f"nothing is stored for rows {first} to {last}. Write it again with "
                f"`write_pool`; if zarr left them out as zeros, pass the open array."
            )


def open_node(
    place: str, options: Mapping[str, object], name: str, advice: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of the zarr node at a place, and its arrays by name."""
    try:
        with explain_store_errors(name):
            node: Any = zarr.open(
                place, mode="r", storage_options=dict(options) or None
            )
            is_array = isinstance(node, zarr.Array)
            arrays = {"": node} if is_array else dict(node.arrays())
            return dict(node.attrs), arrays
    # The error of zarr is a ValueError, too, so it comes first.
    except FileNotFoundError:
        raise
    except BAD_HEADER as error:
        message = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{name} is no pool: its zarr.json cannot be read ({message}); {advice}."
        ) from error


def open_zarr(place: str, location: str, options: Mapping[str, object]) -> Any:
    """Open the one complete table at a location, or raise ValueError.

    It returns None for a group that xarray wrote with a variable for each column.
    """
    name = f"`pool` {location!r}"
    try:
        attributes, arrays = open_node(place, options, name, "write the pool again")
    except FileNotFoundError as error:
        raise ValueError(
            f"{name} is no pool: no zarr array is there. Convert tables with "
            "`write_pool` or `dsel pool build`."
        ) from error
    if attributes.get(COMPLETE) is not True and POOL in attributes:
        raise ValueError(
            f"{name} was not written to the end; write it again with `write_pool` or "
            f"`dsel pool build`."
        )
    if "" not in arrays:
        every = arrays
        arrays = {key: array for key, array in arrays.items() if array.ndim == 2}
        if not arrays and len({*map(dimensions_of, every.values())} - {()}) == 1:
            for array in every.values():
                check_array(array)
            return None
        if len(arrays) != 1:
            array_names = ", ".join(sorted(arrays)) or "none"
            raise ValueError(
                f"{name} must hold exactly one two-dimensional array, found "
                f"{array_names}; name one as {location.rstrip('/')}/NAME."
            )
    return next(iter(arrays.values()))


def origin_of(url: str, options: Mapping[str, object]) -> Origin:
    """Return the origin of rows in files, with a stamp of their content.

    The location is not part of the stamp: a copy that keeps the times (``cp -a``,
    ``rsync -a``) has the same stamp.
    """
    stamps = read_stamps(url, options)
    # Some locations, such as http, list no files; then the URL is the identity.
    is_content = bool(stamps) and all(stamp for _, stamp in stamps.values())
    return Origin(
        f"files-{tokenize(stamps or url)}",
        is_content,
        stamps=stamps,
        read_stamps=partial(read_stamps, url, options),
    )


def dimensions_of(array: Any) -> tuple[str, ...]:
    """Return the dimension names that xarray has stored with an array; () without."""
    names = getattr(array.metadata, "dimension_names", None)
    return tuple(map(str, names or array.attrs.get(DIMENSIONS) or ()))


def read_stamps(
    url: str, options: Mapping[str, object]
) -> dict[str, tuple[int | None, str]]:
    """Return sizes and times (or ETags) of the files at a location, by name.

    A location that is a single file has the name "".
    """
    with explain_store_errors(f"`pool` {url!r}"):
        files, root = fsspec.core.url_to_fs(url, **options)
        files.invalidate_cache(root)  # a cached listing may be out of date
        entries = files.find(root, detail=True)
    return {
        name.removeprefix(root).lstrip("/"): (
            entry.get("size"),
            next((str(entry[key]) for key in _STAMPS if entry.get(key)), ""),
        )
        for name, entry in sorted(entries.items())
        if not name.endswith(".partial")
    }


def place_of(array: Any) -> tuple[str | None, dict[str, Any]]:
    """Return path or URL of an open zarr array, or None, and its storage options."""
    store = array.store
    if isinstance(store, LocalStore):
        return str(Path(store.root) / array.path), {}
    if not isinstance(store, FsspecStore):
        return None, {}
    files = getattr(store.fs, "sync_fs", store.fs)
    only_here = ("asynchronous", "loop")
    options = {k: v for k, v in files.storage_options.items() if k not in only_here}
    return files.unstrip_protocol(f"{store.path}/{array.path}".rstrip("/")), options


def stored_columns(
    attributes: Mapping[str, object], where: str
) -> tuple[str, ...] | None:
    """Return the column names that a zarr pool has in its attributes, if any."""
    names = attributes.get(COLUMNS)
    if isinstance(names, list):
        return tuple(map(str, names))
    if POOL in attributes and names is not None:
        raise ValueError(
            f"{where} is damaged: its attribute {COLUMNS!r} must be a list of names, "
            f"got {show(names)}; write the pool again."
        )
    return None
