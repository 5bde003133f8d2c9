"""Rows in zarr, on disk or in object storage: read, checked, and told by stamps."""

import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import fsspec
import zarr
from dask.base import tokenize
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from dsel.data.collection import Collection, array_of_reads
from dsel.stores import WholeStore

COLUMNS: Final = "columns"
"""Attribute of a zarr pool: names of its columns."""

_STAMPS: Final = (
    *("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "modified"),
    "created",
)
"""How file systems call what changes when a file is written, the best first."""


def from_zarr(
    array: Any,
    columns: tuple[str, ...] | None,
    url: str | None,
    storage_options: Mapping[str, Any],
) -> Collection:
    """Return the collection of a numeric 2-d zarr array, which tasks read themselves.

    `url` is where it is, if that is known. Options for fsspec may hold secrets: they
    are neither shown nor stored, nor part of a graph.
    """
    rows = array_of_reads(array, array.chunks[0])
    if url is None:  # as one in memory, it is itself and no other
        tell = partial(_told_by_chance, uuid.uuid4().hex)
    else:
        tell = partial(told_by_stamps, url, storage_options)
    return Collection(
        rows, columns, rows.nbytes, tell, where=f"`pool` at {array.store}"
    )


def _told_by_chance(name: str) -> tuple[str, bool]:
    return f"zarr-{name}", False


def told_by_stamps(
    url: str, storage_options: Mapping[str, Any], *head: Any
) -> tuple[str, bool]:
    """Hash size and stamp of every file at a place; tell whether all have a stamp.

    The place itself is left out: a copy that keeps the times (``cp -a``, ``rsync -a``)
    has the same stamps.
    """
    stamps = file_stamps(url, storage_options)
    return f"files-{tokenize(stamps, *head)}", all(stamp for _, _, stamp in stamps)


def file_stamps(
    url: str, storage_options: Mapping[str, Any]
) -> list[tuple[str, Any, str]]:
    """Return name, size and stamp of every file under `url`; "" where there is none."""
    files, root = fsspec.core.url_to_fs(url, **storage_options)
    files.invalidate_cache(root)  # what was listed before may have been written since
    return [
        (
            name.removeprefix(root),
            entry.get("size"),
            next((str(entry[key]) for key in _STAMPS if entry.get(key)), ""),
        )
        for name, entry in sorted(files.find(root, detail=True).items())
        if not name.endswith(".partial")
    ]


def place_of(array: Any) -> tuple[str | None, dict[str, Any]]:
    """Return path or URL of an open zarr array, and the options to reach it by.

    None where its store has neither.
    """
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


def stored_columns(attributes: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the column names in the attributes of a zarr pool, if there are any."""
    names = attributes.get(COLUMNS)
    return tuple(map(str, names)) if isinstance(names, list) else None


def guarded(array: Any) -> Any:
    """Return a pool that dsel wrote such that a chunk that is lost is an error.

    Zarr would read it as zeros.
    """
    return zarr.open(WholeStore(array.store), path=array.path, mode="r")


def check_chunks(array: Any, location: str) -> None:
    """Raise ValueError where no chunk of some rows is stored: lost, or never written.

    A chunk of some columns may be left out: zarr does so where it holds zeros only.
    """
    stored = sync(_stored_keys(array)) if array.size else set()
    if not stored:  # a place that does not list what it has
        return
    lengths = array.shards or array.chunks
    n_rows, n_beside = (-(-n // m) for n, m in zip(array.shape, lengths, strict=True))
    key_of = array.metadata.encode_chunk_key
    for number in range(n_rows):
        if stored.isdisjoint(key_of((number, j)) for j in range(n_beside)):
            first = number * lengths[0]
            last = min(first + lengths[0], array.shape[0]) - 1
            raise ValueError(
                f"`pool` {location!r} is damaged, or was not written to the end: "
                f"nothing is stored for rows {first} to {last}. Write it again with "
                f"`write_pool`; if zarr left them out as zeros, pass the open array."
            )


async def _stored_keys(node: Any) -> set[str]:
    """Return the names of all that is stored under a node, its header among them."""
    prefix = f"{node.path}/" if node.path else ""
    return {key.removeprefix(prefix) async for key in node.store.list_prefix(prefix)}
