"""Rows in zarr, on disk or in object storage: read, checked, and told by stamps."""

import uuid
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from operator import getitem
from pathlib import Path
from typing import Any, Final

import fsspec
import numpy as np
import zarr
from dask.base import tokenize
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from dsel.data.pool import Pool, edges_of_blocks, in_blocks
from dsel.errors import reaching
from dsel.stores import BAD_HEADER, POOL, WholeStore, check_array

COLUMNS: Final = "columns"
"""Attribute of a zarr pool: names of its columns."""
COMPLETE: Final = "complete"
"""Attribute of a zarr pool that dsel wrote: whether every row is there."""

_STAMPS: Final = (
    "ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "modified",
    "created",
)  # fmt: skip
"""How file systems call what changes when a file is written, the best first."""


def from_zarr(array: Any, url: str | None, options: Mapping[str, Any]) -> Pool:
    """Return the rows of a numeric 2-d zarr array, which tasks read themselves.

    `url` is where it is, if that is known. Options for fsspec may hold secrets: they
    are neither shown nor stored, nor part of a graph.
    """
    where = f"`pool` at {array.store}"
    packed = array.attrs.get("scale_factor", 1), array.attrs.get("add_offset", 0)
    if packed != (1, 0):  # by which xarray says that values stand for others
        raise ValueError(
            f"{where} holds packed numbers (scale_factor {packed[0]}, "
            f"add_offset {packed[1]}); open it by xarray.open_zarr, and pass the "
            f"DataArray."
        )
    if POOL in array.attrs:  # such that a chunk that is lost is an error, not zeros
        array = zarr.open(WholeStore(array.store), path=array.path, mode="r")
    check_array(array)
    n_rows, n_columns = array.shape
    edges = edges_of_blocks(n_rows, array.chunks[0], n_columns * array.dtype.itemsize)
    # An array whose place is not known is itself and no other.
    unique = {"name": f"zarr-{uuid.uuid4().hex}", "is_content": False}
    return in_blocks(
        [(partial(getitem, array, slice(*ends)),) for ends in pairwise(edges)],
        np.diff(edges),
        array,
        columns=stored_columns(array.attrs, where),
        where=where,
        **(stamped(url, options) if url else unique),
    )


def open_node(
    place: str, options: Mapping[str, Any], name: str, way: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of what zarr has at a place, and its arrays by name.

    Raises ValueError where a head is damaged; it calls the place `name`, and a way out.
    """
    try:
        with reaching(name):
            node: Any = zarr.open(
                place, mode="r", storage_options=dict(options) or None
            )
            is_array = isinstance(node, zarr.Array)
            arrays = {"": node} if is_array else dict(node.arrays())
            for each in (node, *arrays.values()):
                if not isinstance(each.metadata.attributes, dict):
                    raise TypeError("attributes are no object")
            for array in arrays.values():
                if array.size and 0 in (*array.chunks, *(array.shards or ())):
                    raise ValueError("chunks of no rows")
            return dict(node.attrs), arrays
    except FileNotFoundError:  # which zarr's own is, and a ValueError
        raise
    except BAD_HEADER as error:
        told = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{name} is no pool: its zarr.json cannot be read ({told}); {way}."
        ) from error


def open_zarr(place: str, location: str, options: Mapping[str, Any]) -> Any:
    """Open the one table at a place that holds every row, or raise ValueError."""
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
        arrays = {each: array for each, array in arrays.items() if array.ndim == 2}
        if len(arrays) != 1:
            found = ", ".join(sorted(arrays)) or "none"
            raise ValueError(
                f"{name} must hold exactly one two-dimensional array, found {found}; "
                f"name one as {location.rstrip('/')}/NAME."
            )
    (node,) = arrays.values()
    if node.ndim != 2 or not node.size:
        return node
    # Of all columns no chunk of some rows may be missing: lost, or never written. One
    # of some columns may: zarr leaves it out where it holds zeros only.
    stored = sync(_stored_keys(node))
    lengths, key_of = node.shards or node.chunks, node.metadata.encode_chunk_key
    n_rows, n_beside = (-(-n // m) for n, m in zip(node.shape, lengths, strict=True))
    for number in range(n_rows if stored else 0):  # not all places list what they have
        if stored.isdisjoint(key_of((number, j)) for j in range(n_beside)):
            first = number * lengths[0]
            last = min(first + lengths[0], node.shape[0]) - 1
            raise ValueError(
                f"{name} is damaged, or was not written to the end: "
                f"nothing is stored for rows {first} to {last}. Write it again with "
                f"`write_pool`; if zarr left them out as zeros, pass the open array."
            )
    return node


async def _stored_keys(node: Any) -> set[str]:
    prefix = f"{node.path}/" if node.path else ""
    return {key.removeprefix(prefix) async for key in node.store.list_prefix(prefix)}


def stamped(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pool's `name` by name, size and stamp of every file at a place.

    The place itself is left out: a copy that keeps the times (``cp -a``, ``rsync -a``)
    has the same stamps. `is_content` says whether every file has a stamp.
    """
    files, root = fsspec.core.url_to_fs(url, **options)
    files.invalidate_cache(root)  # what was listed before may have been written since
    stamps = [
        (
            name.removeprefix(root),
            entry.get("size"),
            next((str(entry[key]) for key in _STAMPS if entry.get(key)), ""),
        )
        for name, entry in sorted(files.find(root, detail=True).items())
        if not name.endswith(".partial")
    ]
    is_content = all(stamp for _, _, stamp in stamps)
    return {"name": f"files-{tokenize(stamps)}", "is_content": is_content}


def place_of(array: Any) -> tuple[str | None, dict[str, Any]]:
    """Return path or URL of an open zarr array or None, and options to reach it by."""
    store = array.store
    if isinstance(store, LocalStore):
        return str(Path(store.root) / array.path), {}
    if not isinstance(store, FsspecStore):
        return None, {}
    files = getattr(store.fs, "sync_fs", store.fs)
    options = dict(files.storage_options)
    for only_here in ("asynchronous", "loop"):
        options.pop(only_here, None)
    return files.unstrip_protocol(f"{store.path}/{array.path}".rstrip("/")), options


def stored_columns(attributes: Mapping[str, Any], where: str) -> tuple[str, ...] | None:
    """Return the column names that a zarr pool has in its attributes, if any."""
    names = attributes.get(COLUMNS)
    if isinstance(names, list):
        return tuple(map(str, names))
    if POOL in attributes and names is not None:
        raise ValueError(
            f"{where} is damaged: its attribute {COLUMNS!r} must be a list of names, "
            f"got {names!r}; write the pool again."
        )
    return None
